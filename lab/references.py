"""Agents to compare with: exact memory of the posterior, and the textbook way of computing."""
import numpy as np
from scipy.linalg import cho_solve, solve_triangular

import nlts


def perfect_prior(network, n_arms, memory, train=nlts.train, **options):
    """The reference for any prior: an agent with full memory, whose network is trained on a buffer
    of its own, of `memory` tuples."""
    buffer = nlts.ReplayBuffer(memory)
    seen = 0

    def train_on_buffer(network, history, config, rng):
        nonlocal seen
        for context, arm, reward in history.tuples[seen:]:
            buffer.add(context, arm, reward)
        seen = len(history.tuples)
        train(network, buffer, config, rng)

    return nlts.NeuralLinearTS(network, n_arms, memory=None, train=train_on_buffer, **options)


class Refactorized:
    """nlts.LinearTS, but an update factorizes the whole precision anew: d^3 operations, not d^2."""

    def __init__(self, dim, n_arms, seed=0):
        config = nlts.Config()
        self.rng = np.random.default_rng(seed)
        self.precision = np.array([config.lam * np.eye(dim)] * n_arms)
        self.chol = np.linalg.cholesky(self.precision)                       # lower triangles
        self.f, self.mu = np.zeros((2, n_arms, dim))
        self.a, self.b = np.full(n_arms, config.a0), np.full(n_arms, config.b0)

    def act(self, context):
        """The arm to play."""
        values = []
        for chol, mu, a, b in zip(self.chol, self.mu, self.a, self.b, strict=True):
            nu2 = b / self.rng.gamma(a)
            z = solve_triangular(chol, self.rng.standard_normal(len(mu)), trans="T", lower=True)
            values.append((mu + np.sqrt(nu2) * z) @ context)
        return int(np.argmax(values))

    def update(self, context, arm, reward):
        """Eq. 2."""
        before = reward - context @ self.mu[arm]
        self.precision[arm] += np.outer(context, context)
        self.chol[arm] = np.linalg.cholesky(self.precision[arm])
        self.f[arm] += context * reward
        self.mu[arm] = cho_solve((self.chol[arm], True), self.f[arm])
        self.a[arm] += 0.5
        self.b[arm] += before * (reward - context @ self.mu[arm]) / 2


class Textbook:
    """The calls that the Deep Bayesian Bandits code makes. It never trains: decisions are timed."""

    def __init__(self, network, n_arms, seed=0, g=50):
        self.network, self.rng = network, np.random.RandomState(seed)
        self.precision = np.array([nlts.Config.lam * np.eye(g)] * n_arms)
        self.covariance = np.linalg.inv(self.precision)
        self.f, self.mu = np.zeros((2, n_arms, g))
        self.a, self.b = np.full(n_arms, nlts.Config.a0), np.full(n_arms, nlts.Config.b0)
        self.R2 = np.zeros(n_arms)

    def act(self, context):
        """The arm to play."""
        from scipy.stats import invgamma  # slow to import, and needed here only
        phi = nlts.last_layer_activations(self.network, context[None])[0]
        values = []
        for i in range(len(self.mu)):
            nu2 = self.b[i] * invgamma.rvs(self.a[i], random_state=self.rng)
            mu_tilde = self.rng.multivariate_normal(self.mu[i], nu2 * self.covariance[i])
            values.append(mu_tilde @ phi)
        return int(np.argmax(values))

    def update(self, context, arm, reward):
        """Eq. 2 as printed."""
        phi = nlts.last_layer_activations(self.network, context[None])[0]
        self.precision[arm] += np.outer(phi, phi)
        self.covariance[arm] = np.linalg.inv(self.precision[arm])
        self.f[arm] += phi * reward
        self.mu[arm] = self.covariance[arm] @ self.f[arm]
        self.a[arm] += 0.5
        self.R2[arm] += reward ** 2
        explained = self.mu[arm] @ self.precision[arm] @ self.mu[arm]
        self.b[arm] = nlts.Config.b0 + (self.R2[arm] - explained) / 2
