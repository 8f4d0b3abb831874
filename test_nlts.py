"""Tests of nlts.py, in its order: the posterior, Algorithm 1, the network, the buffer, Appendix C.

tests/test_matching.py goes on with Eq. 6, tests/test_agent.py with Algorithm 2. A check takes the
module as its argument `nlts`: tests/test_planted.py shows that it notices a broken one.
Statistical tests run on fixed seeds; each says how often it would fail on a correct program.
"""
import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from scipy import stats

seeds = st.integers(0, 2 ** 32 - 1)


def close(actual, expected, rtol=1e-8, scale=None):
    """Equal up to `rtol` of the largest entry."""
    size = np.max(np.abs(expected), initial=0) if scale is None else scale
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * size + 1e-300)


def random_regression(seed, n=None, g=None):
    """A generator, features (n, g), rewards (n,), a prior precision and a prior mean."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 40) if n is None else n
    g = rng.integers(1, 8) if g is None else g
    E = rng.normal(size=(n, g))
    r = E @ rng.normal(size=g) + 0.3 * rng.normal(size=n)
    M = rng.normal(size=(g, g))
    return rng, E, r, M @ M.T + 0.1 * np.eye(g), rng.normal(size=g)


def invertible_map(rng, g):
    """A (g, g) with singular values from 0.5 to 2."""
    return np.linalg.qr(rng.normal(size=(g, g)))[0] * rng.uniform(0.5, 2, g)


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


# Sec. 2: the posterior, Eq. 2 ---------------------------------------------------------------------

@given(seed=seeds)
def test_sequential_is_batch_is_shuffled_is_printed(nlts, seed):
    rng, E, r, Phi0, mu0 = random_regression(seed)
    sequential, batch, shuffled = (
        nlts.BayesianLinearRegression(Phi0, mu0, 6, 6) for _ in range(3))
    for phi, reward in zip(E, r, strict=True):
        sequential.update(phi, reward)
    for j in rng.permutation(len(r)):
        shuffled.update(E[j], r[j])
    batch.update(E, r)
    for blr in (sequential, batch, shuffled):
        assert_posterior(blr, printed(E, r, Phi0, mu0), len(r))
        close(blr.root @ blr.root.T, np.linalg.inv(Phi0 + E.T @ E), rtol=1e-7)
        close(blr.Phi, E.T @ E)
        close(blr.f, E.T @ r, scale=np.abs(E.T @ r).max() + 1)
        assert pytest.approx(r @ r) == blr.R2


@given(seed=seeds)
def test_b_grows_by_the_squared_prediction_error(nlts, seed):
    _, E, r, Phi0, mu0 = random_regression(seed)
    blr = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6)
    for phi, reward in zip(E, r, strict=True):
        s2 = phi @ np.linalg.solve(blr.precision, phi)
        expected = blr.b + (reward - phi @ blr.mu_hat) ** 2 / (1 + s2) / 2
        blr.update(phi, reward)
        assert blr.b == pytest.approx(expected, rel=1e-9)


@given(seed=seeds)
def test_posterior_mean_is_ridge_regression(nlts, seed):
    rng, E, r, _, _ = random_regression(seed)
    g, lam = E.shape[1], 10 ** rng.uniform(-2, 1)
    blr = nlts.BayesianLinearRegression(lam * np.eye(g), np.zeros(g), 6, 6)
    blr.update(E, r)
    padded = np.vstack([E, np.sqrt(lam) * np.eye(g)])
    close(blr.mu_hat, np.linalg.lstsq(padded, np.append(r, np.zeros(g)), rcond=None)[0])


@given(seed=seeds)
def test_predict_is_the_closed_form_student_t(nlts, seed):
    rng, E, r, Phi0, mu0 = random_regression(seed)
    blr = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6)
    blr.update(E, r)
    phi = rng.normal(size=E.shape[1])
    s2 = phi @ np.linalg.inv(Phi0 + E.T @ E) @ phi
    mean, scale, dof = blr.predict(phi)
    assert mean == pytest.approx(phi @ blr.mu_hat)
    assert scale ** 2 == pytest.approx(blr.b / blr.a * s2)
    assert dof == 2 * blr.a == 12 + len(r)
    assert blr.variance([phi, 2 * phi]) == pytest.approx([s2, 4 * s2])
    assert blr.variance(np.empty((0, len(phi)))).shape == (0,)


@given(seed=seeds)
def test_predictions_do_not_depend_on_the_basis(nlts, seed):
    """phi -> A phi with Phi0 -> A Phi0 A' and mu0 -> A'^-1 mu0 changes no prediction and not b."""
    rng, E, r, Phi0, mu0 = random_regression(seed)
    A = invertible_map(rng, E.shape[1])
    one = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6)
    other = nlts.BayesianLinearRegression(A @ Phi0 @ A.T, np.linalg.solve(A.T, mu0), 6, 6)
    one.update(E, r)
    other.update(E @ A.T, r)
    phi = rng.normal(size=len(mu0))
    np.testing.assert_allclose(one.predict(phi), other.predict(A @ phi), rtol=1e-7, atol=1e-9)
    assert one.b == pytest.approx(other.b, rel=1e-8)


@given(seed=seeds)
def test_without_is_the_posterior_of_the_other_tuples(nlts, seed):
    """Bayes' rule backwards, against a regression on only the tuples that stay."""
    rng, E, r, Phi0, mu0 = random_regression(seed)
    blr = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6, n=7)
    blr.update(E, r)
    before = state_of(blr)
    out = rng.random(len(r)) < rng.random()
    forgotten = blr.without(E[out], r[out])
    n = 7 + np.count_nonzero(~out)
    assert_posterior(forgotten, printed(E[~out], r[~out], Phi0, mu0), n, rtol=1e-7)
    assert_same_state(before, state_of(blr))
    nothing = blr.without(E, r)
    assert_posterior(nothing, (Phi0, mu0, 6, 6), 7, rtol=1e-7)


