"""Every figure and table of the paper is one command; `python experiments.py` lists them.

A command measures, tells what it found beside what the paper says, and draws: three functions. The
paper's stand here, our own studies in studies/. Words, numbers and picture go to figures/own/. Runs
that the program as it is has played already are read from there, and are not played again.
"""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")         # before numpy: one thread per process

import sys
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.linalg import expm

import datasets
import nlts
import nlts_beyond
from docs import film
from lab import pages, paper, report, statistics
from lab.options import Command, listing, parse
from lab.recipes import ALGORITHMS, RECIPES, WHEEL_PHASES, epsilon_greedy, papers_prior
from lab.report import STYLE, Claim, Report, mean_sd, name_of, plus_minus, text_table
from lab.runs import execute, make_task, progress, read_once
from lab.statistics import grouped, paired, share
from studies import (
    ablation,
    calibration,
    complexity,
    drift,
    exploration,
    matching,
    peers,
    picture,
    released,
    speed,
)

# Sec. 4.1, Figure 2: forgetting -------------------------------------------------------------------

L = nlts.Config.L
EARLY = f"in steps {L} to {2 * L}"
FORGETTING = [  # the better, the worse, where, slack; the last three are about ours
    ("neural-linear", "linear", "", 0.0),
    ("both-priors", "neural-linear", "", 0.02),
    ("both-priors", "mu-prior", "", 0.0),
    ("both-priors", "no-prior", "", 0.0),
    ("mu-prior", "no-prior", "", 0.0),
    ("both-priors", "mu-prior", "after retraining", 0.0),
    ("both-priors", "no-prior", "after retraining", 0.0),
    ("both-priors", "neural-linear", EARLY, 0.0),
    ("carried", "both-priors", "", 0.0),
    ("carried", "neural-linear", "", 0.02),
    ("recommended", "carried", "", 0.0),
]


def measure_forgetting(o):
    """Regret on Statlog in each step."""
    return execute(o, [make_task(o, "statlog", name, record="regret") for name in o.algorithms])


def around(regret, width=50):
    """Regret in the steps before and after a retraining, by run: two arrays. They are means of all
    retrainings except the first (until then nothing has left the buffer); of those that learn more
    often than every L steps, the retrainings at the same steps."""
    phases = range(2 * L, regret.shape[1] - width + 1, L)
    before = np.mean([regret[:, p - width:p].sum(1) for p in phases], axis=0)
    after = np.mean([regret[:, p:p + width].sum(1) for p in phases], axis=0)
    return before, after


def tell_forgetting(lines):
    """The figure in numbers, and the paper's claims about it."""
    rows, saved, rewards = [], {}, grouped(lines, "algorithm")
    for name, regret in grouped(lines, "algorithm", value="regret").items():
        before, after = around(regret)
        ratio, error = share(after, before)
        rows.append([name, mean_sd(regret.sum(1)), f"{before.mean():.2f}", f"{after.mean():.2f}",
                     report.with_error(ratio, error, 2)])
        saved |= {(name, ""): rewards[name], (name, "after retraining"): -after,
                  (name, EARLY): -regret[:, L:2 * L].sum(1)}
    claims = []
    for better, worse, where, slack in FORGETTING:
        if (better, where) in saved and (worse, where) in saved:
            text = f"{report.better_than(better, worse, slack)} {where}"
            claims.append(Claim(text, saved[better, where], saved[worse, where], slack))
    header = ["Statlog", "regret", "before", "after retraining", "ratio after / before"]
    parts = [text_table(header, rows) + (
        f"\nregret: mean ± standard deviation of {report.runs_of(lines)}; before, after: in the 50 "
        f"steps before and after steps {2 * L}, {3 * L}, ...\n(all retrainings except the first; "
        "recommended and greedy learn more often, but only these steps are shown); ratio ± "
        "standard error")]
    if claims:
        parts.append(report.claims_text("the paper's claims, and ours", claims, "regret saved"))
    return "\n\n".join([*parts, report.explored_text(lines)])


