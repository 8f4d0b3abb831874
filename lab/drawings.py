"""The pictures of experiments.py."""
import numpy as np

from lab import verdicts
from lab.agents import RECIPES
from lab.plots import STYLE, curve, pyplot
from lab.text import paired


def forgetting(regret, L, window=25):
    """Figure 1: the paper's five panels, and ours."""
    shown = [name for name in regret if name != "perfect-prior"]
    total, steps = regret[shown[0]].shape
    figure, axes = pyplot.subplots(len(shown), 1, figsize=(7.5, 1.3 * len(shown) + 0.6),
                                   sharex=True, sharey=True, squeeze=False)
    n = steps // window
    x = window * (np.arange(n) + 0.5)
    for panel, name in zip(axes[:, 0], shown, strict=True):
        windows = regret[name][:, :n * window].reshape(total, n, window)
        mean, error = paired(windows.mean(2))
        panel.fill_between(x, mean - error, mean + error, color=STYLE[name]["color"], alpha=0.3)
        panel.plot(x, mean, color="black", linewidth=1)
        panel.vlines(range(L, steps, L), 0, 0.3, color="0.8", linewidth=0.7, zorder=0)
        panel.set_title(RECIPES[name].label, loc="right", y=0.78, fontsize=9)
        panel.set(xticks=range(0, steps + 1, L), xlim=(0, steps), ylim=(0, 0.3))
    axes[-1, 0].set_xlabel("step; the network is retrained at each tick")
    figure.supylabel("regret a step, shown up to 0.3", fontsize=9)
    figure.suptitle(f"Statlog: {total} runs, means of {window} steps ± 1 standard error")
    return figure


def kinds(rewards):
    """What each kind of forgetting costs, and what the paper's prior and ours win back."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.5, 1.5 + 0.42 * len(rewards)),
                                            sharey=True)
    rows = np.arange(len(rewards))
    bars = [("the network: full memory - perfect prior", -0.19, "#E69F00", "///"),
            ("the posterior: perfect prior - no prior", 0.19, "#0072B2", "")]
    for k, (text, shift, color, hatch) in enumerate(bars):
        lost = [paired(100 / own["neural-linear"].mean() * verdicts.kinds(own)[k])
                for own in rewards.values()]
        value, error = np.transpose(lost)
        left.barh(rows + shift, value, 0.36, xerr=error, color=color, hatch=hatch, linewidth=0.5,
                  edgecolor="black", label=text, error_kw={"linewidth": 0.8, "capsize": 2})
    for name, shift, inside in (("both-priors", -0.12, "white"), ("carried", 0.12, None)):
        value, error = np.transpose([verdicts.won_back(own, name) for own in rewards.values()])
        style = STYLE[name] | {"linestyle": "none", "markersize": 5, "markerfacecolor": inside}
        right.errorbar(100 * value, rows + shift, xerr=100 * error, label=RECIPES[name].label,
                       **style)
    left.set_yticks(rows, [verdicts.name_of(d) for d in rewards])
    left.set(ylim=(len(rewards) - 0.4, -0.6), xlabel="reward forgotten, % of full memory's")
    left.axvline(0, color="black", linewidth=0.8)
    for x in (0, 100):
        right.axvline(x, color="0.6", linewidth=0.8, zorder=0)
    right.set_xlabel("won back of what the posterior forgets, %\n(0: no prior, 100: perfect prior)")
    for panel in (left, right):
        panel.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    total = len(next(iter(rewards.values()))["no-prior"])
    figure.suptitle(f"Two kinds of forgetting, mean of {total} runs ± 1 standard error")
    return figure


def wheel(contexts, rows, delta, shown=1500):
    """Appendix B's figure: values {row: (T, 5)} at contexts (T, 2); a column an arm."""
    figure, axes = pyplot.subplots(3, 5, figsize=(8, 4.8), sharex=True, sharey=True,
                                   subplot_kw={"aspect": "equal"})
    x, y = contexts[:shown].T
    for row, (text, values) in zip(axes, rows.items(), strict=True):
        row[0].set_ylabel(text)
        for i, panel in enumerate(row):
            dots = panel.scatter(x, y, c=values[:shown, i], s=2, cmap="cividis", vmin=0, vmax=0.5)
            panel.add_patch(pyplot.Circle((0, 0), delta, fill=False, linewidth=0.8))
            panel.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
            axes[0, i].set_title(f"arm {i + 1}")
    figure.colorbar(dots, ax=axes, label="reward", shrink=0.8, extend="both")
    figure.suptitle(f"Wheel, δ = {delta}: one run of {len(contexts)} steps; circle: ‖x‖ = δ")
    return figure


def exploration(rewards):
    """Reward minus full memory's against the noise prior: a panel a data set, a line a prior."""
    first = rewards[6.0]
    names = [name for name in verdicts.EXPLORED[1:] if name in next(iter(first.values()))]
    rows, columns = -(-len(first) // 3), min(3, len(first))
    figure, axes = pyplot.subplots(rows, columns, figsize=(9, 2.5 * rows), squeeze=False)
    for panel, d in zip(axes.flat, first, strict=False):
        for name in names:
            pairs = [(sets[d][name], sets[d]["neural-linear"]) for sets in rewards.values()]
            gains = [paired(100 * (own - full) / full.mean()) for own, full in pairs]
            value, error = np.transpose(gains)
            curve(panel, [f"{b0:g}" for b0 in rewards], value, error, RECIPES[name].label, name)
        panel.axhline(0, color="black", linewidth=0.8)
        panel.set(title=verdicts.name_of(d), xlabel="b⁰ of the noise prior Inv-Gamma(6, b⁰)")
    figure.supylabel("reward minus full memory's, %", fontsize=9)
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(f"Mean of {len(pairs[0][0])} runs ± 1 standard error; each panel's own scale")
    return figure
