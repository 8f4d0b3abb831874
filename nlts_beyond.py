"""Beyond the paper: a prior in closed form, and a noise that finds its own scale.

    agent = nlts.NeuralLinearTS(network, n_arms, memory, prior=nlts_beyond.carried_prior,
                                noise=nlts_beyond.pooled_noise, L=100, P=200, initial_pulls=3)
"""
import numpy as np


def carried_prior(forgotten, E_old, E_new, weights, lam):
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
    for old, w in zip(forgotten, weights, strict=True):
        Phi_old, m = old.precision, old.n
        Phi0 = Phi_old + m * C                                               # (ours 1)
        carried = np.linalg.solve(Phi0, Phi_old @ old.mu_hat)                # (ours 2)
        rho = m * np.trace(C) / np.trace(Phi0)
        priors.append((Phi0, (1 - rho) * carried + rho * w))                 # (ours 3)
    return priors


def pooled_noise(arms, config, rng):
    """The noise of all arms is the prior of each: nothing has to be known of the rewards' scale.

    The paper's prior of the noise, Inv-Gamma(a0, b0) with a0 = b0 = 6, expects a variance of about
    b0 / a0 = 1. Rewards of 0 and 1 have a smaller one, so that samples spread too far; rewards in
    cents a larger one. What is known is what an arm has collected in b, half the sum of its squared
    prediction errors (each shrunk a little, as [2.17] has it), and over how many plays n:

        res_i = b_i - b0,   sigma2 = mean of 2 res_i / n_i over the arms that were played.  (ours 4)

    It is a mean over arms, not over plays: an arm that pays without error, and is played all the
    time, does not make others certain. Empirical Bayes takes it for b0 / a0:

        nu2_i ~ Inv-Gamma(a0 + n_i / 2, a0 sigma2 + res_i),                                 (ours 5)

    so that the noise of all arms counts for 2 a0 = 12 tuples of each. There is no free number but
    a0. If all rewards are multiplied by c, so is every sample of phi'mu_tilde, as long as features
    stay what they are: training a network still wants rewards of about 1.
    """
    res = np.array([max(arm.b - config.b0, 0.0) for arm in arms])            # half squared errors
    n = np.array([arm.n for arm in arms])
    played = n > 0
    sigma2 = np.mean(2 * res[played] / n[played]) if played.any() else 0.0   # (ours 4)
    a = config.a0 + n / 2
    b = config.a0 * max(sigma2, 1e-300) + res
    return b / rng.gamma(a)                                                  # (ours 5)
