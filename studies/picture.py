"""The paper in one picture: where a posterior is certain, before and after a retraining.

What the picture says is measured on ten seeds, of which it shows the first: s(b) of each prior over
that of full memory, where tuples were forgotten and where there never was a tuple.
"""
import copy

import numpy as np
import torch

import nlts
import nlts_beyond
from lab import report
from lab.recipes import papers_prior
from lab.report import text_table
from lab.runs import progress, read_once

TUPLES, KEPT, HIDDEN, P, LR = 400, 60, 20, 300, 1e-2
PRIORS = {"no prior": nlts.no_prior, "the paper's prior": papers_prior,
          "our prior": nlts_beyond.carried_prior}
ROWS = {"one distribution": False, "contexts moved on": True}        # whether contexts moved
LEVELS = [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10]   # of s(b)
EDGE, GRID = 2.0, 61                                  # the plane is [-EDGE, EDGE]^2
SIDE = np.linspace(-EDGE, EDGE, GRID)
PLANE = np.stack(np.meshgrid(SIDE, SIDE), -1).reshape(-1, 2)
CLAIMS = [  # panel, place, least and most of s(b) over full memory's; what that means
    ("no prior", "forgotten", 1.5, np.inf, "no prior is less certain where tuples were forgotten"),
    ("the paper's prior", "elsewhere", 0, 1 / 1.5,
     "the paper's prior is overconfident away from the data"),
    ("our prior", "forgotten", 1 / 3, 3,
     "ours is within a factor of 3 where tuples were forgotten"),
    ("our prior", "elsewhere", 1 / 1.5, 1.5, "ours is within a factor of 1.5 away from the data"),
]


def measure(o):
    """s(b) over a plane of contexts: before a retraining, and after it with each prior."""
    return read_once(o, measured)


def measured(o):
    """Maps of the first seed, and of each seed the certainty of each prior."""
    certainty, shown = {name: [] for name in ROWS}, {}
    for run in progress(range(o.runs), o.runs, "seeds"):
        for name, moved in ROWS.items():
            contexts, maps = retrained(moved, o.seed + run)
            at = places(contexts)
            certainty[name].append({panel: {place: ratio(maps, panel, mask)
                                            for place, mask in at.items()} for panel in PRIORS})
            if run == 0:
                maps = {panel: [[float(f"{x:.3g}") for x in row] for row in s]
                        for panel, s in maps.items()}
                shown[name] = {"contexts": contexts.round(3).tolist(), "maps": maps}
    return {"certainty": certainty, "shown": shown}


def retrained(moved, seed):
    """Contexts (400, 2), of which the last 60 are kept, and for each panel s(b) on the grid."""
    rng = np.random.default_rng(seed)
    contexts = arc(moved, rng)
    rewards = np.sin(2 * contexts[:, 0]) + contexts[:, 1] + 0.1 * rng.standard_normal(TUPLES)
    network = spread_network(rng)
    maps = {"before retraining": full_memory(network, contexts, rewards)}
    for name, prior in PRIORS.items():                # a phase leaves rng as it is: all train alike
        agent = nlts.NeuralLinearTS(copy.deepcopy(network), 1, KEPT, prior, L=TUPLES, P=P, lr=LR,
                                    seed=rng)
        for context, reward in zip(contexts, rewards, strict=True):
            agent.update(context, 0, reward)
        maps[name] = deviation(agent.arms[0], agent.network)
    maps["full memory"] = full_memory(agent.network, contexts, rewards)
    return contexts, maps


def places(contexts):
    """Masks of the grid: near what was forgotten and not near what is kept; far from all tuples."""
    kept, forgotten = (np.linalg.norm(PLANE[:, None] - part, axis=2).min(1).reshape(GRID, GRID)
                       for part in (contexts[-KEPT:], contexts[:-KEPT]))
    return {"forgotten": (forgotten < 0.1) & (kept > 0.1),
            "elsewhere": np.minimum(kept, forgotten) > 0.7}


def ratio(maps, panel, mask):
    """The geometric mean of s(b) over full memory's."""
    return float(np.exp(np.log(maps[panel][mask] / maps["full memory"][mask]).mean()))


def arc(moved, rng):
    """Contexts along a half circle; if they moved, in time from its left end to its right."""
    place = rng.random(TUPLES)
    angle = np.pi * (1 - (np.sort(place) if moved else place))
    circle = np.stack([np.cos(angle), np.sin(angle) - 0.4], 1)
    return 1.2 * circle + 0.1 * rng.standard_normal((TUPLES, 2))


