"""What each algorithm is, as data: a recipe names the arguments of an agent of nlts.py."""
from collections.abc import Callable
from dataclasses import dataclass, field

import beyond
import nlts
from lab import fast, references

MEMORY = 100                                          # buffered tuples an arm: Sec. 4


@dataclass(frozen=True)
class Recipe:
    """An algorithm. A variant is a recipe with another argument."""
    label: str
    agent: Callable = nlts.NeuralLinearTS             # agent(network, n_arms, memory=, ...)
    limited: bool = True                              # memory: limited, or all tuples
    arguments: dict = field(default_factory=dict)     # more arguments of the agent
    hyper: dict = field(default_factory=dict)         # changes of nlts.Config
    network: Callable | None = None                   # network(dim, n_arms, seed=)
    train: Callable | None = None                     # as nlts.train; None: the same, faster


def limited(label, prior, **more):
    """A recipe of limited memory with this prior."""
    return Recipe(label, arguments={"prior": prior}, **more)


RECIPES = {  # the paper's five in its order, then ours
    "linear": Recipe("Linear", nlts.LinearTS, False),
    "neural-linear": Recipe("Neural-linear, full memory", limited=False),
    "both-priors": limited("Limited memory, both priors (the paper's)", nlts.likelihood_matching),
    "mu-prior": limited("Limited memory, μ prior", nlts.mean_prior),
    "no-prior": limited("Limited memory, no prior", nlts.no_prior),
    "carried": limited("Limited memory, carried prior (ours)", beyond.carried_prior),
    "perfect-prior": Recipe("Perfect prior (our reference)", references.perfect_prior),
}
ALGORITHMS = tuple(RECIPES)
for epsilon in (0.1, 0.2, 0.3):                       # of Amazon reviews only
    RECIPES[f"ε={epsilon}"] = Recipe(f"ε-greedy, ε = {epsilon}", nlts.EpsilonGreedy, False,
                                     {"epsilon": epsilon})


def make_agent(recipe, problem, memory, hyper, seed):
    """The agent of a recipe for a problem. memory: tuples an arm; hyper: changes of nlts.Config."""
    if recipe.agent is nlts.LinearTS:
        return nlts.LinearTS(problem.dim, problem.n_arms, seed=seed, **recipe.arguments, **hyper)
    if problem.vocabulary is None:
        size, network, train = problem.dim, nlts.MLP, fast.train
    else:
        size, network, train = problem.vocabulary, fast.FastTextCNN, nlts.train
    network = (recipe.network or network)(size, problem.n_arms, seed=seed)
    tuples = memory * problem.n_arms if recipe.limited else None
    return recipe.agent(network, problem.n_arms, memory=tuples, train=recipe.train or train,
                        seed=seed, **recipe.arguments, **hyper)
