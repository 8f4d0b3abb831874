"""Sec. 4.1, Figure 2: regret on Statlog around each retraining."""
import sys

import numpy as np

import nlts
from lab import report as lab
from lab.own import algorithms
from lab.paper import METHOD
from lab.results import execute, make_runs
from lab.runs import Regret
from lab.statistics import grouped, mean_and_error, ratio_of_means

L = nlts.Config.L
AFTER = "after a retraining"
EARLY = f"in steps {L} to {2 * L}"
SLACK = 0.1                                           # "as good as", of full memory's regret
CLAIMS = {  # the paper's: [(the better, the worse, when, slack)]
    "neural-linear has less regret than linear": [("neural-linear", "linear", "", 0)],
    "both priors is as good as neural-linear, within 10 % of its regret": [
        (name, "neural-linear", "", SLACK) for name in METHOD],
    "both priors has less regret than mu-prior and no-prior": [
        (name, other, "", 0) for name in METHOD for other in ("mu-prior", "no-prior")],
    "after a retraining, both priors has less regret than mu-prior and no-prior": [
        (name, other, AFTER, 0) for name in METHOD for other in ("mu-prior", "no-prior")],
}
OTHERS = [
    ("mu-prior", "no-prior", "", 0), ("both-priors", "neural-linear", EARLY, 0),
    ("carried", "no-prior", "", 0), ("carried", "both-priors", "", 0),
    ("carried", "neural-linear", "", SLACK)]
WIDTH = 50                                            # steps before and after a retraining
WINDOW = 25                                           # steps that a point of a picture averages
BEFORE, BEHIND = 100, 200                             # steps of the hero around a retraining


def measure(options):
    """The regret in each step."""
    if options.steps < 2 * L + BEHIND:
        sys.exit(f"--steps: expected at least {2 * L + BEHIND}, got {options.steps}")
    return execute(options, [
        run for name, recipe in algorithms(options).items()
        for run in make_runs(options, "statlog", name, recipe, observer=Regret)])


def aligned(regret, before, after):
    """Regret around a retraining, by run and step: the mean over all retrainings except the first
    (until then nothing has left the buffer)."""
    phases = range(2 * L, regret.shape[1] - after + 1, L)
    return np.mean([regret[:, p - before:p + after] for p in phases], axis=0)


def around(regret):
    """Regret per step in the 50 steps before and after a retraining, by run: two arrays."""
    steps = aligned(regret, WIDTH, WIDTH)
    return steps[:, :WIDTH].mean(1), steps[:, WIDTH:].mean(1)


# Report -------------------------------------------------------------------------------------------

def report(results):
    """The figure in numbers, and the paper's claims about it."""
    regrets = grouped(results, "algorithm", value="regret")
    rows = []
    for name, regret in regrets.items():
        before, after = around(regret)
        rows.append([name, lab.mean_sd(regret.sum(1)), f"{before.mean():.3f}",
                     f"{after.mean():.3f}", lab.with_error(*ratio_of_means(after, before), 2)])
    steps = next(iter(regrets.values())).shape[1]
    header = ["Statlog", f"regret in {steps} steps", "per step, before", AFTER, "ratio"]
    return lab.page(
        answer(regrets), lab.text_table(header, rows) + "\n" + lab.wrapped(
            f"regret: mean ± standard deviation of {lab.runs_of(results)}, less is better; per "
            f"step: in the {WIDTH} steps before and after steps {2 * L}, {3 * L}, ..., all "
            "retrainings except the first; ratio after / before ± standard error"),
        claims_text(regrets, lab.own_pairs(results)), lab.played_text(results))


def answer(regrets):
    """Regret before and after a retraining, in words."""
    shown = [name for name in ("no-prior", "printed", "both-priors", "neural-linear")
             if name in regrets]
    changes = [f"{lab.label(name)} {change(regrets[name])}" for name in shown or regrets]
    return lab.wrapped(f"Regret per step, in the {WIDTH} steps before → after a retraining (change "
                       f"± standard error): {'; '.join(changes)}.")


def change(regret):
    """'0.039 → 0.082 (+0.043 ± 0.004)', before and after a retraining; below two standard errors a
    change is unclear."""
    before, after = around(regret)
    by, error = mean_and_error(after - before)
    unclear = ", unclear" if abs(by) < 2 * error else ""
    return f"{before.mean():.3f} → {after.mean():.3f} ({lab.plus_minus(by, error, 3)}{unclear})"


def kinds_of_regret(regrets):
    """{when: {algorithm: by run}}: all regret, that after retrainings, and that after the first."""
    kinds = {"": lambda x: x.sum(1), AFTER: lambda x: WIDTH * around(x)[1],
             EARLY: lambda x: x[:, L:2 * L].sum(1)}
    return {when: {name: of(x) for name, x in regrets.items()} for when, of in kinds.items()}


def claims_text(regrets, own_pairs):
    """The paper's claims, others and your own."""
    own = [(*pair, "", 0) for pair in own_pairs]
    comparisons = sum(CLAIMS.values(), []) + OTHERS + own
    table = lab.claims_table(comparisons, kinds_of_regret(regrets), 1)
    return table and f"{table}\n{AFTER}: summed over the {WIDTH} steps after it"


def claims(results):
    """What is certain of the paper's claims."""
    regrets = kinds_of_regret(grouped(results, "algorithm", value="regret"))
    return lab.claims_of(CLAIMS, OTHERS, regrets, "Sec. 4.1, Figure 2", "Statlog, drawn")


# Pictures -----------------------------------------------------------------------------------------