@given(seed=seeds)
def test_taking_out_and_putting_back_is_the_identity(nlts, seed):
    rng, E, r, Phi0, mu0 = random_regression(seed)
    blr = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6)
    blr.update(E, r)
    expected = blr.precision, blr.mu_hat, blr.a, blr.b
    for _ in range(5):
        rows = rng.permutation(len(r))[:rng.integers(len(r) + 1)]
        blr = blr.without(E[rows], r[rows])
        blr.update(E[rows], r[rows])
        assert_posterior(blr, expected, len(r), rtol=1e-7)


@given(seed=seeds)
@settings(max_examples=20)
def test_all_holds_up_to_a_condition_of_1e12(nlts, seed):
    """Features of sizes 1 to 1e4 in two directions, a prior of 0.25: as exact as float64 can be."""
    rng, g, n = np.random.default_rng(seed), 6, 300
    E = rng.normal(size=(n, 2)) @ rng.normal(size=(2, g)) * 10 ** rng.uniform(0, 4, size=(n, 1))
    E = np.clip(E, -1e4, 1e4)
    E *= np.sqrt(0.25e12 / np.linalg.norm(E.T @ E, 2)).clip(max=1)
    r = rng.normal(size=n)
    blr = nlts.BayesianLinearRegression(0.25 * np.eye(g), np.zeros(g), 6, 6)
    blr.update(E, r)
    padded = np.vstack([E, 0.5 * np.eye(g)])                 # its condition is the square root
    mu_hat, rest = np.linalg.lstsq(padded, np.append(r, np.zeros(g)), rcond=None)[:2]
    close(E @ blr.mu_hat, E @ mu_hat, rtol=1e-3, scale=1)
    assert blr.b == pytest.approx(6 + rest[0] / 2, rel=1e-6)
    again = blr.without(E[::2], r[::2])
    again.update(E[::2], r[::2])
    close(again.precision, blr.precision, rtol=1e-12)
    close(E @ again.mu_hat, E @ mu_hat, rtol=1e-3, scale=1)
    assert again.b == pytest.approx(blr.b, rel=1e-6)
    assert blr.without(E, r).b == pytest.approx(6, rel=1e-4)


