"""Sec. 4.1, Figure 2: regret on Statlog around each retraining."""
from lab.own import algorithms
from lab.results import execute, make_runs
from lab.runs import Regret


def measure(options):
    """The regret in each step."""
    return execute(options, [
        run for name, recipe in algorithms(options).items()
        for run in make_runs(options, "statlog", name, recipe, observer=Regret)])