def draw_forgetting(lines, window=25):
    """Figure 2: the paper's five panels, and ours."""
    regret = grouped(lines, "algorithm", value="regret")
    shown = [name for name in regret if name != "perfect-prior"] or list(regret)
    runs, steps = regret[shown[0]].shape
    figure, axes = report.pyplot().subplots(
        len(shown), 1, figsize=(7.5, 1.3 * len(shown) + 0.6), sharex=True, sharey=True,
        squeeze=False)
    n = steps // window
    x = window * (np.arange(n) + 0.5)
    for panel, name in zip(axes[:, 0], shown, strict=True):
        mean, error = paired(regret[name][:, :n * window].reshape(runs, n, window).mean(2))
        if runs > 1:
            panel.fill_between(x, mean - error, mean + error, color=STYLE[name]["color"], alpha=0.3)
        panel.plot(x, mean, color="black", linewidth=1)
        every = RECIPES[name].hyper.get("L", L)
        panel.vlines(range(every, steps, every), 0, 0.3, color="0.8", linewidth=0.7, zorder=0)
        panel.set_title(RECIPES[name].label, loc="right", y=0.78, fontsize=9)
        panel.set(xticks=range(0, steps + 1, L), xlim=(0, steps), ylim=(0, 0.3))
    axes[-1, 0].set_xlabel("step; a grey line is a retraining")
    figure.supylabel("regret per step, shown up to 0.3", fontsize=9)
    figure.suptitle(f"Statlog: {report.runs_of(lines)}, means of {window} steps "
                    "± 1 standard error")
    return {"forgetting": figure}


# Sec. 4.2, Table 1 --------------------------------------------------------------------------------

TABLE = [  # the better, the worse
    ("both-priors", "mu-prior"), ("both-priors", "no-prior"), ("mu-prior", "no-prior"),
    ("both-priors", "neural-linear"), ("both-priors", "linear"), ("linear", "neural-linear"),
]
OURS = [("carried", "no-prior"), ("carried", "both-priors"), ("carried", "neural-linear"),
        ("recommended", "carried"), ("recommended", "both-priors"), ("recommended", "greedy"),
        ("recommended", "neural-linear"), ("recommended", "linear"), ("greedy", "neural-linear")]


def measure_table(o):
    """Rewards on the paper's data sets, or on a table of one's own."""
    sets = [o.csv.stem] if o.csv else o.datasets
    return execute(o, [make_task(o, d, name) for d in sets for name in o.algorithms])


def tell_table(lines):
    """Rewards beside the paper's, two kinds of forgetting, its claims, ours, a summary, hours."""
    rewards = grouped(lines, "dataset", "algorithm")
    parts = [report.rewards_text(lines, rewards)]
    if max(line["run"] for line in lines):
        parts.append(report.lowest_text({name_of(d): own for d, own in rewards.items()}))
    if report.whole(rewards):
        parts.append(report.kinds_text(report.whole(rewards)))
    parts += [gains_text(title, pairs, rewards)
              for title, pairs in (("the paper's claims", TABLE), ("about ours", OURS))
              if any(a in own and b in own for a, b in pairs for own in rewards.values())]
    if len(next(iter(rewards.values()))) > 1:
        parts.append(summary_text(lines))
    return "\n\n".join([*parts, report.explored_text(lines), hours_text(lines)])


def gains(pairs, rewards):
    """For each pair, by data set: the paired difference and a verdict, of all of them one family;
    [((better, worse), {data set: (difference by run, verdict)})]."""
    found = [((a, b), {d: own[a] - own[b] for d, own in rewards.items() if a in own and b in own})
             for a, b in pairs]
    words = iter(statistics.verdicts([x for _, sets in found for x in sets.values()]))
    return [(pair, {d: (x, next(words)) for d, x in sets.items()}) for pair, sets in found if sets]


def printed_gain(d, better, worse):
    """The difference of the paper's means, or None."""
    numbers = paper.number(d, better), paper.number(d, worse)
    return numbers[0][0] - numbers[1][0] if all(numbers) else None


