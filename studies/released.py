"""The paper's table as the program that its authors released plays it, and as we read the paper.

studies/released_agents.py lists what the program does that the paper does not say.
"""
from dataclasses import replace

import nlts
from lab.recipes import RECIPES
from lab.results import execute, make_runs
from lab.runs import Recipe
from studies.released_agents import Biased, Released, mislabelled, mislabelled_with_intercept

PRIORS = {"both-priors": nlts.likelihood_matching, "mu-prior": nlts.mean_prior,
          "no-prior": nlts.no_prior}
SCS = "mushroom", "adult", "statlog", "epileptic"     # where Eq. 6 is solved as printed, too


def released(name, d, **arguments):
    """The recipe of an algorithm as the released program has it."""
    if name == "linear":
        recipe = RECIPES["linear"]
        return replace(recipe, problem=mislabelled_with_intercept) if d == "scania" else recipe
    if name in PRIORS:
        arguments |= {"prior": PRIORS[name]}
    recipe = Recipe(Released, 100 if name in PRIORS else None, arguments, network=Biased)
    return replace(recipe, problem=mislabelled) if d == "scania" else recipe


def readings(name, d):
    """{reading: recipe}: linear has no constant feature to gain."""
    found = {"as released": released(name, d), "careful": RECIPES[name]}
    if name != "linear":
        found["with constant"] = released(name, d, constant=True)
    if name == "both-priors" and d in SCS:
        found["as released, SCS"] = released(name, d, solver="SCS")
    return found


def measure(options):
    """Rewards in each reading: the runs are those of the table."""
    return execute(options, [
        run for d in options.datasets for name in options.algorithms
        for reading, recipe in readings(name, d).items()
        for run in make_runs(options, d, name, recipe, variant=reading, experiment="table")])
