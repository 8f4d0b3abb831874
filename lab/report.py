"""What a command says and draws: tables of text, one look for all pictures, and their files."""
import functools
import json
import os
from dataclasses import dataclass, field

import numpy as np

from lab import paper
from lab.statistics import LEVEL, grouped, paired, share, verdicts

STYLE = {  # of the algorithms, everywhere the same: Okabe-Ito colors, lines, markers
    "linear": {"color": "#999999", "linestyle": (0, (1, 1)), "marker": "x"},
    "neural-linear": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "both-priors": {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    "mu-prior": {"color": "#56B4E9", "linestyle": ":", "marker": "D"},
    "no-prior": {"color": "#CC79A7", "linestyle": (0, (5, 1)), "marker": "v"},
    "carried": {"color": "#0072B2", "linestyle": "-.", "marker": "^"},
    "recommended": {"color": "#E69F00", "linestyle": (0, (6, 1, 1, 1, 1, 1)), "marker": "P"},
    "greedy": {"color": "#BCA900", "linestyle": (0, (2, 2)), "marker": "<"},
    "perfect-prior": {"color": "#009E73", "linestyle": (0, (3, 1, 1, 1)), "marker": "*"},
}
PAIRED = ("Differences are paired by run, ± standard error. \"Supported\": above 0, or of \"as "
          "good as\" above minus the slack;\n\"not supported\": below; \"unclear\": neither. At "
          f"{LEVEL:.0%}, t-test with Holm's correction for all claims of the table.")


@dataclass
class Report:
    """What a command found: words, numbers that are in no file of runs, pictures and pages."""
    text: str
    data: dict | None = None
    figures: dict = field(default_factory=dict)
    pages: dict = field(default_factory=dict)

    def save(self, o):
        """Print the words; write out/COMMAND.txt and .json, a .png for each picture, the pages."""
        if o.quick:
            self.text += "\n\n--quick: few runs and steps. Do not quote these numbers."
        print("\n" + self.text)
        pages = {f"{o.command}.txt": self.text, **self.pages}
        if self.data is not None:
            pages[f"{o.command}.json"] = json.dumps(self.data)
        o.out.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (o.out / name).write_text(text + "\n", encoding="utf-8")
        for name, figure in self.figures.items():
            figure.savefig(o.out / f"{name}.png", dpi=150)
            pyplot().close(figure)
        print(f"\nwritten: {o.command}.txt and more in {os.path.relpath(o.out)}")


# Cells and tables ---------------------------------------------------------------------------------

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
    """'mean ± standard deviation' of the runs; of one run, the mean alone."""
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def plus_minus(value, error, digits=0):
    """'+12 ± 3'; of one run, '+12'."""
    text = f"{value:+.{digits}f}"
    return f"{text} ± {error:.{digits}f}" if np.isfinite(error) else text


def with_error(value, error, digits=0):
    """'12 ± 3'; of one run '12', of nothing 'n/a'."""
    if not np.isfinite(value):
        return "n/a"
    return f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if np.isfinite(error) else "")


def name_of(dataset):
    """How a data set is called in a table."""
    return dataset.capitalize()


def problem_of(line):
    """What a row is called: the data set, and of the wheel its radius."""
    radius = f", δ = {line['delta']}" if "delta" in line else ""
    return name_of(line["dataset"]) + radius


def label(line):
    """What a column is called: the algorithm, and which variant of it."""
    return ", ".join(filter(None, (line["algorithm"], line.get("variant"))))


def runs_of(lines):
    """'50 runs', of lines of results."""
    runs = 1 + max(line["run"] for line in lines)
    return f"{runs} run{'s' if runs > 1 else ''}"


# Sections that several commands have --------------------------------------------------------------

def rewards_text(lines, rewards, title="reward", printed=True):
    """Mean and standard deviation of the reward, ours and below it the paper's."""
    steps = {line["dataset"]: line["steps"] for line in lines}
    names, rows = list(grouped(lines, "algorithm")), []
    for d, own in rewards.items():
        cells = [mean_sd(own[name]) if name in own else "" for name in names]
        rows.append([name_of(d), steps[d], max(map(len, own.values())), *cells])
        if d in paper.TABLE and printed:
            cells = [paper.cell(paper.number(d, name)) for name in names]
            rows.append(["  in the paper", 5000, paper.RUNS, *cells])
    return text_table([title, "steps", "runs", *names], rows) + "\nmean ± standard deviation"


def lowest_text(rewards):
    """What the worst run of each algorithm earned: a row per problem, named."""
    names = list(dict.fromkeys(name for own in rewards.values() for name in own))
    rows = [[d, *(f"{own[name].min():.0f}" if name in own else "" for name in names)]
            for d, own in rewards.items()]
    return text_table(["reward of the worst run", *names], rows)


def explored_text(lines):
    """The share of plays that were not of the arm thought best: a row per problem, named."""
    named = [line | {"problem": problem_of(line), "label": label(line)} for line in lines]
    explored, rows = grouped(named, "problem", "label", value="explored"), []
    names = list(grouped(named, "label"))
    for d, own in explored.items():
        cells = [100 * np.array(own.get(name, []), float) for name in names]
        rows.append([d, *(f"{x.mean():.1f}" if len(x) else "" for x in cells)])
    return text_table(["exploration, %", *names], rows) + (
        "\nexploration: plays, after the initial pulls, of another arm than the one with the "
        "highest posterior mean")


@dataclass(frozen=True)
class Claim:
    """That one earns more than another; or, with some slack, nearly as much."""
    text: str
    better: np.ndarray             # by run
    worse: np.ndarray
    slack: float = 0.0             # of the worse one's mean
    printed: float | None = None   # the difference in the paper

    def margin(self):
        """By run: how far the claim holds."""
        return self.better - self.worse + self.slack * abs(np.mean(self.worse))


