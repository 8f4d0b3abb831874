"""How certain a prior is after each learning phase, beside what full memory would say."""
import numpy as np

import nlts

LEAST = 5                                             # tuples of an arm that left, to be measured


def kept_prior(forgotten, E_old, E_new, weights, lam):
    """The old precision, as if no feature had moved; the mean is the paper's."""
    return [(old.precision, w) for old, w in zip(forgotten, weights, strict=True)]


class Calibration:
    """Observer: log s² minus full memory's, on the tuples that left the buffer."""

    def __init__(self):
        self.seen = {}                                # contexts of each arm's plays
        self.errors = []                              # an array per phase and arm

    def before_update(self, agent, context, arm):
        """Called between `act` and `update`."""
        if agent.t and agent.t % agent.config.L == 0:                # a phase has just ended
            self.errors += phase_errors(agent, self.seen)
        self.seen.setdefault(arm, []).append(context)

    def result(self, problem, agent, earned):
        """Means over phases and arms; None where nothing has left the buffer."""
        means = [(x.mean(), np.abs(x).mean()) for x in self.errors]
        bias, error = np.mean(means, axis=0).tolist() if means else (None, None)
        return {"bias": bias, "error": error}


def phase_errors(agent, seen):
    """log s² - log s² of full memory on the tuples that left: an array per arm."""
    errors = []
    kept = np.bincount([arm for _, arm, _ in agent.buffer.tuples], minlength=agent.n_arms)
    for i, contexts in seen.items():
        arm = agent.arms[i]
        gone = contexts[:len(contexts) - kept[i]]     # the oldest leave
        if len(gone) < LEAST:
            continue
        phi = nlts.last_layer_activations(agent.network, np.array(gone))
        prior = nlts.BayesianLinearRegression(arm.Phi0, arm.mu0, arm.a, arm.b)
        first = agent.config.lam * np.eye(len(arm.mu0))
        full = nlts.BayesianLinearRegression(first + phi.T @ phi, arm.mu0, arm.a, arm.b)
        s2, full_s2 = prior.s2(phi), full.s2(phi)
        alive = full_s2 > 0                           # a context without active unit says nothing
        errors.append(np.log(s2[alive] / full_s2[alive]))
    return errors
