"""How much exploration costs, and why limited memory wins on some data sets: the noise.

The noise prior Inv-Gamma(6, b0) is changed and nothing else; `pooled` learns the scale of the noise
from all arms.
"""
import nlts_beyond
from lab.recipes import RECIPES, WHEEL, with_arguments, with_settings
from lab.results import execute, make_runs

PLAYED = "neural-linear", "both-priors", "carried", "no-prior"
NOISES = "b⁰ = 6", "b⁰ = 0.6", "b⁰ = 0.06", "pooled"


def with_noise(recipe, noise):
    """The recipe under one of NOISES."""
    if noise == "pooled":
        return with_arguments(recipe, noise=nlts_beyond.pooled_noise)
    return with_settings(recipe, b0=float(noise.removeprefix("b⁰ = ")))


def measure(options):
    """Rewards under four kinds of noise."""
    runs = []
    for d in options.datasets:
        phases = WHEEL if d.startswith("wheel") else {}
        for name in PLAYED:
            for noise in NOISES:
                recipe = with_settings(with_noise(RECIPES[name], noise), **phases)
                runs += make_runs(options, d, name, recipe, variant=noise)
    return execute(options, runs)
