"""Tests of nlts.py, in its order. Each has an oracle; test_assignments.py plants bugs that they must catch.

The marker says which part of the paper a test belongs to: `pytest -m blr`, `thompson`, `buffer`, `invertible`,
`matching` or `limited`. Statistical tests run on fixed seeds; each says how often it would fail on a correct program.
"""
import copy
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from scipy import stats

import nlts

seeds = st.integers(0, 2 ** 32 - 1)


def random_regression(seed, n=None, g=None):
    """Features (n, g), rewards (n,), a prior precision and a prior mean."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 40) if n is None else n
    g = rng.integers(1, 8) if g is None else g
    E, M = rng.normal(size=(n, g)), rng.normal(size=(g, g))
    return rng, E, E @ rng.normal(size=g) + 0.3 * rng.normal(size=n), M @ M.T + 0.1 * np.eye(g), rng.normal(size=g)


def regression_with_prior(Phi0, mu0, a0=6.0, b0=6.0):
    g = len(mu0)
    blr = nlts.BayesianLinearRegression(g, a0=a0, b0=b0)
    blr.restart(Phi0, mu0, np.empty((0, g)), np.empty(0))
    return blr


def state_of(blr):
    return {name: np.copy(value) for name, value in vars(blr).items()}


def assert_same_state(before, after):
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)


def close(actual, expected, rtol=1e-8, scale=None):
    """Equal up to `rtol` of the largest entry."""
    size = np.max(np.abs(expected), initial=0) if scale is None else scale
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * size + 1e-300)


# Sec. 2: Eq. (BLR) --------------------------------------------------------------------------------------------------

@pytest.mark.blr
@given(seeds)
def test_sequential_is_batch_is_shuffled_is_printed(seed):
    rng, E, r, Phi0, mu0 = random_regression(seed)
    order = rng.permutation(len(r))
    sequential, batch, shuffled = (regression_with_prior(Phi0, mu0) for _ in range(3))
    for phi, reward in zip(E, r):
        sequential.update(phi, reward)
    for j in order:
        shuffled.update(E[j], r[j])
    batch.update(E, r)
    B = Phi0 + E.T @ E
    mu_hat = np.linalg.solve(B, Phi0 @ mu0 + E.T @ r)
    b = 6.0 + (r @ r + mu0 @ Phi0 @ mu0 - mu_hat @ B @ mu_hat) / 2
    for blr in (sequential, batch, shuffled):
        close(blr.Phi, E.T @ E)
        close(blr.f, E.T @ r, scale=np.abs(E.T @ r).max() + 1)
        close(blr.precision, B)
        close(blr.mu_hat, mu_hat)
        close([blr.R2, blr.a, blr.b], [r @ r, 6.0 + len(r) / 2, b], rtol=1e-9)


@pytest.mark.blr
@given(seeds)
def test_b_grows_by_the_squared_prediction_error(seed):
    _, E, r, Phi0, mu0 = random_regression(seed)
    blr = regression_with_prior(Phi0, mu0)
    for phi, reward in zip(E, r):
        expected = blr.b + (reward - phi @ blr.mu_hat) ** 2 / (1 + phi @ np.linalg.solve(blr.precision, phi)) / 2
        blr.update(phi, reward)
        assert blr.b == pytest.approx(expected, rel=1e-9)


@pytest.mark.blr
@given(seeds, st.floats(0.01, 10))
def test_posterior_mean_is_ridge_regression(seed, lam):
    _, E, r, _, _ = random_regression(seed)
    blr = nlts.BayesianLinearRegression(E.shape[1], lam=lam)
    blr.update(E, r)
    padded = np.vstack([E, np.sqrt(lam) * np.eye(E.shape[1])])
    close(blr.mu_hat, np.linalg.lstsq(padded, np.append(r, np.zeros(E.shape[1])), rcond=None)[0])


@pytest.mark.blr
@given(seeds)
def test_predict_is_the_closed_form_student_t(seed):
    rng, E, r, Phi0, mu0 = random_regression(seed)
    blr = regression_with_prior(Phi0, mu0)
    blr.update(E, r)
    phi = rng.normal(size=E.shape[1])
    mean, scale, df = blr.predict(phi)
    assert mean == pytest.approx(phi @ blr.mu_hat)
    assert scale ** 2 == pytest.approx(blr.b / blr.a * (phi @ np.linalg.inv(Phi0 + E.T @ E) @ phi))
    assert df == 2 * blr.a == 12 + len(r)


@pytest.mark.blr
@given(seeds)
def test_predictions_do_not_depend_on_the_basis(seed):
    """phi -> A phi with Phi0 -> A Phi0 A' and mu0 -> A'^-1 mu0 changes no prediction and not b."""
    rng, E, r, Phi0, mu0 = random_regression(seed)
    g = E.shape[1]
    A = np.linalg.qr(rng.normal(size=(g, g)))[0] * rng.uniform(0.3, 3, g)
    one, other = regression_with_prior(Phi0, mu0), regression_with_prior(A @ Phi0 @ A.T, np.linalg.solve(A.T, mu0))
    one.update(E, r)
    other.update(E @ A.T, r)
    phi = rng.normal(size=g)
    np.testing.assert_allclose(one.predict(phi), other.predict(A @ phi), rtol=1e-7, atol=1e-9)
    assert one.b == pytest.approx(other.b, rel=1e-8)


@pytest.mark.blr
@given(seeds)
def test_restart_takes_prior_and_rows_and_leaves_a_and_b(seed):
    rng, E, r, Phi0, mu0 = random_regression(seed)
    blr = nlts.BayesianLinearRegression(E.shape[1])
    blr.update(E, r)
    a, b, rows, rewards = blr.a, blr.b, E[::2] + 1, r[::2]
    prior = Phi0.copy(), mu0.copy()
    blr.restart(*prior, rows, rewards)
    prior[0][:], prior[1][:] = 0, 0                                       # the posterior must not share them
    assert (blr.a, blr.b) == (a, b)
    close(blr.Phi0, Phi0), close(blr.mu0, mu0), close(blr.Phi, rows.T @ rows), close(blr.R2, rewards @ rewards)
    close(blr.mu_hat, np.linalg.solve(Phi0 + rows.T @ rows, Phi0 @ mu0 + rows.T @ rewards))
    phi, reward = rng.normal(size=len(mu0)), rng.normal()
    s2 = phi @ np.linalg.solve(blr.precision, phi)
    expected = b + (reward - phi @ blr.mu_hat) ** 2 / (1 + s2) / 2        # b goes on from where it was
    blr.update(phi, reward)
    assert blr.b == pytest.approx(expected, rel=1e-8) and blr.a == a + 0.5


@pytest.mark.blr
def test_sound_after_100000_hard_updates():
    """Collinear, duplicated, tiny and huge features: the factor of the precision stays regular, b stays positive."""
    rng, g, n = np.random.default_rng(0), 6, 100_000
    E = rng.normal(size=(n, g))
    E[:, 1] = 2 * E[:, 0]                                                 # collinear
    E[::3] = E[0]                                                         # duplicated
    E *= rng.choice([1e-6, 1.0, 1e6], size=(n, 1))
    r = rng.normal(size=n)
    blr, b = nlts.BayesianLinearRegression(g), 6.0
    for j in range(0, n, 10):
        for phi, reward in zip(E[j:j + 10], r[j:j + 10]):
            blr.update(phi, reward)
        assert blr.b >= b
        b = blr.b
    # B = R'R with a regular R is positive definite. As one float64 matrix this B, of condition 1e19, cannot be.
    R = blr.F[:g, :g]
    assert np.isfinite(blr.F).all() and np.abs(np.diag(R)).min() > 0.4 * np.sqrt(blr.Phi0[0, 0])
    close(R.T @ R, blr.Phi0 + E.T @ E, rtol=1e-8)
    assert np.isfinite(blr.mu_hat).all() and blr.predict(E[1])[1] > 0


@pytest.mark.blr
def test_agrees_with_the_batch_formula_after_100000_updates():
    rng, g, n = np.random.default_rng(1), 5, 100_000
    E, r = rng.normal(size=(n, g)), rng.normal(size=n)
    blr = nlts.BayesianLinearRegression(g)
    for phi, reward in zip(E, r):
        blr.update(phi, reward)
    B = 0.25 * np.eye(g) + E.T @ E
    mu_hat = np.linalg.solve(B, E.T @ r)
    close(blr.precision, B), close(blr.mu_hat, mu_hat)
    assert blr.b == pytest.approx(6 + (r @ r - mu_hat @ B @ mu_hat) / 2, rel=1e-8)


@pytest.mark.blr
@pytest.mark.parametrize("method, arguments, name", [
    ("update", ([1.0, np.nan], 1.0), "phi"), ("update", ([1.0], 1.0), "phi"), ("update", ([1.0, 2.0], np.inf), "r"),
    ("update", ("ab", 1.0), "phi"), ("predict", ([1.0, np.inf],), "phi"),
    ("restart", (-np.eye(2), [0, 0], np.empty((0, 2)), []), "Phi0"), ("restart", (np.eye(3), [0, 0], [], []), "Phi0|E"),
    ("restart", (np.eye(2), [0, np.nan], np.empty((0, 2)), []), "mu0"),
    ("restart", (np.eye(2), [0, 0], [[1, 2]], [1, 2]), "E"),
])
def test_bad_input_is_named_and_leaves_the_posterior(method, arguments, name):
    blr = nlts.BayesianLinearRegression(2)
    blr.update([1.0, 2.0], 1.0)
    before = state_of(blr)
    with pytest.raises(ValueError, match=f"^({name})"):
        getattr(blr, method)(*arguments)
    assert_same_state(before, state_of(blr))


# Sec. 2: sampling and Algorithm 1 -----------------------------------------------------------------------------------

@pytest.mark.thompson
def test_sampler_against_inverse_gamma_and_student_t():
    """Kolmogorov-Smirnov on 20,000 draws: each of the two fails one seed in 1000 for a correct sampler."""
    rng, E, r, Phi0, mu0 = random_regression(7, n=30, g=4)
    blr = regression_with_prior(Phi0, mu0, a0=2.0, b0=0.5)
    blr.update(E, r)
    phi = rng.normal(size=4)
    draws = [blr.sample(rng) for _ in range(20_000)]
    nu2, value = np.array([d[0] for d in draws]), np.array([phi @ d[1] for d in draws])
    mean, scale, df = blr.predict(phi)
    assert stats.kstest(nu2, stats.invgamma(blr.a, scale=blr.b).cdf).pvalue > 1e-3
    assert stats.kstest(value, stats.t(df, mean, scale).cdf).pvalue > 1e-3


@pytest.mark.thompson
def test_known_noise_is_sampled_as_printed():
    """N(mu_hat, v^2 B^-1) with B = I + sum bb': whitened draws are standard normal (fails one seed in 1000)."""
    rng, v = np.random.default_rng(3), 0.7
    agent, B, f = nlts.LinearTS(3, 1, v=v), np.eye(3), np.zeros(3)
    for _ in range(20):
        b, reward = rng.normal(size=3), rng.normal()
        assert agent.act(b) == 0
        agent.update(b, 0, reward)
        B, f = B + np.outer(b, b), f + b * reward
    draws = np.array([agent.arms[0].sample(rng, agent.nu2)[1] for _ in range(10_000)])
    white = (draws - np.linalg.solve(B, f)) @ np.linalg.cholesky(B) / v
    assert stats.kstest(white.ravel(), stats.norm.cdf).pvalue > 1e-3


