"""Catastrophic forgetting, and what a prior saves: the loop of the paper's Sec. 4.1, written out.

    python examples/forgetting.py            three runs of four agents, about a minute
    python examples/forgetting.py --runs 1 --steps 1300 --out picture.png

Statlog is a stream of sensor readings of the Space Shuttle. Each has one of seven classes: an agent
names one, and earns 1 if it is right. Every 400 steps it trains its network anew. Its features
then change, and what it learned has to be expressed in the new ones, from what it still remembers:

    full memory      every reading so far: nothing is forgotten
    the paper's      100 readings per arm, and the paper's prior for all others
    no prior         100 readings per arm, and nothing of all others
    carried          100 readings per arm, and another prior for all others (nlts_beyond.py)

The table and the picture show the regret around a retraining: how many of 100 readings were named
wrongly. Read from top to bottom; nlts.py has what is called here.
"""
import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")         # networks this small are slower with more
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))         # where nlts.py is

import datasets
import nlts
import nlts_beyond

L = nlts.Config.L                                     # steps between retrainings
MEMORY = 100                                          # readings per arm
WINDOW, BIN = 100, 20                                 # steps before and after; steps per point


def make_agents(dim, n_arms, seed):
    """{name: agent}; the networks have the same first weights."""
    def agent(memory, prior=nlts.likelihood_matching):
        network = nlts.MLP(dim, n_arms, seed=seed)
        return nlts.NeuralLinearTS(network, n_arms, memory, prior, seed=seed)

    memory = MEMORY * n_arms
    return {"full memory": agent(None), "the paper's": agent(memory),
            "no prior": agent(memory, nlts.no_prior),
            "carried": agent(memory, nlts_beyond.carried_prior)}


def play(agent, problem):
    """The regret of each step: what the best arm would have paid more."""
    regret = np.zeros(len(problem))
    for t in range(len(problem)):
        context = problem.contexts[t]
        arm = agent.act(context)                      # sample from the posterior, take the best
        reward = problem.rewards[t, arm]              # the other rewards stay unseen
        agent.update(context, arm, reward)            # every agent.config.L steps it learns
        regret[t] = problem.optimal[t] - reward
    return regret


def measure(runs, steps):
    """{name: (runs, steps)}: the regret of each agent. In a run all meet the same readings."""
    regrets = {}
    for run in range(runs):
        problem = datasets.load("statlog", steps, seed=run)
        for name, agent in make_agents(problem.dim, problem.n_arms, run).items():
            regrets.setdefault(name, []).append(play(agent, problem))
            print(f"run {run + 1} of {runs}, {name}: regret {regrets[name][-1].sum():.0f}")
    return {name: np.array(found) for name, found in regrets.items()}


def around(regret):
    """Regret per 100 steps, in bins of steps before a retraining and after it: two arrays. Means
    over runs and all retrainings except the first, when little is known and can be forgotten."""
    retrainings = range(2 * L, regret.shape[1] - WINDOW + 1, L)
    windows = [regret[:, t - WINDOW:t + WINDOW] for t in retrainings]
    by_step = 100 * np.mean(windows, axis=(0, 1))                        # (2 WINDOW,)
    return by_step.reshape(2, -1, BIN).mean(2)


def table(regrets):
    """What each agent lost, in all and around a retraining."""
    lines = [f"{'':12} {'regret':>7} {'before':>7} {'after':>7}"]
    for name, regret in regrets.items():
        before, after = around(regret)
        lines.append(f"{name:12} {regret.sum(1).mean():7.0f} {before.mean():7.1f} "
                     f"{after.mean():7.1f}")
    lines.append(f"regret per run; before, after: per 100 steps, in the {WINDOW} steps before and "
                 "after a retraining")
    return "\n".join(lines)


def plot(regrets, path):
    """The regret before and after a retraining, as a picture."""
    import matplotlib
    matplotlib.use("Agg")                             # no window
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    x = np.arange(BIN / 2, WINDOW, BIN)                                  # the middle of each bin
    looks = "ko-", "C3s--", "C4v:", "C0^-."
    for (name, regret), look in zip(regrets.items(), looks, strict=True):
        before, after = around(regret)
        axis.plot(x - WINDOW, before, look)
        axis.plot(x, after, look, label=name)
    axis.axvline(0, color="gray", linewidth=0.8)
    axis.set(xlabel=f"steps since a retraining (means of {BIN})", ylabel="regret per 100 steps",
             ylim=(0, None), title="What is forgotten, and what a prior saves: Statlog")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(argv=None):
    """Play, print the table, save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--out", default="forgetting_example.png")
    given = parser.parse_args(argv)
    if given.runs < 1 or given.steps < 2 * L + WINDOW:
        parser.error(f"expected --runs 1 or more, --steps {2 * L + WINDOW} or more")
    regrets = measure(given.runs, given.steps)
    print(table(regrets))
    plot(regrets, given.out)
    print(f"saved: {given.out}")
    return regrets


if __name__ == "__main__":
    main()