def better_than(better, worse, slack):
    """What a claim says."""
    if slack:
        return f"{better} as good as {worse} (within {slack:.0%} of its reward)"
    return f"{better} > {worse}"


def claims_text(title, claims, unit="reward gained", digits=1):
    """A row for each claim: what the better one gains here and in the paper, and a verdict."""
    rows = []
    for claim, verdict in zip(claims, verdicts([c.margin() for c in claims]), strict=True):
        gain = plus_minus(*paired(claim.better, claim.worse), digits)
        rows.append([claim.text, gain])
        if any(c.printed is not None for c in claims):
            rows[-1].append("" if claim.printed is None else f"{claim.printed:+.{digits}f}")
        rows[-1].append(verdict)
    header = [title, unit, *(["in the paper"] if rows and len(rows[0]) > 3 else []), ""]
    return text_table(header, rows) + "\n" + PAIRED


def minus_text(title, rewards, base):
    """The reward of one algorithm, and how much more the others earn: a row per data set."""
    rows, names = [], [name for name in next(iter(rewards.values())) if name != base]
    for d, own in rewards.items():
        gains = [plus_minus(*paired(own[name], own[base])) for name in names]
        rows.append([name_of(d), mean_sd(own[base]), *gains])
    return text_table([title, base, *(f"{name} − {base}" for name in names)], rows) + (
        "\nmean ± standard deviation; differences are paired by run, ± standard error")


KINDS = "neural-linear", "perfect-prior", "no-prior"


def whole(rewards):
    """The data sets on which both kinds of forgetting can be told: of two runs or more."""
    return {d: own for d, own in rewards.items()
            if set(KINDS) <= set(own) and len(own["no-prior"]) > 1}


def kinds(own):
    """Reward lost by the network and by the posterior, by run."""
    return own["neural-linear"] - own["perfect-prior"], own["perfect-prior"] - own["no-prior"]


def won_back(own, name):
    """The share of what the posterior forgets that a prior wins back, and its standard error."""
    return share(own[name] - own["no-prior"], own["perfect-prior"] - own["no-prior"])


def kinds_text(rewards):
    """Two kinds of forgetting, and what the paper's prior and ours win back."""
    priors = {"both-priors": "the paper's prior wins back, %", "carried": "ours wins back, %"}
    priors = {name: text for name, text in priors.items() if name in next(iter(rewards.values()))}
    rows, shares = [], []
    for d, own in rewards.items():
        back = [won_back(own, name) for name in priors]
        rows.append([name_of(d), *(plus_minus(*paired(x)) for x in kinds(own)),
                     *(with_error(100 * value, 100 * error) for value, error in back)])
        shares.append([value for value, _ in back])
    shares = [x for x in shares if np.isfinite(x).all()]
    if len(shares) > 1 and priors:
        rows.append(["Median", "", "", *(f"{100 * x:.0f}" for x in np.median(shares, 0))])
    header = ["two kinds of forgetting", "by the network", "by the posterior", *priors.values()]
    return text_table(header, rows) + (
        "\nby the network: full memory − perfect prior; by the posterior: perfect prior − no prior")


# Pictures -----------------------------------------------------------------------------------------

@functools.cache
def pyplot():
    """Matplotlib in our look; imported here because that is slow."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    pyplot.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
                            "figure.constrained_layout.use": True, "figure.titlesize": 9})
    return pyplot


def curve(axis, x, y, error, label, style):
    """A line with error bars, in the style of an algorithm."""
    axis.errorbar(x, y, error, label=label, markersize=4, capsize=2, **STYLE[style])


def draw_kinds(rewards, labels, title):
    """What each kind of forgetting costs, and what the paper's prior and ours win back."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(8.5, 1.5 + 0.42 * len(rewards)),
                                              sharey=True)
    rows = np.arange(len(rewards))
    bars = [("the network: full memory − perfect prior", -0.19, "#E69F00", "///"),
            ("the posterior: perfect prior − no prior", 0.19, "#0072B2", "")]
    for k, (text, shift, color, hatch) in enumerate(bars):
        lost = [paired(100 / own["neural-linear"].mean() * kinds(own)[k])
                for own in rewards.values()]
        value, error = np.transpose(lost)
        left.barh(rows + shift, value, 0.36, xerr=error, color=color, hatch=hatch, linewidth=0.5,
                  edgecolor="black", label=text, error_kw={"linewidth": 0.8, "capsize": 2})
    for name, shift, inside in (("both-priors", -0.12, "white"), ("carried", 0.12, None)):
        value, error = np.transpose([won_back(own, name) for own in rewards.values()])
        style = STYLE[name] | {"linestyle": "none", "markersize": 5, "markerfacecolor": inside}
        right.errorbar(100 * value, rows + shift, xerr=100 * error, label=labels[name], **style)
    names = [f"{name_of(d)} ({kinds(own)[1].mean():+.0f})" for d, own in rewards.items()]
    left.set_yticks(rows, names)
    left.set(ylim=(len(rewards) - 0.4, -0.6), xlabel="reward forgotten, % of full memory's")
    left.axvline(0, color="black", linewidth=0.8)
    for x in (0, 100):
        right.axvline(x, color="0.6", linewidth=0.8, zorder=0)
    right.set_xlabel("won back of what the posterior forgets, %\n(0: no prior, 100: perfect prior)")
    for panel in (left, right):
        panel.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    total = len(next(iter(rewards.values()))["no-prior"])
    figure.suptitle(f"{title}: mean of {total} runs ± 1 standard error\nin brackets: the reward "
                    "that the posterior forgets, the denominator on the right")
    return figure
