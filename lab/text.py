"""Reports: tables of text, means with errors, verdicts."""
import json
import os
from dataclasses import dataclass, field

import numpy as np

SURE = 2                                              # standard errors, for a verdict


@dataclass
class Report:
    """What a command found: words, the numbers they come from, pictures and pages by name."""
    text: str
    data: dict | None = None
    figures: dict = field(default_factory=dict)
    pages: dict = field(default_factory=dict)

    def save(self, o):
        """Print the words; write out/COMMAND.txt and .json, a .png for each picture, the pages."""
        print("\n" + self.text)
        pages = {f"{o.command}.txt": self.text, **self.pages}
        if self.data is not None:
            config = {"command": o.command, "seed": o.seed, "quick": o.quick}
            pages[f"{o.command}.json"] = json.dumps({"config": config, **self.data})
        o.out.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (o.out / name).write_text(text + "\n")
        for name, figure in self.figures.items():
            figure.savefig(o.out / f"{name}.png", dpi=150)
        print(f"\nwritten: {o.command}.txt and more in {os.path.relpath(o.out)}")


def text_table(header, rows):
    """An aligned table; the first column is text, the others numbers."""
    rows = [[str(x) for x in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [x.rjust(w) for x, w in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def markdown_table(header, rows):
    """The same in Markdown."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


def mean_sd(values, digits=0):
    """'mean ± standard deviation' of the runs; of one run, ± 0."""
    sd = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {sd:.{digits}f}"


def paired(x, y=0.0):
    """Mean and standard error of x - y over runs, the first axis; of one run, ± infinity."""
    difference = np.asarray(x, float) - y
    mean = difference.mean(0)
    if len(difference) < 2:
        return mean, np.full_like(mean, np.inf)
    return mean, difference.std(0, ddof=1) / np.sqrt(len(difference))


def plus_minus(value, error, digits=0):
    """'+12 ± 3'."""
    return f"{value:+.{digits}f} ± {error:.{digits}f}"


def share(part, whole):
    """mean(part) / mean(whole) over runs, and its standard error by the jackknife."""
    n = len(part)
    if not whole.sum() or not (whole.sum() - whole).all():
        return np.nan, np.nan                         # a share of nothing
    left_out = (part.sum() - part) / (whole.sum() - whole)
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return part.mean() / whole.mean(), error


def verdict(difference, error, bound=0.0):
    """Whether a paired difference is above a bound: beyond two standard errors, or unclear."""
    if difference - SURE * error > bound:
        return "supported"
    if difference + SURE * error < bound:
        return "not supported"
    return "unclear"                                  # as after a single run


def goal(text, wanted, measured, met):
    """A row of a table of goals."""
    return [text, wanted, measured, "met" if met else "NOT met"]


def growth(x, y, least=0, most=np.inf):
    """p of y ~ x^p by least squares in logarithms over least <= x <= most, and its error."""
    from scipy.stats import linregress  # slow to import
    chosen = [(u, v) for u, v in zip(x, y, strict=True) if least <= u <= most]
    fit = linregress(*np.log(chosen).T)
    return float(fit.slope), float(np.nan_to_num(fit.stderr))        # nan: y is constant


def rough(o):
    """The sentence that --quick adds."""
    return "\n\n--quick: few runs and steps, so not the figures to quote." if o.quick else ""
