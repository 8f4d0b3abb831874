"""What tests of the core share: drawn data, oracles, and small agents whose tuples are kept."""
import copy

import numpy as np
import pytest
import torch
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

numbers = st.integers(-12, 12).map(lambda k: k / 4)
positive = st.integers(1, 40).map(lambda k: k / 4)


def array_of(shape, elements):
    """An array whose entries are drawn one by one: no value fills the rest."""
    return arrays(float, shape, elements=elements, fill=st.nothing())


@st.composite
def regressions(draw, n=None):
    """Features (n, g), rewards (n,), a prior precision of at least 0.25, a prior mean."""
    n = draw(st.integers(1, 8)) if n is None else n
    g = draw(st.integers(1, 4))
    M = draw(array_of((g, g), numbers))
    E, r = draw(array_of((n, g), numbers)), draw(array_of(n, numbers))
    return E, r, M @ M.T + 0.25 * np.eye(g), draw(array_of(g, numbers))


@st.composite
def maps(draw, g, scales=(0.5, 1.0, 2.0)):
    """An invertible A (g, g): scales, then rotations in the planes of neighbours."""
    A = np.diag(draw(array_of(g, st.sampled_from(scales))))
    for k in range(g - 1):
        angle = np.pi / 6 * draw(st.integers(0, 11))
        turn = np.eye(g)
        turn[k:k + 2, k:k + 2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        A = turn @ A
    return A


def close(actual, expected, rtol=1e-8, scale=None):
    """Equal up to `rtol` of the largest entry, or of `scale`."""
    size = np.max(np.abs(expected), initial=0) if scale is None else scale
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * size + 1e-300)


def state_of(blr):
    """A copy of all that a posterior holds."""
    return {name: np.copy(value) for name, value in vars(blr).items()}


def assert_same_state(before, after):
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)


def printed(E, r, Phi0, mu0, a0=6.0, b0=6.0):
    """Eq. 2 as printed: precision, mu_hat, a, b."""
    B = Phi0 + E.T @ E
    mu_hat = np.linalg.solve(B, Phi0 @ mu0 + E.T @ r)
    b = b0 + (r @ r + mu0 @ Phi0 @ mu0 - mu_hat @ B @ mu_hat) / 2
    return B, mu_hat, a0 + len(r) / 2, b


def assert_posterior(blr, expected, n, rtol=1e-8):
    """`blr` stands for n tuples, and is `expected`, a result of `printed`."""
    B, mu_hat, a, b = expected
    close(blr.precision, B, rtol)
    close(blr.mu_hat, mu_hat, rtol, scale=1 + np.abs(mu_hat).max())
    assert blr.a == a and blr.n == n
    assert blr.b == pytest.approx(b, rel=rtol)


# Eq. 6 -------------------------------------------------------------------------------------------

def variances(E, S):
    """phi'S phi of each row phi of E."""
    return ((E @ S) * E).sum(1)


def problem_of(E, s2, ridge, floor):
    """rho, and the least eigenvalue that S may have: both relative, so that units do not matter."""
    norm2 = (E ** 2).sum(1)
    return ridge * np.mean(norm2 ** 2), floor * (norm2 @ s2) / (norm2 @ norm2)


def kkt_violation(E, s2, ridge, floor, S):
    """How far S is from optimal: S - least I >= 0, gradient >= 0, and their product is zero."""
    rho, least = problem_of(E, s2, ridge, floor)
    gradient = (E.T * (variances(E, S) - s2)) @ E + rho * S
    above = S - least * np.eye(len(S))
    size = np.linalg.norm((E.T * s2) @ E)                                # of the gradient at S = 0
    return np.max([-np.linalg.eigvalsh(above)[0] / least,                # of a nan a nan
                   -np.linalg.eigvalsh(gradient)[0] / size,
                   np.linalg.norm(gradient @ above) / size / np.linalg.norm(S)])


def assert_near(S, expected, rtol=1e-3):
    assert np.linalg.norm(S - expected) <= rtol * np.linalg.norm(expected) < np.inf


@st.composite
def matchings(draw, rows=numbers, s2=positive):
    """Features, not all 0, and s^2 that as a rule no S matches exactly."""
    n, g = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    E, s2 = draw(array_of((n, g), rows)), draw(array_of(n, s2))
    assume((E ** 2).sum(1) @ s2 > 0)
    return E, s2


# Algorithm 2 --------------------------------------------------------------------------------------

class LinearFeatures(torch.nn.Module):
    """A network of one's own: phi = A b."""

    def __init__(self, A, n_arms):
        super().__init__()
        self.A = torch.nn.Parameter(torch.as_tensor(A))
        self.weights = torch.nn.Parameter(torch.ones(n_arms, len(A), dtype=torch.float64))

    def features(self, x):
        return x @ self.A.T

    def forward(self, x):
        return self.features(x) @ self.weights.T


def small_agent(nlts, seed=0, memory=18, prior=None, **options):
    """Three arms, contexts of four numbers, six features."""
    options = {"L": 40, "P": 30, "batch": 8, "lr": 1e-2} | options
    network = options.pop("network", None) or nlts.MLP(4, 3, 6, seed=seed)
    prior = nlts.likelihood_matching if prior is None else prior
    return nlts.NeuralLinearTS(network, 3, memory, prior, seed=seed, **options)


def step_of(agent, seed=0):
    """A nonlinear problem: the context at the agent's time, and the rewards of three arms."""
    rng = np.random.default_rng([seed, agent.t])
    context = rng.normal(size=4)
    return context, np.abs(context[:3]) + 0.1 * rng.normal(size=3)


class Archive:
    """Plays an agent, and keeps all tuples of each arm, oldest first: the oracle with full memory.
    An arm's tuples leave the buffer oldest first, so what left is the first part of its list."""

    def __init__(self, nlts, agent):
        self.nlts, self.agent = nlts, agent
        self.contexts, self.rewards = [[], [], []], [[], [], []]

    def advance(self, steps, scale=1):
        for _ in range(steps):
            context, rewards = step_of(self.agent)
            arm = self.agent.act(context)
            self.contexts[arm].append(context)
            self.rewards[arm].append(scale * rewards[arm])
            self.agent.update(context, arm, scale * rewards[arm])

    def rows(self, arm, network=None):
        """Features under the network, as it is unless told, and rewards, of all tuples."""
        contexts = np.reshape(self.contexts[arm], (-1, 4))
        network = self.agent.network if network is None else network
        return self.nlts.last_layer_activations(network, contexts), np.array(self.rewards[arm])

    def number_left(self, arm):
        return len(self.rewards[arm]) - sum(a == arm for _, a, _ in self.agent.buffer.tuples)

    def assert_full_regression(self, rtol=1e-7):
        """The posteriors are those of all tuples, as if none had been forgotten."""
        for i, arm in enumerate(self.agent.arms):
            phi, r = self.rows(i)
            expected = printed(phi, r, 0.25 * np.eye(6), np.zeros(6))
            assert_posterior(arm, expected, len(r), rtol)


class Watched:
    """A prior that keeps what it was given and what it returned."""

    def __init__(self, prior):
        self.prior, self.calls = prior, []

    def __call__(self, *given):
        priors = self.prior(*given)
        self.calls.append(copy.deepcopy((*given, priors)))
        return priors