def gains_text(title, pairs, rewards):
    """What the better one of each pair gains here, and below it in the paper, by data set."""
    def cell(difference, verdict):
        return plus_minus(*paired(difference)) + ("  " if verdict == "unclear" else " *")

    rows, found = [], []
    for (better, worse), sets in gains(pairs, rewards):
        cells = [cell(*sets[d]) if d in sets else "" for d in rewards]
        rows.append([f"{better} > {worse}", *cells])
        found.append(f"{better} > {worse}: {found_in(better, worse, sets)}")
        printed = [printed_gain(d, better, worse) for d in rewards]
        if any(x is not None for x in printed):
            rows.append(["  in the paper", *("" if x is None else f"{x:+.0f}  " for x in printed)])
    note = ("Differences are paired by run, ± standard error; * a gain or a loss at 5 % (t-test, "
            "Holm's correction for the whole table)")
    return "\n".join([text_table([title, *map(name_of, rewards)], rows), note, *found])


def found_in(better, worse, sets):
    """A verdict over data sets: where the paper has the claim, and elsewhere."""
    held = {d for d, (_, verdict) in sets.items() if verdict == "supported"}
    lost = [name_of(d) for d, (_, verdict) in sets.items() if verdict == "not supported"]
    loses = f"loses on {len(lost)}" + (f" ({', '.join(lost)})" if lost else "")
    where = paper.NONLINEAR if worse == "linear" else paper.TABLE    # as Sec. 4.2 says
    claimed = {d for d in sets if d in where and (printed_gain(d, better, worse) or 0) > 0}
    if not claimed:
        return f"gains on {len(held)} of {len(sets)} data sets, {loses}"
    both, others = len(held & claimed), len(held - claimed)
    nowhere = "not supported" if lost else "unclear"
    word = {0: nowhere, len(claimed): "supported"}.get(both, "partly")
    kind = "nonlinear data sets" if worse == "linear" else "data sets"
    return (f"{word}: on {both} of the {len(claimed)} {kind} where the paper has it, and on "
            f"{others} other{'' if others == 1 else 's'}; {loses}")


def table_pages(lines):
    """What README.md shows: the rewards, and the verdicts, of all of them."""
    rewards, found = grouped(lines, "dataset", "algorithm"), []
    for title, pairs in (("The paper's claims", TABLE), ("About ours", OURS)):
        words = [f"- {better} > {worse}: {found_in(better, worse, sets)}"
                 for (better, worse), sets in gains(pairs, rewards)]
        found += [f"{title} ({report.runs_of(lines)}, at 5 % after Holm's correction):", *words, ""]
    return {"summary.md": pages.summary(rewards), "findings.md": "\n".join(found[:-1])}


def summary_text(lines):
    """Over all data sets: normalized scores, and how often each beats full memory."""
    scored = [line | {"score": (line["reward"] - line["uniform"])
                      / (line["optimal"] - line["uniform"])} for line in lines]
    scores = grouped(scored, "algorithm", "dataset", value="score")
    base = "neural-linear" if "neural-linear" in scores else next(iter(scores))
    rows = []
    for name, sets in scores.items():
        common = [d for d in sets if d in scores[base] and len(sets[d]) == len(scores[base][d])]
        mine, theirs = [sets[d] for d in common], [scores[base][d] for d in common]
        low, high = statistics.bootstrap(statistics.interquartile_mean, mine)
        rows.append([name, f"{statistics.interquartile_mean(mine):.3f}", f"{low:.3f} to {high:.3f}",
                     "", ""])
        if name != base:
            chance = statistics.probability_of_improvement(mine, theirs)
            low, high = statistics.bootstrap(statistics.probability_of_improvement, mine, theirs)
            rows[-1][3:] = [f"{chance:.0%}", f"{low:.0%} to {high:.0%}"]
    header = ["over all data sets", "score", "95 % interval", f"beats {base}", "95 % interval"]
    return text_table(header, rows) + (
        "\nscore: interquartile mean of (reward − any arm at random) / (optimal − any arm at "
        f"random)\nbeats {base}: the share of runs, of the same rows; intervals by bootstrap "
        "over runs")


