"""Tests of nlts.py, in its order: each part has an example in small numbers, then properties.

Properties draw data, so that a failure shrinks to matrices that one can read. Statistical tests
have fixed seeds; each says how often it would fail on a correct program. A check takes the module
as its argument `nlts`: tests/test_planted.py shows that it notices a broken one.
"""
import copy

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.oracles import (
    Archive,
    LinearFeatures,
    Watched,
    array_of,
    assert_near,
    assert_posterior,
    assert_same_state,
    close,
    kkt_violation,
    maps,
    matchings,
    numbers,
    printed,
    problem_of,
    regressions,
    small_agent,
    state_of,
    variances,
)

some = st.lists(st.booleans(), min_size=8, max_size=8)       # which of eight rows

# Sec. 2: Bayesian updates -------------------------------------------------------------------------

def test_updates_in_small_numbers(nlts):
    """One feature, prior N(1, nu2), rewards 5 under phi = 2 and 2 under phi = 1; by hand."""
    blr = nlts.BayesianLinearRegression([[1.0]], [1.0], 6, 6)
    blr.update([2.0], 5.0)
    assert (blr.precision, blr.f, blr.R2, blr.a, blr.n) == (5, 10, 25, 6.5, 1)
    assert blr.mu_hat == pytest.approx(11 / 5)               # (1 * 1 + 2 * 5) / (1 + 2 * 2)
    assert blr.b == pytest.approx(6.9)                       # 6 + (25 + 1 - 5 * 2.2^2) / 2
    assert blr.s2(np.array([[1.0], [2.0]])) == pytest.approx([1 / 5, 4 / 5])
    blr.update([1.0], 2.0)
    assert (blr.precision, blr.f, blr.R2, blr.a, blr.n) == (6, 12, 29, 7, 2)
    assert blr.mu_hat == pytest.approx(13 / 6)
    assert blr.b == pytest.approx(6 + 11 / 12)               # 6 + (29 + 1 - 6 (13/6)^2) / 2
    left = blr.without(np.array([[2.0]]), np.array([5.0]))
    assert (left.precision, left.mu_hat, left.a, left.n) == (2, pytest.approx(1.5), 6.5, 1)
    assert left.b == pytest.approx(6.25)                     # 6 + (4 + 1 - 2 * 1.5^2) / 2


@given(data=regressions(), random=st.randoms())
def test_sequential_is_batch_is_shuffled_is_printed(nlts, data, random):
    E, r, Phi0, mu0 = data
    sequential, batch, shuffled = (
        nlts.BayesianLinearRegression(Phi0, mu0, 6, 6) for _ in range(3))
    for phi, reward in zip(E, r, strict=True):
        sequential.update(phi, reward)
    for j in random.sample(range(len(r)), len(r)):
        shuffled.update(E[j], r[j])
    batch.update(E, r)
    covariance = np.linalg.inv(Phi0 + E.T @ E)
    for blr in (sequential, batch, shuffled):
        assert_posterior(blr, printed(E, r, Phi0, mu0), len(r))
        close(blr.root @ blr.root.T, covariance)
        close(blr.Phi, E.T @ E)
        close(blr.f, E.T @ r, scale=1 + np.abs(E.T @ r).max())
        assert pytest.approx(r @ r) == blr.R2
        close(blr.s2(E), np.diag(E @ covariance @ E.T))


@given(data=regressions())
def test_b_grows_by_the_squared_prediction_error(nlts, data):
    E, r, Phi0, mu0 = data
    blr = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6)
    for phi, reward in zip(E, r, strict=True):
        s2 = phi @ np.linalg.solve(blr.precision, phi)
        expected = blr.b + (reward - phi @ blr.mu_hat) ** 2 / (1 + s2) / 2
        blr.update(phi, reward)
        assert blr.b == pytest.approx(expected, rel=1e-9)


@given(data=regressions(), out=some)
def test_without_is_the_posterior_of_the_other_tuples(nlts, data, out):
    """Bayes' rule backwards, against a regression on only the tuples that stay; and back."""
    E, r, Phi0, mu0 = data
    out = np.array(out[:len(r)])
    blr = nlts.BayesianLinearRegression(Phi0, mu0, 6, 6, n=7)
    blr.update(E, r)
    before = state_of(blr)
    forgotten = blr.without(E[out], r[out])
    expected = printed(E[~out], r[~out], Phi0, mu0)
    assert_posterior(forgotten, expected, 7 + np.count_nonzero(~out), rtol=1e-7)
    assert_same_state(before, state_of(blr))
    forgotten.update(E[out], r[out])
    assert_posterior(forgotten, printed(E, r, Phi0, mu0), 7 + len(r), rtol=1e-7)


