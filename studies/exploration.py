"""How much exploration costs, and why limited memory wins on some data sets: the noise.

The noise prior Inv-Gamma(6, b0) is changed and nothing else; `pooled` learns the scale of the noise
from all arms.
"""
import numpy as np

import nlts_beyond
from lab import report as lab
from lab.recipes import RECIPES, WHEEL, with_arguments, with_settings
from lab.report import title
from lab.results import execute, make_runs
from lab.statistics import difference, grouped, judged, mean_and_error

PLAYED = "neural-linear", "both-priors", "carried", "no-prior"
NOISES = "b⁰ = 6", "b⁰ = 0.6", "b⁰ = 0.06", "pooled"


def with_noise(recipe, noise):
    """The recipe under one of NOISES."""
    if noise == "pooled":
        return with_arguments(recipe, noise=nlts_beyond.pooled_noise)
    return with_settings(recipe, b0=float(noise.removeprefix("b⁰ = ")))


def measure(options):
    """Rewards under four kinds of noise."""
    runs = []
    for d in options.datasets:
        phases = WHEEL if d.startswith("wheel") else {}
        for name in PLAYED:
            for noise in NOISES:
                recipe = with_settings(with_noise(RECIPES[name], noise), **phases)
                runs += make_runs(options, d, name, recipe, variant=noise)
    return execute(options, runs)


def report(results):
    """What limited memory gains over full memory under each noise; what pooled noise gains."""
    rewards = grouped(results, "variant", "dataset", "algorithm")
    gains = {(f"{noise}: {name} − full memory", d): difference(own[name], own["neural-linear"])
             for noise, sets in rewards.items() for d, own in sets.items() for name in PLAYED[1:]}
    for d, own in rewards["pooled"].items():
        for name in PLAYED:
            gains[f"{name}: pooled − b⁰ = 6", d] = difference(own[name],
                                                              rewards["b⁰ = 6"][d][name])
    found = judged(gains)
    words = [f"{noise}, {lab.counted(found, f'{noise}: both-priors − full memory')}"
             for noise in NOISES]
    sets = {d: title(d) for d in grouped(results, "dataset")}
    by_noise = [result | {"dataset": f"{result['dataset']}, {result['variant']}"}
                for result in results]
    return "\n\n".join([
        lab.wrapped(f"both-priors earns, against full memory: {'; '.join(words)}."),
        lab.difference_table("reward gained", found, {row: row for row, _ in found}, sets),
        lab.explored_table(by_noise), lab.played_text(results)])


def plot(results):
    """Reward minus full memory's against the noise: a panel per problem, a line per prior."""
    rewards = grouped(results, "dataset", "variant", "algorithm")
    rows = -(-(len(rewards) + 1) // 3)                # the legend has a panel of its own
    figure, axes = lab.pyplot().subplots(rows, 3, figsize=(8.6, 2.4 * rows), squeeze=False)
    ticks = [noise.removeprefix("b⁰ = ") for noise in NOISES]
    for axis, (d, by_noise) in zip(axes.flat, rewards.items(), strict=False):
        for k, name in enumerate(PLAYED[1:]):
            gains = [100 * difference(by_noise[noise][name], by_noise[noise]["neural-linear"])
                     / by_noise[noise]["neural-linear"].mean() for noise in NOISES]
            mean, error = np.transpose([mean_and_error(x) for x in gains])
            x = np.arange(len(NOISES)) + 0.1 * (k - 1)
            lab.curve(axis, x, mean, 2 * error, lab.label(name), name)
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set_title(title(d), fontsize=9)
        axis.set_xticks(range(len(NOISES)), ticks)
    for axis in axes.flat[len(rewards):]:
        axis.axis("off")
    axes.flat[-1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.supxlabel("noise: b⁰ of Inv-Gamma(6, b⁰), or pooled", fontsize=9)
    figure.supylabel("reward minus full memory's, %", fontsize=9)
    figure.suptitle(f"Mean of {lab.runs_of(results)} ± 2 standard errors; each panel has its own "
                    "scale")
    return {"": figure}