def hours_text(lines):
    """What was played, and what the paper's number of runs would take."""
    played = sum(line["seconds"] for line in lines)
    seconds = grouped(lines, "config", value="seconds")
    all_runs = paper.RUNS * sum(x.mean() for x in seconds.values())
    text = f"{len(lines)} runs took {played / 3600:.1f} hours of one core"
    if len(lines) == paper.RUNS * len(seconds):
        return text
    return text + (f"; {paper.RUNS} runs of each would take {all_runs / 3600:.1f} hours "
                   "(extrapolated)")


def draw_table(lines):
    """Two kinds of forgetting."""
    rewards = report.whole(grouped(lines, "dataset", "algorithm"))
    if not rewards or not {"both-priors", "carried"} <= set(next(iter(rewards.values()))):
        return {}
    labels = {name: RECIPES[name].label for name in RECIPES}
    return {"kinds": report.draw_kinds(rewards, labels, "Two kinds of forgetting")}


# Sec. 4.3, Figure 3 (a table): Amazon reviews -----------------------------------------------------

EPSILONS = 0, 0.003, 0.01, 0.03, 0.1                  # none is smaller than the first
AMAZON = [  # the better, the worse, slack; the first three are the paper's
    ("neural-linear", "ε = 0.1", 0.0), ("both-priors", "ε = 0.1", 0.0),
    ("both-priors", "neural-linear", 0.02), ("neural-linear", "best ε", 0.0),
    ("both-priors", "best ε", 0.0), ("carried", "best ε", 0.0), ("carried", "both-priors", 0.0),
    ("carried", "neural-linear", 0.0), ("recommended", "best ε", 0.0),
    ("recommended", "neural-linear", 0.0), ("recommended", "carried", 0.0),
    ("recommended", "greedy", 0.0)]


def measure_amazon(o):
    """Rewards of a text network: ε-greedy with full memory, and Thompson sampling."""
    hyper = {"P": 5} if o.quick else {}
    tasks = [make_task(o, "amazon", "ε-greedy", variant=f"ε = {epsilon}", hyper=hyper,
                       recipe=epsilon_greedy(epsilon)) for epsilon in EPSILONS]
    return execute(o, tasks + [make_task(o, "amazon", name, hyper=hyper) for name in o.algorithms])


def tell_amazon(lines):
    """Thompson sampling against ε-greedy: the paper's ε, and the best."""
    rewards = grouped([line | {"name": line.get("variant") or line["algorithm"]} for line in lines],
                      "name")
    printed = paper.AMAZON | {"ε = 0.1": paper.AMAZON["ε-greedy"]}
    epsilons = [name for name in rewards if name.startswith("ε")]
    best = max(epsilons, key=lambda name: rewards[name].mean())
    rows = [[f"ε-greedy, {name}" if name in epsilons else name, mean_sd(r, 1),
             paper.cell(printed.get(name))] for name, r in rewards.items()]
    claims, compared = [], rewards | {"best ε": rewards[best]}
    for better, worse, slack in AMAZON:
        if better in compared and worse in compared:
            known = printed.get(better), printed.get(worse)
            claims.append(Claim(report.better_than(better, worse, slack), compared[better],
                                compared[worse], slack,
                                known[0][0] - known[1][0] if all(known) else None))
    always = np.mean([line["best_arm"] for line in lines])
    parts = [text_table(["Amazon reviews", "reward", "in the paper"], rows),
             f"mean ± standard deviation of {report.runs_of(lines)} of {lines[0]['steps']} steps; "
             f"always playing the commonest rating earns {always:.0f}",
             f"the best ε of those played: {best}, chosen on these runs, which flatters it; the "
             "paper tried 0.1 to 1, and prints 0.1"]
    if claims:
        parts += ["", report.claims_text("the paper's claims, and ours", claims)]
    return "\n".join([*parts, "", report.explored_text(lines)])


# Appendix B, Table 2: the wheel -------------------------------------------------------------------

TWICE = replace(RECIPES["both-priors"], label="the buffer counted twice in Φ⁰", arguments={
    "prior": partial(ablation.counted_twice, prior=papers_prior)})
