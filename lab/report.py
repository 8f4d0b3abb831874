"""What a command reports: tables of text, one look for all pictures, and their files."""
import functools
import json
import os
import textwrap
import zlib

import numpy as np

from lab import paper
from lab.statistics import LEVEL, detectable, differences, grouped, judge_regrets, mean_and_error

LOOKS = {  # legend, color, dashes, marker: 3 : 1 on white at least, and distinct in grey, too
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
    "kept": ("old covariance kept", "#7A5B00", (0, (1, 2)), "P"),
}
WIDTH = 120                                           # of a table, in characters
VERDICTS = {1: "holds", 0: "unclear", -1: "does not hold"}
OWN = ["#7A3E9D", "#A31621", "#3B6E22", "#1F6F78", "#8A5A00", "#5B5BD6"]     # of your own


def label(name):
    """An algorithm's name in a legend."""
    return LOOKS[name][0] if name in LOOKS else name


def style(name):
    """An algorithm's color, dashes and marker; the color of one of your own depends on its name."""
    color = OWN[zlib.crc32(name.encode()) % len(OWN)]
    look = LOOKS.get(name, (name, color, (0, (6, 1, 1, 1, 1, 1)), "X"))
    return dict(zip(("color", "linestyle", "marker"), look[1:], strict=True))


def named(results):
    """Results whose algorithm has its variant in its name: 'both-priors, b⁰ = 0.6'."""
    return [result | {"algorithm": f"{result['algorithm']}, {result['variant']}"}
            if result.get("variant") else result for result in results]


def own_pairs(results):
    """Algorithms from a file of your own are compared with the paper's prior and full memory."""
    return [(name, other) for name in grouped(results, "algorithm") if name not in LOOKS
            for other in ("both-priors", "neural-linear")]


def save(options, study, measured):
    """Print a study's report, and write its files: COMMAND.txt, pictures (COMMAND.png, and
    COMMAND-NAME.png of one with a name), rows for the table of claims, and files of its own."""
    text = study.report(measured)
    print("\n" + text)
    options.out.mkdir(parents=True, exist_ok=True)
    files = {f"{options.command}.txt": text + "\n"}
    if hasattr(study, "claims"):
        rows = [claim_row(*claim) for claim in study.claims(measured) if any(claim[3].values())]
        files[f"{options.command}.claims.json"] = json.dumps(rows) + "\n"
    if hasattr(study, "files"):
        files |= study.files(measured)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (options.out / name).write_bytes(data)
    for name, figure in (study.plot(measured) if hasattr(study, "plot") else {}).items():
        if figure:
            picture = f"{options.command}-{name}.png" if name else f"{options.command}.png"
            figure.savefig(options.out / picture, dpi=150)
            pyplot().close(figure)
    print(f"\nwritten: {options.command}.txt and more in {os.path.relpath(options.out)}")


# Cells and tables ---------------------------------------------------------------------------------

def page(*parts):
    """Sentences and tables, without the empty ones, as one text."""
    return "\n\n".join(filter(None, parts))


def wrapped(*sentences):
    """Sentences as a paragraph, whose lines are short enough for a code block of a page."""
    return textwrap.fill(" ".join(filter(None, sentences)), 88, break_on_hyphens=False)


