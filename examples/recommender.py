"""A recommender: twenty numbers about a visitor, five articles, and whether one is clicked.

    python examples/recommender.py            10,000 visitors, about three minutes

It prints the regret, the clicks lost to somebody who knows all probabilities, of four agents.
"""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))         # where nlts.py is

import nlts
import nlts_beyond

DIM, ARTICLES, MEMORY = 20, 5, 500


def make_agents():
    """{name: agent}; the same network for all that have one."""
    def network():
        return nlts.MLP(DIM, ARTICLES)

    recommended = {"prior": nlts_beyond.carried_prior, "noise": nlts_beyond.pooled_noise,
                   "L": 100, "P": 200, "initial_pulls": 3}
    return {
        "linear": nlts.LinearTS(DIM + 1, ARTICLES),                     # with a constant feature
        "the paper's": nlts.NeuralLinearTS(network(), ARTICLES, MEMORY),
        "recommended": nlts.NeuralLinearTS(network(), ARTICLES, MEMORY, **recommended),
        "full memory": nlts.NeuralLinearTS(network(), ARTICLES),
    }


def visitors(steps, rng):
    """Visitors (steps, 20), and the probability of a click on each article (steps, 5)."""
    x = rng.normal(size=(steps, DIM))
    topics = np.maximum(x @ rng.normal(size=(DIM, 8)) / np.sqrt(DIM), 0)
    taste = topics @ rng.normal(size=(8, ARTICLES))
    return x, 1 / (1 + np.exp(1 - 3 * taste))


def regret_of(agent, x, p, clicks):
    """Expected clicks that the agent lost."""
    regret = 0.0
    for context, chances, clicked in zip(x, p, clicks, strict=True):
        if isinstance(agent, nlts.LinearTS):
            context = np.append(context, 1.0)
        arm = agent.act(context)
        agent.update(context, arm, clicked[arm])
        regret += chances.max() - chances[arm]
    return regret


def main(steps=10_000, seed=0):
    """{name: regret}, printed."""
    rng = np.random.default_rng(seed)
    x, p = visitors(steps, rng)
    clicks = (rng.random(p.shape) < p).astype(float)
    found = {}
    at_random = np.sum(p.max(1) - p.mean(1))
    print(f"{steps} visitors, seed {seed}; an article at random loses {at_random:.0f} clicks")
    for name, agent in make_agents().items():
        found[name] = regret_of(agent, x, p, clicks)
        print(f"{name:12} regret {found[name]:6.0f}", flush=True)
    return found


if __name__ == "__main__":
    main()
