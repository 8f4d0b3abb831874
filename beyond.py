"""Beyond the paper: a prior in closed form, without a semi-definite program.

    agent = nlts.NeuralLinearTS(network, n_arms, memory, prior=beyond.carried_prior)
"""
import numpy as np


def carried_prior(left, E_old, E_new, weights, lam):
    """The carried prior. Features took a step; what left the buffer took steps of the same size.

    Over all tuples in the buffer let delta = phi - phi_old be a step, C the mean of delta delta'.
    Taking steps to have mean zero and to be unrelated to features and rewards, the m tuples of an
    arm that left the buffer have

        sum phi phi' = sum (phi_old + delta)(phi_old + delta)' ~ sum phi_old phi_old' + m C

    under the new features. The first prior lam I stays what it is, so that

        Phi0 = Phi_old + m C.                                                               (ours 1)

    Likewise their sum of phi r is about that of phi_old r, kept in Phi_old mu_old: the mean

        carried = Phi0^-1 Phi_old mu_old                                                    (ours 2)

    knows what they taught, but nothing of what is new in phi. The last layer's weights w know that.
    By the share of phi that is new,

        rho = m tr C / (tr Phi_old + m tr C),   mu0 = (1 - rho) carried + rho w.            (ours 3)

    There is no free number. If no feature moved, C = 0 and nothing changes; as steps grow, mu0
    tends to the paper's (where m > 0). The arguments are those of `nlts.likelihood_matching`.
    """
    step = np.vstack(E_new) - np.vstack(E_old)                               # (n, g), all arms
    C = step.T @ step / len(step)
    priors = []
    for old, w in zip(left, weights, strict=True):
        Phi_old, m = old.precision, old.n
        Phi0 = Phi_old + m * C                                               # (ours 1)
        carried = np.linalg.solve(Phi0, Phi_old @ old.mu_hat)                # (ours 2)
        rho = m * np.trace(C) / np.trace(Phi0)
        priors.append((Phi0, (1 - rho) * carried + rho * w))                 # (ours 3)
    return priors
