"""How certain each prior is, beside what full memory would say; and what that earns.

After a learning phase, a prior Phi0 stands for the tuples that left the buffer. Full memory would
have kept them: lam I + sum of phi phi' over those tuples, under the features of the moment. What is
compared is s^2 = phi'(precision)^-1 phi on those tuples: below full memory's, the prior is too
certain and the agent explores too little; above, it has forgotten.
"""
import numpy as np
import torch

import nlts
from lab import paper, verdicts
from lab.agents import limited
from lab.plots import STYLE, pyplot
from lab.runs import executor, make_run, make_task, present, progress, read_lines, steps_of
from lab.text import Report, rough, share, text_table

PRIORS = {"both-priors": "the paper's", "carried": "ours, carried", "kept": "old covariance kept",
          "no-prior": "none"}
SHOWN = STYLE | {"kept": {"color": "#E69F00", "linestyle": ":", "marker": "D"}}
CERTAIN = {"color": "#D55E00", "alpha": 0.06, "linewidth": 0, "zorder": 0}    # shaded
LEAST = 5                                             # tuples of an arm that left, to be measured


def kept_prior(left, E_old, E_new, weights, lam):
    """The old precision, as if no feature had moved; the mean is the paper's."""
    return [(old.precision, w) for old, w in zip(left, weights, strict=True)]


RECIPES = {"kept": limited(PRIORS["kept"], kept_prior)}


def calibration(o):
    """How far log s^2 of each prior is from full memory's, and what that costs or earns."""
    sets = present(o, o.datasets or (["statlog", "mushroom"] if o.quick else paper.TABLE))
    lines = measure(o, sets, o.runs or (2 if o.quick else 3))
    points = points_of(lines, read_lines(o.out / "table.jsonl"))
    return Report(calibration_text(points) + rough(o), {"points": points, "lines": lines},
                  {"calibration": calibration_figure(points),
                   "calibration-reward": reward_figure(points)})


# What is measured ---------------------------------------------------------------------------------

def measure(o, sets, runs):
    """A line a run. The runs are the first ones of the table."""
    tasks = []
    for d in sets:
        for name in (*PRIORS, "perfect-prior"):
            module = "lab.calibration" if name in RECIPES else "lab.agents"
            task = make_task(o, "table", d, name, steps_of(o, d), module=module)
            tasks += [task | {"run": run} for run in range(runs)]
    with executor(o) as pool:
        futures = [pool.submit(measured_run, task) for task in tasks]
        return [future.result() for future in progress(futures, len(futures), "runs")]


def measured_run(task):
    """One run: its reward, and log s^2 minus full memory's after each learning phase."""
    torch.set_num_threads(1)
    problem, agent, _ = make_run(task)
    seen = [[] for _ in range(problem.n_arms)]        # contexts of each arm's plays
    errors, reward = [], 0.0
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
        seen[arm].append(context)
        reward += rewards[arm]
        if agent.t % agent.config.L == 0:
            errors += phase_errors(agent, seen)
    return {"dataset": task["dataset"], "prior": task["algorithm"], "run": task["run"],
            "reward": round(reward, 6), "config": task["hash"],
            "bias": float(np.mean([x.mean() for x in errors])) if errors else None,
            "error": float(np.mean([np.abs(x).mean() for x in errors])) if errors else None}


def phase_errors(agent, seen):
    """log s^2 - log s^2 of full memory on the tuples that left, an array an arm."""
    errors = []
    for i, arm in enumerate(agent.arms):
        left = seen[i][:len(seen[i]) - len(agent.buffer.rows_of(i)[1])]      # the oldest leave
        if len(left) < LEAST:
            continue
        phi = nlts.last_layer_activations(agent.network, np.array(left))
        prior = nlts.BayesianLinearRegression(arm.Phi0, arm.mu0, arm.a, arm.b)
        first = agent.config.lam * np.eye(len(arm.mu0))
        full = nlts.BayesianLinearRegression(first + phi.T @ phi, arm.mu0, arm.a, arm.b)
        s2, full_s2 = prior.variance(phi), full.variance(phi)
        alive = full_s2 > 0                          # a context without an active unit says nothing
        errors.append(np.log(s2[alive] / full_s2[alive]))
    return errors


def points_of(lines, table):
    """{data set: {prior: calibration, and the share won back of what the posterior forgets}}.

    Rewards are those of the table, too, as far as it has been played with the same settings.
    """
    known = {line["config"]: (line["dataset"], line["prior"]) for line in lines}
    rewards = {}
    for line in [*table, *lines]:
        if line["config"] in known:
            rewards.setdefault(known[line["config"]], {})[line["run"]] = line["reward"]
    points = {line["dataset"]: {} for line in lines}
    for d, own in points.items():
        for name in PRIORS:
            measured = [line for line in lines if (line["dataset"], line["prior"]) == (d, name)]
            found = [rewards[d, other] for other in (name, "no-prior", "perfect-prior")]
            runs = sorted(set.intersection(*map(set, found)))
            reward, none, perfect = (np.array([one[run] for run in runs]) for one in found)
            won, error = share(reward - none, perfect - none)
            own[name] = {"bias": float(np.mean([line["bias"] for line in measured])),
                         "error": float(np.mean([line["error"] for line in measured])),
                         "won back": float(100 * won), "standard error": float(100 * error)}
    return points