WHEEL = [  # algorithm, variant, hyperparameters, recipe if it is not the algorithm's own
    ("linear", "", WHEEL_PHASES, None),
    ("neural-linear", "", WHEEL_PHASES, None),
    ("both-priors", "", WHEEL_PHASES, None),
    ("carried", "", WHEEL_PHASES, None),
    ("recommended", "", {}, None),
    ("both-priors", "b⁰ = 0.6", WHEEL_PHASES | {"b0": 0.6}, None),
    ("both-priors", "b⁰ = 0.06", WHEEL_PHASES | {"b0": 0.06}, None),      # the noise that there is
    ("both-priors", "twice", WHEEL_PHASES, TWICE),
]
WHEEL_OURS = [("carried", "both-priors"), ("carried", "neural-linear"),
              ("recommended", "both-priors")]
DRAWN = {"linear": "linear", "both-priors": "both priors", "recommended": "recommended"}
DELTAS = 0.5, 0.3                                     # of the picture


def measure_wheel(o):
    """Rewards on the wheel with three radii; of the first run, what was learned."""
    tasks = []
    for delta in paper.WHEEL:
        for name, variant, hyper, recipe in WHEEL:
            if name in o.algorithms:
                drawn = delta in DELTAS and name in DRAWN and not variant
                tasks.append(make_task(o, "wheel", name, variant=variant, hyper=hyper, delta=delta,
                                       recipe=recipe, record="values" if drawn else ""))
    return execute(o, tasks)


def tell_wheel(lines):
    """The rewards beside the paper's numbers, and its claim that linear is beaten."""
    labels = {report.label(line): line["algorithm"] for line in lines}
    rewards = grouped([line | {"label": report.label(line)} for line in lines], "delta", "label")
    rows, claims = [], []
    for delta, own in rewards.items():
        theirs = paper.WHEEL[delta]
        rows.append([f"δ = {delta}", *(mean_sd(r, 1) for r in own.values())])
        rows.append(["  in the paper", *(paper.cell(theirs.get(name)) for name in own)])
        off = {name: 100 * (r.mean() / theirs[labels[name]][0] - 1)
               for name, r in own.items() if labels[name] in theirs}
        rows.append(["  here it is",
                     *(f"{off[name]:+.1f} %" if name in off else "" for name in own)])
        if "linear" in own:
            for name in own:
                if name != "linear":
                    known = theirs[name][0] - theirs["linear"][0] if name in theirs else None
                    claims.append(Claim(f"δ = {delta}: {name} > linear", own[name], own["linear"],
                                        printed=known))
        claims += [Claim(f"δ = {delta}: {better} > {worse}", own[better], own[worse])
                   for better, worse in WHEEL_OURS if better in own and worse in own]
    safe = 0.2 * lines[0]["steps"]
    parts = [text_table(["wheel", *labels], rows) + (
        f"\nmean ± standard deviation of {report.runs_of(lines)}; always playing the safe arm "
        f"earns {safe:.0f}")]
    if claims:
        parts.append(report.claims_text("the paper's claim, and others", claims))
    return "\n\n".join([*parts, report.explored_text(lines)])


def draw_wheel(lines):
    """Appendix B's figure: what each arm pays, and what two algorithms have learned of it."""
    shown = {(line["delta"], line["algorithm"]): line["values"] for line in lines
             if "values" in line}
    names = [name for name in DRAWN if any(algorithm == name for _, algorithm in shown)]
    if not names:
        return {}
    pyplot = report.pyplot()
    figure, axes = pyplot.subplots(1 + len(names), 10, figsize=(14, 1.6 + 1.4 * len(names)),
                                   sharex=True, sharey=True, subplot_kw={"aspect": "equal"})
    for block, delta in enumerate(DELTAS):
        first = shown[delta, names[0]]
        rows = {"reward samples": first["rewards"]}
        rows |= {DRAWN[name]: shown[delta, name]["expected"] for name in names}
        x, y = np.transpose(first["contexts"])[:2]    # linear has an intercept, too
        for line, (text, values) in zip(axes, rows.items(), strict=True):
            line[0].set_ylabel(text)
            for i, panel in enumerate(line[5 * block:5 * block + 5]):
                dots = panel.scatter(x, y, c=np.array(values)[:, i], s=2, cmap="cividis", vmin=0,
                                     vmax=0.5)
                panel.add_patch(pyplot.Circle((0, 0), delta, fill=False, linewidth=0.8))
                panel.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
                axes[0, 5 * block + i].set_title(f"δ = {delta}, arm {i + 1}")
    figure.colorbar(dots, ax=axes, label="reward", shrink=0.8, extend="both")
    figure.suptitle(f"Wheel: one run of {lines[0]['steps']} steps, its first {len(x)} contexts; "
                    "circle: ‖x‖ = δ")
    return {"wheel": figure}


