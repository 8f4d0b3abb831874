"""How certain each prior is, beside what full memory would say; and what that earns.

After a learning phase, a prior Phi0 stands for the tuples that left the buffer. Full memory would
have kept them: lam I + sum of phi phi' over those tuples, under the features of the moment. What is
compared is s^2 = phi'(precision)^-1 phi on those tuples: below full memory's, the prior is too
certain and the agent explores too little; above, it has forgotten.
"""
import numpy as np

import nlts
from lab import paper, verdicts
from lab.agents import limited
from lab.plots import STYLE, pyplot
from lab.runs import execute, make_task, present, run_task, steps_of
from lab.text import SURE, Report, rough, text_table

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
    runs = o.runs or (2 if o.quick else 10)
    points = points_of(measure(o, sets, runs))
    return Report(calibration_text(points, runs) + rough(o), {"points": points},
                  {"calibration": draw(points, runs)})


def measure(o, sets, runs):
    """A line a run. The runs are the first ones of the table."""
    tasks = []
    for d in sets:
        for name in (*PRIORS, "perfect-prior"):
            module = "lab.calibration" if name in RECIPES else "lab.agents"
            tasks.append(make_task(o, "table", d, name, steps_of(o, d), module=module))
    return execute(o, "calibration", tasks, runs, measured_run)


def measured_run(task):
    """A run of the table, and of log s^2 minus full memory's after each phase two means."""
    errors, seen = [], {}                             # seen: contexts of each arm's plays

    def watch(agent, context, arm):
        seen.setdefault(arm, []).append(context)
        if agent.t % agent.config.L == 0:
            errors.extend(phase_errors(agent, seen))

    line = run_task(task, watch)
    means = [(x.mean(), np.abs(x).mean()) for x in errors]
    bias, error = np.mean(means, axis=0).tolist() if means else (None, None)     # nothing has left
    return line | {"bias": bias, "error": error}


def phase_errors(agent, seen):
    """log s^2 - log s^2 of full memory on the tuples that left, an array an arm."""
    errors = []
    for i, contexts in seen.items():
        arm = agent.arms[i]
        left = contexts[:len(contexts) - len(agent.buffer.rows_of(i)[1])]    # the oldest leave
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


def points_of(lines):
    """{data set: {prior: calibration, and the share won back of what the posterior forgets}}."""
    points = {}
    for d, rewards in verdicts.by_dataset(lines).items():
        points[d] = {}
        for name in PRIORS:
            measured = [line for line in lines if (line["dataset"], line["algorithm"]) == (d, name)]
            won, error = verdicts.won_back(rewards, name)
            points[d][name] = {"bias": float(np.mean([line["bias"] for line in measured])),
                               "error": float(np.mean([line["error"] for line in measured])),
                               "won back": float(100 * won), "standard error": float(100 * error)}
    return points


def calibration_text(points, runs):
    """The errors and the rewards, a column a data set."""
    def table(title, cell):
        rows = [[label, *(cell.format(**own[name]) for own in points.values())]
                for name, label in PRIORS.items()]
        return text_table([title, *map(verdicts.name_of, points)], rows)

    nearest = [min(own, key=lambda name: own[name]["error"]) for own in points.values()]
    theirs = [own["both-priors"] for own in points.values()]
    certain = sum(one["bias"] < 0 for one in theirs)
    more = sum(one["won back"] > 100 + SURE * one["standard error"] for one in theirs)
    return "\n\n".join([
        table("|log s² / s² of full memory|", "{error:.2f} ({bias:+.2f})"),
        "On tuples that left the buffer, mean over phases and arms; in brackets the mean "
        "difference,\n- too certain (explores too little), + too uncertain (has forgotten). "
        "0.69 is a factor of 2.",
        table("won back, % of perfect prior - none", "{won back:.0f} ± {standard error:.0f}"),
        f"The first {runs} runs of the table, ± standard error.\n"
        f"Ours is nearest to full memory on {nearest.count('carried')} of {len(points)} data sets. "
        f"The paper's prior is too certain on {certain};\nit earns more than the perfect prior, by "
        f"more than two standard errors, on {more}: see `exploration`."])


def draw(points, runs):
    """Won back of what the posterior forgets against calibration: a point a data set and prior."""
    figure, panel = pyplot.subplots(figsize=(8, 5))
    for name, label in PRIORS.items():
        found = [own[name] for own in points.values()]
        style = SHOWN[name] | {"linestyle": "none", "markersize": 7, "capsize": 2}
        panel.errorbar(np.exp([one["bias"] for one in found]), [one["won back"] for one in found],
                       [one["standard error"] for one in found], label=label, **style)
    panel.plot(1, 100, markersize=18, markerfacecolor="none", label="perfect prior",
               **STYLE["perfect-prior"] | {"linestyle": "none", "zorder": 1})
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
    figure.suptitle(f"What a prior earns, and how certain it is: a point a data set and prior, "
                    f"mean of {runs} runs ± 1 standard error")
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
                       bbox={"facecolor": "#FDF5EF", "edgecolor": "none", "pad": 1},
                       arrowprops={"arrowstyle": "-", "color": "0.8", "shrinkB": 4})