def test_sound_after_many_hard_updates(nlts):
    """Collinear, repeated, tiny and huge features: regular all the way, and b never falls."""
    rng, g, n = np.random.default_rng(0), 6, 3000
    E = rng.normal(size=(n, g))
    E[:, 1] = 2 * E[:, 0]
    E[::3] = E[0]
    E *= rng.choice([1e-6, 1.0, 1e3], size=(n, 1))
    r = rng.normal(size=n)
    blr = nlts.BayesianLinearRegression(0.25 * np.eye(g), np.zeros(g), 6, 6)
    for phi, reward in zip(E, r, strict=True):
        b = blr.b
        blr.update(phi, reward)
        assert blr.b >= b
    assert np.linalg.cond(blr.precision) > 1e10
    close(blr.precision, 0.25 * np.eye(g) + E.T @ E, rtol=1e-12)
    batch = nlts.BayesianLinearRegression(0.25 * np.eye(g), np.zeros(g), 6, 6)
    batch.update(E, r)
    assert blr.b == pytest.approx(batch.b, rel=1e-9)
    assert blr.predict(E[1])[1] == pytest.approx(batch.predict(E[1])[1], rel=1e-4)


def test_the_root_stays_right_over_100_000_tuples(nlts):
    """At a condition of 1e8 of the precision, updated tuple by tuple."""
    rng, g = np.random.default_rng(0), 5
    sizes = np.array([1e-4, 1e-2, 1, 10, 30])
    blr = nlts.BayesianLinearRegression(0.25 * np.eye(g), np.zeros(g), 6, 6)
    root, precision = blr.root, blr.precision
    for phi in rng.normal(size=(100_000, g)) * sizes:
        root = nlts.root_with_tuple(root, phi)
        precision += np.outer(phi, phi)
    assert 1e7 < np.linalg.cond(precision) < 1e9
    scale = 1 / np.sqrt(np.diag(precision))                  # the same in units of one
    expected = np.linalg.inv(precision * np.outer(scale, scale)) * np.outer(scale, scale)
    np.testing.assert_allclose(root @ root.T / np.outer(scale, scale),
                               expected / np.outer(scale, scale), rtol=0, atol=1e-10)


def test_the_noise_tends_to_its_true_variance(nlts):
    """E[nu2] = b / (a - 1) after 20,000 rewards, within 5 sigma (one seed in 1.7 million)."""
    rng, n, noise = np.random.default_rng(1), 20_000, 0.5
    E = rng.normal(size=(n, 3))
    blr = nlts.BayesianLinearRegression(np.eye(3), np.zeros(3), 6, 6)
    blr.update(E, E @ [1, 2, 3] + noise * rng.normal(size=n))
    bias = 6 / n + 1e-3
    assert abs(blr.b / (blr.a - 1) - noise ** 2) < 5 * noise ** 2 * np.sqrt(2 / n) + bias


def test_a_posterior_shares_nothing_with_its_prior_or_its_rows(nlts):
    Phi0, mu0, E, r = np.eye(2), np.ones(2), np.ones((3, 2)), np.ones(3)
    blr = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6)
    blr.update(E, r)
    forgotten = blr.without(E[:1], r[:1])
    before = state_of(blr), state_of(forgotten)
    for array in (Phi0, mu0, E, r):
        array[:] = -7
    forgotten.update([5, 5], 1)
    assert_same_state(before[0], state_of(blr))
    assert before[1]["n"] == 2 and forgotten.n == 3


# Sec. 2: sampling and Algorithm 1 -----------------------------------------------------------------

def test_sampler_against_inverse_gamma_and_student_t(nlts):
    """Kolmogorov-Smirnov on 10,000 draws: each of the two fails one seed in 1000 if it is right."""
    rng, E, r, Phi0, mu0 = random_regression(7, n=30, g=4)
    blr = nlts.BayesianLinearRegression(Phi0, mu0, 2.0, 0.5)
    blr.update(E, r)
    phi = rng.normal(size=4)
    draws = [blr.sample(rng) for _ in range(10_000)]
    nu2 = np.array([draw[0] for draw in draws])
    value = np.array([phi @ draw[1] for draw in draws])
    mean, scale, dof = blr.predict(phi)
    assert stats.kstest(nu2, stats.invgamma(blr.a, scale=blr.b).cdf).pvalue > 1e-3
    assert stats.kstest(value, stats.t(dof, mean, scale).cdf).pvalue > 1e-3


