"""How certain each prior is, beside what full memory would say; and what that earns.

After a learning phase, a prior Phi0 stands for the tuples that left the buffer. Full memory would
have kept them: lam I + sum of phi phi' over those tuples, under the features of the moment. What is
compared is s^2 = phi'(precision)^-1 phi on those tuples: below full memory's, the prior is too
certain and the agent explores too little; above, it has forgotten.
"""
from concurrent.futures import as_completed

import numpy as np
import torch

import beyond
import nlts
from lab import paper, verdicts
from lab.agents import RECIPES as ALL
from lab.agents import limited
from lab.plots import STYLE, pyplot, ticker
from lab.runs import executor, make_run, make_task, present, progress, read_lines, steps_of
from lab.text import Report, rough, share, text_table

PRIORS = {"both-priors": "the paper's", "carried": "ours, carried", "kept": "old covariance kept",
          "no-prior": "none"}
KEPT = {"color": "#E69F00", "linestyle": ":", "marker": "D"}
SHOWN = STYLE | {"kept": KEPT}
QUANTILES = 0.1, 0.25, 0.5, 0.75, 0.9
QUICK = 1300                                          # steps with --quick
LEAST = 5                                             # tuples of an arm that left, to be measured


def kept_prior(left, E_old, E_new, weights, lam):
    """The old precision, as if no feature had moved; the mean is the paper's."""
    return [(old.precision, w) for old, w in zip(left, weights, strict=True)]


RECIPES = {
    "both-priors": limited(PRIORS["both-priors"], nlts.likelihood_matching),
    "carried": limited(PRIORS["carried"], beyond.carried_prior),
    "kept": limited(PRIORS["kept"], kept_prior),
    "no-prior": limited(PRIORS["no-prior"], nlts.no_prior),
    "perfect-prior": ALL["perfect-prior"],
}


def calibration(o):
    """How far log s^2 of each prior is from full memory's, and what that costs or earns."""
    names = ["statlog", "mushroom"] if o.quick else [d for d in paper.TABLE if d != "smartphones"]
    sets = present(o, o.datasets or names)
    lines = measure(o, sets, o.runs or (1 if o.quick else 3))
    rewards = rewards_of(o, lines, sets)
    points = {(d, name): point(chosen(lines, d, name), *rewards[d, name])
              for d in sets for name in PRIORS}
    named = {f"{d}, {name}": found for (d, name), found in points.items()}
    data = {"points": named, "lines": lines}
    return Report(calibration_text(sets, lines, points) + rough(o), data,
                  {"calibration": phases_figure(lines, sets),
                   "calibration-reward": reward_figure(sets, points)})


# What is measured ---------------------------------------------------------------------------------

def measure(o, sets, runs):
    """A line a run, in the order of the tasks. The runs are the first ones of the table."""
    tasks = []
    for d in sets:
        steps = steps_of(o, d, quick=QUICK)
        for name in RECIPES:
            task = make_task(o, "table", d, name, steps, module="lab.calibration")
            tasks += [task | {"run": run} for run in range(runs)]
    with executor(o) as pool:
        futures = [pool.submit(measured_run, task) for task in tasks]
        for future in progress(as_completed(futures), len(futures), "runs"):
            future.result()                           # an error ends the command here
    return [future.result() for future in futures]


def measured_run(task):
    """One run: its reward, and log s^2 minus full memory's after each learning phase."""
    torch.set_num_threads(1)
    problem, agent, _ = make_run(task)
    seen = [[] for _ in range(problem.n_arms)]        # contexts of each arm's plays
    phases, reward = [], 0.0
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
        seen[arm].append(context)
        reward += rewards[arm]
        if agent.t % agent.config.L == 0 and agent.buffer.capacity is not None:
            phases.append(phase_errors(agent, seen))
    phases = [phase for phase in phases if phase]
    line = {"dataset": task["dataset"], "prior": task["algorithm"], "run": task["run"],
            "reward": reward, "phases": phases}
    if phases:
        line["bias"] = float(np.mean([phase["bias"] for phase in phases]))
        line["error"] = float(np.mean([phase["error"] for phase in phases]))
    return line


def phase_errors(agent, seen):
    """Mean, mean size and quantiles over arms of log s^2 - log s^2 of full memory; or None."""
    differences = []
    for i, arm in enumerate(agent.arms):
        buffered = len(agent.buffer.rows_of(i)[1])
        left = seen[i][:len(seen[i]) - buffered]      # an arm loses its oldest tuple first
        if len(left) < LEAST:
            continue
        phi = nlts.last_layer_activations(agent.network, np.array(left))
        full = variances(agent.config.lam * np.eye(phi.shape[1]) + phi.T @ phi, phi)
        alive = full > 0                             # a context without an active unit says nothing
        differences.append(np.log(variances(arm.Phi0, phi)[alive] / full[alive]))
    if not differences:
        return None
    return {"t": agent.t, "bias": float(np.mean([x.mean() for x in differences])),
            "error": float(np.mean([np.abs(x).mean() for x in differences])),
            "quantiles": np.quantile(np.concatenate(differences), QUANTILES).tolist()}


