"""What `costs` measures: problems of Eq. 6, and a plain agent to compare a step with."""
import numpy as np
import torch
from scipy.linalg import cho_solve, solve_triangular

import datasets
import nlts
from lab import fast


def play(agent, problem):
    """Let the agent play all of a problem."""
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])


def captured(dataset, phases, seed):
    """The problems (E_new, s2) of Eq. 6 that the paper's method meets in these learning phases."""
    problem = datasets.load(dataset, nlts.Config.L * max(phases), seed)
    N, found = problem.n_arms, []

    def recording(forgotten, E_old, E_new, weights, lam):
        if agent.t // nlts.Config.L in phases:
            found.extend((E, old.s2(E_before)) for old, E_before, E
                         in zip(forgotten, E_old, E_new, strict=True) if len(E))
        return nlts.likelihood_matching(forgotten, E_old, E_new, weights, lam)

    agent = nlts.NeuralLinearTS(nlts.MLP(problem.dim, N, seed=seed), N, 100 * N, recording,
                                fast.train, seed=seed)
    play(agent, problem)
    return found


def spread(buffers, count):
    """So many of them, from the one with the fewest tuples to the one with the most."""
    buffers = sorted(buffers, key=lambda buffer: len(buffer[1]))
    return [buffers[k] for k in np.unique(np.linspace(0, len(buffers) - 1, count).astype(int))]


def synthetic(rng, n, g=50, m=2000, dim=20):
    """A problem of Eq. 6 of any size: ReLU features that move a little, m tuples have left."""
    W, step = rng.normal(size=(2, g, dim)) / np.sqrt(dim)
    contexts = rng.normal(size=(m + n, dim))
    E_old = np.maximum(contexts @ W.T, 0)
    Phi_old = nlts.Config.lam * np.eye(g) + E_old[:m].T @ E_old[:m]
    s2 = np.sum(E_old[m:].T * np.linalg.solve(Phi_old, E_old[m:].T), axis=0)
    return np.maximum(contexts[m:] @ (W + 0.1 * step).T, 0), s2


def bounds(E, s2):
    """rho and least of nlts.match_covariance."""
    ridge, floor = nlts.match_covariance.__defaults__
    norm2 = (E ** 2).sum(1)
    return ridge * np.mean(norm2 ** 2), floor * (norm2 @ s2) / (norm2 @ norm2)


def objective(E, s2, S):
    """What nlts.match_covariance minimizes, written out; an S below the bound is raised first."""
    rho, least = bounds(E, s2)
    w, Q = np.linalg.eigh(S)
    S = (Q * w.clip(least)) @ Q.T
    misfit = ((E @ S) * E).sum(1) - s2
    return float(misfit @ misfit + rho * np.sum(S ** 2))


def nudge(network, buffer, config, rng):
    """In place of training, which costs the same with any memory: all weights move a little."""
    for p in network.parameters():
        p.data += 0.01 * torch.as_tensor(rng.standard_normal(p.shape))


class Factorizing:
    """nlts.LinearTS, but an update factorizes the precision anew: d³ operations, not d²."""

    def __init__(self, dim, n_arms, seed=0):
        config = nlts.Config()
        self.rng = np.random.default_rng(seed)
        self.precision = np.array([config.lam * np.eye(dim)] * n_arms)
        self.chol = np.linalg.cholesky(self.precision)                       # lower triangles
        self.f, self.mu = np.zeros((2, n_arms, dim))
        self.a, self.b = np.full(n_arms, config.a0), np.full(n_arms, config.b0)

    def act(self, context):
        """The arm to play."""
        scores = []
        for chol, mu, a, b in zip(self.chol, self.mu, self.a, self.b, strict=True):
            z = self.rng.standard_normal(len(mu))
            z = solve_triangular(chol, z, trans="T", lower=True)
            scores.append((mu + np.sqrt(b / self.rng.gamma(a)) * z) @ context)
        return int(np.argmax(scores))

    def update(self, context, arm, reward):
        """Eq. 2."""
        before = reward - context @ self.mu[arm]
        self.precision[arm] += np.outer(context, context)
        self.chol[arm] = np.linalg.cholesky(self.precision[arm])
        self.f[arm] += context * reward
        self.mu[arm] = cho_solve((self.chol[arm], True), self.f[arm])
        self.a[arm] += 0.5
        self.b[arm] += before * (reward - context @ self.mu[arm]) / 2