def test_known_noise_is_sampled_as_printed(nlts):
    """N(mu_hat, v^2 B^-1), B = I + sum bb': whitened draws are normal (fails one seed in 1000)."""
    rng, v = np.random.default_rng(3), 0.7
    agent = nlts.LinearTS(3, 1, v=v, lam=1, initial_pulls=0)
    B, f = np.eye(3), np.zeros(3)
    mixing = np.array([[2.0, 0.0, 0.0], [2.0, 0.3, 0.0], [1.0, 1.0, 1.0]])
    for _ in range(20):
        b, reward = mixing @ rng.normal(size=3), rng.normal()
        assert agent.act(b) == 0
        agent.update(b, 0, reward)
        B, f = B + np.outer(b, b), f + b * reward
    draws = np.array([agent.arms[0].sample(rng, v ** 2)[1] for _ in range(5_000)])
    white = (draws - np.linalg.solve(B, f)) @ np.linalg.cholesky(B) / v
    assert stats.kstest(white.ravel(), stats.norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize("options", [{}, {"v": 0.3, "lam": 1, "initial_pulls": 0}])
def test_regret_falls_and_stays_close_to_an_oracle(nlts, options):
    rng = np.random.default_rng(5)
    means, contexts = rng.normal(size=(4, 5)), rng.normal(size=(3000, 5))
    agent, regret = nlts.LinearTS(5, 4, seed=1, **options), []
    for context in contexts:
        expected = means @ context
        arm = agent.act(context)
        regret.append(expected.max() - expected[arm])            # an oracle's is 0
        agent.update(context, arm, expected[arm] + 0.3 * rng.normal())
    thirds = np.reshape(regret, (3, -1)).mean(1)
    assert thirds[0] > 3 * thirds[1] > 0 and thirds[1] > thirds[2]
    assert thirds[2] < 0.01 * (contexts @ means.T).max(1).mean()


def test_linear_ts_draws_the_choices_that_its_posterior_gives(nlts):
    """P(arm 1) is the closed form for two arms with known noise (4 sigma: one seed in 16,000)."""
    agent = nlts.LinearTS(2, 2, v=1.0, seed=0, lam=1, initial_pulls=0)
    agent.update([1.0, 0.0], 0, 0.5)
    agent.update([1.0, 1.0], 1, 0.9)
    b = np.array([0.6, -0.8])
    mean = [b @ arm.mu_hat for arm in agent.arms]
    variance = sum(b @ np.linalg.solve(arm.precision, b) for arm in agent.arms)
    p = stats.norm.cdf((mean[1] - mean[0]) / np.sqrt(variance))
    share = np.mean([agent.act(b) for _ in range(3000)])
    assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 3000)


class Draws:
    """Random draws for an agent, such that root @ z is what a Cholesky factor makes of them."""

    def __init__(self, seed):
        self.rng, self.agent, self.z = np.random.default_rng(seed), None, []

    def gamma(self, a):
        return a

    def standard_normal(self, g):
        self.z.append(self.rng.normal(size=g))
        arm = self.agent.arms[(len(self.z) - 1) % self.agent.n_arms]
        L = np.linalg.cholesky(arm.precision)
        return np.linalg.solve(arm.root, np.linalg.solve(L.T, self.z[-1]))


