"""What a command reports: tables of text, one look for all pictures, and their files."""
import functools
import os
import textwrap
import zlib

import numpy as np

from lab import paper
from lab.statistics import (
    LEVEL,
    bootstrap,
    detectable,
    grouped,
    judged,
    mean_and_error,
    mean_over_sets,
    z_score,
)

LABELS = {
    "linear": "linear",
    "neural-linear": "neural-linear (full memory)",
    "both-priors": "both priors, smallest solution",
    "printed": "both priors, as printed",
    "mu-prior": "μ prior",
    "no-prior": "no prior",
    "carried": "carried prior (ours)",
    "greedy": "greedy",
    "greedy-full": "greedy, full memory",
    "perfect-prior": "perfect prior (an oracle)",
}
STYLE = {  # everywhere the same; at least 3 : 1 on white, told apart by dashes and markers
    "linear": {"color": "#767676", "linestyle": (0, (1, 1)), "marker": "x"},
    "neural-linear": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "both-priors": {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    "printed": {"color": "#9A3B00", "linestyle": (0, (4, 1, 1, 1)), "marker": "d"},
    "mu-prior": {"color": "#2F87BC", "linestyle": ":", "marker": "D"},
    "no-prior": {"color": "#B0528B", "linestyle": (0, (5, 1)), "marker": "v"},
    "carried": {"color": "#0060A0", "linestyle": "-.", "marker": "^"},
    "greedy": {"color": "#857600", "linestyle": (0, (2, 2)), "marker": "<"},
    "greedy-full": {"color": "#5E5300", "linestyle": (0, (3, 3)), "marker": ">"},
    "perfect-prior": {"color": "#00795A", "linestyle": (0, (3, 1, 1, 1)), "marker": "*"},
}
WIDTH = 120                                           # of a table, in characters
VERDICTS = {1: "holds", 0: "unclear", -1: "does not hold"}
OWN = ["#7A3E9D", "#A31621", "#3B6E22", "#1F6F78", "#8A5A00", "#5B5BD6"]     # of your own


def label(name):
    """An algorithm's name in a legend."""
    return LABELS.get(name, name)


def style(name):
    """An algorithm's color, dashes and marker; those of your own have a color by their name."""
    own = OWN[zlib.crc32(name.encode()) % len(OWN)]
    return STYLE.get(name, {"color": own, "linestyle": (0, (6, 1, 1, 1, 1, 1)), "marker": "P"})


def own_names(results):
    """The names of algorithms from a file of your own."""
    return [name for name in grouped(results, "algorithm") if name not in LABELS]


def minus(pair):
    """'carried − no-prior'."""
    return " − ".join(pair)


def save(options, study, measured):
    """Print the report; write out/COMMAND.txt, a COMMAND.png per picture, and further files. A
    second picture has a name, which stands behind the command's."""
    text = study.report(measured)
    print("\n" + text)
    options.out.mkdir(parents=True, exist_ok=True)
    files = {f"{options.command}.txt": text + "\n"}
    if hasattr(study, "files"):
        files |= study.files(measured)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (options.out / name).write_bytes(data)
    for name, figure in (study.plot(measured) if hasattr(study, "plot") else {}).items():
        figure.savefig(options.out / f"{'-'.join(filter(None, (options.command, name)))}.png",
                       dpi=150)
        pyplot().close(figure)
    print(f"\nwritten: {options.command}.txt and more in {os.path.relpath(options.out)}")


# Cells and tables ---------------------------------------------------------------------------------

def text_table(header, rows):
    """An aligned table; the first column is text, the others numbers. One that is wider than WIDTH
    becomes two, below each other."""
    rows = [[str(x) for x in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * len(widths) - 2 > WIDTH and len(widths) > 2:
        middle = 1 + len(widths) // 2
        left, right = [row[:middle] for row in rows], [row[:1] + row[middle:] for row in rows]
        return "\n\n".join(text_table(half[0], half[1:]) for half in (left, right))
    lines = []
    for first, *others in rows:
        cells = [x.rjust(w) for x, w in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def wrapped(*sentences):
    """Sentences as a paragraph of lines of at most 100 characters."""
    return textwrap.fill(" ".join(filter(None, sentences)), 100, break_on_hyphens=False)


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


def title(dataset):
    """Display name of a data set."""
    return dataset.capitalize().replace("Wheel-", "Wheel, δ = ")


def runs_of(results):
    """'50 runs'; where algorithms differ in it, '10 to 50 runs'."""
    counts = {len(x) for own in grouped(results, "dataset", "algorithm", "variant").values()
              for variants in own.values() for x in variants.values()}
    if counts == {1}:
        return "1 run"
    return f"{max(counts)} runs" if len(counts) == 1 else f"{min(counts)} to {max(counts)} runs"


# Tables that several commands have ----------------------------------------------------------------

FAMILY = ("Differences are paired by run, ± standard error. * certain at "
          f"{LEVEL:.0%}: t-test, with Holm's correction\nfor all {{}} differences of this command.")


def difference_table(heading, found, rows, columns, digits=0, above=()):
    """Paired differences, with * where they are certain: found[row, column] is a Judged. rows and
    columns are {key: text}; a cell that was not played is empty. Rows `above` come first."""
    def cell(key):
        if key not in found:
            return ""
        one = found[key]
        return plus_minus(one.mean, one.error, digits) + (" *" if one.sign else "  ")

    body = [[text, *(cell((row, column)) for column in columns)] for row, text in rows.items()]
    return text_table([heading, *columns.values()], [*above, *body])


def power(found):
    """{runs: standard deviations of a paired difference that would be found}, of {key: Judged}."""
    counts = sorted({one.runs for one in found.values() if one.runs > 1})
    return {runs: detectable(runs, len(found)) for runs in counts}


def power_text(found):
    """Which difference would be found."""
    words = ", ".join(f"{sd:.1f} with {runs} runs" for runs, sd in power(found).items())
    if not words:
        return "One run finds no difference."
    return ("So many standard deviations over runs a difference must have, to be found in 80 % of "
            f"such studies:\n{words}.")


def sentences(lines):
    """Sentences, each on lines of its own that are not too long."""
    return "\n".join(textwrap.fill(line, 110, subsequent_indent="  ") for line in lines)


def counted(found, row, columns):
    """'more on 3 of 10 data sets, less on 1 (Adult)': what is certain in a row of differences."""
    signs = {column: found[row, column].sign for column in columns if (row, column) in found}
    less = [title(column) for column, sign in signs.items() if sign < 0]
    names = f" ({', '.join(less)})" if less else ""
    more = sum(sign > 0 for sign in signs.values())
    return f"more on {more} of {len(signs)} data sets, less on {len(less)}{names}"


def claims_table(heading, unit, gains, slacks, digits=0):
    """A row per claim, {text: gain by run}, with its verdict; all are one family. A claim with a
    slack holds if the gain is above minus the slack."""
    found = judged({text: x + slacks.get(text, 0) for text, x in gains.items()})
    rows = [[text, plus_minus(*mean_and_error(x), digits), VERDICTS[found[text].sign]]
            for text, x in gains.items()]
    return text_table([heading, unit, ""], rows) + (
        "\nDifferences are paired by run, ± standard error; verdicts at 5 %: t-test, with Holm's "
        f"correction for all {len(rows)} claims.")


def rewards_table(results, heading="reward", printed=False):
    """Mean and standard deviation of the reward by data set; below it the paper's."""
    rewards = grouped(results, "dataset", "algorithm")
    names = list(grouped(results, "algorithm"))
    rows = []
    for d, own in rewards.items():
        rows.append([title(d), *(mean_sd(own[name]) if name in own else "" for name in names)])
        theirs = [paper.cell(paper.number(d, name)) for name in names]
        if printed and any(theirs):
            rows.append(["  in the paper", *theirs])
    return text_table([heading, *names], rows) + (
        f"\nmean ± standard deviation of {runs_of(results)}")


def scores_table(results):
    """Over all data sets: the mean of normalized scores, of those who played them all."""
    scored = [result | {"score": (result["reward"] - result["uniform"])
                        / (result["optimal"] - result["uniform"])} for result in results]
    scores = grouped(scored, "algorithm", "dataset", value="score")
    sets = grouped(results, "dataset")
    rows = []
    for name, by_set in scores.items():
        if len(by_set) == len(sets):
            x = list(by_set.values())
            low, high = bootstrap(mean_over_sets, x)
            rows.append([name, f"{mean_over_sets(x):.3f}", f"{low:.3f} to {high:.3f}"])
    return text_table(["over all data sets", "score", "95 % interval"], rows) + (
        "\nscore: (reward − any arm at random) / (optimal − any arm at random), the mean over data "
        "sets of means over runs;\nthe interval by bootstrap over runs")


NEAR = "Near the paper: |z| < 2, with the standard errors of both means; or within 3 % of its mean."


def near_paper(cells):
    """['17 of 30', ...]: how many cells {(data set, algorithm): rewards} have |z| < 2, and are
    within 3 %: of the comparable data sets, then of all."""
    found = []
    for chosen in (paper.COMPARABLE, paper.TABLE):
        near = []
        for (d, name), x in cells.items():
            number = paper.number(d, name)
            if d in chosen and number:
                z = z_score(x, *number, paper.RUNS)
                near.append((abs(z) < 2, abs(np.mean(x) / number[0] - 1) <= 0.03))
        found += [f"{sum(kind)} of {len(near)}" for kind in zip(*near, strict=True)] or ["", ""]
    return found


def worst_table(results):
    """What the worst run of each algorithm earned."""
    names = list(grouped(results, "algorithm"))
    rows = [[title(d), *(f"{own[name].min():.0f}" if name in own else "" for name in names)]
            for d, own in grouped(results, "dataset", "algorithm").items()]
    return text_table(["reward of the worst run", *names], rows)


EXPLORATION = ("exploration: plays, after the initial pulls, of another arm than the one with the "
               "highest estimate")


def explored_table(results):
    """The share of plays that were not of the arm thought best."""
    names = list(grouped(results, "algorithm"))
    rows = []
    for d, own in grouped(results, "dataset", "algorithm", value="explored").items():
        rows.append([title(d), *(f"{100 * own[name].mean():.1f}" if name in own else ""
                                 for name in names)])
    return text_table(["exploration, %", *names], rows) + f"\n{EXPLORATION}"


def solver_text(results):
    """What the solver of Eq. 6 returned to `printed`: programs per run, inaccurate, unsolved."""
    asked = [result | {"what": " ".join((title(result["dataset"]), result["algorithm"],
                                         result.get("variant", "")))}
             for result in results if "solved" in result]
    if not asked:
        return ""
    kinds = "solved", "inaccurate", "unsolved"
    means = [grouped(asked, "what", value=kind) for kind in kinds]
    rows = [[what, *(f"{mean[what].mean():.1f}" for mean in means)] for what in means[0]]
    return text_table(["Eq. 6 as printed, programs per run", "solved", "of these called inaccurate",
                       "unsolved"], rows)


def hours_text(results):
    """What was played, in hours of one core."""
    hours = sum(result["seconds"] for result in results) / 3600
    return f"{len(results)} runs took {hours:.1f} hours of one core"


def machines_text(results):
    """Where the runs were played, if not all on the same processor and versions."""
    machines = list(grouped(results, "played_on"))
    return "" if len(machines) < 2 else "played on: " + "; ".join(machines)


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


def curve(axis, x, y, error, text, name):
    """A line with error bars, in the style of an algorithm."""
    axis.errorbar(x, y, error, label=text, markersize=4, capsize=2, **style(name))


def spaced(heights, least):
    """Heights of labels, {name: y}, moved apart to at least this distance."""
    found, y = {}, -np.inf
    for name in sorted(heights, key=heights.get):
        y = found[name] = max(heights[name], y + least)
    return found


def forest(axis, differences, name, shift=0.0):
    """Paired differences in percent, ± 2 standard errors: a row per data set. differences:
    {data set: array by run, in percent}."""
    values = np.array([mean_and_error(x) for x in differences.values()])
    rows = np.arange(len(values)) + shift
    error = 2 * np.where(np.isfinite(values[:, 1]), values[:, 1], 0)
    axis.errorbar(values[:, 0], rows, xerr=error, capsize=2, markersize=5, label=label(name),
                  **style(name) | {"linestyle": "none"})
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(range(len(values)), map(title, differences))
    axis.set_ylim(len(values) - 0.5, -0.5)
