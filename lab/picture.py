"""The paper in one picture: where a posterior is certain, before and after a retraining."""
import copy

import numpy as np
import torch

import beyond
import nlts
from lab.text import Report

TUPLES, KEPT, HIDDEN = 400, 60, 20
PRIORS = {"no prior": nlts.no_prior, "the paper's prior": nlts.likelihood_matching,
          "our prior": beyond.carried_prior}
SEEN, GOAL, INVENTED = "certain where tuples were", "as it should be", "certain where nobody was"
ROWS = {  # what is below the panels
    "one distribution": [SEEN, "forgets: less certain there", INVENTED, "nearly full memory", GOAL],
    "contexts moved on": [SEEN, "the forgotten side is lost", INVENTED, "keeps most of it", GOAL]}
LEVELS = [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10]   # of s(b)
EDGE, GRID = 2.0, 81                                  # the plane is [-EDGE, EDGE]^2
SIDE = np.linspace(-EDGE, EDGE, GRID)
PLANE = np.stack(np.meshgrid(SIDE, SIDE), -1).reshape(-1, 2)


def picture(o):
    """s(b) over a plane of contexts: before a retraining, and after it with each prior."""
    rows = {name: measure(name == "contexts moved on", o.seed) for name in ROWS}
    text = [f"{name}, {panel}: {caption}" for name, (_, maps) in rows.items()
            for panel, caption in zip(maps, ROWS[name], strict=True)]
    return Report("\n".join(text), figures={"picture": draw(rows)})


def measure(moved, seed):
    """Contexts (400, 2), of which the last 60 are kept, and for each panel s(b) on the grid."""
    rng = np.random.default_rng(seed)
    contexts = arc(moved, rng)
    rewards = np.sin(2 * contexts[:, 0]) + contexts[:, 1] + 0.1 * rng.standard_normal(TUPLES)
    network = spread_network(rng)
    maps = {"before retraining": full_memory(network, contexts, rewards)}
    for name, prior in PRIORS.items():                # a phase leaves rng as it is: all train alike
        agent = nlts.NeuralLinearTS(copy.deepcopy(network), 1, KEPT, prior, L=TUPLES, P=300,
                                    lr=1e-2, seed=rng)
        for context, reward in zip(contexts, rewards, strict=True):
            agent.update(context, 0, reward)
        maps[name] = deviation(agent.arms[0], agent.network)
    maps["full memory"] = full_memory(agent.network, contexts, rewards)
    return contexts, maps


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


def draw(rows):
    """Two rows of maps with one scale of colors, which is one of lightness, too."""
    from lab.plots import pyplot
    figure, axes = pyplot.subplots(2, 5, figsize=(12, 5.6))
    for line, (name, (contexts, maps)) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(name, fontsize=11, fontweight="bold")
        for axis, (panel, s), caption in zip(line, maps.items(), ROWS[name], strict=True):
            bands = axis.contourf(s.clip(LEVELS[0], LEVELS[-1]), LEVELS, norm="log", cmap="viridis",
                                  extent=(-EDGE, EDGE, -EDGE, EDGE))
            forgotten = axis.plot(*contexts[:-KEPT].T, "o", color="white", markersize=2.2,
                                  markeredgecolor="black", markeredgewidth=0.3)
            kept = axis.plot(*contexts[-KEPT:].T, "D", color="black", markersize=3.6,
                             markeredgecolor="white", markeredgewidth=0.5)
            axis.set(xticks=[], yticks=[], aspect="equal", xlabel=caption)
            axis.set_title(panel, fontsize=11, fontweight="bold")
    bar = figure.colorbar(bands, ax=axes, ticks=LEVELS, format="%g", pad=0.01, aspect=35)
    bar.set_label("uncertainty s(b): dark is certain")
    figure.legend([*forgotten, *kept], ["forgotten tuples", "tuples in the buffer"],
                  loc="outside lower center", ncols=2, frameon=False, markerscale=2)
    return figure
