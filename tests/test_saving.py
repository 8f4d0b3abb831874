"""pickle and copy.deepcopy keep an agent: the copy does what the agent does, bit for bit."""
import copy
import pickle

import numpy as np
import pytest

import nlts
import nlts_beyond
from lab import fast

SMALL = {"L": 20, "P": 5, "batch": 8, "seed": 3}


def neural(agent=nlts.NeuralLinearTS, memory=12, **options):
    return agent(nlts.MLP(4, 3, 6, seed=1), 3, memory=memory, **SMALL | options)


AGENTS = {
    "linear": lambda: nlts.LinearTS(4, 3, seed=3),
    "linear as printed": lambda: nlts.LinearTS(4, 3, v=0.5, seed=3),
    "full memory": lambda: neural(memory=None),
    "the paper's": neural,
    "carried": lambda: neural(prior=nlts_beyond.carried_prior, noise=nlts_beyond.pooled_noise),
    "as in experiments": lambda: neural(train=fast.train),
    "greedy": lambda: neural(nlts.EpsilonGreedy, epsilon=0.2),
    "text": lambda: nlts.NeuralLinearTS(nlts.TextCNN(10, 3, size=8, widths=(2,), hidden=5), 3, 12,
                                        **SMALL),
}


def advance(agent, steps):
    """Let the agent play; what it did. The contexts depend on its step only."""
    done = []
    for _ in range(steps):
        rng = np.random.default_rng(agent.t)
        context = rng.integers(10, size=4).astype(float)
        arm = agent.act(context)
        done.append(arm)
        agent.update(context, arm, float(rng.normal() + arm * context[0] / 10))
    return done, [arm.mu_hat.tolist() for arm in agent.arms]


@pytest.mark.parametrize("keep", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))],
                         ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("name", AGENTS)
def test_a_kept_agent_goes_on_as_the_agent_does(name, keep):
    agent = AGENTS[name]()
    advance(agent, 25)                                # over a learning phase
    kept = keep(agent)
    assert advance(agent, 20) == advance(kept, 20)
    other = keep(kept)
    advance(kept, 5)                                  # and neither is tied to the other
    assert kept.t == other.t + 5
