"""Sec. 4.2, last paragraph: a deeper network does not earn more.

Full memory with the paper's network and with 54-500-800-7 (on Adult the same hidden sizes); and the
test accuracy that a linear model and both networks reach when trained on all data.
"""
from dataclasses import replace

from lab.recipes import RECIPES
from lab.results import execute, make_runs
from studies.depth_agents import DeepMLP

NETWORKS = {"50": None, "500-800": DeepMLP}           # hidden layers: network


def measure(options):
    """Rewards of full memory with both networks."""
    return execute(options, [
        run for d in options.datasets for variant, network in NETWORKS.items()
        for run in make_runs(options, d, "neural-linear",
                             replace(RECIPES["neural-linear"], network=network), variant=variant)])