@pytest.mark.parametrize("seed", range(10))
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


def test_the_root_stays_right_over_100_000_tuples(nlts):
    """At a condition of 1e8 of the precision, updated tuple by tuple."""
    rng, g = np.random.default_rng(0), 5
    root, precision = 2 * np.eye(g), 0.25 * np.eye(g)
    for phi in rng.normal(size=(100_000, g)) * [1e-4, 1e-2, 1, 10, 30]:
        root = nlts.root_with_tuple(root, phi)
        precision += np.outer(phi, phi)
    assert 1e7 < np.linalg.cond(precision) < 1e9
    scale = np.sqrt(np.diag(precision))                      # the same in units of one
    expected = np.linalg.inv(precision / np.outer(scale, scale))
    np.testing.assert_allclose(root @ root.T * np.outer(scale, scale), expected, atol=1e-10)


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
    before = state_of(blr)
    for array in (Phi0, mu0, E, r):
        array[:] = -7
    forgotten.update([5, 5], 1)
    assert_same_state(before, state_of(blr))


def test_sampler_against_inverse_gamma_and_student_t(nlts):
    """Kolmogorov-Smirnov on 10,000 draws: each of the two fails one seed in 1000 if it is right."""
    rng = np.random.default_rng(7)
    E, r, phi = rng.normal(size=(30, 4)), 3 * rng.normal(size=30), rng.normal(size=4)
    blr = nlts.BayesianLinearRegression(np.diag([1.0, 2, 3, 4]), np.ones(4), 2.0, 0.5)
    blr.update(E, r)
    nu2 = [nlts.inverse_gamma_noise([blr], None, rng)[0] for _ in range(10_000)]
    theta = [phi @ blr.sample(nu2_i, rng) for nu2_i in nu2]
    assert stats.kstest(nu2, stats.invgamma(blr.a, scale=blr.b).cdf).pvalue > 1e-3
    s2 = phi @ np.linalg.solve(blr.precision, phi)
    student = stats.t(2 * blr.a, phi @ blr.mu_hat, np.sqrt(blr.b / blr.a * s2))
    assert stats.kstest(theta, student.cdf).pvalue > 1e-3


def test_known_noise_is_sampled_as_printed(nlts):
    """N(mu_hat, v^2 B^-1), B = I + sum bb': whitened draws are normal (fails one seed in 1000)."""
    rng, v = np.random.default_rng(3), 0.7
    agent = nlts.LinearTS(3, 1, v=v, lam=1, initial_pulls=0)
    B, f = np.eye(3), np.zeros(3)
    mixing = np.array([[2.0, 0.0, 0.0], [2.0, 0.3, 0.0], [1.0, 1.0, 1.0]])
    for _ in range(20):
        b, reward = mixing @ rng.normal(size=3), rng.normal()
        agent.update(b, 0, reward)
        B, f = B + np.outer(b, b), f + b * reward
    nu2 = agent.noise(agent.arms, agent.config, rng)
    draws = np.array([agent.arms[0].sample(nu2[0], rng) for _ in range(5_000)])
    white = (draws - np.linalg.solve(B, f)) @ np.linalg.cholesky(B) / v
    assert stats.kstest(white.ravel(), stats.norm.cdf).pvalue > 1e-3


# Sec. 3, 3: the round-robin buffer ----------------------------------------------------------------

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


@given(capacity=st.none() | st.integers(1, 6), arms=st.lists(st.integers(0, 3), min_size=1))
def test_buffer_is_a_list_with_round_robin(nlts, capacity, arms):
    """Against a plain list of (time, arm), oldest first; nothing is shared with the caller."""
    buffer, model = nlts.ReplayBuffer(capacity), []
    for time, arm in enumerate(arms):
        context = np.array([time, arm], float)
        buffer.add(context, arm, float(time))
        context[:] = -1
        if len(model) == capacity:
            counts = [sum(a == i for _, a in model) for i in range(4)]
            loser = arm if counts[arm] else counts.index(max(counts))
            model.remove(next(row for row in model if row[1] == loser))
        model.append((time, arm))
        contexts, played, rewards = buffer.arrays()
        np.testing.assert_array_equal(contexts, model)
        np.testing.assert_array_equal(played, [a for _, a in model])
        np.testing.assert_array_equal(rewards, [t for t, _ in model])
        contexts[:], played[:], rewards[:] = -1, -1, -1


