"""The open assignment: what a prior wins back of the reward that is lost to forgetting.

(x - none) / (perfect - none) on the same rows and seeds: 0 is no prior, 1 a posterior of all data.
"""
import json
import time

import numpy as np

SECONDS = 300                                    # for all runs of one prior
MEMORY = 50                                      # buffered tuples an arm


def earned(nlts, problems, seconds=SECONDS, make=None, **options):
    """{set: reward} over all runs, in time; make is NeuralLinearTS, or makes such an agent."""
    end, sums = time.monotonic() + seconds, {}
    for problem in problems:
        contexts, rewards, seed = (problem[key] for key in ("contexts", "rewards", "seed"))
        arms = rewards.shape[1]
        network = nlts.MLP(contexts.shape[1], arms, seed=seed)
        agent = (make or nlts.NeuralLinearTS)(network, arms, memory=MEMORY * arms, seed=seed,
                                              **problem["hyper"], **options)
        for context, paid in zip(contexts, rewards, strict=True):
            arm = agent.act(context)
            agent.update(context, arm, paid[arm])
            sums[problem["set"]] = sums.get(problem["set"], 0.0) + float(paid[arm])
            if time.monotonic() > end:
                raise TimeoutError(f"the runs did not end in {seconds} seconds")
    return sums


def won_back(sums, baselines):
    """{set: share}; baselines: {"none", "paper", "perfect": {set: reward}}."""
    none, perfect = baselines["none"], baselines["perfect"]
    return {name: (sums[name] - none[name]) / ((perfect[name] - none[name]) or 1.0)
            for name in sums}


def save(path, problems, baselines):
    """Write the runs and the rewards of others, for a student's folder."""
    arrays = {f"{key}{i}": problem[key] for i, problem in enumerate(problems)
              for key in ("contexts", "rewards")}
    told = [{key: problem[key] for key in ("set", "seed", "hyper")} for problem in problems]
    np.savez_compressed(path, told=json.dumps([told, baselines]), **arrays)


def saved(path):
    """What `save` has written: problems and baselines."""
    with np.load(path) as file:
        problems, baselines = json.loads(str(file["told"]))
        for i, problem in enumerate(problems):
            problem |= {key: file[f"{key}{i}"] for key in ("contexts", "rewards")}
    return problems, baselines
