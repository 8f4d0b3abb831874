"""Reports: tables of text, means with errors, verdicts."""
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Report:
    """What a command found: words, the numbers they come from, and pictures by name."""
    text: str
    data: dict | None = None
    figures: dict = field(default_factory=dict)

    def save(self, o):
        """Print the words; write out/COMMAND.txt and .json, and a .png for each picture."""
        o.out.mkdir(parents=True, exist_ok=True)
        print("\n" + self.text)
        (o.out / f"{o.command}.txt").write_text(self.text + "\n")
        written = [o.out / f"{o.command}.txt"]
        if self.data is not None:
            config = {"command": o.command, "seed": o.seed, "quick": o.quick}
            written.append(o.out / f"{o.command}.json")
            write_json(written[-1], {"config": config, **self.data})
        for name, figure in self.figures.items():
            written.append(o.out / f"{name}.png")
            figure.savefig(written[-1], dpi=150)
        print("\nwritten:", ", ".join(os.path.relpath(path) for path in written))


def write_json(path, data):
    """The file is whole at any moment: written beside and moved."""
    part = Path(f"{path}.part")
    part.write_text(json.dumps(data, separators=(",", ":")) + "\n")
    os.replace(part, path)


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


def spread(values):
    """Standard deviation of the runs; of one run, 0."""
    return np.std(values, ddof=1) if len(values) > 1 else 0.0


def mean_sd(values, digits=0):
    """'mean ± standard deviation' of the runs."""
    return f"{np.mean(values):.{digits}f} ± {spread(values):.{digits}f}"


def paired(x, y=0.0):
    """Mean and standard error of x - y, run by run."""
    difference = np.asarray(x, float) - np.asarray(y, float)
    if len(difference) < 2:
        return difference.mean(), np.inf
    return difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference))


def plus_minus(value, error, digits=0, unit=""):
    """'+12 ± 3'."""
    return f"{value:+.{digits}f} ± {error:.{digits}f}{unit}"


def share(part, whole):
    """mean(part) / mean(whole) over runs, and its standard error by the jackknife."""
    n = len(part)
    if not whole.sum() or not (whole.sum() - whole).all():
        return np.nan, np.nan                         # a share of nothing
    left_out = (part.sum() - part) / (whole.sum() - whole)
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return part.mean() / whole.mean(), error


def verdict(difference, error, bound=0.0):
    """Whether a paired difference is above a bound: beyond one standard error, or unclear."""
    if difference - error > bound:
        return "supported"
    if difference < bound and np.isfinite(error):
        return "not supported"
    return "unclear"                                  # as after a single run


def verdict_of(holds):
    """A claim without chance in it."""
    return "supported" if holds else "not supported"


def goal(text, wanted, measured, met):
    """A row of a table of goals."""
    return [text, wanted, measured, "met" if met else "NOT met"]


def growth(x, y, least=0, most=np.inf):
    """p of y ~ x^p by least squares in logarithms over least <= x <= most, and its error."""
    chosen = [(u, v) for u, v in zip(x, y, strict=True) if least <= u <= most]
    x, y = np.log(chosen).T
    x, y = x - x.mean(), y - y.mean()
    p = x @ y / (x @ x)
    residual = np.sum((y - p * x) ** 2) / max(len(x) - 2, 1)
    return float(p), float(np.sqrt(residual / (x @ x)))


def rough(o):
    """The sentence that --quick adds."""
    if not o.quick:
        return ""
    return "\n\n--quick: few runs and steps, so these figures are rough and not the ones to quote."