def test_on_the_same_draws_choices_are_those_of_the_textbook(nlts):
    """A root of another shape gives other samples of the same distribution, and nothing else."""
    agent = nlts.LinearTS(4, 3, initial_pulls=1)
    draws = agent.rng = Draws(seed=1)
    draws.agent = agent
    data = np.random.default_rng(2)
    B, f, R2, n = [0.25 * np.eye(4)] * 3, [np.zeros(4)] * 3, [0.0] * 3, [0] * 3
    for t in range(400):
        context = data.normal(size=4)
        arm = agent.act(context)
        if t >= 3:
            values = []
            for i in range(3):
                mu_hat = np.linalg.solve(B[i], f[i])
                b = 6 + (R2[i] - mu_hat @ B[i] @ mu_hat) / 2
                nu2 = b / (6 + n[i] / 2)                     # as Draws.gamma has it
                spread = np.linalg.solve(np.linalg.cholesky(B[i]).T, draws.z[3 * (t - 3) + i])
                values.append(context @ (mu_hat + np.sqrt(nu2) * spread))
            assert arm == np.argmax(values)
        reward = np.tanh(context[arm]) + 0.3 * data.normal()
        B[arm], f[arm] = B[arm] + np.outer(context, context), f[arm] + context * reward
        R2[arm], n[arm] = R2[arm] + reward ** 2, n[arm] + 1
        agent.update(context, arm, reward)
    assert min(n) > 20


def test_noise_is_a_function_of_all_arms(nlts):
    """It is called once per decision, before any sample, and its nu2 are those that are used."""
    calls = []

    def noise(arms, config, rng):
        calls.append((len(arms), config.b0, rng))
        return [1e-30, 4.0, 1e-30]

    agent = nlts.LinearTS(2, 3, noise=noise, initial_pulls=0, b0=3)
    agent.update([1.0, 0.0], 0, 1.0)
    played = [agent.act([1.0, 0.0]) for _ in range(200)]
    assert calls == [(3, 3, agent.rng)] * 200
    assert {*played} == {0, 1}                               # 0 is sure of 0.8, 1 is anything


def test_initial_pulls_play_the_arm_with_the_fewest_plays(nlts):
    """Ten updates of one arm do not end the warm-up of the others."""
    agent = nlts.LinearTS(2, 3, initial_pulls=2)
    for _ in range(10):
        agent.update([1, 2], 1, 0)
    for expected in (0, 2, 0, 2):
        assert [agent.act([1, 2]) for _ in range(3)] == [expected] * 3       # `act` does not count
        agent.update([1, 2], expected, 0)


def test_initial_pulls_are_round_robin_and_can_be_left_out(nlts):
    agent = nlts.LinearTS(2, 3)
    for t in range(6):
        assert agent.act([1, 2]) == t % 3
        agent.update([1, 2], t % 3, 0)
    first = [nlts.LinearTS(2, 3, seed=seed, initial_pulls=0).act([1, 2]) for seed in range(20)]
    assert {*first} == {0, 1, 2}


def test_an_arm_counts_its_own_plays_only(nlts):
    rng, agent = np.random.default_rng(0), nlts.LinearTS(3, 3)
    E, arms, r = rng.normal(size=(40, 3)), rng.integers(3, size=40), rng.normal(size=40)
    for b, arm, reward in zip(E, arms, r, strict=True):
        agent.update(b, arm, reward)
    for i, arm in enumerate(agent.arms):
        expected = printed(E[arms == i], r[arms == i], 0.25 * np.eye(3), np.zeros(3))
        assert_posterior(arm, expected, np.count_nonzero(arms == i))


# Sec. 3, 1: representation ------------------------------------------------------------------------

