"""How certain each prior is, beside what full memory would say; and what that earns.

After a learning phase, a prior Phi0 stands for the tuples that left the buffer. Full memory would
have kept them: lam I + sum of phi phi' over those tuples, under the features of the moment. What is
compared is s² = phi'(precision)⁻¹ phi on those tuples: below full memory's, the prior is too
certain; above, it has forgotten.
"""
from lab.recipes import RECIPES, limited
from lab.results import execute, make_runs
from studies.calibration_agents import Calibration, kept_prior

PLAYED = "both-priors", "printed", "carried", "kept", "no-prior", "perfect-prior"
PRINTED = "mushroom", "adult", "statlog"              # where `printed` is measured


def measure(options):
    """Rewards and calibration: the runs are the first ones of the table."""
    runs = []
    for d in options.datasets:
        for name in PLAYED:
            if name != "printed" or d in PRINTED:
                recipe = RECIPES.get(name) or limited(kept_prior)
                runs += make_runs(options, d, name, recipe, observer=Calibration,
                                  experiment="table")
    return execute(options, runs)