# Appendix C: the prior of the invertible case -----------------------------------------------------

def test_the_invertible_prior_in_small_numbers(nlts):
    """A feature that doubles: its weight halves, its precision is four times as large."""
    old = nlts.BayesianLinearRegression([[3.0]], [4.0], 6, 6)
    rows = np.array([[1.0], [-2.0]])
    ((Phi0, mu0),) = nlts.invertible_prior([old], [rows], [2 * rows], np.ones((1, 1)), 0.25)
    assert (Phi0, mu0) == (pytest.approx(12), pytest.approx(2))
    with pytest.raises(ValueError, match="^E_old, E_new: .* rank 2, those of arm 1 have rank 1"):
        wide = nlts.BayesianLinearRegression(np.eye(2), [0, 0], 6, 6)
        full, flat = np.eye(2), np.ones((3, 2))
        nlts.invertible_prior([wide] * 2, [full, flat], [full, flat], np.ones((2, 2)), 0.25)


@given(data=regressions(n=8).flatmap(lambda x: st.tuples(st.just(x), maps(len(x[-1])))))
def test_analytical_prior_solves_both_matching_equations(nlts, data):
    (E_old, _, Phi_old, mu_old), A = data
    E_old = E_old + 6 * np.eye(*E_old.shape)                 # rank g
    E_new = E_old @ A.T
    old = nlts.BayesianLinearRegression(Phi_old, mu_old, 6, 6)
    ((Phi0, mu0),) = nlts.invertible_prior([old], [E_old], [E_new], mu_old[None], 0.25)
    close(E_new @ mu0, E_old @ mu_old, scale=1 + np.abs(E_old @ mu_old).max())       # Eq. 7 and 5
    expected = E_old @ np.linalg.solve(Phi_old, E_old.T)
    close(E_new @ np.linalg.solve(Phi0, E_new.T), expected)                          # Eq. 8 and 6


