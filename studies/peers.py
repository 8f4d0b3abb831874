"""Other bandits with a neural network, on the same rows, at equal settings where they have such.

All have one layer of 50 ReLUs. LiM2, carried and greedy have 100 tuples per arm; NeuralTS and
neural-linear keep all. LiM2: one step of RMSProp on 16 tuples per arm at every step, its size
0.1 / (1 + t / 20), then one on each covariance, of size 0.01 / t, gradients up to 5, + 1e-5 I;
lam = 1, first weights within 0.3, its own noise. Its public program has an output bias that its
regression lacks; with this bias, which changes rewards, LiM2 has a row of its own. NeuralTS:
lam = 0.001, nu = 1, one network with an output per arm; it learns every 100 steps, not in 1,000
steps after each play.
"""
from lab import report as lab
from lab.recipes import EQUAL, RECIPES, at_equal_settings
from lab.results import execute, make_runs
from lab.runs import Recipe
from lab.statistics import grouped, judge_rewards
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


def pairs(results):
    """carried against each peer."""
    return [("carried", name) for name in grouped(results, "algorithm") if name != "carried"]


def report(results):
    """What carried gains over each peer; rewards and seconds."""
    found = judge_rewards(results, pairs(results))
    counts = [f"against {pair[1]}: {lab.counted(found, pair)}" for pair in pairs(results)]
    return lab.page(
        lab.wrapped(f"carried earns ({lab.runs_of(results)}) {'; '.join(counts)}."),
        lab.difference_table("reward gained", found), lab.rewards_table(results),
        lab.by_set("CPU seconds per run", results, lambda x: f"{x.mean():.1f}", "seconds"),
        lab.wrapped(f"All but LiM2, which learns at every step, have L = {EQUAL['L']} and "
                    f"P = {EQUAL['P']}; all have {EQUAL['initial_pulls']} initial pulls. LiM2 and "
                    "NeuralTS have a noise of their own, the others pooled noise."),
        lab.played_text(results))


def plot(results):
    """What carried gains over each peer: on the right of 0, it earns more."""
    return {"": lab.forest(results, dict.fromkeys(pairs(results)), "carried",
                           "What carried gains over other methods")}