def variances(precision, phi):
    """phi' precision^-1 phi of each row."""
    return np.sum(phi * np.linalg.solve(precision, phi.T).T, axis=1)


def chosen(lines, dataset, prior):
    """The lines of one prior on one data set."""
    return [line for line in lines if (line["dataset"], line["prior"]) == (dataset, prior)]


def rewards_of(o, lines, sets):
    """{(data set, prior): rewards of it, of no prior and of the perfect one, paired by run}.

    Those of the table where it has been played; it has no runs with the old covariance.
    """
    table = {(line["config"], line["run"]): line["reward"]
             for line in read_lines(o.out / "table.jsonl")}
    rewards = {}
    for d in sets:
        own = {(line["prior"], line["run"]): line["reward"] for line in lines
               if line["dataset"] == d}
        hashes = {make_task(o, "table", d, name, steps_of(o, d, quick=QUICK))["hash"]: name
                  for name in RECIPES if name in ALL}
        played = {(hashes[config], run): reward for (config, run), reward in table.items()
                  if config in hashes}
        for name in PRIORS:
            found = triple(played, name)
            rewards[d, name] = found if len(found[0]) > 1 else triple(own, name)
    return rewards


def triple(rewards, name):
    """Rewards of a prior, of no prior and of the perfect one, over the runs that all have."""
    names = name, "no-prior", "perfect-prior"
    runs = [run for other, run in rewards if other == name]
    runs = [run for run in sorted(runs) if all((other, run) in rewards for other in names)]
    return [np.array([rewards[other, run] for run in runs]) for other in names]


def point(lines, reward, none, perfect):
    """What the pictures and tables show of one prior on one data set."""
    won, error, forgotten = 0.0, 0.0, (perfect - none).mean()
    if forgotten:
        won = 100 * (reward - none).mean() / forgotten
    if len(reward) > 1:
        error = 100 * share(reward - none, perfect - none)[1]
    return {"bias": float(np.mean([line["bias"] for line in lines])),
            "error": float(np.mean([line["error"] for line in lines])),
            "reward": float(reward.mean()), "perfect": float(perfect.mean()), "runs": len(reward),
            "won back": float(won), "standard error": float(error)}


# What is told -------------------------------------------------------------------------------------

def calibration_text(sets, lines, points):
    """The errors and the rewards, a column a data set."""
    def table(title, cell):
        rows = [[label, *(cell(points[d, name]) for d in sets)] for name, label in PRIORS.items()]
        return text_table([title, *map(verdicts.name_of, sets)], rows)

    sizes = table("|log s² / s² of full memory|",
                  lambda found: f"{found['error']:.2f} ({found['bias']:+.2f})")
    earned = table("won back, %",
                   lambda found: f"{found['won back']:.0f} ± {found['standard error']:.0f}")
    rewards = table("reward", lambda found: f"{found['reward']:.0f}")
    nearest = [min(PRIORS, key=lambda name: points[d, name]["error"]) for d in sets]
    certain = sum(points[d, "both-priors"]["bias"] < 0 for d in sets)
    more = sum(points[d, "both-priors"]["won back"] > 100 for d in sets)
    runs = len({line["run"] for line in lines})
    return "\n\n".join([
        f"{sizes}\nOn tuples that left the buffer, mean over phases and arms of {runs} run(s); in "
        "brackets the mean difference,\n- too certain (explores too little), + too uncertain (has "
        "forgotten). 0.69 is a factor of 2.",
        f"{earned}\n(reward - none) / (perfect prior - none), ± standard error of up to "
        f"{max(found['runs'] for found in points.values())} runs",
        rewards,
        f"Ours is nearest to full memory on {nearest.count('carried')} of {len(sets)} data sets. "
        f"The paper's prior is too certain on {certain};\nit earns more than the perfect prior on "
        f"{more}; `exploration` shows why."])


# What is drawn ------------------------------------------------------------------------------------

CERTAIN = {"color": "#D55E00", "alpha": 0.06, "linewidth": 0, "zorder": 0}