@st.composite
def games(draw):
    """Contexts (28, g) and rewards of two arms in turn, and three maps. Any g tuples of an arm that
    follow each other have rank g: the k-th is near a multiple of e_k."""
    g = draw(st.integers(1, 3))
    noise = draw(array_of((28, g), numbers.map(lambda x: x / 6)))
    contexts = 2 * np.eye(g)[np.arange(28) // 2 % g] + noise
    rewards = draw(array_of(28, numbers))
    return contexts, rewards, [draw(maps(g)) for _ in range(3)]


@given(game=games())
def test_appendix_c_recovers_the_full_data_regression(nlts, game):
    """Mean, precision, a, b after three phases of Algorithm 2, in each of which training moves
    linear features by a map; the first prior comes along as lam A A'."""
    contexts, rewards, moves = game
    g, to_come = contexts.shape[1], iter(moves)

    def train(network, buffer, config, rng):
        network.A.data = torch.as_tensor(next(to_come))

    agent = nlts.NeuralLinearTS(LinearFeatures(np.eye(g), 2), 2, 6, nlts.invertible_prior, train,
                                L=8)
    for t, (context, reward) in enumerate(zip(contexts, rewards, strict=True)):
        agent.update(context, t % 2, reward)
    for i, arm in enumerate(agent.arms):
        E, r = contexts[i::2] @ moves[-1].T, rewards[i::2]
        Phi0 = 0.25 * moves[-1] @ moves[-1].T
        assert_posterior(arm, printed(E, r, Phi0, np.zeros(g)), 14, rtol=1e-7)


def test_realizable_features_need_not_be_linear_in_the_context(nlts):
    """E[r] = |b| is linear in (relu(b), relu(-b)), and in (|b|, b^2) after training. Neither is A b
    or a linear function of the other: then the prior misses what the forgotten are worth."""
    left, kept = np.array([-3.0, 2.0, 3.0]), np.array([-1.0, 0.5, 1.0, 2.0])

    def features(b):
        relu = np.column_stack([np.maximum(b, 0), np.maximum(-b, 0)])
        return relu, np.column_stack([np.abs(b), b ** 2])

    for phi, mu in zip(features(left), ([1, 1], [1, 0]), strict=True):
        close(phi @ mu, np.abs(left))                        # realizable
    old = nlts.first_prior(2, nlts.Config())
    old.update(features(left)[0], np.abs(left))
    E_old, E_new = features(kept)
    ((Phi0, _),) = nlts.invertible_prior([old], [E_old], [E_new], np.ones((1, 2)), 0.25)
    full = features(left)[1].T @ features(left)[1]
    assert np.linalg.norm(Phi0 - full) > 0.5 * np.linalg.norm(full)


@given(data=regressions(n=8).flatmap(lambda x: st.tuples(st.just(x), maps(len(x[-1])))))
def test_match_mean_reproduces_the_old_predictions(nlts, data):
    (E_old, r, _, mu_old), A = data
    values = E_old @ mu_old
    scale = 1 + np.abs(values).max()
    close(E_old @ A.T @ nlts.match_mean(E_old, E_old @ A.T, mu_old), values, scale=scale)
    column = r[:, None]                                      # one feature cannot predict the same
    assume(r.any())
    close(nlts.match_mean(E_old, column, mu_old), r @ values / (r @ r), scale=scale)


# Sec. 3, 4: Eq. 6 ---------------------------------------------------------------------------------

ridges = st.sampled_from([1e-3, 1e-2, 0.1])


def test_matching_in_small_numbers(nlts):
    """Rows e1 and e2: S = diag(s^2 / (1 + ridge)), and 0.1 is raised to the floor times the mean.
    One tuple: S is s^2 / ||phi||^2 along phi, and at the floor across it."""
    S = nlts.match_covariance(np.eye(2), [4.0, 0.1], ridge=0.25, floor=0.1)
    close(S, np.diag([3.2, 0.205]), rtol=1e-4)
    S = nlts.match_covariance([[3.0, 4.0]], [50.0])          # default: ridge 1e-3, floor 1e-2
    along, across = np.array([0.6, 0.8]), np.array([0.8, -0.6])
    expected = 2 / 1.001 * np.outer(along, along) + 0.02 * np.outer(across, across)
    close(S, expected, rtol=1e-9)


def test_targets_that_contradict_each_other_are_fitted_in_least_squares(nlts):
    """Eq. 6 has squared errors, no constraints: the same phi with s2 of 1 and of 3 gets 2."""
    S = nlts.match_covariance([[0.5], [0.5]], [1.0, 3.0], ridge=1e-5)
    assert 0.25 * S[0, 0] == pytest.approx(2, rel=1e-3)


@given(data=matchings(), ridge=ridges, floor=ridges)
@settings(max_examples=15)
def test_fast_solver_and_sdp_solve_the_same_problem(nlts, data, ridge, floor):
    """CVXPY with Clarabel is the oracle: an objective as low, and the same S."""
    E, s2 = data
    rho, least = problem_of(E, s2, ridge, floor)
    size = s2.mean()                                         # a solver has absolute tolerances
    sdp = size * nlts.match_covariance_sdp(E, s2 / size, rho, least / size, solver="CLARABEL")

    def objective(S):
        return np.sum((variances(E, S) - s2) ** 2) + rho * np.sum(S ** 2)

    S = nlts.match_covariance(E, s2, ridge, floor)
    assert objective(S) <= objective(sdp) * (1 + 1e-6)
    assert_near(S, sdp, rtol=1e-2)


@given(data=matchings(), ridge=ridges, floor=ridges)
def test_S_is_Z_with_its_eigenvalues_raised(nlts, data, ridge, floor):
    """Z = sum_j y_j phi_j phi_j', where rho y_j is what is left of s_j^2."""
    E, s2 = data
    rho, least = problem_of(E, s2, ridge, floor)
    S = nlts.match_covariance(E, s2, ridge, floor)
    w, Q = np.linalg.eigh((E.T * ((s2 - variances(E, S)) / rho)) @ E)
    assert_near((Q * w.clip(least)) @ Q.T, S, rtol=0.1)
    assert kkt_violation(E, s2, ridge, floor, S) < 1e-4


@given(data=matchings(), features=st.integers(-6, 6), rewards=st.integers(-6, 6), out=st.data())
def test_matching_does_not_depend_on_units_basis_and_order(nlts, data, features, rewards, out):
    """phi -> c phi takes S to S/c^2, s^2 -> d s^2 to d S, phi -> Q'phi to Q'S Q."""
    E, s2 = data
    c, d = 10.0 ** features, 10.0 ** rewards
    Q = out.draw(maps(E.shape[1], scales=(1.0,)))
    S = nlts.match_covariance(E, s2)
    assert_near(nlts.match_covariance(c * E, d * s2), S * d / c ** 2)
    assert_near(nlts.match_covariance(E @ Q, s2), Q.T @ S @ Q)
    assert_near(nlts.match_covariance(E[::-1], s2[::-1]), S)


orders = st.integers(-3, 3).map(lambda k: 10.0 ** k)


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 0.5])
@given(data=matchings(st.sampled_from([0, 1, -1]) | orders, st.just(0) | orders))
def test_hard_problems_are_solved(nlts, ridge, data):
    """Rows that are 0, equal or collinear, features and s^2 of all sizes: S is optimal, symmetric
    and positive definite."""
    E, s2 = data
    S = nlts.match_covariance(E, s2, ridge)
    close(S, S.T, rtol=1e-14)
    np.linalg.cholesky(S)
    assert kkt_violation(E, s2, ridge, 1e-2, S) < 1e-3