# What is told -------------------------------------------------------------------------------------

def calibration_text(points):
    """The errors and the rewards, a column a data set."""
    def table(title, cell):
        rows = [[label, *(cell.format(**own[name]) for own in points.values())]
                for name, label in PRIORS.items()]
        return text_table([title, *map(verdicts.name_of, points)], rows)

    nearest = [min(own, key=lambda name: own[name]["error"]) for own in points.values()]
    certain = sum(own["both-priors"]["bias"] < 0 for own in points.values())
    more = sum(own["both-priors"]["won back"] > 100 for own in points.values())
    return "\n\n".join([
        table("|log s² / s² of full memory|", "{error:.2f} ({bias:+.2f})"),
        "On tuples that left the buffer, mean over phases and arms; in brackets the mean "
        "difference,\n- too certain (explores too little), + too uncertain (has forgotten). "
        "0.69 is a factor of 2.",
        table("won back, % of perfect prior - none", "{won back:.0f} ± {standard error:.0f}"),
        f"Ours is nearest to full memory on {nearest.count('carried')} of {len(points)} data sets. "
        f"The paper's prior is too certain on {certain};\nit earns more than the perfect prior on "
        f"{more}; `exploration` shows why."])


# What is drawn ------------------------------------------------------------------------------------

def calibration_figure(points):
    """How certain each prior is, beside what it earns: a row a data set."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.5, 1.6 + 0.45 * len(points)),
                                            sharey=True)
    for k, (name, label) in enumerate(PRIORS.items()):
        found = [own[name] for own in points.values()]
        y = np.arange(len(points)) + 0.16 * (k - 1.5)
        style = SHOWN[name] | {"linestyle": "none", "markersize": 5}
        left.plot(np.exp([one["bias"] for one in found]), y, label=label, **style)
        right.errorbar([one["won back"] for one in found], y,
                       xerr=[one["standard error"] for one in found], **style)
    left.set_yticks(range(len(points)), map(verdicts.name_of, points))
    left.invert_yaxis()
    left.set_xscale("log")
    left.xaxis.set_major_formatter("{x:,g}")
    left.set_xlim(left.get_xlim())
    left.axvspan(left.get_xlim()[0], 1, **CERTAIN)
    right.axvline(100, color="0.7", linewidth=0.8, zorder=0)
    left.set_xlabel("s² of the prior / s² of full memory\nshaded: too certain, explores too little")
    right.set_xlabel("won back of what the posterior forgets, %\n(0: no prior, 100: perfect prior)")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure


def reward_figure(points):
    """Won back of what the posterior forgets against calibration: a point a data set and prior."""
    figure, panel = pyplot.subplots(figsize=(8, 5))
    for name, label in PRIORS.items():
        found = [own[name] for own in points.values()]
        style = SHOWN[name] | {"linestyle": "none", "markersize": 7, "capsize": 2}
        panel.errorbar(np.exp([one["bias"] for one in found]), [one["won back"] for one in found],
                       [one["standard error"] for one in found], label=label, **style)
    panel.plot(1, 100, markersize=15, markeredgecolor="black", label="perfect prior",
               **STYLE["perfect-prior"] | {"linestyle": "none"})
    panel.set_xscale("log")
    label_datasets(panel, points)
    panel.axhline(100, color="0.7", linewidth=0.8, zorder=0)
    panel.axvspan(panel.get_xlim()[0], 1, **CERTAIN)
    panel.xaxis.set_major_formatter("{x:,g}")
    panel.set_xlabel("s² of the prior / s² of full memory (geometric mean)\n"
                     "←  too certain, explores too little              "
                     "too uncertain, has forgotten  →", fontsize=10)
    panel.set_ylabel("won back of what the posterior forgets, %\n"
                     "(0: no prior, 100: perfect prior)", fontsize=10)
    panel.legend(fontsize=9, loc="upper right")
    figure.suptitle("What a prior earns, and how certain it is: a point a data set and prior")
    return figure


def label_datasets(panel, points):
    """Names at the left edge, from low to high, each with a line to the paper's prior."""
    own = {d: own["both-priors"] for d, own in points.items()}
    low, high = panel.get_ylim()
    panel.set_xlim(0.2 * panel.get_xlim()[0])
    place = low
    for d in sorted(own, key=lambda d: own[d]["won back"]):
        place = max(own[d]["won back"], place + 0.045 * (high - low))
        panel.annotate(verdicts.name_of(d), (np.exp(own[d]["bias"]), own[d]["won back"]),
                       (0.01, place), textcoords=("axes fraction", "data"), va="center",
                       arrowprops={"arrowstyle": "-", "color": "0.8", "shrinkB": 4})
