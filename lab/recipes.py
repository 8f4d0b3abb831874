"""What each algorithm is, as data."""
from dataclasses import replace

import nlts
import nlts_beyond
from lab import agents
from lab.runs import Recipe, load_with_intercept

EQUAL = {"L": 100, "P": 200, "initial_pulls": 3}      # the settings of everybody in `equal`
WHEEL = {"L": 200, "P": 400}                          # Appendix B


def limited(prior):
    """Limited memory with this prior."""
    return Recipe(arguments={"prior": prior})


RECIPES = {  # the paper's in its order, then ours, then those to compare with
    "linear": Recipe(nlts.LinearTS, None, problem=load_with_intercept),
    "neural-linear": Recipe(memory=None),
    "both-priors": limited(nlts.likelihood_matching),
    "printed": Recipe(agents.printed),
    "mu-prior": limited(nlts.mean_prior),
    "no-prior": limited(nlts.no_prior),
    "carried": limited(nlts_beyond.carried_prior),
    "greedy": Recipe(agents.greedy),
    "greedy-full": Recipe(agents.greedy, None),
    "perfect-prior": Recipe(agents.perfect_prior),
}


def with_settings(recipe, **settings):
    """The recipe with other settings of nlts.Config."""
    return replace(recipe, settings=recipe.settings | settings)


def with_arguments(recipe, **arguments):
    """The recipe with other arguments of its agent."""
    return replace(recipe, arguments=recipe.arguments | arguments)


def at_equal_settings(recipe):
    """The recipe with the settings of `equal`: everybody learns as often, and has pooled noise."""
    noise = recipe.arguments.get("noise", nlts_beyond.pooled_noise)      # or one of your own
    return with_arguments(with_settings(recipe, **EQUAL), noise=noise)