# Appendix A: Algorithm 2, its learning phase ------------------------------------------------------

PRIORS = ["likelihood_matching", "mean_prior", "no_prior"]


@pytest.mark.parametrize("P", [30, 0])
@pytest.mark.parametrize("name", PRIORS)
def test_what_is_left_is_the_posterior_of_exactly_what_left_the_buffer(nlts, name, P):
    """Take the buffer out, carry over, put it back; over four phases nothing counts twice and
    nothing is lost, in a and b neither."""
    watched = Watched(getattr(nlts, name))
    agent = small_agent(nlts, prior=watched, P=P)
    archive, gone = Archive(nlts, agent), [0, 0, 0]
    priors = [(0.25 * np.eye(6), np.zeros(6), 6.0, 6.0)] * 3
    for phase in range(4):
        archive.advance(39)
        old = copy.deepcopy(agent.network)
        archive.advance(1)
        assert len(watched.calls) == phase + 1
        forgotten, E_old, E_new, weights, lam, new_priors = watched.calls[-1]
        assert lam == 0.25
        close(weights, agent.network.weights.detach().numpy())
        for i, arm in enumerate(agent.arms):
            n = archive.number_left(i)
            (phi, r), (phi_new, _) = archive.rows(i, old), archive.rows(i)
            expected = printed(phi[gone[i]:n], r[gone[i]:n], *priors[i])
            assert_posterior(forgotten[i], expected, n, rtol=1e-6)           # taken out
            close(E_old[i], phi[n:])
            close(E_new[i], phi_new[n:])
            assert np.allclose(phi, phi_new) == (P == 0)
            priors[i] = *new_priors[i], forgotten[i].a, forgotten[i].b       # carried over
            expected = printed(E_new[i], r[n:], *priors[i])
            assert_posterior(arm, expected, len(r), rtol=1e-6)               # put back
            assert arm.a == 6 + len(r) / 2
            close(arm.Phi, E_new[i].T @ E_new[i])
            gone[i] = n
    assert min(gone) > 0


def test_the_papers_prior_is_eq_6_and_the_last_layer(nlts):
    """Specified once more, with inverses: s2 is that of what left, by the whole precision."""
    watched = Watched(nlts.likelihood_matching)
    agent = small_agent(nlts, prior=watched)
    Archive(nlts, agent).advance(80)
    forgotten, E_old, E_new, _, _, priors = watched.calls[-1]
    for i, (Phi0, mu0) in enumerate(priors):
        s2 = variances(E_old[i], np.linalg.inv(forgotten[i].precision))
        assert kkt_violation(E_new[i], s2, 1e-3, 1e-2, np.linalg.inv(Phi0)) < 1e-4
        close(mu0, agent.network.weights[i].detach().numpy())
        close(agent.arms[i].Phi0, Phi0)
        close(agent.arms[i].mu0, mu0)


@pytest.mark.parametrize("memory", [None, 1000])
def test_with_an_unlimited_buffer_a_phase_is_a_regression_on_all_data(nlts, memory):
    """Under the new features, after three phases."""
    prior = nlts.likelihood_matching if memory is None else nlts.no_prior
    archive = Archive(nlts, small_agent(nlts, memory=memory, prior=prior))
    archive.advance(3 * 40 + 7)
    archive.assert_full_regression()
