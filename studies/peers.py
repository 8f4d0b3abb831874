"""Other bandits with a neural network, on the same rows, at equal settings where they have such.

All have one layer of 50 ReLUs. LiM2, carried and greedy have 100 tuples per arm; NeuralTS and
neural-linear keep all. LiM2: one step of RMSProp on 16 tuples per arm at every step, its size
0.1 / (1 + t / 20), then one on each covariance, of size 0.01 / t, gradients up to 5, + 1e-5 I;
lam = 1, first weights within 0.3, its own noise. Its public program has an output bias that its
regression lacks: told apart, for it changes rewards. NeuralTS: lam = 0.001, nu = 1, one network
with an output per arm; it learns every 100 steps, and not 1,000 steps after each play.
"""
from lab.recipes import EQUAL, RECIPES, at_equal_settings
from lab.report import (
    FAMILY,
    counted,
    difference_table,
    forest,
    power,
    power_text,
    pyplot,
    rewards_table,
    sentences,
    text_table,
    title,
    worst_table,
)
from lab.results import execute, make_runs
from lab.runs import Recipe
from lab.statistics import difference, grouped, judged
from studies.peers_agents import LiM2, NeuralTS, wide_network
from studies.released_agents import Biased

PULLS = {"initial_pulls": EQUAL["initial_pulls"]}
PEERS = {
    "LiM2": Recipe(LiM2, settings=PULLS | {"lam": 1.0}, network=wide_network),
    "LiM2 with output bias": Recipe(LiM2, settings=PULLS | {"lam": 1.0}, network=Biased),
    "NeuralTS": Recipe(NeuralTS, None, settings=EQUAL | {"lam": 1e-3}),
    "greedy": at_equal_settings(RECIPES["greedy"]),
    "neural-linear": at_equal_settings(RECIPES["neural-linear"]),
    "carried": at_equal_settings(RECIPES["carried"]),
}
MOST = {"LiM2 with output bias": 5}


def measure(options):
    """Rewards on the paper's data sets and on the wheel."""
    return execute(options, [
        run for d in options.datasets for name, recipe in PEERS.items()
        for run in make_runs(options, d, name, recipe, MOST.get(name))])


def report(results):
    """What carried gains over each peer, and what would be found; rewards and seconds."""
    rewards = grouped(results, "dataset", "algorithm")
    found = judged({(name, d): difference(own["carried"], own[name])
                    for d, own in rewards.items() for name in own if name != "carried"})
    peers = {name: f"− {name}" for name, _ in found}
    sets = {d: title(d) for d in rewards}
    by_set = {(d, name): one for (name, d), one in found.items()}
    return "\n\n".join([
        sentences([*(f"carried against {name}: {counted(found, name, sets)}" for name in peers),
                   f"All but LiM2, which learns at every step, have L = {EQUAL['L']} and "
                   f"P = {EQUAL['P']}; all have {EQUAL['initial_pulls']} initial pulls. "
                   "LiM2 and NeuralTS have a noise of their own, the others pooled noise."]),
        difference_table("reward: carried", by_set, sets, peers)
        + "\n" + FAMILY.format(len(found)),
        found_text(by_set, sets, peers),
        rewards_table(results), worst_table(results), seconds_text(results)])


def found_text(found, sets, peers):
    """The difference that would be found, in rewards."""
    in_sd = power(found)
    rows = [[text, *(f"{in_sd[one.runs] * one.error * one.runs ** 0.5:.0f}"
                     if (one := found.get((d, name))) and one.runs > 1 else "" for name in peers)]
            for d, text in sets.items()]
    table = text_table(["difference that would be found", *peers.values()], rows)
    return f"{table}\n{power_text(found)}"


def seconds_text(results):
    """CPU seconds per run."""
    names = list(grouped(results, "algorithm"))
    rows = [[title(d), *(f"{own[name].mean():.1f}" if name in own else "" for name in names)]
            for d, own in grouped(results, "dataset", "algorithm", value="seconds").items()]
    return text_table(["CPU seconds per run", *names], rows)


def plot(results):
    """What carried gains over each peer, in percent of its own reward: a panel per peer."""
    rewards = grouped(results, "dataset", "algorithm")
    names = [name for name in grouped(results, "algorithm") if name != "carried"]
    columns = min(3, len(names))
    figure, axes = pyplot().subplots(-(-len(names) // columns), columns, sharey=True, squeeze=False,
                                     figsize=(8.6, 3.2 * -(-len(names) // columns)))
    for axis, name in zip(axes.flat, names, strict=False):
        gains = {d: 100 * difference(own["carried"], own[name]) / own["carried"].mean()
                 for d, own in rewards.items() if name in own}
        forest(axis, gains, "carried")
        runs = max(map(len, gains.values()))
        axis.set(title=f"carried − {name}", xlabel=f"% of carried's reward, {runs} runs")
    for axis in axes.flat[len(names):]:
        axis.remove()
    figure.suptitle("Paired differences ± 2 standard errors: on the right of 0, carried earns more")
    return {"": figure}