# Appendix C: when the analytical prior is exact ---------------------------------------------------

RATIOS = [2, 1.5, 1.2, 1, 0.9, 0.8, 0.6, 0.4, 0.2]    # tuples in the buffer over features, n/g
BENDS = [0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1]           # eps in phi = M b + eps tanh(W b)
PRIORS = {"analytical": "neural-linear", "likelihood matching": "both-priors",
          "carried (ours)": "carried", "none": "no-prior"}           # and in whose style drawn
SIZE = 20                                             # features, g


def measure_sanity(o):
    """Errors of four priors: linear features and few tuples, then features that bend."""
    return read_once(o, sanity_errors)


def sanity_errors(o):
    """Of each run, (sizes, priors, 2 errors) by n/g and by eps."""
    few, bent = [], []
    for run in progress(range(o.runs), o.runs, "sanity"):
        rng = np.random.default_rng([o.seed, run])
        few.append([prior_errors(rng, SIZE, round(ratio * SIZE), 0.0) for ratio in RATIOS])
        bent.append([prior_errors(rng, SIZE, 5 * SIZE, eps) for eps in BENDS])
    return {"n/g": RATIOS, "eps": BENDS, "priors": list(PRIORS),
            "errors by n/g": np.array(few).tolist(), "errors by eps": np.array(bent).tolist()}


def prior_errors(rng, g, n, eps, m=400):
    """Two errors of each of PRIORS after one change from b to phi = M b + eps tanh(W b): (4, 2).

    M is a rotation; m tuples were evicted, n are kept. Errors of predictions and of log s² are on
    200 held-out contexts, against a regression on all tuples.
    """
    first = nlts.Config.lam * np.eye(g), np.zeros(g), nlts.Config.a0, nlts.Config.b0
    skew, W = rng.normal(size=(2, g, g)) / np.sqrt(g)
    M, scale = expm((skew - skew.T) / 2), rng.permutation(np.geomspace(0.3, 3, g))
    b, b_test = scale * rng.normal(size=(m + n, g)), scale * rng.normal(size=(200, g))
    r = b @ rng.normal(size=g) + 0.5 * rng.normal(size=m + n)

    def features(b):
        return b @ M.T + eps * np.tanh(b @ W.T)

    arm, full = nlts.BayesianLinearRegression(*first), nlts.BayesianLinearRegression(*first)
    arm.update(b, r)
    full.update(features(b), r)
    forgotten = arm.without(b[m:], r[m:])
    E_old, E_new, test = b[m:], features(b[m:]), features(b_test)
    Phi0, mu0 = nlts.invertible_prior(E_old, E_new, forgotten.mu_hat, forgotten.precision)
    unseen = np.eye(g) - np.linalg.pinv(E_new) @ E_new            # keeps the first prior
    last_layer = nlts.match_mean(E_old, E_new, forgotten.mu_hat)       # Eq. 5 stands for a network
    priors = [(Phi0 + nlts.Config.lam * unseen, mu0)]
    for prior in (nlts.likelihood_matching, nlts_beyond.carried_prior, nlts.no_prior):
        priors += prior([forgotten], [E_old], [E_new], last_layer[None], nlts.Config.lam)
    errors = []
    for Phi0, mu0 in priors:
        arm = nlts.BayesianLinearRegression(Phi0, mu0, forgotten.a, forgotten.b, forgotten.n)
        arm.update(E_new, r[m:])
        wrong = np.linalg.norm(test @ (arm.mu_hat - full.mu_hat))
        errors.append([wrong / np.linalg.norm(test @ full.mu_hat),
                       np.abs(np.log(arm.variance(test) / full.variance(test))).mean()])
    return errors