def play(agent, contexts, means, rng, noise):
    """Regret per step of an agent on a linear problem."""
    regret = np.empty(len(contexts))
    for t, context in enumerate(contexts):
        expected = means @ context
        arm = agent.act(context)
        regret[t] = expected.max() - expected[arm]
        agent.update(context, arm, expected[arm] + noise * rng.normal())
    return regret


@pytest.mark.thompson
@pytest.mark.parametrize("v", [None, 0.3])
def test_regret_falls_and_stays_close_to_an_oracle(v):
    rng = np.random.default_rng(5)
    means, contexts = rng.normal(size=(4, 5)), rng.normal(size=(3000, 5))
    regret = play(nlts.LinearTS(5, 4, v=v, seed=1), contexts, means, rng, noise=0.3)
    thirds = regret.reshape(3, -1).mean(1)
    assert thirds[0] > 3 * thirds[1] > 0 and thirds[1] > thirds[2]
    assert thirds[2] < 0.01 * (contexts @ means.T).max(1).mean()         # the oracle's regret is 0


@pytest.mark.thompson
def test_linear_ts_draws_the_choices_that_its_posterior_gives():
    """P(arm 1) by sampling equals the closed form for two arms with known noise (4 sigma: one seed in 16,000)."""
    agent = nlts.LinearTS(2, 2, v=1.0, seed=0)
    agent.update([1.0, 0.0], 0, 0.5)
    agent.update([1.0, 1.0], 1, 0.9)
    b = np.array([0.6, -0.8])
    mean = [b @ arm.mu_hat for arm in agent.arms]
    variance = sum(b @ np.linalg.solve(arm.precision, b) for arm in agent.arms)
    p = stats.norm.cdf((mean[1] - mean[0]) / np.sqrt(variance))
    share = np.mean([agent.act(b) for _ in range(5000)])
    assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 5000)


@pytest.mark.thompson
def test_initial_pulls_are_round_robin_and_not_part_of_algorithm_1():
    agent = nlts.LinearTS(2, 3)
    for t in range(6):
        assert agent.act([1, 2]) == t % 3
        agent.update([1, 2], t % 3, 0)
    assert nlts.LinearTS(2, 3, v=1.0).config.initial_pulls == 0


# Sec. 3: representation ---------------------------------------------------------------------------------------------

