"""Sec. 4.3, Figure 3 (a table): Amazon reviews, a text network."""
import nlts
from lab.recipes import RECIPES, at_equal_settings
from lab.results import execute, make_runs
from lab.runs import Recipe

EPSILONS = 0, 0.01, 0.1                               # the paper prints 0.1
PAPERS = "neural-linear", "both-priors", "printed", "carried"
EQUAL = "equal settings"


def measure(options):
    """Rewards at the paper's settings and at equal ones."""
    runs = []
    for epsilon in EPSILONS:
        recipe = Recipe(nlts.EpsilonGreedy, None, {"epsilon": epsilon})
        runs += make_runs(options, "amazon", "ε-greedy", recipe, variant=f"ε = {epsilon}")
    for name in PAPERS:
        runs += make_runs(options, "amazon", name, RECIPES[name])
    for name in ("neural-linear", "carried", "greedy"):
        runs += make_runs(options, "amazon", name, at_equal_settings(RECIPES[name]), variant=EQUAL)
    return execute(options, runs)
