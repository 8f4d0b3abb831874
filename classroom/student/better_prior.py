"""A prior of your own, for limited memory: hand in this file."""
import numpy as np


def better_prior(forgotten, E_old, E_new, weights, lam):
    """[(Phi0, mu0)] for each arm i: the prior of NeuralLinearTS after a learning phase.

    forgotten[i]  posterior of the tuples of arm i that have left the buffer, in the old features:
                  its precision, mu_hat, a, b, n (how many they are) and s2(E)
    E_old[i]      (n_i, g): the tuples of arm i in the buffer, in the old features; n_i may be 0
    E_new[i]      (n_i, g): the same tuples in the new features
    weights       (N, g): the last layer of the network, in the new features
    lam           of the first prior lam I

    Phi0 (g, g) has to be symmetric and positive definite, mu0 (g,), both finite.
    """
    return [(lam * np.eye(len(w)), np.zeros(len(w))) for w in weights]