@given(seeds, st.integers(1, 20), st.integers(1, 5))
@settings(max_examples=20)
def test_mlp_is_its_features_times_its_weights_exactly(seed, dim, n_arms):
    network = nlts.MLP(dim, n_arms, hidden=7, seed=seed)
    x = torch.randn(9, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(network(x), network.features(x) @ network.weights.T)
    assert (network.features(x) >= 0).all() and network.features(x).shape == (9, 7)
    hidden = np.maximum(0, x.numpy() @ network.input.detach().numpy().T + network.bias.detach().numpy())
    close(network.features(x).detach().numpy(), hidden)


def test_text_cnn_is_its_features_times_its_weights_and_reads_words():
    network = nlts.TextCNN(vocabulary=30, n_arms=5, embedding=8, filters=6, hidden=4)
    x = torch.randint(30, (7, 60), generator=torch.Generator().manual_seed(0))
    assert torch.equal(network(x), network.features(x) @ network.weights.T)
    assert network.features(x).shape == (7, 4) and network.features(x[:0]).shape == (0, 4)
    assert torch.equal(network(x.float()), network(x))                   # buffers hold ids as floats
    moved = torch.roll(x[:1, 10:40], 5, dims=1)
    padded = torch.zeros(2, 60, dtype=torch.long)
    padded[0, 10:40], padded[1, 10:40] = x[0, 10:40], moved[0]
    assert not torch.allclose(network(padded)[0], network(padded)[1])    # order matters


def test_networks_leave_the_global_random_state_alone():
    before = torch.random.get_rng_state()
    networks = [nlts.MLP(3, 2, seed=4), nlts.MLP(3, 2, seed=4), nlts.TextCNN(9, 2, seed=4), nlts.TextCNN(9, 2, seed=4)]
    assert torch.equal(before, torch.random.get_rng_state())
    for one, two in (networks[:2], networks[2:]):
        assert all(torch.equal(p, q) for p, q in zip(one.parameters(), two.parameters()))


def filled_buffer(rng, n=60, dim=4, n_arms=3, arm=None):
    buffer = nlts.ReplayBuffer()
    for _ in range(n):
        context = rng.normal(size=dim)
        chosen = rng.integers(n_arms) if arm is None else arm
        buffer.add(context, chosen, np.tanh(context[chosen]))
    return buffer


def test_train_differentiates_only_the_played_arm():
    rng, network = np.random.default_rng(0), nlts.MLP(4, 3, hidden=6)
    before = copy.deepcopy(network.state_dict())
    nlts.train(network, filled_buffer(rng, arm=1), P=5, batch=8, lr=1e-2, rng=rng)
    same = network.weights == before["weights"]
    assert same[[0, 2]].all() and not same[1].any() and not torch.equal(network.input, before["input"])


def test_train_takes_adam_steps_on_the_squared_error():
    """One step against Adam's formula on a gradient by finite differences of Eq. (loss)."""
    rng, network = np.random.default_rng(0), nlts.MLP(4, 3, hidden=6)
    buffer, before, draws = filled_buffer(rng), copy.deepcopy(network), np.random.default_rng(9)
    draws.integers(2 ** 31)                                               # train draws a seed for torch first
    contexts, arms, rewards = buffer.minibatch(16, draws)

    def loss(weights):
        phi = before.features(torch.as_tensor(contexts)).detach().numpy()
        return np.mean(((phi @ weights.T)[np.arange(16), arms] - rewards) ** 2)

    W = before.weights.detach().numpy().copy()
    gradient = np.zeros_like(W)
    for index in np.ndindex(*W.shape):
        h = np.zeros_like(W)
        h[index] = 1e-6
        gradient[index] = (loss(W + h) - loss(W - h)) / 2e-6
    nlts.train(network, buffer, P=1, batch=16, lr=1e-2, rng=np.random.default_rng(9))
    moved = np.abs(gradient) > 1e-4
    expected = -1e-2 * np.sign(gradient) * moved                         # Adam's first step is lr * sign(gradient)
    np.testing.assert_allclose((network.weights.detach().numpy() - W) * moved, expected, atol=1e-4)


def test_train_learns():
    rng, network = np.random.default_rng(0), nlts.MLP(4, 3, hidden=20)
    buffer = filled_buffer(rng, n=300)
    contexts, arms, rewards = buffer.minibatch(300, rng)

    def error():
        output = network(torch.as_tensor(contexts)).detach().numpy()
        return np.mean((output[np.arange(300), arms] - rewards) ** 2)

    first = error()
    nlts.train(network, buffer, P=400, batch=32, lr=1e-2, rng=rng)
    assert error() < 0.05 * first


# Sec. 3: memory buffer ----------------------------------------------------------------------------------------------

class BufferMachine(RuleBasedStateMachine):
    """The buffer against a plain list of tuples, oldest first."""

    @initialize(capacity=st.one_of(st.none(), st.integers(1, 8)))
    def start(self, capacity):
        self.capacity, self.buffer, self.model, self.added = capacity, nlts.ReplayBuffer(capacity), [], 0

    @rule(arm=st.integers(0, 3))
    def add(self, arm):
        context = np.array([self.added, arm], float)
        self.buffer.add(context, arm, float(self.added))
        if len(self.model) == self.capacity:
            own = [row for row in self.model if row[1] == arm]
            if not own:
                count = [sum(row[1] == i for row in self.model) for i in range(4)]
                own = [row for row in self.model if row[1] == np.argmax(count)]
            self.model.remove(own[0])
        self.model.append((self.added, arm))
        self.added += 1
        context[:] = -1                                                   # the buffer must have its own copy

    @rule(seed=seeds, size=st.integers(1, 20))
    def minibatch(self, seed, size):
        if self.model:
            contexts, arms, rewards = self.buffer.minibatch(size, np.random.default_rng(seed))
            assert len(contexts) == len(arms) == len(rewards) == size
            assert {*zip(rewards, arms)} <= {*self.model}
            np.testing.assert_array_equal(contexts, np.column_stack([rewards, arms]))
            contexts[:] = -1                                              # nor share what it gives out

    @invariant()
    def same(self):
        if self.added:
            assert len(self.buffer) == len(self.model) <= (self.capacity or np.inf)
            for arm in range(4):
                contexts, rewards = self.buffer.rows_of(arm)
                own = [row for row in self.model if row[1] == arm]
                np.testing.assert_array_equal(contexts, np.array(own, float).reshape(-1, 2))
                np.testing.assert_array_equal(rewards, [row[0] for row in own])
                contexts[:], rewards[:] = -1, -1


@pytest.mark.buffer
def test_buffer_is_a_list_with_round_robin():
    run_state_machine_as_test(BufferMachine, settings=settings(max_examples=60, stateful_step_count=40))


@pytest.mark.buffer
def test_minibatches_are_uniform():
    """Chi-square over 50 tuples (fails one seed in 1000)."""
    rng, buffer = np.random.default_rng(0), nlts.ReplayBuffer(50)
    for t in range(120):
        buffer.add([t], t % 5, t)
    counts = np.bincount((buffer.minibatch(20_000, rng)[2] - 70).astype(int), minlength=50)
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.buffer
def test_buffer_names_bad_input():
    with pytest.raises(ValueError, match="^capacity"):
        nlts.ReplayBuffer(0)
    buffer = nlts.ReplayBuffer(3)
    with pytest.raises(ValueError, match="at least one tuple"):
        buffer.minibatch(2, np.random.default_rng(0))
    buffer.add([1.0, 2.0], 0, 1.0)
    for context in ([1.0], [1.0, np.nan], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="^context"):
            buffer.add(context, 0, 1.0)
    assert len(buffer) == 1 and len(nlts.ReplayBuffer().rows_of(0)[1]) == 0


# Sec. 3: likelihood matching ----------------------------------------------------------------------------------------

def random_matching(seed, n=None, g=None):
    """New features, an anchor, and the s^2 of a covariance near it: a feasible problem."""
    rng = np.random.default_rng(seed)
    g = rng.integers(2, 7) if g is None else g
    n = rng.integers(1, 25) if n is None else n
    E, M = rng.normal(size=(n, g)), rng.normal(size=(g, g))
    anchor = M @ M.T / g + 0.2 * np.eye(g)
    K = np.linalg.cholesky(anchor)
    Q = np.linalg.qr(rng.normal(size=(g, g)))[0]
    return rng, E, anchor, K @ (Q * rng.uniform(0.5, 2, g)) @ Q.T @ K.T


def variances(E, S):
    return np.einsum("ja,ab,jb->j", E, S, E)


@pytest.mark.matching
@given(seeds)
def test_match_mean_reproduces_the_old_predictions(seed):
    rng, E_old, _, _ = random_matching(seed)
    n, g = E_old.shape
    mu_old = rng.normal(size=g)
    E_new = E_old @ rng.normal(size=(g, g)) if seed % 2 else rng.normal(size=(n, g))
    mu0 = nlts.match_mean(E_old, E_new, mu_old)
    best = np.linalg.lstsq(E_new, E_old @ mu_old, rcond=None)[0]
    misfit = np.linalg.norm(E_new @ mu0 - E_old @ mu_old)
    assert misfit <= np.linalg.norm(E_new @ best - E_old @ mu_old) + 1e-7 * np.linalg.norm(E_old @ mu_old)
    close(nlts.match_mean(E_old, E_old, mu_old), mu_old)                 # no feature changed: nor does the mean


@pytest.mark.matching
@given(seeds, st.booleans())
def test_matched_covariance_reproduces_feasible_s2_and_is_positive_definite(seed, with_anchor):
    _, E, anchor, S_true = random_matching(seed)
    s2 = variances(E, S_true)
    S = nlts.match_covariance(E, s2, anchor if with_anchor else None, ridge=1e-9)
    close(S, S.T, rtol=1e-14)
    assert np.linalg.eigvalsh(S)[0] > 0
    np.testing.assert_allclose(variances(E, S), s2, rtol=1e-4)


@pytest.mark.matching
@given(seeds)
def test_matching_changes_nothing_where_nothing_changed(seed):
    _, E, anchor, _ = random_matching(seed)
    close(nlts.match_covariance(E, variances(E, anchor), anchor), anchor, rtol=1e-9)


@pytest.mark.matching
@given(seeds)
def test_enough_tuples_determine_the_covariance(seed):
    """n >= g(g+1)/2 generic tuples leave one S, whatever the anchor."""
    _, E, anchor, S_true = random_matching(seed, n=60)
    close(nlts.match_covariance(E, variances(E, S_true), anchor, ridge=1e-10), S_true, rtol=1e-4)


@pytest.mark.matching
@given(seeds, st.floats(1e-4, 1e4), st.floats(1e-4, 1e4))
def test_matching_scales_with_features_and_variances(seed, c, d):
    """phi -> c phi, S -> S/c^2; s^2 -> d s^2, S -> d S (the anchor likewise): the units do not matter."""
    rng, E, anchor, _ = random_matching(seed)
    s2 = rng.uniform(0.1, 10, len(E))
    for a, scaled in ((anchor, anchor * d / c ** 2), (None, None)):
        S = nlts.match_covariance(E, s2, a, ridge=1e-3, kappa=5)
        close(nlts.match_covariance(c * E, d * s2, scaled, ridge=1e-3, kappa=5), S * d / c ** 2, rtol=1e-6)


@pytest.mark.matching
@given(seeds)
def test_matching_does_not_depend_on_the_basis(seed):
    """phi -> A phi with the anchor moved along: S moves along."""
    rng, E, anchor, _ = random_matching(seed)
    g, s2 = E.shape[1], rng.uniform(0.1, 10, len(E))
    A = np.linalg.qr(rng.normal(size=(g, g)))[0] * rng.uniform(0.5, 2, g)
    T = np.linalg.inv(A)
    S = nlts.match_covariance(E, s2, anchor, ridge=1e-3, kappa=5)
    close(nlts.match_covariance(E @ A.T, s2, T.T @ anchor @ T, ridge=1e-3, kappa=5), T.T @ S @ T, rtol=1e-5)


@pytest.mark.matching
@given(seeds, st.floats(1.5, 20))
def test_matching_is_bounded_on_both_sides(seed, kappa):
    """Targets far out of reach: no direction leaves [1/kappa, kappa] times the anchor."""
    rng, E, anchor, _ = random_matching(seed)
    s2 = variances(E, anchor) * 10 ** rng.uniform(-4, 4, len(E))
    K = np.linalg.cholesky(anchor)
    X = np.linalg.solve(K, np.linalg.solve(K, nlts.match_covariance(E, s2, anchor, kappa=kappa)).T)
    w = np.linalg.eigvalsh((X + X.T) / 2)
    assert 1 / kappa * (1 - 1e-9) <= w[0] and w[-1] <= kappa * (1 + 1e-9)


def objective(E, s2, anchor, ridge, kappa, S):
    """What match_covariance minimizes, written out."""
    K = np.linalg.cholesky(anchor)
    s2 = np.clip(s2, variances(E, anchor) / kappa, variances(E, anchor) * kappa)
    X = np.linalg.solve(K, np.linalg.solve(K, S).T)
    rho = ridge * np.mean(variances(E, anchor) ** 2)
    return np.sum((variances(E, S) - s2) ** 2) + rho * np.sum((X - np.eye(len(X))) ** 2)


@pytest.mark.matching
@given(seeds)
@settings(max_examples=12)
def test_fast_solver_and_sdp_solve_the_same_problem(seed):
    """CVXPY with Clarabel is the oracle: an objective as low, the same S as far as the ridge makes it unique."""
    rng, E, anchor, _ = random_matching(seed)
    s2 = variances(E, anchor) * 10 ** rng.uniform(-1.5, 1.5, len(E))     # some bounds are active
    ridge, kappa = 10 ** rng.uniform(-4, -1), rng.uniform(1.5, 10)
    fast = nlts.match_covariance(E, s2, anchor, ridge, kappa)
    sdp = nlts.match_covariance_sdp(E, s2, anchor, ridge, kappa, solver="CLARABEL")
    ours, theirs = (objective(E, s2, anchor, ridge, kappa, S) for S in (fast, sdp))
    assert ours <= theirs * (1 + 1e-6) + 1e-12 * s2 @ s2
    close(fast, sdp, rtol=1e-2)


@pytest.mark.matching
@given(seeds)
@settings(max_examples=10)
def test_sdp_as_printed(seed):
    """Eq. (sigma_opt) without our additions: feasible s^2 are reproduced, S >= 0."""
    _, E, _, S_true = random_matching(seed)
    S = nlts.match_covariance_sdp(E, variances(E, S_true), solver="CLARABEL")
    np.testing.assert_allclose(variances(E, S), variances(E, S_true), rtol=1e-3, atol=1e-4)
    assert np.linalg.eigvalsh(S)[0] > -1e-6 * np.linalg.norm(S)


@pytest.mark.matching
@given(seeds, st.sampled_from(["one", "two", "dead", "repeated", "ten orders", "zero row", "all zero", "s2 zero"]))
def test_matching_survives_hard_buffers(seed, case):
    rng, E, anchor, _ = random_matching(seed, n=12, g=5)
    s2 = variances(E, anchor) * rng.uniform(0.5, 2, 12)
    if case in ("one", "two"):
        E, s2 = E[:1 + (case == "two")], s2[:1 + (case == "two")]
    elif case == "dead":
        E[:, 2] = 0
    elif case == "repeated":
        E[:], s2[6:] = E[0], s2[0]
    elif case == "ten orders":
        s2 = 10 ** rng.uniform(-5, 5, 12)
    elif case == "zero row":
        E[3] = 0
    elif case == "all zero":
        E[:] = 0
    else:
        s2[:] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for a in (anchor, None):
            for ridge in (1e-6, 1e-2):
                S = nlts.match_covariance(E, s2, a, ridge)
                assert np.isfinite(S).all() and np.linalg.eigvalsh(S)[0] > 0
    empty = nlts.match_covariance(np.empty((0, 5)), [], anchor)
    close(empty, anchor)


@pytest.mark.matching
def test_one_tuple_in_closed_form():
    """n = 1, no bound active: X = I + y psi psi' with y = (s^2 - |psi|^2) / (|psi|^4 (1 + ridge))."""
    _, E, anchor, _ = random_matching(3, n=1, g=4)
    psi, s2, ridge = np.linalg.cholesky(anchor).T @ E[0], 1.7 * variances(E, anchor), 1e-2
    y = (s2 - psi @ psi) / ((psi @ psi) ** 2 * (1 + ridge))
    K = np.linalg.cholesky(anchor)
    close(nlts.match_covariance(E, s2, anchor, ridge), K @ (np.eye(4) + y * np.outer(psi, psi)) @ K.T)


@pytest.mark.matching
def test_iteration_limit_is_told():
    rng, E, anchor, _ = random_matching(11, n=20, g=5)
    with pytest.warns(UserWarning, match="residual .* after 1 Newton"):
        S = nlts.match_covariance(E, variances(E, anchor) * 10 ** rng.uniform(-3, 3, 20), anchor, kappa=2, max_iter=1)
    assert np.linalg.eigvalsh(S)[0] > 0


@pytest.mark.matching
@pytest.mark.parametrize("arguments, name", [
    (([[1.0, np.nan]], [1.0]), "E_new"), (([[1.0, 2.0]], [1.0, 2.0]), "E_new"), (([[1.0, 2.0]], [-1.0]), "s2, ridge"),
    (([[1.0, 2.0]], [np.inf]), "s2"), (([[1.0, 2.0]], [1.0], np.eye(3)), "anchor"),
    (([[1.0, 2.0]], [1.0], -np.eye(2)), "anchor"), (([[1.0, 2.0]], [1.0], None, -1.0), "s2, ridge, kappa"),
])
def test_matching_names_bad_input(arguments, name):
    for function in (nlts.match_covariance, nlts.match_covariance_sdp):
        with pytest.raises(ValueError, match=f"^{name}"):
            function(*arguments)


# Sec. 3: the invertible case ----------------------------------------------------------------------------------------

@pytest.mark.invertible
@given(seeds, st.integers(1, 4))
def test_analytical_prior_recovers_the_full_data_regression(seed, changes):
    """Features move by k invertible maps, tuples are dropped before each: prior and buffer give what all data would."""
    rng, b, r, Phi0, mu0 = random_regression(seed, n=40)
    g = b.shape[1]
    blr, A, start = regression_with_prior(Phi0, mu0), np.eye(g), 0
    blr.update(b, r)
    for _ in range(changes):
        kept = slice(start + int(rng.integers(0, 5)), None)               # tuples start to kept leave the memory
        A_new = np.linalg.qr(rng.normal(size=(g, g)))[0] * rng.uniform(0.5, 2, g)
        E_old, E_new = b[kept] @ A.T, b[kept] @ A_new.T
        Phi_old = blr.precision - E_old.T @ E_old                         # what the posterior knows beyond the buffer
        mu_old = np.linalg.solve(Phi_old, blr.precision @ blr.mu_hat - E_old.T @ r[kept])
        mu0_new, Phi0_new = nlts.invertible_prior(E_old, E_new, mu_old, Phi_old)
        blr.restart(Phi0_new, mu0_new, E_new, r[kept])
        A, start = A_new, kept.start
    B = A @ (Phi0 + b.T @ b) @ A.T
    close(blr.precision, B, rtol=1e-7)
    close(blr.mu_hat, np.linalg.solve(B, A @ (Phi0 @ mu0 + b.T @ r)), rtol=1e-6)


@pytest.mark.invertible
@given(seeds)
def test_analytical_prior_solves_both_matching_equations(seed):
    rng, E_old, r, Phi_old, mu_old = random_regression(seed, n=15)
    E_new = E_old @ (rng.normal(size=(E_old.shape[1],) * 2) + 3 * np.eye(E_old.shape[1]))
    mu0, Phi0 = nlts.invertible_prior(E_old, E_new, mu_old, Phi_old)
    close(E_new @ mu0, E_old @ mu_old)                                    # Eq. (mu_prior)
    close(variances(E_new, np.linalg.inv(Phi0)), variances(E_old, np.linalg.inv(Phi_old)))    # Eq. (sigma_opt)


@pytest.mark.limited
@given(seeds)
def test_transported_covariance_is_the_analytical_prior_when_features_move_linearly(seed):
    rng, E_old, _, Phi_old, mu_old = random_regression(seed, n=30)
    g = E_old.shape[1]
    A_true = np.linalg.qr(rng.normal(size=(g, g)))[0] * rng.uniform(0.5, 2, g)
    A, C = nlts.transport(E_old, E_old @ A_true.T)
    close(A, A_true, rtol=1e-7)
    assert np.abs(C).max() < 1e-20
    _, Phi0 = nlts.invertible_prior(E_old, E_old @ A_true.T, mu_old, Phi_old)
    S = nlts.transported_covariance(Phi_old, A, C, 10, lam=0)
    close(np.linalg.inv(S), Phi0, rtol=1e-6)
    s2 = variances(E_old, np.linalg.inv(Phi_old))
    close(nlts.match_covariance(E_old @ A_true.T, s2, S), np.linalg.inv(Phi0), rtol=1e-6)


# Appendix A: Algorithm 2 --------------------------------------------------------------------------------------------

def small_agent(seed=0, dim=4, n_arms=3, hidden=6, memory=18, **arguments):
    arguments = {"L": 40, "P": 30, "batch": 8, "lr": 1e-2} | arguments
    return nlts.NeuralLinearTS(nlts.MLP(dim, n_arms, hidden, seed=seed), n_arms, memory=memory, seed=seed, **arguments)


def advance(agent, steps, seed=0, dim=4):
    """Play `steps` steps of a nonlinear problem; returns the arms. Goes on where the agent is."""
    played = []
    for t in range(agent.t, agent.t + steps):
        rng = np.random.default_rng([seed, t])
        context = rng.normal(size=dim)
        arm = agent.act(context)
        agent.update(context, arm, np.abs(context[arm]) + 0.1 * rng.normal())
        played.append(arm)
    return played


def to_learning_phase(agent, seed=0):
    """Play to the end of the second phase but stop before its learning; returns what it will need."""
    advance(agent, 2 * agent.config.L - 1, seed)
    agent.learn = lambda: None
    advance(agent, 1, seed)
    del agent.learn
    return agent


@pytest.mark.limited
@given(seeds)
@settings(max_examples=10)
def test_without_retraining_it_is_linear_ts_on_the_features(seed):
    agent = small_agent(seed=seed, memory=None, L=10 ** 6)
    linear = nlts.LinearTS(6, 3, seed=seed)
    for t in range(60):
        context = np.random.default_rng([seed, t]).normal(size=4)
        phi = nlts.last_layer_activations(agent.network, context[None])[0]
        arm = agent.act(context)
        assert arm == linear.act(phi)
        agent.update(context, arm, np.sin(context[arm]))
        linear.update(phi, arm, np.sin(context[arm]))


@pytest.mark.limited
@given(seeds)
@settings(max_examples=10)
def test_what_is_carried_over_is_exactly_what_left_the_buffer(seed):
    """Phi_old = Phi0 + the evicted tuples, mean likewise: buffer rows are never counted twice, nothing is lost."""
    agent = small_agent(seed=seed)
    advance(agent, agent.config.L, seed)                                  # one learning phase behind us
    priors = [(arm.Phi0.copy(), arm.Phi0 @ arm.mu0) for arm in agent.arms]
    seen = [list(zip(*agent.buffer.rows_of(i))) for i in range(3)]
    for t in range(agent.config.L, 2 * agent.config.L - 1):
        context = np.random.default_rng([seed, t]).normal(size=4)
        arm = agent.act(context)
        agent.update(context, arm, context[0])
        seen[arm].append((context, context[0]))
    E_old = agent.buffer_features()
    for i, arm in enumerate(agent.arms):
        r = agent.buffer.rows_of(i)[1]
        left = seen[i][:len(seen[i]) - len(r)]
        phi = nlts.last_layer_activations(agent.network, np.array([c for c, _ in left]).reshape(-1, 4))
        Phi_old, mu_old = nlts.forgotten(arm, E_old[i], r)
        close(Phi_old, priors[i][0] + phi.T @ phi, rtol=1e-9)
        information = priors[i][1] + phi.T @ np.array([reward for _, reward in left])
        close(Phi_old @ mu_old, information, rtol=1e-8, scale=1 + np.abs(information).max())


@pytest.mark.limited
@pytest.mark.parametrize("mu0", ["averaged", "last-layer", "matched"])
@pytest.mark.parametrize("priors", ["both", "mean", "none"])
def test_priors_after_a_learning_phase_are_as_specified(priors, mu0):
    agent = to_learning_phase(small_agent(priors=priors, mu0=mu0))
    before, network = copy.deepcopy(agent.arms), copy.deepcopy(agent.network)
    E_old = agent.buffer_features()
    agent.learn()
    assert not torch.equal(network.input, agent.network.input)            # it did train
    E_new = agent.buffer_features()
    change = np.linalg.pinv(np.vstack(E_old), rcond=1e-6) @ (np.vstack(E_new) - np.vstack(E_old))
    A, e = np.eye(6) + change.T, np.vstack(E_new) - np.vstack(E_old) @ (np.eye(6) + change)
    C = e.T @ e / (len(e) - np.linalg.matrix_rank(np.vstack(E_old), tol=1e-6))
    for i, (old, arm) in enumerate(zip(before, agent.arms)):
        contexts, r = agent.buffer.rows_of(i)
        # this oracle writes the specification out again, from the network before and after
        e_old = network.features(torch.as_tensor(contexts)).detach().numpy()
        e_new = agent.network.features(torch.as_tensor(contexts)).detach().numpy()
        Phi_old = old.Phi0 + old.Phi - e_old.T @ e_old
        mu_old = np.linalg.solve(Phi_old, old.Phi0 @ old.mu0 + old.f - e_old.T @ r)
        Phi0, expected_mu0 = 0.25 * np.eye(6), np.zeros(6)
        evicted = 2 * (old.a - 6) - len(r)
        lam = min(0.25, np.linalg.eigvalsh(Phi_old)[0])
        anchor = np.linalg.inv(A @ (Phi_old - lam * np.eye(6)) @ A.T + evicted * C + lam * np.eye(6))
        if priors == "both":
            s2 = variances(e_old, np.linalg.inv(Phi_old))
            S = nlts.match_covariance(e_new, s2, anchor, agent.config.ridge, agent.config.kappa)
            Phi0 = np.linalg.inv(S)
            np.testing.assert_array_less(np.abs(np.log(variances(e_new, S) / s2)), np.log(agent.config.kappa))
        if priors != "none":
            last, carried = agent.network.weights[i].detach().numpy(), anchor @ A @ Phi_old @ mu_old
            assert evicted > 0 and not np.allclose(last, carried, rtol=0.1)
            expected_mu0 = {"last-layer": last, "matched": carried,
                            "averaged": (len(r) * last + evicted * carried) / (len(r) + evicted)}[mu0]
            expected_mu0 = expected_mu0 if priors == "both" else last
        close(arm.Phi0, Phi0, rtol=1e-6), close(arm.mu0, expected_mu0, rtol=1e-6, scale=1)
        close(arm.Phi, e_new.T @ e_new), close(arm.f, e_new.T @ r)
        close(arm.mu_hat, np.linalg.solve(Phi0 + e_new.T @ e_new, Phi0 @ expected_mu0 + e_new.T @ r), rtol=1e-5)
        assert (arm.a, arm.b) == (old.a, old.b)


@pytest.mark.limited
@pytest.mark.parametrize("arguments", [{"memory": None}, {"priors": "perfect"}])
def test_full_memory_and_perfect_prior_recompute_the_posterior_from_all_data(arguments):
    agent, seen = small_agent(**arguments), []
    original = agent.update
    agent.update = lambda context, arm, reward: (seen.append((context, arm, reward)), original(context, arm, reward))
    advance(agent, 2 * agent.config.L)
    assert len(agent.buffer) == (80 if "memory" in arguments else 18)
    for i, arm in enumerate(agent.arms):
        own = [(c, r) for c, a, r in seen if a == i]
        oracle = nlts.BayesianLinearRegression(6)
        oracle.update(nlts.last_layer_activations(agent.network, np.array([c for c, _ in own])), [r for _, r in own])
        close(arm.precision, oracle.precision), close(arm.mu_hat, oracle.mu_hat, rtol=1e-6)
        assert (arm.a, arm.b) == pytest.approx((oracle.a, oracle.b))


@pytest.mark.limited
@given(seeds)
@settings(max_examples=10)
def test_if_training_changes_no_feature_the_posterior_stays(seed):
    """P = 0 and mu0 = matched: precision, mean, a and b of every arm are what they were."""
    agent = to_learning_phase(small_agent(seed=seed, P=0, mu0="matched"), seed)
    before = copy.deepcopy(agent.arms)
    agent.learn()
    for old, arm in zip(before, agent.arms):
        close(arm.precision, old.precision, rtol=1e-7), close(arm.mu_hat, old.mu_hat, rtol=1e-6, scale=1)
        assert (arm.a, arm.b) == (old.a, old.b)


class LinearFeatures(torch.nn.Module):
    """A user's own network: phi = A b, and a last nn.Linear without bias."""

    def __init__(self, A, n_arms):
        super().__init__()
        self.A = torch.nn.Parameter(torch.as_tensor(A))
        self.last = torch.nn.Linear(len(A), n_arms, bias=False, dtype=torch.float64)

    def features(self, x):
        return x @ self.A.T

    def forward(self, x):
        return self.last(self.features(x))


@pytest.mark.limited
@given(seeds)
@settings(max_examples=10)
def test_linear_features_and_matched_mean_recover_the_full_data_regression(seed):
    """With invertible linear features and a weak initial prior, memory 30 after three phases knows what all data say."""
    rng = np.random.default_rng(seed)
    g, lam = 3, 1e-7
    agent = nlts.NeuralLinearTS(LinearFeatures(np.eye(g), 2), 2, memory=30, mu0="matched", L=50, P=0, lam=lam, seed=seed)
    data = [[], []]
    for t in range(150):
        context = rng.normal(size=g)
        arm, reward = t % 2, context.sum() + rng.normal()
        data[arm].append((context, reward))
        agent.learn = lambda: None
        agent.update(context, arm, reward)
        if agent.t % 50 == 0:
            E_old = agent.buffer_features()
            A = np.linalg.qr(rng.normal(size=(g, g)))[0] * rng.uniform(0.5, 2, g)
            agent.network.A.data = torch.as_tensor(A)                     # "training" moves the features linearly
            agent.compute_priors(E_old)
    for arm, own in zip(agent.arms, data):
        E = np.array([c for c, _ in own]) @ A.T
        r = np.array([reward for _, reward in own])
        close(arm.precision, E.T @ E, rtol=1e-4)
        close(arm.mu_hat, np.linalg.lstsq(E, r, rcond=None)[0], rtol=1e-3, scale=1)


@pytest.mark.limited
@given(seeds)
def test_transported_mean_keeps_the_old_predictions_as_nearly_as_new_features_can(seed):
    """Of all mu0, the sum of (phi'mu0 - phi_old'mu_old)^2 over tuples that left the buffer is least, checked on tuples in
    pairs with e and -e, whose moments are just those that A and C describe; and with lam it is their ridge regression."""
    rng, g, m = np.random.default_rng(seed), 4, 60
    old, A, mu_old = rng.normal(size=(m, g)), rng.normal(size=(g, g)), rng.normal(size=g)
    old, e = np.vstack([old, old]), rng.normal(size=(m, g))
    e = np.vstack([e, -e])
    new, M, lam = old @ A.T + e, old.T @ old, 1e-9
    anchor = nlts.transported_covariance(M + lam * np.eye(g), A, e.T @ e / len(e), len(e), lam)
    mu0 = nlts.transported_mean(M + lam * np.eye(g), mu_old, A, anchor)
    close(mu0, np.linalg.lstsq(new, old @ mu_old, rcond=None)[0], rtol=1e-5, scale=1)
    r, lam = np.tile(rng.normal(size=m), 2), 5.0                          # the same reward for e and -e: sum of e r is 0
    Phi_old, Phi = M + lam * np.eye(g), new.T @ new + lam * np.eye(g)
    anchor = nlts.transported_covariance(Phi_old, A, e.T @ e / len(e), len(e), lam)
    mu0 = nlts.transported_mean(Phi_old, np.linalg.solve(Phi_old, old.T @ r), A, anchor)
    close(mu0, np.linalg.solve(Phi, new.T @ r), rtol=1e-6, scale=1)
    unchanged = nlts.transported_covariance(M, np.eye(g), np.zeros((g, g)), len(e), lam)
    close(nlts.transported_mean(M, mu_old, np.eye(g), unchanged), mu_old, rtol=1e-6, scale=1)


@pytest.mark.limited
@given(seeds)
def test_transport_predicts_what_full_memory_would_have(seed):
    """phi = A b + noise: A M A' + m C is within 25 % of the true sum over tuples that are not in the buffer."""
    rng, g, n, m = np.random.default_rng(seed), 4, 300, 4000
    old, A_true = rng.normal(size=(n + m, g)), rng.normal(size=(g, g))
    new = old @ A_true.T + rng.normal(size=(n + m, g)) * [0.5, 1, 1, 2]
    A, C = nlts.transport(old[:n], new[:n])
    M, lam = old[n:].T @ old[n:], 0.25
    predicted = np.linalg.inv(nlts.transported_covariance(M + lam * np.eye(g), A, C, m, lam))
    truth = new[n:].T @ new[n:] + lam * np.eye(g)
    ratio = np.linalg.eigvals(np.linalg.solve(truth, predicted)).real
    assert 0.65 < ratio.min() and ratio.max() < 1.5
    close(predicted, A @ M @ A.T + m * C + lam * np.eye(g))
    floor = nlts.transported_covariance(lam * np.eye(g), 0.1 * A, 0 * C, 0, lam)    # nothing left the buffer
    close(floor, np.eye(g) / lam)


@pytest.mark.limited
@given(seeds)
@settings(max_examples=10)
def test_a_prior_survives_a_precision_beyond_rounding(seed):
    """Eigenvalues from 0.25 to 1e19: the sum is not positive definite in floating point, the covariance must be."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    Phi_old = (Q * np.geomspace(0.25, 1e19, 20)) @ Q.T
    S = nlts.transported_covariance((Phi_old + Phi_old.T) / 2, rng.normal(size=(20, 20)), np.zeros((20, 20)), 0, 0.25)
    assert np.array_equal(S, S.T) and np.linalg.eigvalsh(S)[0] > -1e-12 * np.abs(S).max() and np.diag(S).min() > 0


@pytest.mark.limited
def test_transport_is_unbiased_and_keeps_what_the_buffer_does_not_show():
    """The residual's second moment over 200 buffers of 12 tuples and 6 features is 1 within 5 sigma of its mean."""
    moments = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        old = rng.normal(size=(12, 6))
        moments.append(np.trace(nlts.transport(old, old @ rng.normal(size=(6, 6)) + rng.normal(size=(12, 6)))[1]) / 6)
    assert abs(np.mean(moments) - 1) < 5 * np.std(moments) / np.sqrt(200)
    old = np.random.default_rng(0).normal(size=(20, 6))
    old[:, 2] = 0                                                         # a dead unit
    A, _ = nlts.transport(old, 2 * old)
    close(A, np.diag([2, 2, 1, 2, 2, 2]))


@pytest.mark.limited
@pytest.mark.parametrize("scales", [[1e4] * 4, [1e-4] * 4, [1, 1e-3, 1e3, 1e5]])
def test_learning_survives_contexts_of_any_scale(scales):
    agent = nlts.NeuralLinearTS(nlts.MLP(4, 3), 3, memory=60, L=100, P=5)
    for t in range(400):
        context = np.random.default_rng(t).normal(size=4) * scales
        agent.update(context, agent.act(context), float(context[0] > 0))
    assert all(np.isfinite(arm.mu_hat).all() and arm.b > 0 for arm in agent.arms)


@pytest.mark.limited
def test_features_are_those_of_the_context_and_of_the_network_as_it_is():
    agent, one, two = small_agent(), np.ones(4), np.full(4, 2.0)
    advance(agent, 10)
    agent.act(one)
    agent.update(two, 0, 1.0)                                             # another context than the one acted on
    oracle = nlts.BayesianLinearRegression(6)
    own = agent.buffer.rows_of(0)
    oracle.update(nlts.last_layer_activations(agent.network, own[0]), own[1])
    close(agent.arms[0].Phi, oracle.Phi)
    agent.act(one)
    agent.learn()                                                         # phi(t) is not that of the old network
    close(agent._phi(one), nlts.last_layer_activations(agent.network, one[None])[0])


@pytest.mark.limited
def test_ablations_differ_only_in_their_priors():
    """Until the first learning phase all variants make the same choices; after it they hold the same rows as data."""
    agents = {p: small_agent(priors=p, mu0="last-layer") for p in ("both", "mean", "none", "perfect")}
    played = {p: advance(agent, 40) for p, agent in agents.items()}
    assert len({tuple(arms) for arms in played.values()}) == 1
    both, mean, none, perfect = agents.values()
    for agent in (mean, none, perfect):
        assert all(torch.equal(p, q) for p, q in zip(both.network.parameters(), agent.network.parameters()))
    for i in range(3):
        close(mean.arms[i].Phi, both.arms[i].Phi), close(none.arms[i].f, both.arms[i].f)
        close(mean.arms[i].mu0, both.arms[i].mu0), close(mean.arms[i].Phi0, none.arms[i].Phi0)
        assert not none.arms[i].mu0.any() and mean.arms[i].mu0.any()
        assert np.linalg.slogdet(both.arms[i].Phi0)[1] >= np.linalg.slogdet(none.arms[i].Phi0)[1] - 1e-6


@pytest.mark.limited
def test_no_state_is_shared_between_arms_phases_or_agents():
    agent, other = small_agent(mu0="last-layer"), small_agent(mu0="last-layer")    # the others compute mu0 anew
    advance(agent, 40), advance(other, 40)
    before = [value for arm in agent.arms + other.arms for value in vars(arm).values() if isinstance(value, np.ndarray)]
    advance(agent, 40)
    arrays = [value for arm in agent.arms for value in vars(arm).values() if isinstance(value, np.ndarray)]
    arrays += [agent.network.weights.detach().numpy()]
    assert not any(np.shares_memory(x, y) for n, x in enumerate(arrays) for y in arrays[:n] + before)


@pytest.mark.limited
def test_the_network_changes_only_in_the_learning_phase():
    agent = small_agent()
    before = copy.deepcopy(agent.network.state_dict())
    advance(agent, 39)
    assert all(torch.equal(value, before[name]) for name, value in agent.network.state_dict().items())
    advance(agent, 1)
    assert not torch.equal(agent.network.weights, before["weights"])


@pytest.mark.limited
def test_an_arm_that_is_never_played_gets_a_proper_prior():
    agent = small_agent(n_arms=3, initial_pulls=0)
    for t in range(80):
        context = np.random.default_rng(t).normal(size=4)
        agent.update(context, t % 2, context[0])
    assert np.linalg.eigvalsh(agent.arms[2].precision)[0] > 0 and agent.arms[2].a == 6.0
    close(agent.arms[2].mu0, agent.network.weights[2].detach().numpy())


# All agents ---------------------------------------------------------------------------------------------------------

def linear_agent(seed=0, **arguments):
    return nlts.LinearTS(4, 3, seed=seed, **arguments)


def greedy_agent(seed=0, **arguments):
    return nlts.EpsilonGreedy(nlts.MLP(4, 3, 6, seed=seed), 3, epsilon=0.2, L=40, P=20, batch=8, seed=seed, **arguments)


AGENTS = {"linear": linear_agent, "printed": lambda seed=0: linear_agent(seed, v=0.5), "greedy": greedy_agent,
          "full": lambda seed=0: small_agent(seed, memory=None), "both": small_agent,
          "perfect": lambda seed=0: small_agent(seed, priors="perfect")}


@pytest.mark.parametrize("kind", AGENTS)
def test_save_and_load_continue_bit_for_bit(kind, tmp_path):
    agent, path = AGENTS[kind](), tmp_path / "agent.npz"
    advance(agent, 50)
    agent.save(path)
    other = AGENTS[kind](seed=1)
    other.load(path)
    assert advance(agent, 60) == advance(other, 60)
    for one, two in zip(agent.arms, other.arms):
        assert_same_state(state_of(one), state_of(two))
    if agent.network is not None:
        assert all(torch.equal(p, q) for p, q in zip(agent.network.parameters(), other.network.parameters()))
    assert agent.rng.bit_generator.state == other.rng.bit_generator.state
    assert [p.name for p in tmp_path.iterdir()] == ["agent.npz"]


@pytest.mark.parametrize("content", [b"", b"garbage", None, "other", "cut", "arm0/F", "network/weights", "rng", "size"])
def test_load_rejects_other_files_and_leaves_the_agent(content, tmp_path):
    agent, path = small_agent(), tmp_path / "agent.npz"
    advance(agent, 10)
    if content is None:
        np.savez(path, x=np.array([{"pickled": "object"}], dtype=object))
    elif content == "other":
        small_agent(memory=20).save(path)
    elif content == "cut":
        agent.save(path)
        path.write_bytes(path.read_bytes()[:-100])
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:                                                                 # a part is missing or damaged
        advance(other := small_agent(), 20)
        state = other._state()
        state |= {"rng": np.array("{}")} if content == "rng" else {"arm0/F": np.eye(3)} if content == "size" else {}
        np.savez(path, **{key: value for key, value in state.items() if key != content or content == "rng"})
    before = agent._state()
    with pytest.raises(ValueError, match="^path"):
        agent.load(path)
    assert_same_state(before, agent._state())


@pytest.mark.parametrize("kind", AGENTS)
def test_same_seed_same_actions_whatever_ran_before(kind):
    first = advance(AGENTS[kind](seed=3), 90)
    np.random.seed(1), torch.manual_seed(1), np.random.rand(5)
    advance(AGENTS[kind](seed=4), 45)
    assert advance(AGENTS[kind](seed=3), 90) == first
    assert advance(AGENTS[kind](seed=5), 90) != first


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("arguments, name", [
    (([1, 2, 3, np.nan], 0, 1.0), "context"), (([1, 2, 3, np.inf], 0, 1.0), "context"), (([1, 2, 3], 0, 1.0), "context"),
    (([[1, 2, 3, 4]], 0, 1.0), "context"), (("abcd", 0, 1.0), "context"), (([1, 2, 3, 4], 3, 1.0), "arm"),
    (([1, 2, 3, 4], -1, 1.0), "arm"), (([1, 2, 3, 4], 0, np.nan), "reward"), (([1, 2, 3, 4], 0, "x"), "reward"),
    (([1, 2, 3, 4], 0.5, 1.0), "arm"),
])
def test_agents_name_bad_input_and_stay_as_they_were(kind, arguments, name, tmp_path):
    agent = AGENTS[kind]()
    advance(agent, 12)
    agent.save(tmp_path / "before.npz")
    if name == "context":
        with pytest.raises(ValueError, match="^context"):
            agent.act(arguments[0])
    with pytest.raises(ValueError, match=f"^{name}"):
        agent.update(*arguments)
    agent.save(tmp_path / "after.npz")
    with np.load(tmp_path / "before.npz") as before, np.load(tmp_path / "after.npz") as after:
        assert_same_state(dict(before), dict(after))


@pytest.mark.parametrize("arguments, name", [
    ({"memory": 2}, "n_arms, memory"), ({"priors": "some"}, "priors"), ({"mu0": "guess"}, "mu0"), ({"L": 0}, "L"),
    ({"P": -1}, "P"), ({"L": 40.5}, "L"), ({"memory": 18.5}, "n_arms, memory"),
    ({"lam": 0.0}, "lam"), ({"lr": np.nan}, "lr"), ({"kappa": 0.5}, "kappa"), ({"n_arms": 4}, "network"),
])
def test_agents_name_bad_settings(arguments, name):
    n_arms = arguments.pop("n_arms", 3)
    with pytest.raises(ValueError, match=f"^{name}"):
        nlts.NeuralLinearTS(nlts.MLP(4, 3, 6), n_arms, **arguments)


def test_other_settings_are_named_too():
    for call, name in ((lambda: nlts.LinearTS(2, 0), "n_arms"), (lambda: nlts.LinearTS(2, 2, v=-1.0), "v"),
                       (lambda: nlts.EpsilonGreedy(nlts.MLP(4, 3), 3, epsilon=1.5), "epsilon"),
                       (lambda: nlts.NeuralLinearTS(torch.nn.Linear(4, 3), 3), "network")):
        with pytest.raises(ValueError, match=f"^{name}"):
            call()


def test_a_users_own_network_works():
    agent = nlts.NeuralLinearTS(LinearFeatures(np.random.default_rng(0).normal(size=(5, 4)), 3), 3, memory=18, L=40, P=5)
    assert set(advance(agent, 90)) == {0, 1, 2} and agent.dim == 4
    text = nlts.NeuralLinearTS(nlts.TextCNN(20, 2, 4, (2, 3), 3, 5), 2, memory=10, L=20, P=2)
    for t in range(45):
        context = np.random.default_rng(t).integers(20, size=8)
        text.update(context, text.act(context), float(3 in context))


class WithDropout(LinearFeatures):
    """A user's network that is random while it is trained."""

    def forward(self, x):
        return self.last(torch.nn.functional.dropout(self.features(x), 0.5, self.training))


def test_dropout_is_off_between_learning_phases_and_seeded_in_them():
    weights = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        network = WithDropout(np.random.default_rng(0).normal(size=(5, 4)), 3)
        network.last.weight.data = torch.ones(3, 5, dtype=torch.float64)
        agent = nlts.NeuralLinearTS(network, np.int64(3), memory=np.int64(18), L=40, P=5, lr=np.float64(0.01))
        advance(agent, 45)
        assert not agent.network.training
        weights.append(network.last.weight.detach().numpy().copy())
    np.testing.assert_array_equal(*weights)


def test_text_cnn_names_ids_that_are_not_words():
    agent = nlts.NeuralLinearTS(nlts.TextCNN(20, 2, 4, (2, 3), 3, 5), 2, memory=10, initial_pulls=0)
    for bad in (20, -1):
        with pytest.raises(ValueError, match="^context.*0 to 19"):
            agent.act([1, 2, 3, bad])


def test_epsilon_greedy_explores_with_probability_epsilon_and_else_takes_the_best():
    """Share of greedy choices among 4000: 1 - epsilon + epsilon/3 within 4 sigma (fails one seed in 16,000)."""
    agent = nlts.EpsilonGreedy(nlts.MLP(4, 3, 6), 3, epsilon=0.3, initial_pulls=0)
    context = np.array([1.0, -1.0, 2.0, 0.5])
    best = int(agent.network(torch.as_tensor(context)[None]).argmax())
    share, p = np.mean([agent.act(context) == best for _ in range(4000)]), 0.7 + 0.1
    assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 4000)