def text_table(header, rows):
    """An aligned table; the first column is text, the others numbers. A table wider than WIDTH is
    split into two, the second below the first."""
    rows = [[str(x) for x in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * len(widths) - 2 > WIDTH and len(widths) > 2:
        middle = 1 + len(widths) // 2
        left, right = [row[:middle] for row in rows], [row[:1] + row[middle:] for row in rows]
        return "\n\n".join(text_table(half[0], half[1:]) for half in (left, right))
    cells = [[first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]
             for first, *others in rows]
    return "\n".join("  ".join(row).rstrip() for row in cells)


def markdown_table(header, rows):
    """A table in Markdown."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


def mean_sd(values, digits=0):
    """'mean ± standard deviation' over runs; of one run the mean alone."""
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def with_error(value, error, digits=0, sign=""):
    """'12 ± 3', or with sign="+" '+12 ± 3'; of one run '12', of nothing 'n/a'."""
    if not np.isfinite(value):
        return "n/a"
    text = f"{value:{sign}.{digits}f}"
    return f"{text} ± {error:.{digits}f}" if np.isfinite(error) else text


plus_minus = functools.partial(with_error, sign="+")  # of a difference


def minus(pair):
    """'carried − no-prior'."""
    return " − ".join(pair)


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

def by_set(heading, results, cell=mean_sd, value="reward"):
    """A row per data set, a column per algorithm: the text cell(array by run)."""
    names = list(grouped(results, "algorithm"))
    rows = [[title(d), *(cell(own[name]) if name in own else "" for name in names)]
            for d, own in grouped(results, "dataset", "algorithm", value=value).items()]
    return text_table([heading, *names], rows)


def rewards_table(results):
    """Mean and standard deviation of the reward."""
    return by_set("reward", results) + f"\nmean ± standard deviation of {runs_of(results)}"


def difference_table(heading, found, text=minus, digits=0):
    """Paired differences {(pair, data set): Judged}: a row text(pair) per pair, a column per data
    set, * where it is certain."""
    if not found:
        return ""
    sets = list(dict.fromkeys(d for _, d in found))
    rows = []
    for pair in dict.fromkeys(pair for pair, _ in found):
        cells = [found.get((pair, d)) for d in sets]
        rows.append([text(pair), *(plus_minus(*one[:2], digits) + (" *" if one.sign else "  ")
                                   if one else "" for one in cells)])
    return text_table([heading, *map(title, sets)], rows) + "\n" + test_note(found, "* certain")


def test_note(found, what):
    """How a family of differences is tested, and how large a difference must be to be found."""
    counts = sorted({one.runs for one in found.values() if one.runs > 1})
    sizes = " or ".join(f"{detectable(runs, len(found)):.1f} with {runs} runs" for runs in counts)
    power = ("80 % of such studies would find a difference of so many standard deviations over "
             f"runs: {sizes}." if sizes else "")
    return wrapped(f"Differences are paired by run, ± standard error; {what} at {100 * LEVEL:.0f} "
                   f"%: t-test, with Holm's correction for all {len(found)}.", power)


def counted(found, pair):
    """'more on 3 of 10 data sets, less on 1 (Adult)': where a pair's difference is certain."""
    signs = {d: one.sign for (of, d), one in found.items() if of == pair}
    more = sum(sign > 0 for sign in signs.values())
    less = [title(d) for d, sign in signs.items() if sign < 0]
    if not more and not less:
        return f"unclear on all {len(signs)} data sets"
    names = f"{len(less)} ({', '.join(less)})" if less else "none"
    return f"more on {more} of {len(signs)} data sets, less on {names}"


def claims_of(claims, others, regrets, where, in_the_paper):
    """The arguments of `claim_row` for each of the claims {text: comparisons}; others belong to the
    same family of tests."""
    found = judge_regrets(sum(claims.values(), others), regrets)
    runs = max((one.runs for one in found.values()), default=0)
    for text, comparisons in claims.items():
        signs = {}
        for one in comparisons:
            if one in found:
                signs.setdefault(one[0], []).append(found[one].sign)
        yield text, where, in_the_paper, signs, runs


def claims_table(comparisons, regrets, digits=0):
    """A row per comparison with its verdict."""
    found, rows = judge_regrets(comparisons, regrets), []
    for (better, worse, when, slack), one in found.items():
        text = f"{better} less than {worse} {when}".strip()
        if slack:
            text = f"{better} as good as {worse} (within {100 * slack:.0f} % of its regret)"
        saved = one.mean - slack * regrets[when][worse].mean()
        rows.append([text, plus_minus(saved, one.error, digits), VERDICTS[one.sign]])
    if not rows:
        return ""
    return text_table(["claim: less regret", "regret saved", ""], rows) + "\n" + (
        test_note(found, "verdicts"))


def claim_row(claim, where, in_the_paper, signs, runs):
    """A row of the table of claims. signs: {the better algorithm: for each of its comparisons 1
    where the claim is certain, -1 where its opposite is, else 0}."""
    signs = {name: own for name, own in signs.items() if own}            # what was played
    counts = {name: f"{own.count(1)} of {len(own)}" + (
        f", opposite {own.count(-1)}" if -1 in own else "") for name, own in signs.items()}
    first = next(iter(signs))                         # as printed, if it was played
    own = signs[first]
    if set(own) == {1}:
        verdict = "holds"
    elif 1 in own:
        verdict = "holds in part"
    else:
        verdict = "does not hold" if -1 in own else "unclear"
    return [claim, where, in_the_paper, counts[first] if first != "both-priors" else "",
            counts.get("both-priors", ""), runs, verdict]


def distance(x, number):
    """Our mean minus the paper's: as a share of it, and in standard errors of both (z), which is 0
    of one run."""
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


def played_text(results):
    """How often the solver of `printed` solved Eq. 6; the time of all runs, and on which processors
    and versions they were played."""
    asked = [result for result in named(results) if "solved" in result]
    kinds = {"solved": "solved", "inaccurate": "of these called inaccurate", "unsolved": "unsolved"}
    means = [grouped(asked, "dataset", "algorithm", value=kind) for kind in kinds]
    rows = [[f"{title(d)}, {name}", *(f"{mean[d][name].mean():.1f}" for mean in means)]
            for d, own in means[0].items() for name in own]
    hours = sum(result["seconds"] for result in results) / 3600
    return page(
        text_table(["Eq. 6 as printed, programs per run", *kinds.values()], rows) if rows else "",
        wrapped(f"{len(results)} runs took {hours:.1f} hours of one core. Played on:",
                "; ".join(grouped(results, "played_on"))))


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


def forest(results, pairs, base, what, sharex=False):
    """Paired differences in percent of the reward of `base`, ± 2 standard errors: a panel per pair,
    a row per data set. pairs: {pair: a title, or None}. None if no pair was played."""
    rewards = {d: own for d, own in grouped(results, "dataset", "algorithm").items() if base in own}
    gained = differences(rewards, pairs)
    played = list(dict.fromkeys(pair for pair, _ in gained))
    if not played:
        return None
    sets, names = list(rewards), {name for pair in played for name in pair}
    figure, axes = pyplot().subplots(
        1, len(played), sharex=sharex, sharey=True, squeeze=False,
        figsize=(1.6 + 1.8 * len(played), 1.6 + 0.3 * len(sets)))
    for axis, pair in zip(axes[0], played, strict=True):
        own = {d: 100 * gained[pair, d] / rewards[d][base].mean() for d in sets
               if (pair, d) in gained}
        mean, error = np.transpose([mean_and_error(x) for x in own.values()])
        axis.errorbar(mean, [sets.index(d) for d in own], xerr=2 * error, capsize=2, markersize=5,
                      **style(pair[0]) | {"linestyle": "none"})
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(sets)), map(title, sets))
        axis.set_ylim(len(sets) - 0.5, -0.5)
        axis.set_title("\n".join(filter(None, (pairs[pair], " −\n".join(pair)))), fontsize=9)
        axis.grid(axis="y", alpha=0.3)
    scales = "" if sharex else "; each panel has its own scale"
    figure.supxlabel(f"difference in reward, % of {base}'s{scales}", fontsize=9)
    runs = runs_of([result for result in results if result["algorithm"] in names])
    figure.suptitle(f"{what}. Paired, {runs}, ± 2 standard errors")
    return figure
