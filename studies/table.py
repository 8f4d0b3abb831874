"""Sec. 4.2, Table 1: rewards on real data, at the paper's settings."""
from lab.own import algorithms
from lab.results import execute, make_runs

MOST = {"printed": 20}                                # runs; a solver of Eq. 6 takes its time


def measure(options):
    """Rewards on the paper's data sets, or on a table of one's own."""
    sets = [str(options.csv)] if options.csv else options.datasets
    return execute(options, [
        run for d in sets for name, recipe in algorithms(options).items()
        for run in make_runs(options, d, name, recipe, MOST.get(name))])