def decades(axis):
    """A logarithmic axis with plain numbers at powers of 10."""
    axis.set_major_locator(ticker.LogLocator(numticks=10))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def phases_figure(lines, sets):
    """s^2 over full memory's after each phase: median and quartiles, a panel a data set."""
    columns = min(3, len(sets))
    rows = -(-len(sets) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(3.1 * columns + 0.6, 1.9 * rows + 1.2),
                                   sharey=True, squeeze=False)
    for panel, d in zip(axes.flat, sets, strict=False):
        for name, label in PRIORS.items():
            phases = [phase for line in chosen(lines, d, name) for phase in line["phases"]]
            times = sorted({phase["t"] for phase in phases})
            bands = np.exp([np.mean([phase["quantiles"] for phase in phases if phase["t"] == t], 0)
                            for t in times])
            panel.fill_between(times, bands[:, 1], bands[:, 3], color=SHOWN[name]["color"],
                               alpha=0.2, linewidth=0)
            panel.plot(times, bands[:, 2], label=label, markersize=3, **SHOWN[name])
        panel.set_yscale("log")
        panel.set_title(verdicts.name_of(d), fontsize=9)
        decades(panel.yaxis)
    low, high = axes[0, 0].get_ylim()
    for panel in axes.flat:
        panel.axhline(1, color="black", linewidth=0.8)
        panel.axhspan(low, 1, **CERTAIN)
        panel.set_ylim(low, high)
    for panel in axes.flat[len(sets):]:
        panel.set_visible(False)
    for panel in axes[-1]:
        panel.set_xlabel("step")
    figure.supylabel("s² of the prior / s² of full memory", fontsize=9)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4,
                  fontsize=9, frameon=False)
    figure.suptitle("How certain a prior is about what left the buffer: median and quartiles after "
                    "each learning phase\n1: as full memory; shaded: too certain, explores too "
                    "little; above: too uncertain, has forgotten", fontsize=9)
    return figure


def apart(values, gap):
    """The values, moved up as little as it takes to keep them a gap apart."""
    moved = np.array(values, float)
    order = np.argsort(moved, kind="stable")
    for before, after in zip(order, order[1:], strict=False):
        moved[after] = max(moved[after], moved[before] + gap)
    return moved


def reward_figure(sets, points):
    """Won back of what the posterior forgets against calibration: a point a data set and prior."""
    figure, panel = pyplot.subplots(figsize=(8, 5))
    for d in sets:
        own = sorted((points[d, name] for name in PRIORS), key=lambda found: found["bias"])
        panel.plot(np.exp([found["bias"] for found in own]), [found["won back"] for found in own],
                   color="0.8", linewidth=0.8, zorder=1)
    for name, label in PRIORS.items():
        style = SHOWN[name] | {"linestyle": "none", "markersize": 7, "capsize": 2}
        found = [points[d, name] for d in sets]
        panel.errorbar(np.exp([one["bias"] for one in found]), [one["won back"] for one in found],
                       [one["standard error"] for one in found], label=label, zorder=2, **style)
    panel.plot(1, 100, color="#009E73", marker="*", markersize=15, linestyle="none",
               markeredgecolor="black", label="perfect prior", zorder=3)
    panel.set_xscale("log")
    left = 0.2 * np.exp(min(found["bias"] for found in points.values()))
    panel.set_xlim(left, panel.get_xlim()[1])
    label_datasets(panel, sets, points, left)
    panel.axhline(100, color="0.7", linewidth=0.8, zorder=0)
    panel.axvline(1, color="0.7", linewidth=0.8, zorder=0)
    panel.axvspan(left, 1, **CERTAIN)
    decades(panel.xaxis)
    panel.set_xlabel("s² of the prior / s² of full memory (geometric mean)\n"
                     "←  too certain, explores too little              "
                     "too uncertain, has forgotten  →", fontsize=10)
    panel.set_ylabel("won back of what the posterior forgets, %\n"
                     "(0: no prior, 100: perfect prior)", fontsize=10)
    panel.legend(fontsize=9, loc="upper right")
    figure.suptitle("What a prior earns, and how certain it is: a point a data set and prior",
                    fontsize=11)
    return figure


def label_datasets(panel, sets, points, left):
    """Names at the left edge, each with a line to the data set's leftmost point."""
    first = [min((points[d, name] for name in PRIORS), key=lambda one: one["bias"]) for d in sets]
    low, high = panel.get_ylim()
    places = apart([one["won back"] for one in first], 0.045 * (high - low))
    for d, one, y in zip(sets, first, places, strict=True):
        panel.annotate(verdicts.name_of(d), (np.exp(one["bias"]), one["won back"]), (1.1 * left, y),
                       va="center", fontsize=9, arrowprops={"arrowstyle": "-", "color": "0.8",
                                                            "linewidth": 0.8, "shrinkB": 4})
