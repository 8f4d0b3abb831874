"""What each algorithm is, as data: a recipe names the arguments of an agent of nlts.py."""
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import nlts
import nlts_beyond
from lab import fast, references

MEMORY = 100                                          # buffered tuples per arm: Sec. 4
RECOMMENDED = {"L": 100, "P": 200, "initial_pulls": 3}
WHEEL_PHASES = {"L": 200, "P": 400}                   # Appendix B


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
    intercept: bool = True                            # LinearTS: a constant feature


def limited(label, prior, hyper=None, **arguments):
    """A recipe of limited memory with this prior."""
    return Recipe(label, arguments={"prior": prior} | arguments, hyper=hyper or {})


papers_prior = partial(nlts.likelihood_matching, match=fast.match_covariance)   # the same, faster

RECIPES = {  # the paper's five in its order, then ours, then two to compare with
    "linear": Recipe("Linear", nlts.LinearTS, False),
    "neural-linear": Recipe("Neural-linear, full memory", limited=False),
    "both-priors": limited("Limited memory, both priors (the paper's)", papers_prior),
    "mu-prior": limited("Limited memory, μ prior", nlts.mean_prior),
    "no-prior": limited("Limited memory, no prior", nlts.no_prior),
    "carried": limited("Limited memory, carried prior (ours)", nlts_beyond.carried_prior),
    "recommended": limited("Recommended: carried prior, pooled noise, learns more often",
                           nlts_beyond.carried_prior, RECOMMENDED, noise=nlts_beyond.pooled_noise),
    "greedy": Recipe("Greedy network, limited memory", nlts.EpsilonGreedy, True,
                     {"epsilon": 0.0, "prior": nlts.no_prior}, RECOMMENDED),   # it asks no prior
    "perfect-prior": Recipe("Perfect prior (an oracle)", references.perfect_prior),
}
ALGORITHMS = tuple(RECIPES)


def epsilon_greedy(epsilon):
    """The paper's baseline for text: full memory, and with probability epsilon any arm."""
    return Recipe(f"ε-greedy, ε = {epsilon}", nlts.EpsilonGreedy, False, {"epsilon": epsilon})


def make_agent(recipe, problem, memory, hyper, seed):
    """The agent of a recipe for a problem. memory: tuples per arm; hyper: all of nlts.Config."""
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