def spread_network(rng):
    """An MLP whose ReLUs bend all over the plane."""
    network = nlts.MLP(2, 1, HIDDEN)
    angle = rng.uniform(0, 2 * np.pi, HIDDEN)
    network.input.data[:] = torch.as_tensor(np.stack([np.cos(angle), np.sin(angle)], 1))
    network.bias.data[:] = torch.as_tensor(rng.uniform(-EDGE, EDGE, HIDDEN))
    return network


def full_memory(network, contexts, rewards):
    """s(b) of the posterior of all tuples under the network's features; a0 and b0 have no part."""
    arm = nlts.BayesianLinearRegression(nlts.Config.lam * np.eye(HIDDEN), np.zeros(HIDDEN), 1, 1)
    arm.update(nlts.last_layer_activations(network, contexts), rewards)
    return deviation(arm, network)


def deviation(arm, network):
    """s(b) on the grid: (GRID, GRID), a row is a second coordinate."""
    s2 = arm.variance(nlts.last_layer_activations(network, PLANE))
    return np.sqrt(s2).reshape(GRID, GRID)


def tell(data):
    """How certain each prior is, and in how many seeds what the picture says holds."""
    rows, claims = [], []
    for name, seeds in data["certainty"].items():
        for panel in PRIORS:
            cells = [[seed[panel][place] for seed in seeds] for place in ("forgotten", "elsewhere")]
            rows.append([f"{name}, {panel}", *(f"{x[0]:.2f} ({min(x):.2f} to {max(x):.2f})"
                                               for x in cells)])
        for panel, place, least, most, text in CLAIMS:
            held = sum(least <= seed[panel][place] <= most for seed in seeds)
            claims.append([f"{name}: {text}", f"{held} of {len(seeds)} seeds"])
    header = ["s(b) / s(b) of full memory", "where tuples were forgotten", "away from all tuples"]
    seed = data["options"]["seed"]
    return "\n\n".join([
        text_table(header, rows) + f"\ngeometric mean for seed {seed}; in brackets the range of "
        f"{len(seeds)} seeds", text_table(["what the picture says", "holds in"], claims)])


def caption(data, name, panel):
    """What is below a panel."""
    if panel not in PRIORS:
        before = panel == "before retraining"
        return "all tuples, old features" if before else "all tuples: what is correct"
    own = data["certainty"][name][0][panel]
    return (f"forgotten tuples: × {own['forgotten']:.1f}\n"
            f"away from tuples: × {own['elsewhere']:.1f}")


def draw(data):
    """Two rows of maps with one scale of colors, which is one of lightness, too."""
    figure, axes = report.pyplot().subplots(2, 5, figsize=(12, 6.2))
    for line, (name, shown) in zip(axes, data["shown"].items(), strict=True):
        contexts = np.array(shown["contexts"])
        line[0].set_ylabel(name, fontsize=11, fontweight="bold")
        for axis, (panel, s) in zip(line, shown["maps"].items(), strict=True):
            bands = axis.contourf(np.clip(s, LEVELS[0], LEVELS[-1]), LEVELS, norm="log",
                                  cmap="viridis", extent=(-EDGE, EDGE, -EDGE, EDGE))
            forgotten = axis.plot(*contexts[:-KEPT].T, "o", color="white", markersize=2.2,
                                  markeredgecolor="black", markeredgewidth=0.3)
            kept = axis.plot(*contexts[-KEPT:].T, "D", color="black", markersize=3.6,
                             markeredgecolor="white", markeredgewidth=0.5)
            axis.set(xticks=[], yticks=[], aspect="equal", xlabel=caption(data, name, panel))
            axis.set_title(panel, fontsize=11, fontweight="bold")
    bar = figure.colorbar(bands, ax=axes, ticks=LEVELS, format="%g", pad=0.01, aspect=35)
    bar.set_label("uncertainty s(b): dark is certain")
    figure.legend([*forgotten, *kept], ["forgotten tuples", "tuples in the buffer"],
                  loc="outside lower center", ncols=2, frameon=False, markerscale=2)
    figure.suptitle(f"Below a panel: s(b) over that of full memory (right), geometric mean. "
                    f"Seed {data['options']['seed']}, {TUPLES} tuples, {KEPT} kept, {HIDDEN} "
                    f"hidden units, {P} batches, learning rate {LR:g}")
    return {"picture": figure}
