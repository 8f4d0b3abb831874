"""The open choices that `ablation` changes, one at a time."""
import nlts
from studies.released_agents import RMSProp


def counted_twice(forgotten, E_old, E_new, weights, lam, prior):
    """Phi_old of everything, the buffer's rows included, which are then put back once more. The
    mean stays that of what was forgotten: a prior does not see the buffer's rewards."""
    everything = []
    for old, E in zip(forgotten, E_old, strict=True):
        Phi = old.precision + E.T @ E
        everything.append(nlts.BayesianLinearRegression(Phi, old.mu_hat, old.a, old.b,
                                                        old.n + len(E)))
    return prior(everything, E_old, E_new, weights, lam)


def mixed(forgotten, E_old, E_new, weights, lam, prior, mean):
    """Phi0 of one prior, mu0 of another."""
    priors = [one(forgotten, E_old, E_new, weights, lam) for one in (prior, mean)]
    return [(Phi0, mu0) for (Phi0, _), (_, mu0) in zip(*priors, strict=True)]


def matched_rows(forgotten, E_old, E_new, weights, lam):
    """mu0 of Eq. 5 on the buffer's rows."""
    return [(old.precision, nlts.match_mean(E, E_moved, old.mu_hat))
            for old, E, E_moved in zip(forgotten, E_old, E_new, strict=True)]


class NoiseKept:
    """The paper's noise, but b goes through a learning phase as it is: residuals of old features
    stay in it. Only the tuple that ends a phase is lost to it."""

    def __init__(self):
        self.before = None                            # Phi0 and b of each arm, one step ago
        self.b = None

    def __call__(self, arms, config, rng):
        """As nlts.inverse_gamma_noise; a phase gives an arm another Phi0."""
        if self.before is None:
            self.b = [arm.b for arm in arms]
        else:
            for i, (arm, (Phi0, b)) in enumerate(zip(arms, self.before, strict=True)):
                if arm.Phi0 is Phi0:
                    self.b[i] += arm.b - b
        self.before = [(arm.Phi0, arm.b) for arm in arms]
        return [b / rng.gamma(arm.a) for b, arm in zip(self.b, arms, strict=True)]


def noise_kept(*arguments, **options):
    """An agent with a noise of its own."""
    return nlts.NeuralLinearTS(*arguments, noise=NoiseKept(), **options)


def authors_training(*arguments, train, **options):
    """An agent with an optimizer of its own."""
    return nlts.NeuralLinearTS(*arguments, train=RMSProp(), **options)
