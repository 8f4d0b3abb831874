"""Tests of nlts_beyond.py: the carried prior, Phi0 = Phi_old + m C."""
import numpy as np
import torch
from hypothesis import given, settings
from test_agent import Archive, small_agent

from test_nlts import assert_posterior, close, printed, random_regression, seeds


def carried_arm(nlts, seed, n=12):
    """What left the buffer of an arm, the old features in the buffer, and the last layer (1, g)."""
    rng, E, r, _, _ = random_regression(seed)
    g = E.shape[1]
    forgotten = nlts.BayesianLinearRegression(0.25 * np.eye(g), np.zeros(g), 6, 6)
    forgotten.update(E, r)
    return rng, forgotten, rng.normal(size=(n, g)), rng.normal(size=(1, g))


@given(seed=seeds)
def test_carried_prior_is_its_formula(nlts, beyond, seed):
    """Written out once more, with two arms: steps are taken over both, m and Phi_old from each."""
    rng, forgotten, E, w = carried_arm(nlts, seed)
    first = nlts.BayesianLinearRegression(0.25 * np.eye(len(w[0])), w[0], 6, 6)
    steps = rng.normal(size=E.shape)
    E_new = E + steps
    weights = np.vstack([w, 2 * w])
    priors = beyond.carried_prior([forgotten, first], [E[:5], E[5:]], [E_new[:5], E_new[5:]],
                                  weights, 0.25)
    C = sum(np.outer(step, step) for step in steps) / len(steps)
    Phi0 = forgotten.precision + forgotten.n * C
    rho = forgotten.n * np.trace(C) / np.trace(forgotten.precision + forgotten.n * C)
    carried = np.linalg.inv(Phi0) @ forgotten.precision @ forgotten.mu_hat
    close(priors[0][0], Phi0)
    close(priors[0][1], (1 - rho) * carried + rho * w[0], rtol=1e-7)
    close(priors[1][0], first.precision)                     # nothing left: the first prior stays
    close(priors[1][1], first.mu_hat)


@given(seed=seeds)
def test_carried_prior_is_never_less_certain_than_what_left(nlts, beyond, seed):
    rng, forgotten, E, w = carried_arm(nlts, seed)
    E_new = rng.normal(size=E.shape) * 10 ** rng.uniform(-3, 3, E.shape[1])
    ((Phi0, _),) = beyond.carried_prior([forgotten], [E], [E_new], w, 0.25)
    more = np.linalg.eigvalsh(Phi0 - forgotten.precision)
    assert more[0] >= -1e-12 * np.abs(Phi0).max()
    close(Phi0, Phi0.T, rtol=1e-14)


@given(seed=seeds)
def test_the_carried_mean_tends_to_the_last_layer_as_steps_grow(nlts, beyond, seed):
    rng, forgotten, E, w = carried_arm(nlts, seed, n=60)
    steps = rng.normal(size=E.shape)
    distances = []
    for size in (1, 1e2, 1e4, 1e6):
        ((_, mu0),) = beyond.carried_prior([forgotten], [E], [E + size * steps], w, 0.25)
        distances.append(np.linalg.norm(mu0 - w[0]))
    assert distances[2] < 1e-3 * (1 + np.linalg.norm(forgotten.mu_hat - w[0]))
    assert distances[3] < 1e-7 * (1 + np.linalg.norm(forgotten.mu_hat - w[0]))


@given(seed=seeds)
@settings(max_examples=5)
def test_where_no_feature_moves_nothing_changes(nlts, beyond, seed):
    """Ten phases with P = 0 and a buffer of 18: as if all 200 tuples had been kept."""
    agent = small_agent(nlts, seed=seed, prior=beyond.carried_prior, P=0, L=20)
    archive = Archive(agent)
    archive.advance(205, seed)
    assert len(agent.buffer.tuples) == 18
    for i, arm in enumerate(agent.arms):
        phi, r = archive.rows(nlts, i)
        assert_posterior(arm, printed(phi, r, 0.25 * np.eye(6), np.zeros(6)), len(r), rtol=1e-6)


class Table(torch.nn.Module):
    """Any features for any context: a context is the number of a row."""

    def __init__(self, rows, n_arms):
        super().__init__()
        self.rows = torch.nn.Parameter(torch.as_tensor(rows))
        self.weights = torch.nn.Parameter(torch.zeros(n_arms, rows.shape[1], dtype=torch.float64))

    def features(self, x):
        return self.rows[x[:, 0].long()]

    def forward(self, x):
        return self.features(x) @ self.weights.T


def random_steps(network, buffer, config, rng):
    """A `train` in which features take steps of mean zero, whatever they are; they are skewed."""
    steps = rng.exponential(size=network.rows.shape) - 1
    mixing = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.3, 0.0, 2.0]])
    with torch.no_grad():
        network.rows += torch.as_tensor(steps @ mixing)


def test_the_carried_precision_is_unbiased(nlts, beyond):
    """Against full memory, over 150 runs of three phases: the mean of each of 2 times 6 entries is
    within 4.5 sigma of the true one (a right program fails one seed in 12,000)."""
    differences = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        network = Table(rng.normal(size=(30, 3)) + [1, 0, -1], 2)
        agent = nlts.NeuralLinearTS(network, 2, 6, beyond.carried_prior, random_steps,
                                    L=10, seed=seed)
        for t in range(30):
            agent.update([t], int(t % 3 == 0), rng.normal())
        rows = agent.network.rows.detach().numpy()
        played = np.arange(30) % 3 == 0
        for arm, E in zip(agent.arms, (rows[~played], rows[played]), strict=True):
            difference = arm.precision - 0.25 * np.eye(3) - E.T @ E
            differences.append(difference[np.triu_indices(3)])
    differences = np.reshape(differences, (150, 12))
    assert differences.std(0).min() > 1                      # it does estimate
    sigma = differences.std(0) / np.sqrt(150)
    assert np.abs(differences.mean(0) / sigma).max() < 4.5


def test_an_arm_without_tuples_keeps_the_first_prior(nlts, beyond):
    """An arm without tuples in the buffer and with none that left: Phi0 = lam I, mu0 = 0."""
    _, forgotten, E, w = carried_arm(nlts, 3)
    g = E.shape[1]
    nobody = nlts.BayesianLinearRegression(0.25 * np.eye(g), np.zeros(g), 6, 6)
    priors = beyond.carried_prior([forgotten, nobody], [E, E[:0]], [2 * E, E[:0]],
                                  np.vstack([w, w]), 0.25)
    close(priors[1][0], 0.25 * np.eye(g))
    assert not priors[1][1].any()
