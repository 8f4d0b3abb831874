"""README's picture: where an arm is certain, before and after one learning phase.

What the picture says is measured on ten seeds, of which it shows the first: s(b) of each prior over
that of full memory, where tuples were forgotten and away from all tuples. docs/forgetting.html
shows the same toy through ten phases in a row.
"""
import numpy as np

from docs import toy
from docs.toy import LEVELS
from lab.report import page, pyplot, text_table

SIZES, KEPT, GRID = toy.Sizes(phases=1, L=400), 60, 61
ROWS = {"one distribution": "one", "contexts moved on": "moved"}     # kinds of contexts
PRIORS = {"no": "no prior", "printed": "the paper’s prior", "carried": "our prior"}
PANELS = {"before": "before retraining", **PRIORS, "full": "full memory"}
PLACES = "forgotten tuples", "away from tuples"
CLAIMS = [  # panel, place, least and most of s(b) over full memory's; what that means
    ("no", 0, 1.5, np.inf, "no prior is less certain where tuples were forgotten"),
    ("printed", 1, 0, 1 / 1.5, "the paper’s prior is overconfident away from tuples"),
    ("carried", 0, 1 / 3, 3, "ours is within a factor of 3 where tuples were forgotten"),
    ("carried", 1, 1 / 1.5, 1.5, "ours is within a factor of 1.5 away from tuples"),
]


def measure(options, sizes=SIZES):
    """Of each seed s(b) over full memory's; of the first, maps of s(b)."""
    priors = {name: toy.PRIORS[name] for name in PRIORS}
    ratios, shown = {row: [] for row in ROWS}, {}
    for run in range(options.runs):
        for row, kind in ROWS.items():
            replay = toy.replay(kind, KEPT, options.seed + run, sizes, priors)
            ratios[row].append(replay.ratios(1, "back"))
            if run == 0:
                shown[row] = {"contexts": replay.contexts.round(3).tolist(), "maps": maps(replay)}
    return {"seed": options.seed, "ratios": ratios, "shown": shown}


def maps(replay):
    """s(b) on a grid, three digits: of full memory before the phase, of each panel after it."""
    network, known = replay.posteriors(1, "before")
    panels = {"before": toy.deviation(known["full"], network, toy.plane(GRID))}
    network, known = replay.posteriors(1, "back")
    panels |= {name: toy.deviation(arm, network, toy.plane(GRID)) for name, arm in known.items()}
    return {name: [float(f"{x:.3g}") for x in s] for name, s in panels.items()}


def report(data):
    """How certain each prior is, and in how many seeds what the picture says holds."""
    rows, claims = [], []
    for row, seeds in data["ratios"].items():
        for panel, title in PRIORS.items():
            cells = [[seed[panel][place] for seed in seeds] for place in range(len(PLACES))]
            rows.append([f"{row}, {title}", *(f"× {x[0]:.2f} ({min(x):.2f} to {max(x):.2f})"
                                              for x in cells)])
        for panel, place, least, most, text in CLAIMS:
            held = sum(least <= seed[panel][place] <= most for seed in seeds)
            claims.append([f"{row}: {text}", f"{held} of {len(seeds)} seeds"])
    return page(
        text_table(["what the picture says", "holds in"], claims),
        text_table(["s(b) over full memory’s", *PLACES], rows) + "\ngeometric mean for seed "
        f"{data['seed']}; in brackets the range of {len(seeds)} seeds")


def caption(data, row, panel):
    """The text below a panel."""
    if panel not in PRIORS:
        return "all tuples, old features" if panel == "before" else "all tuples: what is right"
    ratios = data["ratios"][row][0][panel]
    return "\n".join(f"{place}: × {x:.2g}" for place, x in zip(PLACES, ratios, strict=True))


def plot(data):
    """Two rows of maps with one scale of colors, which is one of lightness, too."""
    figure, axes = pyplot().subplots(2, 5, figsize=(12, 6.2))
    for line, (row, shown) in zip(axes, data["shown"].items(), strict=True):
        line[0].set_ylabel(row, fontsize=11, fontweight="bold")
        for axis, (panel, s) in zip(line, shown["maps"].items(), strict=True):
            bands, marks = toy.draw_map(axis, np.array(s), np.array(shown["contexts"]), KEPT)
            axis.set_xlabel(caption(data, row, panel))
            axis.set_title(PANELS[panel], fontsize=11, fontweight="bold")
    bar = figure.colorbar(bands, ax=axes, ticks=LEVELS, format="%g", pad=0.01, aspect=35)
    bar.set_label("uncertainty s(b), in units of the noise: dark is certain")
    figure.legend(marks, ["forgotten tuples", "tuples in the buffer"], ncols=2, frameon=False,
                  loc="outside lower center", markerscale=2)
    figure.suptitle(f"One learning phase after {len(shown['contexts'])} tuples of full memory, "
                    f"{KEPT} of them in the buffer. Below a map: s(b) over full memory’s (right), "
                    f"geometric mean, seed {data['seed']}")
    return {"": figure}
