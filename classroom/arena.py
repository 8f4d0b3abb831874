"""The open assignment: what a prior wins back of the reward that is lost to forgetting.

(x - none) / (perfect - none) on the same rows and seeds: 0 is no prior, 1 a posterior of all data.
"""
from collections import Counter

import numpy as np

MEMORY = 50                                      # buffered tuples per arm


def earned(nlts, problems, make=None, **options):
    """{set: reward} over all runs; make is NeuralLinearTS, or makes such an agent.
    problems: (set, seed, hyperparameters, contexts (n, d), rewards of all arms (n, N)) per run."""
    sums = Counter()
    for name, seed, hyper, contexts, rewards in problems:
        contexts, rewards = np.array(contexts), np.array(rewards)
        arms = rewards.shape[1]
        network = nlts.MLP(contexts.shape[1], arms, seed=seed)
        agent = (make or nlts.NeuralLinearTS)(network, arms, memory=MEMORY * arms, seed=seed,
                                              **hyper, **options)
        for context, paid in zip(contexts, rewards, strict=True):
            arm = agent.act(context)
            agent.update(context, arm, paid[arm])
            sums[name] += float(paid[arm])
    return sums


def won_back(sums, baselines):
    """{set: share}; baselines: {"none", "paper", "perfect": {set: reward}}."""
    none, perfect = baselines["none"], baselines["perfect"]
    return {name: (sums[name] - none[name]) / ((perfect[name] - none[name]) or 1.0)
            for name in sums}