@given(seeds, st.integers(1, 20), st.integers(1, 5))
@settings(max_examples=20)
def test_mlp_is_its_features_times_its_weights_exactly(nlts, seed, dim, n_arms):
    network = nlts.MLP(dim, n_arms, hidden=7, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(9, dim, dtype=torch.float64, generator=generator)
    assert torch.equal(network(x), network.features(x) @ network.weights.T)
    W, bias = network.input.detach().numpy(), network.bias.detach().numpy()
    hidden = np.maximum(0, x.numpy() @ W.T + bias)
    phi = nlts.last_layer_activations(network, x.numpy())
    assert phi.shape == (9, 7)
    close(phi, hidden)
    close(nlts.last_layer_weights(network), network.weights.detach().numpy())


def test_text_cnn_is_its_features_times_its_weights_and_reads_words(nlts):
    network = nlts.TextCNN(vocabulary=30, n_arms=5, size=8, hidden=4)
    x = torch.randint(30, (7, 60), generator=torch.Generator().manual_seed(0))
    assert torch.equal(network(x), network.features(x) @ network.weights.T)
    assert network.features(x).shape == (7, 4) and network.features(x[:0]).shape == (0, 4)
    assert torch.equal(network(x.float()), network(x))       # a buffer holds ids as floats
    moved = x[:1].clone()
    moved[:, 10:40] = torch.roll(x[:1, 10:40], 5, dims=1)
    assert not torch.allclose(network(x[:1]), network(moved))                # order matters


def test_a_sentence_of_the_paper_has_7680_numbers(nlts):
    embedded = nlts.TextCNN(vocabulary=9, n_arms=5).embedding(torch.zeros(60, dtype=torch.long))
    assert embedded.shape == (60, 128) and embedded.numel() == 7680


def test_first_weights_are_small_by_the_number_of_inputs(nlts):
    network = nlts.MLP(100, 4, hidden=500)
    assert 0.095 < network.input.abs().max() <= 0.1 and 0.29 < network.weights.abs().max() <= 0.3
    assert not network.bias.any()
    assert nlts.Config().lr == 1e-3


def test_settings_are_those_of_the_authors_where_the_paper_is_silent(nlts):
    config = nlts.Config()
    assert (config.L, config.P) == (400, 800)                # Sec. 4.1
    assert (config.a0, config.b0, config.batch, config.initial_pulls) == (6, 6, 64, 2)


def test_networks_leave_the_global_random_state_alone(nlts):
    before = torch.random.get_rng_state()
    for make in (lambda: nlts.MLP(3, 2, seed=4), lambda: nlts.TextCNN(9, 2, seed=4)):
        one, two = make(), make()
        for p, q in zip(one.parameters(), two.parameters(), strict=True):
            assert torch.equal(p, q)
    assert torch.equal(before, torch.random.get_rng_state())


def filled_buffer(nlts, rng, n=60, dim=4, n_arms=3, arm=None):
    buffer = nlts.ReplayBuffer()
    for _ in range(n):
        context = rng.normal(size=dim)
        chosen = int(rng.integers(n_arms)) if arm is None else arm
        buffer.add(context, chosen, np.tanh(context[chosen]))
    return buffer


def test_train_differentiates_only_the_played_arm(nlts):
    rng, network = np.random.default_rng(0), nlts.MLP(4, 3, hidden=6)
    before = copy.deepcopy(network.state_dict())
    buffer = filled_buffer(nlts, rng, arm=1)
    nlts.train(network, buffer, nlts.Config(P=5, batch=8, lr=1e-2), rng)
    same = network.weights == before["weights"]
    assert same[[0, 2]].all() and not same[1].any()
    assert not torch.equal(network.input, before["input"])


def test_train_takes_adam_steps_on_the_squared_error(nlts):
    """One step against Adam's formula, with a gradient of Eq. 3 by finite differences."""
    rng, network = np.random.default_rng(0), nlts.MLP(4, 3, hidden=6)
    buffer, draws = filled_buffer(nlts, rng), np.random.default_rng(9)
    draws.integers(2 ** 31)                                  # train first draws a seed for torch
    rows = draws.integers(len(buffer.tuples), size=16)
    contexts, arms, rewards = (x[rows] for x in buffer.arrays())
    phi = nlts.last_layer_activations(network, contexts)

    def loss(weights):
        return np.mean(((phi @ weights.T)[np.arange(16), arms] - rewards) ** 2)

    W = nlts.last_layer_weights(network)
    gradient = np.zeros_like(W)
    for index in np.ndindex(*W.shape):
        h = np.zeros_like(W)
        h[index] = 1e-6
        gradient[index] = (loss(W + h) - loss(W - h)) / 2e-6
    config = nlts.Config(P=1, batch=16, lr=1e-2)
    nlts.train(network, buffer, config, np.random.default_rng(9))
    moved = np.abs(gradient) > 1e-4
    step = (nlts.last_layer_weights(network) - W) * moved
    expected = -1e-2 * np.sign(gradient) * moved             # Adam's first step: lr sign(gradient)
    np.testing.assert_allclose(step, expected, atol=1e-4)


def test_train_learns(nlts):
    rng, network = np.random.default_rng(0), nlts.MLP(4, 3, hidden=20)
    buffer = filled_buffer(nlts, rng, n=300)
    contexts, arms, rewards = buffer.arrays()

    def error():
        output = network(torch.as_tensor(contexts)).detach().numpy()
        return np.mean((output[np.arange(300), arms] - rewards) ** 2)

    first = error()
    nlts.train(network, buffer, nlts.Config(P=400, batch=32, lr=1e-2), rng)
    assert error() < 0.05 * first


class LinearFeatures(torch.nn.Module):
    """A user's own network: phi = A b, and a last nn.Linear without bias."""

    def __init__(self, A, n_arms, bias=False):
        super().__init__()
        self.A = torch.nn.Parameter(torch.as_tensor(A))
        self.last = torch.nn.Linear(len(A), n_arms, bias=bias, dtype=torch.float64)

    def features(self, x):
        return x @ self.A.T

    def forward(self, x):
        return self.last(self.features(x))


class Listening(LinearFeatures):
    """It keeps the first number of each context that it is trained on."""

    def __init__(self, A, n_arms):
        super().__init__(A, n_arms)
        self.heard = []

    def forward(self, x):
        self.heard += x[:, 0].tolist()
        return super().forward(x)


def test_mini_batches_are_uniform(nlts):
    """Chi-square over 50 tuples (fails one seed in 1000)."""
    rng, buffer, network = np.random.default_rng(0), nlts.ReplayBuffer(50), Listening(np.eye(1), 5)
    for t in range(120):
        buffer.add([t], t % 5, 0.0)
    nlts.train(network, buffer, nlts.Config(P=100, batch=100), rng)
    counts = np.bincount(np.array(network.heard, dtype=int) - 70, minlength=50)
    assert counts.sum() == 10_000 and stats.chisquare(counts).pvalue > 1e-3


# Sec. 3, 3: memory buffer -------------------------------------------------------------------------

class BufferMachine(RuleBasedStateMachine):
    """The buffer against a plain list of tuples, oldest first."""

    nlts = None

    @initialize(capacity=st.one_of(st.none(), st.integers(1, 8)))
    def start(self, capacity):
        self.capacity, self.model, self.added = capacity, [], 0
        self.buffer = self.nlts.ReplayBuffer(capacity)

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
        context[:] = -1                                      # the buffer must have its own copy

    @invariant()
    def same(self):
        if not self.added:
            return
        assert len(self.buffer.tuples) == len(self.model) <= (self.capacity or np.inf)
        contexts, arms, rewards = self.buffer.arrays()
        np.testing.assert_array_equal(contexts, np.array(self.model, float))
        np.testing.assert_array_equal(arms, [arm for _, arm in self.model])
        np.testing.assert_array_equal(rewards, [time for time, _ in self.model])
        contexts[:], rewards[:] = -1, -1                     # nor may it share what it gives out
        for arm in range(4):
            own = [row for row in self.model if row[1] == arm]
            contexts, rewards = self.buffer.rows_of(arm)
            np.testing.assert_array_equal(contexts, np.array(own, float).reshape(-1, 2))
            np.testing.assert_array_equal(rewards, [time for time, _ in own])


def test_buffer_is_a_list_with_round_robin(nlts, max_examples=30):
    machine = type("Machine", (BufferMachine,), {"nlts": nlts})
    limits = settings(max_examples=max_examples, stateful_step_count=30)
    run_state_machine_as_test(machine, settings=limits)


def test_a_full_buffer_loses_the_first_tuple_of_the_same_arm(nlts):
    """Never the one just stored; without another one of its arm, the first of the fullest arm."""
    buffer = nlts.ReplayBuffer(4)
    for time, arm in enumerate([1, 0, 1, 0]):
        buffer.add([time], arm, 0.0)
    kept = []
    for time, arm in enumerate([0, 0, 2, 3], start=4):
        buffer.add([time], arm, 0.0)
        kept.append([int(context[0]) for context, _, _ in buffer.tuples])
    assert kept == [[0, 2, 3, 4], [0, 2, 4, 5], [0, 2, 5, 6], [2, 5, 6, 7]]


# Sec. 3, 4 and Appendix C: Eq. 5, and Eqs. 7 and 8 ------------------------------------------------

@given(seed=seeds)
def test_match_mean_reproduces_the_old_predictions(nlts, seed):
    rng, E_old, _, _, mu_old = random_regression(seed)
    g = len(mu_old)
    values = E_old @ mu_old
    moved = E_old @ invertible_map(rng, g)                   # features that can predict the same
    close(moved @ nlts.match_mean(E_old, moved, mu_old), values)
    other = rng.normal(size=E_old.shape)                     # and features that cannot
    best = np.linalg.pinv(other) @ values
    close(other @ nlts.match_mean(E_old, other, mu_old), other @ best, scale=np.abs(values).max())
    if len(E_old) >= g:                                      # no feature moved: nor does the mean
        close(nlts.match_mean(E_old, E_old, mu_old), mu_old, rtol=1e-6)


def test_targets_that_contradict_each_other_are_fitted_in_least_squares(nlts):
    """Eq. 6 has squared errors, no constraints: the same phi with s2 of 1 and of 3 gets 2."""
    S = nlts.match_covariance([[0.5], [0.5]], [1.0, 3.0], ridge=1e-5)
    assert 0.25 * S[0, 0] == pytest.approx(2, rel=1e-3)


@given(seed=seeds)
def test_analytical_prior_solves_both_matching_equations(nlts, seed):
    rng, E_old, r, Phi_old, mu_old = random_regression(seed, n=15)
    E_new = E_old @ invertible_map(rng, len(mu_old))
    Phi0, mu0 = nlts.invertible_prior(E_old, E_new, mu_old, Phi_old)
    close(E_new @ mu0, E_old @ mu_old)                       # Eq. 7, hence Eq. 5
    old = E_old @ np.linalg.solve(Phi_old, E_old.T)
    close(E_new @ np.linalg.solve(Phi0, E_new.T), old)       # Eq. 8, hence Eq. 6: s2


@given(seed=seeds)
def test_analytical_prior_recovers_the_full_data_regression(nlts, seed):
    """Features move by invertible maps, tuples leave before each: as if all data had been kept."""
    rng, b, r, Phi0, mu0 = random_regression(seed, n=40)
    blr, A, start = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6), np.eye(len(mu0)), 0
    blr.update(b, r)
    for _ in range(rng.integers(1, 5)):
        start += rng.integers(0, 5)                          # what is before `start` leaves
        A_new = invertible_map(rng, len(mu0))
        E_old, E_new = b[start:] @ A.T, b[start:] @ A_new.T
        forgotten = blr.without(E_old, r[start:])
        prior = nlts.invertible_prior(E_old, E_new, forgotten.mu_hat, forgotten.precision)
        blr = nlts.BayesianLinearRegression(*prior, forgotten.a, forgotten.b, forgotten.n)
        blr.update(E_new, r[start:])
        A = A_new
    carried = A @ Phi0 @ A.T, np.linalg.solve(A.T, mu0)      # the first prior, moved along
    assert_posterior(blr, printed(b @ A.T, r, *carried), 40, rtol=1e-6)


def test_realizable_features_need_not_be_linear_in_the_context(nlts):
    """E[r] = |b| is linear in phi = (relu(b), relu(-b)), which is A b for no A."""
    b = np.linspace(-1, 1, 21)[:, None]
    phi = np.hstack([np.maximum(b, 0), np.maximum(-b, 0)])
    close(phi @ [1, 1], np.abs(b[:, 0]))
    A = np.linalg.lstsq(b, phi, rcond=None)[0]
    assert np.abs(b @ A - phi).max() > 0.4
