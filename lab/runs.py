"""One run: an agent of a recipe plays a problem. Whatever stands here is part of every run's key.

A run's rows, their order, the network's first weights and the sampling depend on (experiment, data
set, run, seed) only: all algorithms see the same problem.
"""
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch

import datasets
import nlts
from lab import fast

SHOWN = 600                                           # contexts of which values are recorded


def load(task):
    """The problem of one run."""
    seed = run_seed(task)
    if task.dataset.endswith(".csv"):
        problem = datasets.from_csv(task.dataset, task.steps, seed)
    else:
        problem = datasets.load(task.dataset, task.steps, seed)
    return datasets.drift(problem, seed) if task.drift else problem


def load_with_intercept(task):
    """The same, with a constant feature for LinearTS."""
    return append_one(load(task))


def append_one(problem):
    """The problem with one more feature, which is always 1."""
    ones = np.ones((len(problem), 1))
    return replace(problem, contexts=np.hstack([problem.contexts, ones]))


def run_seed(task):
    """The seed of a run: the same for every algorithm."""
    text = "/".join(map(str, (task.experiment, name_of(task.dataset), task.run, task.seed)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def name_of(dataset):
    """A data set's name; of a file.csv, the file's."""
    return dataset.rpartition("/")[2].removesuffix(".csv")


@dataclass(frozen=True)
class Recipe:
    """An algorithm as data: the arguments of an agent of nlts.py. A variant changes one of them."""
    agent: Callable = nlts.NeuralLinearTS             # agent(network, n_arms, memory, ...)
    memory: int | None = 100                          # tuples per arm (Sec. 4), None: all
    arguments: dict = field(default_factory=dict)     # more arguments of the agent
    settings: dict = field(default_factory=dict)      # changes of nlts.Config
    network: Callable | None = None                   # network(dim, n_arms, seed=); None: nlts's
    train: Callable | None = None                     # None: nlts.train, or the same but faster
    problem: Callable = load                          # problem(task)


@dataclass(frozen=True)
class Task:
    """What one algorithm is to do on one problem."""
    experiment: str                # names the seeds: its tasks meet the same problems
    dataset: str                   # its name, or a file.csv
    algorithm: str
    recipe: Recipe
    steps: int
    variant: str = ""              # of the algorithm, if there are several
    drift: bool = False            # rows in the order of their first principal component
    observer: Callable | None = None   # see `Regret`
    seed: int = 0
    run: int = 0


def make_agent(recipe, problem, seed):
    """The agent of a recipe for a problem."""
    arguments = recipe.arguments | recipe.settings
    if recipe.agent is nlts.LinearTS:
        return nlts.LinearTS(problem.dim, problem.n_arms, seed=seed, **arguments)
    if recipe.network:
        network = recipe.network(problem.dim, problem.n_arms, seed=seed)
    elif problem.vocabulary:
        network = nlts.TextCNN(problem.vocabulary, problem.n_arms, seed=seed)
    else:
        network = nlts.MLP(problem.dim, problem.n_arms, seed=seed)
    train = recipe.train or fast.training_of(network)
    tuples = recipe.memory and recipe.memory * problem.n_arms
    return recipe.agent(network, problem.n_arms, tuples, train=train, seed=seed, **arguments)


def run_task(task):
    """Play one run; its result as plain data."""
    torch.set_num_threads(1)
    start = time.process_time()
    problem = task.recipe.problem(task)
    agent = make_agent(task.recipe, problem, run_seed(task))
    observers = [Exploration(), task.observer()] if task.observer else [Exploration()]
    earned = np.empty(len(problem))
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards, strict=True)):
        arm = agent.act(context)
        for observer in observers:
            observer.before_update(agent, context, arm)
        earned[t] = rewards[arm]
        agent.update(context, arm, earned[t])
    result = {
        "reward": rounded(earned.sum()),
        "optimal": rounded(problem.optimal.sum()),
        "uniform": rounded(problem.rewards.mean(1).sum()),           # any arm at random
        "best_arm": rounded(problem.rewards.sum(0).max()),           # one arm, always
        "seconds": round(time.process_time() - start, 3)}
    for observer in observers:
        result |= observer.result(problem, agent, earned)
    return result


def rounded(x):
    """A number as it is written into a file of results."""
    return int(x) if x == int(x) else round(float(x), 6)


def expected(agent, contexts):
    """The reward that an agent expects of each arm in each of the contexts: (n, N)."""
    phi = np.array([agent.phi(context) for context in contexts])
    if isinstance(agent, nlts.EpsilonGreedy):
        return phi @ nlts.last_layer_weights(agent.network).T
    return phi @ np.array([arm.mu_hat for arm in agent.arms]).T


# Observers: what is recorded of a run besides its reward ------------------------------------------

class Exploration:
    """The share of plays, after the initial pulls, of another arm than the one thought best."""

    def __init__(self):
        self.plays = self.explored = 0

    def before_update(self, agent, context, arm):
        """Called between `act` and `update`."""
        if agent.t >= agent.n_arms * agent.config.initial_pulls:
            self.plays += 1
            self.explored += arm != int(np.argmax(expected(agent, [context])))

    def result(self, problem, agent, earned):
        """Fields of the result; counts of a prior's solver, if it has any."""
        share = {"explored": round(self.explored / max(self.plays, 1), 6)}
        return share | getattr(agent, "solver_counts", {})


class Regret:
    """The regret in each step."""

    def before_update(self, agent, context, arm):
        """Nothing to do."""

    def result(self, problem, agent, earned):
        """Fields of the result."""
        return {"regret": [rounded(x) for x in problem.optimal - earned]}


class Values(Regret):
    """Of the first contexts: what each arm paid, and what the agent expects of it in the end."""

    def result(self, problem, agent, earned):
        """Fields of the result."""
        contexts, rewards = problem.contexts[:SHOWN], problem.rewards[:SHOWN]
        found = {"contexts": contexts, "rewards": rewards, "expected": expected(agent, contexts)}
        return {name: x.round(3).tolist() for name, x in found.items()}
