"""What a command reports: tables of text, one look for all pictures, and their files."""
import functools
import os
import textwrap
import zlib

import numpy as np

from lab import paper
from lab.statistics import LEVEL, detectable, difference, grouped, judged, mean_and_error

LOOKS = {  # in a legend; everywhere the same, at least 3 : 1 on white, told apart in grey, too
    "linear": ("linear", "#767676", (0, (1, 1)), "x"),
    "neural-linear": ("neural-linear (full memory)", "#000000", "-", "o"),
    "both-priors": ("both priors, smallest solution", "#D55E00", "--", "s"),
    "printed": ("both priors, as printed", "#9A3B00", (0, (4, 1, 1, 1)), "d"),
    "mu-prior": ("μ prior", "#2F87BC", ":", "D"),
    "no-prior": ("no prior", "#B0528B", (0, (5, 1)), "v"),
    "carried": ("carried prior (ours)", "#0060A0", "-.", "^"),
    "greedy": ("greedy", "#857600", (0, (2, 2)), "<"),
    "greedy-full": ("greedy, full memory", "#5E5300", (0, (3, 3)), ">"),
    "perfect-prior": ("perfect prior (an oracle)", "#00795A", (0, (3, 1, 1, 1)), "*"),
}
WIDTH = 120                                           # of a table, in characters
VERDICTS = {1: "holds", 0: "unclear", -1: "does not hold"}
OWN = ["#7A3E9D", "#A31621", "#3B6E22", "#1F6F78", "#8A5A00", "#5B5BD6"]     # of your own


def look(name):
    """An algorithm's name in a legend, color, dashes and marker; one of your own has a color by
    its name."""
    color = OWN[zlib.crc32(name.encode()) % len(OWN)]
    return LOOKS.get(name, (name, color, (0, (6, 1, 1, 1, 1, 1)), "P"))


def label(name):
    """An algorithm's name in a legend."""
    return look(name)[0]


def style(name):
    """An algorithm's color, dashes and marker."""
    return dict(zip(("color", "linestyle", "marker"), look(name)[1:], strict=True))


def own_pairs(results):
    """Algorithms from a file of your own are compared with the paper's prior and full memory."""
    return [(name, other) for name in grouped(results, "algorithm") if name not in LOOKS
            for other in ("both-priors", "neural-linear")]


def named(results):
    """Results whose algorithm has its variant in its name: 'both-priors, b⁰ = 0.6'."""
    return [result | {"algorithm": ", ".join(filter(None, (result["algorithm"],
                                                           result.get("variant"))))}
            for result in results]


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
    counts = sorted({len(x) for own in grouped(named(results), "dataset", "algorithm").values()
                     for x in own.values()})
    if counts == [1]:
        return "1 run"
    return f"{counts[0]} to {counts[-1]} runs" if len(counts) > 1 else f"{counts[0]} runs"


# Tables that several commands have ----------------------------------------------------------------

def by_set(heading, results, cell, value="reward"):
    """A row per data set, a column per algorithm: the text cell(array by run)."""
    names = list(grouped(results, "algorithm"))
    rows = [[title(d), *(cell(own[name]) if name in own else "" for name in names)]
            for d, own in grouped(results, "dataset", "algorithm", value=value).items()]
    return text_table([heading, *names], rows)


def rewards_table(results):
    """Mean and standard deviation of the reward."""
    return by_set("reward", results, mean_sd) + (
        f"\nmean ± standard deviation of {runs_of(results)}")


def worst_table(results):
    """What the worst run of each algorithm earned."""
    return by_set("reward of the worst run", results, lambda x: f"{x.min():.0f}")


def explored_table(results):
    """The share of plays that were not of the arm thought best."""
    return by_set("exploration, %", results, lambda x: f"{100 * x.mean():.1f}", "explored") + (
        "\nexploration: plays, after the initial pulls, of another arm than the one with the "
        "highest estimate")


def difference_table(heading, found, rows, columns, digits=0, above=()):
    """Paired differences, with * where they are certain: found[row, column] is a Judged. rows and
    columns are {key: text}; a cell that was not played is empty. Rows `above` come first."""
    def cell(key):
        if key not in found:
            return ""
        one = found[key]
        return plus_minus(one.mean, one.error, digits) + (" *" if one.sign else "  ")

    body = [[text, *(cell((row, column)) for column in columns)] for row, text in rows.items()]
    return text_table([heading, *columns.values()], [*above, *body]) + (
        f"\nDifferences are paired by run, ± standard error. * certain at {LEVEL:.0%}: t-test, "
        f"with Holm's correction\nfor all {len(found)} differences of this command.")


def power_text(found):
    """Which difference would be found."""
    counts = sorted({one.runs for one in found.values() if one.runs > 1})
    words = [f"{detectable(runs, len(found)):.1f} with {runs} runs" for runs in counts]
    return wrapped("So many standard deviations over runs a difference must have, to be found in "
                   f"80 % of such studies: {', '.join(words) or 'one run finds none'}.")


