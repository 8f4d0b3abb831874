"""Everybody at the same settings: L = 100, P = 200, 3 initial pulls, pooled noise, and 100 tuples
per arm where memory is limited. With --drift, rows are in the order of their first principal
component: the buffer is then not like what was forgotten."""
from lab.own import algorithms
from lab.recipes import RECIPES, at_equal_settings
from lab.results import execute, make_runs

PRINTED = "mushroom", "adult", "statlog", "epileptic"     # where it is played unasked
PRINTED_RUNS = 10


def measure(options):
    """Rewards at equal settings."""
    sets = [str(options.csv)] if options.csv else options.datasets
    runs = []
    for d in sets:
        played = algorithms(options)
        if d in PRINTED and not options.drift:
            played.setdefault("printed", RECIPES["printed"])
        for name, recipe in played.items():
            most = PRINTED_RUNS if name == "printed" else None
            runs += make_runs(options, d, name, at_equal_settings(recipe), most,
                              drift=options.drift)
    return execute(options, runs)