def plot(results):
    """Figure 2, a panel per algorithm; and the hero of README.md."""
    regrets = grouped(results, "algorithm", value="regret")
    figures = {"": panels(regrets, lab.runs_of(results))}
    if set(hero_names(regrets)) <= set(regrets):
        figures["hero"] = hero(regrets)
    return figures


def averaged(regret):
    """Mean and standard error over runs of the mean regret in each window of steps."""
    runs, steps = regret.shape
    n = steps // WINDOW
    return mean_and_error(regret[:, :n * WINDOW].reshape(runs, n, WINDOW).mean(2))


def panels(regrets, runs):
    """Figure 2: regret per step against the step."""
    steps = next(iter(regrets.values())).shape[1]
    figure, axes = lab.pyplot().subplots(
        len(regrets), 1, figsize=(7.5, 1.3 * len(regrets) + 0.6), sharex=True, sharey=True,
        squeeze=False)
    x = WINDOW * (np.arange(steps // WINDOW) + 0.5)
    for panel, (name, regret) in zip(axes[:, 0], regrets.items(), strict=True):
        mean, error = averaged(regret)
        color = lab.style(name)["color"]
        panel.fill_between(x, mean - error, mean + error, color=color, alpha=0.3, linewidth=0)
        panel.plot(x, mean, color=color, linewidth=1.2)
        panel.vlines(range(L, steps, L), 0, 0.3, color="0.8", linewidth=0.7, zorder=0)
        panel.set_title(lab.label(name), loc="right", y=0.78, fontsize=9)
        panel.set(xticks=range(0, steps + 1, L), xlim=(0, steps), ylim=(0, 0.3))
    axes[-1, 0].set_xlabel("step; a grey line is a retraining")
    figure.supylabel("regret per step, shown up to 0.3", fontsize=9)
    figure.suptitle(f"Statlog: {runs}, means of {WINDOW} steps ± 1 standard error")
    return figure


def hero_names(regrets):
    """No prior, the paper's (as printed, if it was played), full memory."""
    return "no-prior", "printed" if "printed" in regrets else "both-priors", "neural-linear"


HERO = {"no-prior": "no prior", "printed": "the paper's prior", "both-priors": "the paper's prior",
        "neural-linear": "full memory"}               # names at the curves


def spaced(heights, least):
    """Heights of labels, {name: y}, moved apart to at least this distance."""
    found, y = {}, -np.inf
    for name in sorted(heights, key=heights.get):
        y = found[name] = max(heights[name], y + least)
    return found


def hero(regrets):
    """Regret around a retraining: three curves, to be read at 400 pixels."""
    figure, axis = lab.pyplot().subplots(figsize=(5.3, 3.2))
    x = np.arange(-BEFORE, BEHIND, WINDOW) + WINDOW / 2
    ends = {}
    for name in hero_names(regrets):
        mean, error = averaged(aligned(regrets[name], BEFORE, BEHIND))
        look = {key: lab.style(name)[key] for key in ("color", "linestyle")}
        for side in (x < 0, x > 0):
            axis.plot(x[side], mean[side], linewidth=2.2, **look)
            axis.fill_between(x[side], (mean - error)[side], (mean + error)[side], alpha=0.2,
                              color=look["color"], linewidth=0)
        ends[name] = mean[-1]
    for name, y in spaced(ends, 0.1 * axis.get_ylim()[1]).items():
        axis.text(BEHIND - 6, y, HERO[name], color=lab.style(name)["color"], fontsize=13,
                  va="center", fontweight="bold")
    axis.axvline(0, color="0.3", linewidth=1.2)
    axis.set_ylim(0, 1.18 * axis.get_ylim()[1])
    axis.text(4, axis.get_ylim()[1], "the network is retrained", fontsize=12, va="top")
    axis.set_xlim(-BEFORE, BEHIND)
    axis.set_xlabel("steps after a retraining", fontsize=12)
    axis.set_ylabel("mistakes per step", fontsize=12)
    axis.tick_params(labelsize=12)
    return figure


# Files --------------------------------------------------------------------------------------------

def files(results):
    """The hero's caption."""
    regrets = grouped(results, "algorithm", value="regret")
    if not set(hero_names(regrets)) <= set(regrets):
        return {}
    none, drawn, full = hero_names(regrets)
    priors = "; or ".join(change(regrets[name]) + (", drawn" if name == drawn else "")
                          for name in ("printed", "both-priors") if name in regrets)
    return {"hero.md": (
        f"Statlog, {lab.runs_of(results)}, retrained every {L} steps, 100 observations per arm in "
        "memory. A mistake is to play an arm that is not the best. Mistakes per step, in the "
        f"{WIDTH} steps before → after a retraining:\n\n"
        f"- **no prior** {change(regrets[none])}: higher {steps_back(regrets[none])}\n"
        f"- **the paper's prior** {priors}, depending on the solution of its Eq. 6\n"
        f"- **full memory** {change(regrets[full])}\n\n"
        "Means over all retrainings except the first; ± and bands are one standard error over "
        "runs; a change below two is *unclear*.\n")}


def steps_back(regret):
    """For how long after a retraining regret is higher than before it, by two standard errors."""
    steps = aligned(regret, BEFORE, BEHIND)
    excess = steps[:, BEFORE:] - steps[:, :BEFORE].mean(1, keepdims=True)
    mean, error = averaged(excess)
    above = np.flatnonzero(mean > 2 * error)
    return f"for {(above[-1] + 1) * WINDOW} steps" if len(above) else "nowhere"
