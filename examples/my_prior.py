"""A prior of your own: `python experiments.py forgetting --prior examples/my_prior.py --runs 2`."""
import numpy as np


def half_forgotten(forgotten, E_old, E_new, weights, lam):
    """Keep lam I, which an arm starts with, and half of what observations added."""
    first = lam * np.eye(len(weights[0]))
    return [(first + (old.precision - first) / 2, w)
            for old, w in zip(forgotten, weights, strict=True)]
