"""Everybody at the same settings: L = 100, P = 200, 3 initial pulls, pooled noise, and 100 tuples
per arm where memory is limited. With --drift, rows are in the order of their first principal
component: the buffer is then not like what was forgotten."""
from collections import Counter

import numpy as np

from lab import report as lab
from lab.own import algorithms
from lab.recipes import at_equal_settings
from lab.results import execute, make_runs
from lab.statistics import (
    difference,
    grouped,
    judge_rewards,
    mean_and_error,
    mean_over_sets,
    ratio_of_means,
)

PRINTED = "mushroom", "adult", "statlog", "epileptic"     # where `printed` is played
MOST = {"printed": 10}                                # runs
FULL, PERFECT, NONE = "neural-linear", "perfect-prior", "no-prior"
PAIRS = [
    *(("carried", other) for other in (NONE, "both-priors", FULL, "linear", "greedy", PERFECT)),
    ("both-priors", NONE), ("both-priors", "mu-prior"), ("both-priors", FULL),
    ("greedy", FULL), ("greedy-full", FULL),
    ("printed", "both-priors"), ("printed", NONE), ("printed", "carried"),
]
FOREST = [("carried", other) for other in (FULL, "both-priors", NONE, "linear")]
ANSWERS = [*FOREST, ("both-priors", NONE)]
KINDS = {
    (FULL, PERFECT): "lost by the network", (PERFECT, NONE): "lost by the posterior",
    ("both-priors", NONE): "won back", ("carried", NONE): "won back"}
README = ("linear", FULL, "both-priors", "mu-prior", NONE, "carried", "greedy")
LOCKED = 0.25                                         # of what the best arms pay


def measure(options):
    """Rewards at equal settings."""
    runs = []
    for d in options.datasets:
        for name, recipe in algorithms(options).items():
            if name != "printed" or (d in PRINTED and not options.drift):
                runs += make_runs(options, d, name, at_equal_settings(recipe), MOST.get(name),
                                  drift=options.drift)
    return [result | {"drift": options.drift} for result in execute(options, runs)]


# Report -------------------------------------------------------------------------------------------

def report(results):
    """Who earns more than whom, two kinds of forgetting, and the worst runs."""
    rewards = grouped(results, "dataset", "algorithm")
    found = judge_rewards(results, PAIRS + lab.own_pairs(results))
    return lab.page(
        answer(found, results), lab.rewards_table(results), scores_table(results),
        lab.difference_table("reward gained", found), kinds_table(rewards),
        lab.by_set("reward of the worst run", results, lambda x: f"{x.min():.0f}"),
        locked_text(results) if "mushroom" in rewards else "", lab.played_text(results))


def answer(found, results):
    """What is certain of our prior and of the paper's, in words."""
    pairs = {pair for pair, _ in found}
    counts = [f"{name} against {other}: {lab.counted(found, (name, other))}"
              for name, other in ANSWERS if (name, other) in pairs]
    drift = " and with contexts that drift" if results[0]["drift"] else ""
    named = [result for result in results if result["algorithm"] in sum(ANSWERS, ())]
    return lab.wrapped(f"Rewards at equal settings{drift} ({lab.runs_of(named)}). "
                       f"{'; '.join(counts)}.") if counts else ""


def scores_table(results):
    """The mean of normalized scores over all data sets, of algorithms that played them all."""
    scored = [result | {"score": (result["reward"] - result["uniform"])
                        / (result["optimal"] - result["uniform"])} for result in results]
    n, rows = len(grouped(results, "dataset")), []
    for name, by_set in grouped(scored, "algorithm", "dataset", value="score").items():
        if len(by_set) == n:
            rows.append([name, lab.with_error(*mean_over_sets(by_set), 3)])
    return lab.text_table(["over all data sets", "score"], rows) + (
        "\nscore: (reward − any arm at random) / (optimal − any arm at random), the mean over data "
        "sets of\nmeans over runs; ± standard error over runs")


def won_back(gained, forgotten):
    """The share that a prior wins back of what the posterior forgets, and its standard error; nan
    where the posterior forgets less than two standard errors."""
    mean, error = mean_and_error(forgotten)
    return (np.nan, np.nan) if mean < 2 * error else ratio_of_means(gained, forgotten)


def kinds_table(rewards):
    """Two kinds of forgetting, and what priors win back, where all of KINDS were played."""
    rows = []
    for d, by_name in rewards.items():
        if set(sum(KINDS, ())) <= set(by_name):
            network, posterior, *gained = (difference(by_name[a], by_name[b]) for a, b in KINDS)
            lost = [lab.plus_minus(*mean_and_error(x)) for x in (network, posterior)]
            won = [lab.with_error(*won_back(100 * x, posterior)) for x in gained]
            rows.append([lab.title(d), *lost, *won])
    if not rows:
        return ""
    header = ["reward forgotten", "by the network", "by the posterior", "both-priors wins back, %",
              "carried wins back, %"]
    return lab.text_table(header, rows) + "\n" + lab.wrapped(
        f"by the network: {FULL} − {PERFECT}; by the posterior: {PERFECT} − {NONE}, of which a "
        f"prior wins back a share, above 100 % where it earns more than {PERFECT}; ± standard "
        "error; n/a: less than two standard errors are forgotten")


def locked_text(results):
    """How many runs on Mushroom stopped eating early, which shows in their rewards."""
    poor = Counter(result["algorithm"] for result in results if result["dataset"] == "mushroom"
                   and result["reward"] < LOCKED * result["optimal"])
    counts = ", ".join(f"{name} {runs}" for name, runs in poor.items())
    return (f"Mushroom, runs that earn less than {100 * LOCKED:.0f} % of the optimum: "
            f"{counts or 'none'}\n(all that stop eating in the first quarter do)")


# Pictures -----------------------------------------------------------------------------------------

def plot(results):
    """What carried gains over others; what the network forgets, what the posterior forgets, and
    what two priors win back of the latter."""
    drift = ", contexts drift" if results[0]["drift"] else ""
    own = [pair for pair in lab.own_pairs(results) if FULL in pair]
    what = f"At equal settings{drift}: right of 0, the first one earns more"
    return {"": lab.forest(results, dict.fromkeys(FOREST + own), FULL, what),
            "kinds": lab.forest(results, KINDS, FULL, f"Two kinds of forgetting{drift}", True)}


# Files --------------------------------------------------------------------------------------------

def files(results):
    """README's table: mean rewards, the best ones in bold."""
    if results[0]["drift"]:
        return {}
    rewards = grouped(results, "dataset", "algorithm")
    names = [name for name in README if all(name in by_name for by_name in rewards.values())]
    rows = [[lab.title(d), *best_in_bold({name: by_name[name] for name in names})]
            for d, by_name in rewards.items()]
    runs = len(next(iter(rewards.values()))[names[0]]) if names else 0
    return {"equal.md": lab.markdown_table(["reward", *names], rows) + (
        f"\n\nMean of {runs} runs at equal settings. Bold: the best, and those that are within two "
        "standard errors of it (paired by run).\n")}


def best_in_bold(by_name):
    """Mean rewards as text, bold where not certainly less than the best."""
    best = max(by_name, key=lambda name: by_name[name].mean())
    cells = []
    for x in by_name.values():
        behind, error = mean_and_error(difference(by_name[best], x))
        cells.append(f"**{x.mean():.0f}**" if behind <= 2 * error else f"{x.mean():.0f}")
    return cells
