"""Beyond the paper: a prior in closed form, without a semi-definite program.

`NeuralLinearTS(network, n_arms, memory, prior=carried_prior)`.
"""
import numpy as np


def carried_prior(left, E_old, E_new, weights, lam):
    """The carried prior: features took a step; what left the buffer took one of the same size.

    Over all tuples in the buffer let delta = phi - phi_old, and C the mean of delta delta'. Taking
    steps to be unrelated to where they start, the m tuples of an arm that left the buffer have

        sum phi phi' = sum (phi_old + delta)(phi_old + delta)' ~ sum phi_old phi_old' + m C

    under the new features. The first prior lam I stays as it is, so that

        Phi0 = Phi_old + m C.                                                                  (C.1)

    Likewise their sum of phi r is that of phi_old r, which is Phi_old mu_old, and

        carried = Phi0^-1 Phi_old mu_old                                                       (C.2)

    is the mean that knows what they taught, but nothing of what is new in phi. The last layer's
    weights w know that. By the share of phi that is new,

        rho = m tr C / (tr Phi_old + m tr C),    mu0 = (1 - rho) carried + rho w.              (C.3)

    If no feature moved, C = 0 and nothing changes; as steps grow, mu0 tends to the paper's.
    """
    step = np.vstack(E_new) - np.vstack(E_old)                               # (n, g), all arms
    C = step.T @ step / len(step)
    priors = []
    for old, w in zip(left, weights, strict=True):
        Phi_old, m = old.precision, old.n
        Phi0 = Phi_old + m * C                                               # (C.1)
        carried = np.linalg.solve(Phi0, Phi_old @ old.mu_hat)                # (C.2)
        rho = m * np.trace(C) / np.trace(Phi0)
        priors.append((Phi0, (1 - rho) * carried + rho * w))                 # (C.3)
    return priors
