"""Everybody at the same settings: L = 100, P = 200, 3 initial pulls, pooled noise, and 100 tuples
per arm where memory is limited. With --drift, rows are in the order of their first principal
component: the buffer is then not like what was forgotten."""
from collections import Counter

import numpy as np

from lab import report as lab
from lab.own import algorithms
from lab.recipes import at_equal_settings
from lab.report import markdown_table, minus, plus_minus, text_table, title, with_error
from lab.results import execute, make_runs
from lab.statistics import difference, differences, grouped, judged, mean_and_error, ratio_of_means

PRINTED = "mushroom", "adult", "statlog", "epileptic"     # where `printed` is played
PRINTED_RUNS = 10
FULL, PERFECT, NONE = "neural-linear", "perfect-prior", "no-prior"
PAIRS = [
    *(("carried", other) for other in (NONE, "both-priors", FULL, "linear", "greedy", PERFECT)),
    ("both-priors", NONE), ("both-priors", "mu-prior"), ("both-priors", FULL),
    ("greedy", FULL), ("greedy-full", FULL),
    ("printed", "both-priors"), ("printed", NONE), ("printed", "carried"),
]
FOREST = [("carried", other) for other in (FULL, "both-priors", NONE, "linear")]
BACK = "both-priors", "carried"                       # who wins back what a posterior forgets
README = ("linear", FULL, "both-priors", "mu-prior", NONE, "carried", "greedy", "greedy-full")
LOCKED = 0.25                                         # of what the best arms pay


def measure(options):
    """Rewards at equal settings."""
    sets = [str(options.csv)] if options.csv else options.datasets
    runs = []
    for d in sets:
        for name, recipe in algorithms(options).items():
            if name == "printed" and (options.drift or d not in PRINTED):
                continue
            most = PRINTED_RUNS if name == "printed" else None
            runs += make_runs(options, d, name, at_equal_settings(recipe), most,
                              drift=options.drift)
    return [result | {"drift": options.drift} for result in execute(options, runs)]


# Report -------------------------------------------------------------------------------------------

def report(results):
    """Who earns more than whom, two kinds of forgetting, and the worst runs."""
    rewards = grouped(results, "dataset", "algorithm")
    found = judged(differences(rewards, PAIRS + lab.own_pairs(results)))
    rows = {pair: minus(pair) for pair, _ in found}
    parts = [answer(found, rows, results[0]["drift"]), lab.rewards_table(results),
             scores_table(results)]
    if found:
        sets = {d: title(d) for d in rewards}
        parts += [lab.difference_table("reward gained", found, rows, sets),
                  "\n".join(lab.wrapped(f"{text}: {lab.counted(found, pair)}")
                            for pair, text in rows.items())]
    parts += [kinds_table(rewards), lab.worst_table(results),
              locked_text(results) if "mushroom" in rewards else "", lab.played_text(results)]
    return "\n\n".join(filter(None, parts))


def answer(found, rows, drift):
    """What is certain of our prior, in words."""
    counts = [f"against {pair[1]} {lab.counted(found, pair)}" for pair in FOREST if pair in rows]
    where = "At equal settings" + (", with contexts that drift" if drift else "")
    return lab.wrapped(f"{where}, carried earns {'; '.join(counts)}.") if counts else ""


def scores_table(results):
    """Over all data sets: the mean of normalized scores, of those who played them all."""
    scored = [result | {"score": (result["reward"] - result["uniform"])
                        / (result["optimal"] - result["uniform"])} for result in results]
    n, rows = len(grouped(results, "dataset")), []
    for name, by_set in grouped(scored, "algorithm", "dataset", value="score").items():
        mean, error = np.transpose([mean_and_error(x) for x in by_set.values()])
        if len(by_set) == n:
            rows.append([name, with_error(mean.mean(), np.linalg.norm(error) / n, 3)])
    return text_table(["over all data sets", "score"], rows) + (
        "\nscore: (reward − any arm at random) / (optimal − any arm at random), the mean over data "
        "sets of means over runs;\n± standard error over runs")


def two_kinds(by_name):
    """Reward forgotten by the network and by the posterior, by run."""
    return (difference(by_name[FULL], by_name[PERFECT]),
            difference(by_name[PERFECT], by_name[NONE]))


def won_back(by_name, name):
    """The share of what the posterior forgets that a prior wins back, and its standard error; nan
    where it forgets less than two standard errors."""
    _, forgotten = two_kinds(by_name)
    mean, error = mean_and_error(forgotten)
    if mean < 2 * error:
        return np.nan, np.nan
    return ratio_of_means(difference(by_name[name], by_name[NONE]), forgotten)


def complete(rewards):
    """The data sets on which both kinds of forgetting can be told apart."""
    return {d: by_name for d, by_name in rewards.items()
            if {FULL, PERFECT, NONE, *BACK} <= set(by_name) and len(by_name[NONE]) > 1}


