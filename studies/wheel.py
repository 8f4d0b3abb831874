"""Appendix B, Table 2: the wheel, a synthetic problem that wants exploration."""
from dataclasses import replace
from functools import partial

import nlts
from lab.own import algorithms
from lab.recipes import RECIPES, WHEEL, at_equal_settings, with_arguments, with_settings
from lab.results import execute, make_runs
from lab.runs import Values
from studies.ablation_agents import counted_twice

PAPERS = "linear", "neural-linear", "both-priors", "printed", "carried"
PRINTED_RUNS = 10
SHOWN = "wheel-0.5"                                   # whose first run is drawn
TWICE = with_arguments(RECIPES["both-priors"],
                       prior=partial(counted_twice, prior=nlts.likelihood_matching))
VARIANTS = {  # other readings of the paper's method
    "b⁰ = 0.6": with_settings(RECIPES["both-priors"], b0=0.6),
    "b⁰ = 0.06": with_settings(RECIPES["both-priors"], b0=0.06),
    "buffer counted twice": TWICE,
}
EQUAL = "equal settings"


def measure(options):
    """Rewards for three radii: at the paper's settings, in other readings, at equal settings."""
    own = algorithms(replace(options, algorithms=PAPERS))
    runs = []
    for d in options.datasets:
        for name, recipe in own.items():
            most = PRINTED_RUNS if name == "printed" else None
            for run in make_runs(options, d, name, with_settings(recipe, **WHEEL), most):
                drawn = d == SHOWN and run.run == 0
                runs.append(replace(run, observer=Values) if drawn else run)
        for variant, recipe in VARIANTS.items():
            runs += make_runs(options, d, "both-priors", with_settings(recipe, **WHEEL),
                              variant=variant)
        for name in ("linear", "neural-linear", "both-priors", "carried"):
            runs += make_runs(options, d, name, at_equal_settings(RECIPES[name]), variant=EQUAL)
    return execute(options, runs)
