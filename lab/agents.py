"""Two priors to compare with: Eq. 6 as the paper solves it, and an exact memory."""
import warnings

import numpy as np

import nlts

LEAST = 1e-5                                          # eigenvalues of S are raised to it


class PrintedPrior:
    """The paper's prior as printed: Eq. 6 in CVXPY, no choice among its solutions.

    SCS stops after 2,500 iterations, as it did by default in 2019. Eigenvalues of S are raised to
    1e-5, the bound of the authors' program. Where the solver returns nothing, Phi_old is kept.
    """

    def __init__(self, **solver):
        self.solver = solver
        self.counts = {"solved": 0, "inaccurate": 0, "unsolved": 0}

    def __call__(self, forgotten, E_old, E_new, weights, lam):
        """(Phi0, mu0) of each arm."""
        priors = []
        for i, old in enumerate(forgotten):
            one_arm = [old], E_old[i:i + 1], E_new[i:i + 1], weights[i:i + 1], lam
            try:
                Phi0, mu0 = nlts.likelihood_matching(*one_arm, match=self.match)[0]
            except Unsolved:
                self.counts["unsolved"] += 1
                Phi0, mu0 = old.precision, weights[i]
            if not np.allclose(Phi0, Phi0.T, 1e-6, 1e-9 * np.abs(Phi0).max()):
                Phi0 = (Phi0 + Phi0.T) / 2            # rounding, where S is ill-conditioned
            priors.append((Phi0, mu0))
        return priors

    def match(self, E_new, s2):
        """S of Eq. 6."""
        from cvxpy.error import SolverError  # slow to import
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                S = nlts.match_covariance_sdp(E_new, s2, **self.solver)
            except SolverError as error:
                raise Unsolved from error
        if S is None or not np.isfinite(S).all():
            raise Unsolved
        self.counts["solved"] += 1
        self.counts["inaccurate"] += any("inaccurate" in str(w.message) for w in told)
        w, Q = np.linalg.eigh((S + S.T) / 2)
        return (Q * np.maximum(w, LEAST)) @ Q.T


class Unsolved(Exception):
    """The solver returned nothing."""


def printed(network, n_arms, memory, solver="SCS", max_iters=2500, **arguments):
    """Limited memory with the prior as printed. It counts what its solver returned."""
    limit = {"max_iters": max_iters} if solver == "SCS" else {}
    prior = PrintedPrior(solver=solver, **limit)
    agent = nlts.NeuralLinearTS(network, n_arms, memory, prior=prior, **arguments)
    agent.solver_counts = prior.counts
    return agent


def perfect_prior(network, n_arms, memory, train=nlts.train, **arguments):
    """An oracle, not an algorithm: the posterior has full memory, and the network is trained on a
    buffer of its own, of `memory` tuples."""
    buffer = nlts.ReplayBuffer(memory)
    seen = 0

    def train_on_buffer(network, history, config, rng):
        nonlocal seen
        for context, arm, reward in history.tuples[seen:]:
            buffer.add(context, arm, reward)
        seen = len(history.tuples)
        train(network, buffer, config, rng)

    return nlts.NeuralLinearTS(network, n_arms, None, train=train_on_buffer, **arguments)


def greedy(network, n_arms, memory, **arguments):
    """The arm with the highest estimate of the network; no exploration."""
    return nlts.EpsilonGreedy(network, n_arms, memory, 0.0, **arguments)