def tell_sanity(data):
    """The largest errors where n >= g."""
    exact = np.array(data["errors by n/g"])[:, np.array(RATIOS) >= 1]     # (runs, sizes, priors, 2)
    rows = []
    for i, name in enumerate(PRIORS):
        errors = exact[:, :, i].max((0, 1))
        rows.append([name, *(f"{error:.1e}" for error in errors),
                     "exact" if errors.max() < 1e-8 else "not exact"])
    claim = "supported" if rows[0][-1] == "exact" else "not supported"
    header = ["largest error, linear features, n >= g", "of predictions", "of log s²", ""]
    return text_table(header, rows) + (
        f"\nof {len(exact)} runs; Appendix C, the analytical prior is exact: {claim}")


def draw_sanity(data):
    """Errors of predictions and of s² against the tuples in the buffer, and against the bend."""
    few, bent = np.array(data["errors by n/g"]), np.array(data["errors by eps"])
    sweeps = [("tuples in the buffer / features, n/g", RATIOS, few, "linear features"),
              ("ε of features φ = M b + ε tanh(W b)", BENDS, bent, "nonlinear features")]
    figure, axes = report.pyplot().subplots(2, 2, figsize=(8.5, 6.5))
    figure.suptitle(f"Appendix C: mean of {len(few)} runs ± 1 standard error")
    for column, (name, sizes, values, title) in zip(axes.T, sweeps, strict=True):
        for axis, k, what in zip(column, (0, 1), ("error of predictions", "mean |Δ log s²|"),
                                 strict=True):
            mean, error = paired(values[..., k])
            error = np.where(np.isfinite(error), error, 0.0)
            for i, (prior, style) in enumerate(PRIORS.items()):
                report.curve(axis, sizes, mean[:, i], error[:, i], prior, style)
            axis.set(title=f"{what}, {title}", xlabel=name, yscale="log")
            axis.grid(alpha=0.3)
            if values is few:
                axis.set_ylim(1e-3, (3, 50)[k])
                exact = mean[np.array(RATIOS) >= 1, 0].max()
                axis.text(1.5, 1.2e-3, f"analytical: {exact:.0e}", ha="center", fontsize=8)
            else:
                axis.set_xscale("log")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return {"sanity": figure}


# The command line ---------------------------------------------------------------------------------

