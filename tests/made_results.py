"""Made-up results, as runs have them."""
import numpy as np


def made_up(sets, gains, runs=8, noise=1.0, **more):
    """Results of algorithms {"name" or "name/variant": gain}: 4,000 + the gain + a difficulty of
    each run (sd 100) that all algorithms share + noise."""
    rng, results = np.random.default_rng(0), []
    for d in sets:
        difficulty = 100 * rng.normal(size=runs)
        for name, gain in gains.items():
            name, _, variant = name.partition("/")
            reward = 4000 + gain + difficulty + noise * rng.normal(size=runs)
            results += [{"dataset": d, "algorithm": name, "run": k, "reward": reward[k],
                         "steps": 5000, "optimal": 5000, "uniform": 1000, "best_arm": 2487,
                         "explored": 0.1, "seconds": 360.0, "played_on": "here", **more,
                         **({"variant": variant} if variant else {})} for k in range(runs)]
    return results
