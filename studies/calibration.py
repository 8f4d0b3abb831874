"""How certain each prior is, beside what full memory would say; and what that earns.

After a learning phase, a prior Phi0 stands for the tuples that left the buffer. Full memory would
have kept them: lam I + sum of phi phi' over those tuples, under the features of the moment. What is
compared is s^2 = phi'(precision)^-1 phi on those tuples: below full memory's, the prior is too
certain; above, it has forgotten.
"""
import numpy as np

import nlts
from lab import report
from lab.recipes import RECIPES, limited
from lab.report import STYLE, name_of, text_table
from lab.runs import execute, make_task, run_task
from lab.statistics import grouped, holm, p_value

PRIORS = {"both-priors": "the paper's", "carried": "ours, carried", "kept": "old covariance kept",
          "no-prior": "none"}
SHOWN = STYLE | {"kept": {"color": "#E69F00", "linestyle": ":", "marker": "D"}}
CERTAIN = {"color": "#D55E00", "alpha": 0.06, "linewidth": 0, "zorder": 0}    # shaded
EDGES = -100, 300                                     # of the picture, in percent won back
LEAST = 5                                             # tuples of an arm that left, to be measured


def kept_prior(forgotten, E_old, E_new, weights, lam):
    """The old precision, as if no feature had moved; the mean is the paper's."""
    return [(old.precision, w) for old, w in zip(forgotten, weights, strict=True)]


KEPT = limited(PRIORS["kept"], kept_prior)


def measure(o):
    """A line per run, with its calibration. The runs are the first ones of the table."""
    recipes = {name: RECIPES.get(name, KEPT) for name in (*PRIORS, "perfect-prior")}
    return execute(o, [make_task(o, d, name, experiment="table", recipe=recipe)
                       for d in o.datasets for name, recipe in recipes.items()], measured_run)


def measured_run(task):
    """A run of the table, and of log s^2 minus full memory's after each phase two means."""
    errors, seen = [], {}                             # seen: contexts of each arm's plays

    def watch(agent, context, arm):
        if agent.t and agent.t % agent.config.L == 0:                # a phase has just ended
            errors.extend(phase_errors(agent, seen))
        seen.setdefault(arm, []).append(context)

    line = run_task(task, watch)
    means = [(x.mean(), np.abs(x).mean()) for x in errors]
    bias, error = np.mean(means, axis=0).tolist() if means else (None, None)     # nothing has left
    return line | {"bias": bias, "error": error}


def phase_errors(agent, seen):
    """log s^2 - log s^2 of full memory on the tuples that left: an array per arm."""
    errors = []
    for i, contexts in seen.items():
        arm = agent.arms[i]
        gone = contexts[:len(contexts) - len(agent.buffer.rows_of(i)[1])]    # the oldest leave
        if len(gone) < LEAST:
            continue
        phi = nlts.last_layer_activations(agent.network, np.array(gone))
        prior = nlts.BayesianLinearRegression(arm.Phi0, arm.mu0, arm.a, arm.b)
        first = agent.config.lam * np.eye(len(arm.mu0))
        full = nlts.BayesianLinearRegression(first + phi.T @ phi, arm.mu0, arm.a, arm.b)
        s2, full_s2 = prior.variance(phi), full.variance(phi)
        alive = full_s2 > 0                          # a context without an active unit says nothing
        errors.append(np.log(s2[alive] / full_s2[alive]))
    return errors


def points_of(lines):
    """{data set: {prior: calibration, and the share won back of what the posterior forgets}}."""
    rewards, points = grouped(lines, "dataset", "algorithm"), {}
    for d, own in rewards.items():
        points[d] = {}
        for name in PRIORS:
            measured = [line for line in lines if (line["dataset"], line["algorithm"]) == (d, name)]
            won, error = report.won_back(own, name)
            points[d][name] = {"bias": float(np.mean([line["bias"] for line in measured])),
                               "error": float(np.mean([line["error"] for line in measured])),
                               "won back": float(100 * won), "standard error": float(100 * error),
                               "runs": len(measured)}
    return points


