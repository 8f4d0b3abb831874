"""The open assignment: what a prior wins back of the reward that is lost to forgetting.

(x - none) / (perfect - none) on the same rows and seeds: 0 is no prior, 1 a posterior of all data.
"""
import time
from collections import Counter

SECONDS = 300                                    # for all runs of one prior
MEMORY = 50                                      # buffered tuples an arm


def earned(nlts, problems, seconds=SECONDS, make=None, **options):
    """{set: reward} over all runs, in time; make is NeuralLinearTS, or makes such an agent.
    problems: (set, seed, hyperparameters, contexts (n, d), rewards of all arms (n, N)) a run."""
    end, sums = time.monotonic() + seconds, Counter()
    for name, seed, hyper, contexts, rewards in problems:
        arms = rewards.shape[1]
        network = nlts.MLP(contexts.shape[1], arms, seed=seed)
        agent = (make or nlts.NeuralLinearTS)(network, arms, memory=MEMORY * arms, seed=seed,
                                              **hyper, **options)
        for context, paid in zip(contexts, rewards, strict=True):
            arm = agent.act(context)
            agent.update(context, arm, paid[arm])
            sums[name] += float(paid[arm])
            if time.monotonic() > end:
                raise TimeoutError(f"the runs did not end in {seconds} seconds")
    return sums


def won_back(sums, baselines):
    """{set: share}; baselines: {"none", "paper", "perfect": {set: reward}}."""
    none, perfect = baselines["none"], baselines["perfect"]
    return {name: (sums[name] - none[name]) / ((perfect[name] - none[name]) or 1.0)
            for name in sums}
