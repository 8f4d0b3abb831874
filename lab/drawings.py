"""The pictures of experiments.py."""
import numpy as np

import nlts
from lab import runs, verdicts
from lab.agents import label
from lab.plots import STYLE, mean_error, pyplot, windows


def forgetting(regret, L, window=25):
    """Figure 1: the paper's five panels, ours, and the perfect prior as a thin line in each."""
    shown = [name for name in regret if name != "perfect-prior"]
    total, steps = next(iter(regret.values())).shape
    figure, axes = pyplot.subplots(len(shown), 1, figsize=(7.5, 1.3 * len(shown) + 0.6),
                                   sharex=True, sharey=True, squeeze=False)
    x = np.arange(window, steps + 1, window) - window / 2
    for panel, name in zip(axes[:, 0], shown, strict=True):
        mean, error = mean_error(windows(regret[name], window))
        color = STYLE[name]["color"]
        panel.fill_between(x, mean - error, mean + error, color=color, alpha=0.3, linewidth=0)
        panel.plot(x, mean, color="black", linewidth=1)
        if "perfect-prior" in regret and name not in ("linear", "neural-linear"):
            reference = windows(regret["perfect-prior"], window).mean(0)
            panel.plot(x, reference, color="0.45", linewidth=0.6, label="perfect prior")
        panel.vlines(range(L, steps, L), 0, 0.3, color="0.8", linewidth=0.7, zorder=0)
        panel.set_title(label(name), loc="right", y=0.78, fontsize=9)
        panel.set_facecolor("#EAF2F8" if name == "carried" else "white")
        panel.set(xticks=range(0, steps + 1, L), xlim=(0, steps), ylim=(0, 0.3))
    if axes[-1, 0].get_legend_handles_labels()[0]:
        axes[-1, 0].legend(fontsize=7, loc="upper center", frameon=False)
    axes[len(axes) // 2, 0].set_ylabel("regret a step")
    axes[-1, 0].set_xlabel("step; the network is retrained at each tick")
    figure.suptitle(f"Statlog: mean of {total} runs in windows of {window} steps, ± 1 standard "
                    "error\nthe first steps lie above the axis; blue: ours", fontsize=9)
    return figure


def kinds(rewards):
    """What each kind of forgetting costs, and what the paper's prior and ours win back."""
    rewards = verdicts.complete(rewards)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.5, 1.5 + 0.42 * len(rewards)),
                                            sharey=True)
    bars = [("the network: full memory - perfect prior", -0.19, "#E69F00", "///"),
            ("the posterior: perfect prior - no prior", 0.19, "#0072B2", "")]
    marks = [("both-priors", -0.12), ("carried", 0.12)]
    for i, own in enumerate(rewards.values()):
        scale = 100 / own["neural-linear"].mean()
        for lost, (text, shift, color, hatch) in zip(verdicts.kinds(own), bars, strict=True):
            value, error = verdicts.paired(scale * lost)
            left.barh(i + shift, value, 0.36, xerr=error, color=color, hatch=hatch, linewidth=0.5,
                      edgecolor="black", label=None if i else text,
                      error_kw={"linewidth": 0.8, "capsize": 2})
        for name, shift in marks:
            value, error = verdicts.won_back(own, name)
            style = STYLE[name] | {"linestyle": "none", "markersize": 5}
            if name == "both-priors":
                style["markerfacecolor"] = "white"
            right.errorbar(100 * value, i + shift, xerr=100 * error,
                           label=None if i else label(name), **style)
    left.set_yticks(range(len(rewards)), [verdicts.name_of(d) for d in rewards])
    left.set_ylim(len(rewards) - 0.4, -0.6)
    left.axvline(0, color="black", linewidth=0.8)
    left.set_xlabel("reward forgotten, % of full memory's")
    for x, line in ((0, ":"), (100, "-")):
        right.axvline(x, color="0.6", linewidth=0.8, linestyle=line, zorder=0)
    right.set_xlabel("won back of what the posterior forgets, %\n(0: no prior, 100: perfect prior)")
    for panel in (left, right):
        panel.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    total = len(next(iter(rewards.values()))["no-prior"])
    figure.suptitle(f"Two kinds of forgetting, mean of {total} runs ± 1 standard error",
                    fontsize=10)
    return figure


def wheel(linear_task, neural_task, delta=0.5, shown=1500):
    """Appendix B's figure: reward samples, predictions of two algorithms; a column an arm."""
    problem, linear, _ = runs.make_run(linear_task | {"run": 0})
    runs.play(problem, linear)
    rows = {"reward samples": problem.rewards,
            "linear": np.column_stack([problem.contexts @ arm.mu_hat for arm in linear.arms])}
    problem, neural, _ = runs.make_run(neural_task | {"run": 0})
    runs.play(problem, neural)
    phi = nlts.last_layer_activations(neural.network, problem.contexts)
    rows["both priors\n(the paper)"] = np.column_stack([phi @ arm.mu_hat for arm in neural.arms])
    figure, axes = pyplot.subplots(3, 5, figsize=(8, 4.8), sharex=True, sharey=True,
                                   subplot_kw={"aspect": "equal"})
    x, y = problem.contexts[:shown].T
    for row, (text, values) in zip(axes, rows.items(), strict=True):
        row[0].set_ylabel(text)
        for i, panel in enumerate(row):
            dots = panel.scatter(x, y, c=values[:shown, i], s=2, cmap="cividis", vmin=0, vmax=0.5)
            panel.add_patch(pyplot.Circle((0, 0), delta, fill=False, linewidth=0.8))
            panel.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    for i, panel in enumerate(axes[0]):
        panel.set_title(f"arm {i + 1}")
    figure.colorbar(dots, ax=axes, label="reward", shrink=0.8)
    figure.suptitle(f"Wheel, δ = {delta}: one run of {len(problem)} steps; circle: ‖x‖ = δ",
                    fontsize=9)
    return figure


def exploration(rewards, noise):
    """Reward minus full memory's against the noise prior, a panel a data set."""
    figure, axes = pyplot.subplots(1, len(rewards), figsize=(max(2.6 * len(rewards) + 0.8, 7), 3.2),
                                   squeeze=False)
    for panel, (d, own) in zip(axes[0], rewards.items(), strict=True):
        full = [own.get(verdicts.with_noise("neural-linear", b0)) for b0 in noise]
        for name in ("both-priors", "carried", "no-prior"):
            found = [own.get(verdicts.with_noise(name, b0)) for b0 in noise]
            if full[0] is None or found[0] is None:
                continue
            pairs = [verdicts.paired(100 * x / y.mean(), 100 * y / y.mean())
                     for x, y in zip(found, full, strict=True)]
            value, error = np.transpose(pairs)
            panel.errorbar(noise, value, error, capsize=2, markersize=5, label=label(name),
                           **STYLE[name])
        panel.axhline(0, color="black", linewidth=0.8)
        panel.set_xscale("log")
        panel.set_xticks(noise, [f"{b0:g}" for b0 in noise])
        panel.minorticks_off()
        panel.set(title=verdicts.name_of(d), xlabel="b⁰ of the noise prior")
    axes[0, 0].set_ylabel("reward minus full memory's, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    total = len(next(iter(next(iter(rewards.values())).values())))
    figure.suptitle(f"Reward under three noise priors Inv-Gamma(6, b⁰): mean of {total} runs, "
                    "± 1 standard error", fontsize=9)
    return figure
