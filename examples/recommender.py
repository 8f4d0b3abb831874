"""A recommender: twenty numbers about a visitor, five articles, and how much of one is read.

    python examples/recommender.py            10,000 visitors, about a minute

It prints the regret of four agents: what they lose to somebody who knows every visitor's taste.
The tastes were made mostly nonlinear on purpose: in two first trials, with tastes nearer to linear
and clicks for rewards, the linear agent did better than all others.
"""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))         # where nlts.py is

import nlts
import nlts_beyond

NUMBERS, ARTICLES, MEMORY = 20, 5, 500
DIM = NUMBERS + 1                      # and a constant 1, which a linear agent needs


def make_agents():
    """{name: agent}; the networks have the same first weights."""
    def network():
        return nlts.MLP(DIM, ARTICLES)

    ours = {"prior": nlts_beyond.carried_prior, "noise": nlts_beyond.pooled_noise,
            "L": 100, "P": 200, "initial_pulls": 3}
    return {
        "linear": nlts.LinearTS(DIM, ARTICLES),
        "the paper's": nlts.NeuralLinearTS(network(), ARTICLES, MEMORY),
        "carried": nlts.NeuralLinearTS(network(), ARTICLES, MEMORY, **ours),
        "full memory": nlts.NeuralLinearTS(network(), ARTICLES, None),
    }


def visitors(steps, rng):
    """Visitors (steps, 21), and the part of each article that they read on average (steps, 5)."""
    x = rng.normal(size=(steps, NUMBERS))
    z = x @ rng.normal(size=(NUMBERS, 3)) / np.sqrt(NUMBERS)
    topics = 0.2 * z + 0.8 * (np.abs(z) - 0.8)                          # mostly not linear
    mean = 1 / (1 + np.exp(1 - 2 * topics @ rng.normal(size=(3, ARTICLES))))
    return np.column_stack([x, np.ones(steps)]), mean


def regret_of(agent, x, mean, rewards):
    """What the agent's choices lose to the best ones, in expectation."""
    regret = 0.0
    for t, context in enumerate(x):
        arm = agent.act(context)
        agent.update(context, arm, rewards[t, arm])
        regret += mean[t].max() - mean[t, arm]
    return regret


def main(steps=10_000, seed=0):
    """{name: regret}, printed."""
    rng = np.random.default_rng(seed)
    x, mean = visitors(steps, rng)
    rewards = mean + 0.1 * rng.normal(size=mean.shape)
    at_random = np.sum(mean.max(1) - mean.mean(1))
    print(f"{steps} visitors, seed {seed}; regret of articles at random {at_random:.0f}")
    found = {}
    for name, agent in make_agents().items():
        found[name] = regret_of(agent, x, mean, rewards)
        print(f"{name:12} regret {found[name]:6.0f}", flush=True)
    return found


if __name__ == "__main__":
    main()