def counted(found, row):
    """'more on 3 of 10 data sets, less on 1 (Adult)': what is certain in a row of differences."""
    signs = {column: one.sign for (of, column), one in found.items() if of == row}
    less = [title(column) for column, sign in signs.items() if sign < 0]
    names = f" ({', '.join(less)})" if less else ""
    more = sum(sign > 0 for sign in signs.values())
    return f"more on {more} of {len(signs)} data sets, less on {len(less)}{names}"


def claims_table(claims, regrets, digits=0):
    """A row per claim with its verdict; all are one family. A claim is (better, worse, when,
    slack): less of the regrets[when][algorithm], by run; one with a slack, a share of the worse
    one's regret, is "as good as"."""
    saved, slacks = {}, {}
    for better, worse, when, slack in claims:
        known = regrets[when]
        if better in known and worse in known:
            text = f"{better} less than {worse} {when}".strip()
            if slack:
                text = f"{better} as good as {worse} (within {slack:.0%} of its regret)"
            saved[text] = difference(known[worse], known[better])
            slacks[text] = slack * known[worse].mean()
    if not saved:
        return ""
    found = judged({text: x + slacks[text] for text, x in saved.items()})
    rows = [[text, plus_minus(*mean_and_error(x), digits), VERDICTS[found[text].sign]]
            for text, x in saved.items()]
    return text_table(["claim: less regret", "regret saved", ""], rows) + (
        "\nDifferences are paired by run, ± standard error; verdicts at 5 %: t-test, with Holm's "
        f"correction for all {len(rows)} claims.")


def distance(x, number):
    """Our mean minus the paper's: as a share of it, and in standard errors of both (z); one run is
    never far."""
    mean, error = mean_and_error(x)
    return mean / number[0] - 1, (mean - number[0]) / np.hypot(error, number[1] / paper.RUNS ** 0.5)


NEAR = {"|z| < 2": lambda share, z: abs(z) < 2, "within 3 %": lambda share, z: abs(share) <= 0.03}


def near_paper(cells):
    """{(which data sets, what is near): '17 of 30'} of cells {(data set, algorithm): rewards}."""
    found = {}
    for where, sets in (("comparable", paper.COMPARABLE), ("all", paper.TABLE)):
        far = [distance(x, paper.number(*cell)) for cell, x in cells.items()
               if cell[0] in sets and paper.number(*cell)]
        for kind, near in NEAR.items():
            found[where, kind] = f"{sum(near(*both) for both in far)} of {len(far)}"
    return found


def solver_text(results):
    """What the solver of Eq. 6 returned to `printed`: programs per run, inaccurate, unsolved."""
    asked = [result for result in results if "solved" in result]
    if not asked:
        return ""
    kinds = {"solved": "solved", "inaccurate": "of these called inaccurate", "unsolved": "unsolved"}
    means = [grouped(asked, "dataset", value=kind) for kind in kinds]
    rows = [[title(d), *(f"{mean[d].mean():.1f}" for mean in means)] for d in means[0]]
    return text_table(["Eq. 6 as printed, programs per run", *kinds.values()], rows)


def played_text(results):
    """What was played, in hours of one core, and on which processors and versions."""
    hours = sum(result["seconds"] for result in results) / 3600
    return wrapped(f"{len(results)} runs took {hours:.1f} hours of one core. Played on:",
                   "; ".join(grouped(results, "played_on")))


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


def forest(differences, rewards, base, what, sharex=False):
    """Paired differences {(pair, data set): by run} in percent of the reward of `base`, ± 2
    standard errors: a panel per pair, a row per data set."""
    pairs = list(dict.fromkeys(pair for pair, _ in differences))
    sets = list(rewards)
    lines = -(-len(pairs) // 4)
    columns = -(-len(pairs) // lines)
    figure, axes = pyplot().subplots(
        lines, columns, sharex=sharex, sharey=True, squeeze=False,
        figsize=(1.6 + 1.8 * columns, 0.6 + lines * (0.9 + 0.3 * len(sets))))
    for axis, pair in zip(axes.flat, pairs, strict=False):
        own = {d: 100 * differences[pair, d] / rewards[d][base].mean() for d in sets
               if (pair, d) in differences}
        mean, error = np.transpose([mean_and_error(x) for x in own.values()])
        axis.errorbar(mean, [sets.index(d) for d in own], xerr=2 * error, capsize=2, markersize=5,
                      **style(pair[0]) | {"linestyle": "none"})
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(sets)), map(title, sets))
        axis.set(ylim=(len(sets) - 0.5, -0.5), xlabel=f"{max(map(len, own.values()))} runs")
        axis.set_title(" −\n".join(pair), fontsize=9)
        axis.grid(axis="y", alpha=0.3)
    for axis in axes.flat[len(pairs):]:
        axis.remove()
    scales = "" if sharex else "; each panel has its own scale"
    figure.supxlabel(f"difference in reward, % of {base}'s{scales}", fontsize=9)
    figure.suptitle(f"{what}: paired, ± 2 standard errors")
    return figure