def tell(lines):
    """The errors and the rewards, a column per data set."""
    points = points_of(lines)

    def table(title, cell):
        rows = [[label, *(cell(own[name]) for own in points.values())]
                for name, label in PRIORS.items()]
        return text_table([title, *map(name_of, points)], rows)

    nearest = [min(own, key=lambda name: own[name]["error"]) for own in points.values()]
    theirs = [own["both-priors"] for own in points.values()]
    certain = sum(one["bias"] < 0 for one in theirs)
    above = [one["won back"] - 100 for one in theirs]
    p = holm([p_value(gain, one["standard error"], one["runs"])
              for gain, one in zip(above, theirs, strict=True)])
    more = sum(gain > 0 and one <= 0.05 for gain, one in zip(above, p, strict=True))
    return "\n\n".join([
        table("|log s² / s² of full memory|", "{error:.2f} ({bias:+.2f})".format_map),
        "On tuples that left the buffer, mean over phases and arms; in brackets the mean "
        "difference:\n− is more certain than full memory, + less. 0.69 is a factor of 2.",
        table("won back, % of perfect prior − none", lambda own: report.with_error(
            own["won back"], own["standard error"])),
        f"The first {report.runs_of(lines)} of the table, ± standard error.\n"
        f"Ours is nearest to full memory on {nearest.count('carried')} of {len(points)} data sets. "
        f"The paper's prior is more certain than full memory on {certain};\nit earns more than the "
        f"perfect prior on {more} (5 %, Holm's correction): `exploration` asks why.",
        report.explored_text(lines)])


def draw(lines):
    """How certain each prior is, and what it wins back: a row per data set."""
    points = points_of(lines)
    figure, (left, right) = report.pyplot().subplots(1, 2, figsize=(9, 1.8 + 0.42 * len(points)),
                                                     sharey=True)
    for k, (name, label) in enumerate(PRIORS.items()):
        found = [own[name] for own in points.values()]
        rows = np.arange(len(points)) + 0.2 * (k - (len(PRIORS) - 1) / 2)
        style = SHOWN[name] | {"linestyle": "none", "markersize": 5}
        left.plot(np.exp([one["bias"] for one in found]), rows, label=label, **style)
        won = np.array([one["won back"] for one in found])
        errors = np.nan_to_num([one["standard error"] for one in found])
        inside = (won > EDGES[0]) & (won < EDGES[1])
        right.errorbar(won[inside], rows[inside], xerr=errors[inside], capsize=2, **style)
        for x, error, row in zip(won[~inside], errors[~inside], rows[~inside], strict=True):
            edge = EDGES[int(x > 0)]
            text = report.with_error(x, error)
            right.annotate(f"{text} →" if x > 0 else f"← {text}", (edge, row), fontsize=6,
                           color=style["color"], va="center", ha="right" if x > 0 else "left")
    left.set_xscale("log")
    left.set_xlim(left.get_xlim())
    left.axvspan(left.get_xlim()[0], 1, **CERTAIN)
    left.axvline(1, color="black", linewidth=0.8)
    left.xaxis.set_major_formatter("{x:,g}")
    left.set_xlabel("s² of the prior / s² of full memory (geometric mean)\n"
                    "←  more certain than full memory      less certain  →")
    left.set_yticks(range(len(points)), map(name_of, points))
    for x in (0, 100):
        right.axvline(x, color="0.6", linewidth=0.8, zorder=0)
    right.set(xlim=EDGES, ylim=(len(points) - 0.4, -0.6),
              xlabel="won back of what the posterior forgets, %\n(0: no prior, 100: perfect prior)")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle("How certain a prior is, and what it earns (± 1 standard error): mean of "
                    f"{report.runs_of(lines)}")
    return {"calibration": figure}