COMMANDS = {
    "forgetting": Command(
        "Sec. 4.1: regret around each retraining", 3,
        measure_forgetting, tell_forgetting, draw_forgetting,
        full={"runs": 10, "steps": 4000, "algorithms": ALGORITHMS},
        quick={"runs": 2, "steps": 1200}, least={"steps": 2 * L + 50}),
    "table": Command(
        "Sec. 4.2: real data, two kinds of forgetting", 120,
        measure_table, tell_table, draw_table, table_pages,
        full={"runs": paper.RUNS, "steps": 5000, "datasets": tuple(paper.TABLE),
              "algorithms": ALGORITHMS, "csv": None},
        quick={"runs": 2, "steps": 1300, "datasets": ("statlog",)}),
    "amazon": Command(
        "Sec. 4.3: text, Thompson sampling and ε-greedy", 115,
        measure_amazon, tell_amazon,
        full={"runs": 5, "steps": 5000,
              "algorithms": ("neural-linear", "both-priors", "carried", "recommended", "greedy")},
        quick={"runs": 2, "steps": 450}),
    "wheel": Command(
        "Appendix B: the wheel", 20, measure_wheel, tell_wheel, draw_wheel,
        full={"runs": 50, "steps": 4000,
              "algorithms": tuple(dict.fromkeys(name for name, *_ in WHEEL))},
        quick={"runs": 2, "steps": 1000}),
    "sanity": Command(
        "Appendix C in numbers, and where its assumptions end", 1,
        measure_sanity, tell_sanity, draw_sanity, full={"runs": 20}, quick={"runs": 3},
        again=("fresh",)),
    "drift": Command(
        "ours: contexts that drift away from the buffer", 12,
        drift.measure, drift.tell, drift.draw,
        full={"runs": 20, "steps": 5000, "datasets": drift.SETS, "algorithms": ALGORITHMS},
        quick={"runs": 2, "steps": 1300, "datasets": ("statlog",)}),
    "exploration": Command(
        "ours: why limited memory can win; what noise and priors are worth", 45,
        exploration.measure, exploration.tell, exploration.draw,
        full={"runs": 10, "steps": 5000, "datasets": (*paper.TABLE, "wheel"),
              "algorithms": exploration.EXPLORED},
        quick={"runs": 2, "steps": 1300, "datasets": ("statlog",)}),
    "calibration": Command(
        "ours: how certain each prior is", 15,
        calibration.measure, calibration.tell, calibration.draw,
        full={"runs": 10, "steps": 5000, "datasets": tuple(paper.TABLE)},
        quick={"runs": 2, "steps": 1300, "datasets": ("statlog", "mushroom")},
        least={"steps": 3 * L}),
    "ablation": Command(
        "ours: what each open choice is worth", 35, ablation.measure, ablation.tell,
        pages=ablation.pages, full={"runs": 5, "steps": 5000, "datasets": ablation.SETS,
              "algorithms": tuple(ablation.METHODS)},
        quick={"runs": 2, "steps": 1000, "datasets": ("statlog",)}),
    "released": Command(
        "the paper's table as the released program plays it", 75,
        released.measure, released.tell, released.draw,
        full={"runs": 10, "steps": 5000, "datasets": tuple(paper.TABLE),
              "algorithms": paper.ALGORITHMS},
        quick={"runs": 2, "steps": 450, "datasets": ("mushroom",)}),
    "peers": Command(
        "ours beside LiM2, NeuralTS and a greedy network", 35,
        peers.measure, peers.tell, peers.draw,
        full={"runs": 5, "steps": 5000, "datasets": peers.SETS, "algorithms": tuple(peers.PEERS)},
        quick={"runs": 2, "steps": 400, "datasets": ("statlog", "wheel")}),
    "complexity": Command(
        "Sec. 3.1 measured", 2, complexity.measure, complexity.tell,
        full={"runs": 3, "steps": 8000}, quick={"runs": 1, "steps": 2000}, least={"steps": 1000},
        again=("fresh",)),
    "matching": Command(
        "Eq. 6: solvers compared", 2, matching.measure, matching.tell,
        full={"datasets": tuple(paper.TABLE), "seed": 1},   # lab/fast.py was tuned on seed 0
        quick={"datasets": ("statlog", "mushroom")}, again=("fresh",)),
    "speed": Command(
        "ours: what a step and a run cost", 1, speed.measure, speed.tell,
        full={"runs": 5, "steps": 4000}, quick={"runs": 1, "steps": 850}, again=("fresh",)),
    "picture": Command(
        "the picture of README.md, on ten seeds", 1, picture.measure, picture.tell, picture.draw,
        full={"runs": 10}, quick={"runs": 2}, again=("fresh",)),
    "film": Command("docs/forgetting.html: ten learning phases, with a slider", 3, film.command,
                    again=("fresh",)),
    "results": Command("figures/README.md and the numbers in README.md", 0, pages.fill,
                       again=()),
}


def main(argv=None):
    """Run one command."""
    o = parse(argv, COMMANDS)
    if o is None:
        print(__doc__ + "\n" + listing(COMMANDS))
        return
    command = COMMANDS[o.command]
    try:
        found = command.measure(o)
    except datasets.DataError as error:
        sys.exit(str(error))
    if command.tell:
        data = None if isinstance(found, list) else found
        pages_of, figures = command.pages or (lambda _: {}), command.draw or (lambda _: {})
        Report(command.tell(found), data, figures(found), pages_of(found)).save(o)


if __name__ == "__main__":
    main()
