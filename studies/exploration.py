"""How much exploration costs, and why limited memory wins on some data sets: the noise.

The noise prior Inv-Gamma(6, b0) is changed and nothing else; `pooled` learns the scale of the noise
from all arms.
"""
import numpy as np

import nlts_beyond
from lab import report as lab
from lab.recipes import RECIPES, WHEEL, with_arguments, with_settings
from lab.results import execute, make_runs
from lab.statistics import difference, grouped, judge_rewards, mean_and_error

PLAYED = "neural-linear", "both-priors", "carried", "no-prior"
NOISES = "b⁰ = 6", "b⁰ = 0.6", "b⁰ = 0.06", "pooled"
PAIRS = {(f"{name}, {noise}", f"neural-linear, {noise}"): f"{noise}: {name} − neural-linear"
         for noise in NOISES for name in PLAYED[1:]}
PAIRS |= {(f"{name}, pooled", f"{name}, b⁰ = 6"): f"{name}: pooled − b⁰ = 6" for name in PLAYED}


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
    own = lab.named(results)
    found = judge_rewards(own, PAIRS)
    words = [f"{noise}: {lab.counted(found, (f'both-priors, {noise}', f'neural-linear, {noise}'))}"
             for noise in NOISES]
    shares = grouped(own, "algorithm", "dataset", value="explored")
    return lab.page(
        lab.wrapped(f"both-priors earns against full memory ({lab.runs_of(results)}), with "
                    f"{'; '.join(words)}."),
        lab.difference_table("reward gained", found, PAIRS.get),
        lab.text_table(["exploration, %", *map(lab.title, grouped(results, "dataset"))],
                       [[name, *(f"{100 * x.mean():.1f}" for x in by_set.values())]
                        for name, by_set in shares.items()])
        + "\nexploration: plays, after the initial pulls, of another arm than the one with the "
        "highest estimate", lab.played_text(results))


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
        axis.set_title(lab.title(d), fontsize=9)
        axis.set_xticks(range(len(NOISES)), ticks)
    for axis in axes.flat[len(rewards):]:
        axis.axis("off")
    axes.flat[-1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.supxlabel("noise: b⁰ of Inv-Gamma(6, b⁰), or pooled", fontsize=9)
    figure.supylabel("reward minus full memory's, in % of it", fontsize=9)
    figure.suptitle("Limited memory against full memory under four kinds of noise: mean of "
                    f"{lab.runs_of(results)} ± 2 standard errors; each panel has its own scale")
    return {"": figure}
