"""The open assignment: what a prior wins back of the reward that is lost to forgetting.

(x - none) / (perfect - none) on the same rows and seeds: 0 is no prior, 1 a posterior of all data.
"""
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

SETS = ("mushroom", "adult")
RUNS, STEPS, MEMORY = 2, 2000, 50                # of each set; rows; buffered tuples an arm
SECONDS = 300                                    # for all runs of one prior
HYPER = {"L": 200, "P": 400}


class Late(Exception):
    """The prior took too long."""


def play(agent, contexts, rewards, end=float("inf")):
    """The sum of the rewards that an agent earns."""
    total = 0.0
    for context, paid in zip(contexts, rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, paid[arm])
        total += float(paid[arm])
        if time.monotonic() > end:
            raise Late(f"the runs did not end in {SECONDS} seconds")
    return total


def make_agent(nlts, make, problem, **options):
    """An agent for a problem: make is NeuralLinearTS, or makes an agent of the same arguments."""
    dim, arms = problem["contexts"].shape[1], problem["rewards"].shape[1]
    network = nlts.MLP(dim, arms, seed=problem["seed"])
    return make(network, arms, memory=MEMORY * arms, seed=problem["seed"], **problem["hyper"],
                **options)


def earned(nlts, prior, problems):
    """{set: reward} of a prior over all runs, in time."""
    end, sums = time.monotonic() + SECONDS, {}
    for problem in problems:
        agent = make_agent(nlts, nlts.NeuralLinearTS, problem, prior=prior)
        total = play(agent, problem["contexts"], problem["rewards"], end)
        sums[problem["set"]] = sums.get(problem["set"], 0.0) + total
    return sums


def won_back(sums, baselines):
    """{set: share}."""
    return {name: (sums[name] - base["none"]) / ((base["perfect"] - base["none"]) or 1.0)
            for name, base in baselines.items()}


def judge(sums, baselines):
    """[(title, None or words)]: better than no prior, and than the paper's, on each set."""
    outcomes = []
    for name, base in baselines.items():
        for other, words in (("none", "no prior"), ("paper", "the paper's prior")):
            better = sums[name] > base[other]
            outcomes.append((f"{name}: earns more than {words}", None if better else
                             f"it earns {sums[name]:g}, {words} {base[other]:g}"))
    return outcomes


# For the grader and for the handout: data and the rewards of others -------------------------------

def draw_problems(seed):
    """The runs: rows of the data sets, drawn by the seed."""
    import datasets
    drawn = []
    for name in SETS:
        for run in range(RUNS):
            problem = datasets.load(name, STEPS, seed=seed + run)
            drawn.append({"set": name, "seed": seed + run, "hyper": HYPER,
                          "contexts": problem.contexts, "rewards": problem.rewards})
    return drawn


def baseline(task):
    """The reward of no prior, the paper's or the perfect one in one run."""
    import nlts
    from lab.references import perfect_prior
    kind, problem = task
    make = perfect_prior if kind == "perfect" else nlts.NeuralLinearTS
    options = {"prior": nlts.no_prior} if kind == "none" else {}
    agent = make_agent(nlts, make, problem, **options)
    return play(agent, problem["contexts"], problem["rewards"])


def all_baselines(problems):
    """{set: {kind: reward}} over all runs."""
    tasks = [(kind, problem) for kind in ("none", "paper", "perfect") for problem in problems]
    found = {problem["set"]: {} for problem in problems}
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for (kind, problem), reward in zip(tasks, pool.map(baseline, tasks), strict=True):
            base = found[problem["set"]]
            base[kind] = base.get(kind, 0.0) + reward
    return found


def save(path, seed):
    """The runs and the rewards of others, for a student's folder."""
    problems = draw_problems(seed)
    arrays = {f"{key}{i}": problem[key] for i, problem in enumerate(problems)
              for key in ("contexts", "rewards")}
    told = [{key: problem[key] for key in ("set", "seed", "hyper")} for problem in problems]
    np.savez_compressed(path, told=json.dumps(told), baselines=json.dumps(all_baselines(problems)),
                        **arrays)


def saved(path):
    """What `save` has written: problems and baselines."""
    with np.load(path) as file:
        problems = json.loads(str(file["told"]))
        for i, problem in enumerate(problems):
            problem |= {key: file[f"{key}{i}"] for key in ("contexts", "rewards")}
        return problems, json.loads(str(file["baselines"]))