def kinds_table(rewards):
    """Two kinds of forgetting, and what priors win back."""
    rows = [[title(d), *(plus_minus(*mean_and_error(x)) for x in two_kinds(by_name)),
             *(with_error(*(100 * np.array(won_back(by_name, name)))) for name in BACK)]
            for d, by_name in complete(rewards).items()]
    if not rows:
        return ""
    header = ["reward forgotten", "by the network", "by the posterior",
              *(f"{name} wins back, %" for name in BACK)]
    return text_table(header, rows) + (
        f"\nby the network: {FULL} − {PERFECT}; by the posterior: {PERFECT} − {NONE}, of which a\n"
        "prior wins back a share; ± standard error; n/a: less than two standard errors are "
        "forgotten")


def locked_text(results):
    """Runs on Mushroom that stopped eating early: they earn little."""
    poor = Counter(result["algorithm"] for result in results if result["dataset"] == "mushroom"
                   and result["reward"] < LOCKED * result["optimal"])
    counts = ", ".join(f"{name} {runs}" for name, runs in poor.items())
    return (f"Mushroom, runs that earn less than {LOCKED:.0%} of the optimum (all that stop eating "
            f"in the first quarter do): {counts or 'none'}")


# Pictures -----------------------------------------------------------------------------------------

def plot(results):
    """Paired differences, and two kinds of forgetting."""
    rewards = {d: by_name for d, by_name in grouped(results, "dataset", "algorithm").items()
               if FULL in by_name}
    own = [pair for pair in lab.own_pairs(results) if FULL in pair]
    found = differences(rewards, FOREST + own)
    drift = ", contexts drift" if results[0]["drift"] else ""
    figures = {}
    if found:
        figures[""] = lab.forest(found, rewards, FULL, f"At equal settings{drift}")
    if complete(rewards):
        figures["kinds"] = kinds(complete(rewards), drift)
    return figures


def kinds(rewards, drift):
    """What each kind of forgetting costs, and what priors win back."""
    figure, (left, right) = lab.pyplot().subplots(
        1, 2, figsize=(8.5, 1.6 + 0.42 * len(rewards)), sharey=True)
    rows = np.arange(len(rewards))
    bars = [("by the network: full memory − perfect prior", -0.19, "#FFFFFF", "///"),
            ("by the posterior: perfect prior − no prior", 0.19, "#B8B8B8", "")]
    for k, (text, shift, color, hatch) in enumerate(bars):
        lost = [mean_and_error(100 / by_name[FULL].mean() * two_kinds(by_name)[k])
                for by_name in rewards.values()]
        value, error = np.transpose(lost)
        left.barh(rows + shift, value, 0.36, xerr=error, color=color, hatch=hatch, linewidth=0.5,
                  edgecolor="black", label=text, error_kw={"linewidth": 0.8, "capsize": 2})
    for name, shift in zip(BACK, (-0.14, 0.14), strict=True):
        value, error = np.transpose([won_back(by_name, name) for by_name in rewards.values()])
        right.errorbar(100 * value, rows + shift, xerr=100 * error, label=lab.label(name),
                       markersize=5, capsize=2, **lab.style(name) | {"linestyle": "none"})
    left.set_yticks(rows, map(title, rewards))
    left.set(ylim=(len(rewards) - 0.4, -0.6), xlabel="reward forgotten, % of full memory's")
    left.axvline(0, color="black", linewidth=0.8)
    for x in (0, 100):
        right.axvline(x, color="0.6", linewidth=0.8, zorder=0)
    right.set_xlabel("won back of what the posterior forgets, %\n(0: no prior, 100: perfect prior)")
    for panel in (left, right):
        panel.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    figure.suptitle(f"Two kinds of forgetting{drift}: mean over runs ± 1 standard error")
    return figure


# Files --------------------------------------------------------------------------------------------

def files(results):
    """README's table: mean rewards, the best ones in bold."""
    if results[0]["drift"]:
        return {}
    rewards = grouped(results, "dataset", "algorithm")
    names = [name for name in README if all(name in by_name for by_name in rewards.values())]
    rows = [[title(d), *best_in_bold({name: by_name[name] for name in names})]
            for d, by_name in rewards.items()]
    runs = len(next(iter(rewards.values()))[names[0]]) if names else 0
    return {"equal.md": markdown_table(["reward", *map(lab.label, names)], rows) + (
        f"\n\nMean of {runs} runs at equal settings. Bold: the best, and those that are within two "
        "standard errors of it (paired by run).\n")}


def best_in_bold(by_name):
    """Mean rewards as text."""
    best = max(by_name, key=lambda name: by_name[name].mean())
    cells = []
    for x in by_name.values():
        behind, error = mean_and_error(difference(by_name[best], x))
        cells.append(f"**{x.mean():.0f}**" if behind <= 2 * error else f"{x.mean():.0f}")
    return cells
