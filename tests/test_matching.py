"""Eq. 6: the smallest covariance that matches, by both solvers, and by CVXPY.

What holds for nlts.match_covariance, the plain one, holds for lab.fast.match_covariance: each test
is given one of them as `match` (tests/test_planted_solver.py gives it a broken one).
"""
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nlts
from lab import fast

seeds = st.integers(0, 2 ** 32 - 1)
SOLVERS = {"plain": nlts.match_covariance, "fast": fast.match_covariance}


@pytest.fixture(scope="module", params=SOLVERS.values(), ids=SOLVERS)
def match(request):
    """A solver of Eq. 6."""
    return request.param


def variances(E, S):
    """phi'S phi of each row phi of E."""
    return ((E @ S) * E).sum(1)


def problem_of(E, s2, ridge, floor):
    """rho, and the least eigenvalue that S may have, as the docstring defines them."""
    norm2 = (E ** 2).sum(1)
    return ridge * np.mean(norm2 ** 2), floor * (norm2 @ s2) / (norm2 @ norm2)


def objective(E, s2, ridge, S):
    """What match_covariance minimizes, written out."""
    rho, _ = problem_of(E, s2, ridge, 0)
    return np.sum((variances(E, S) - s2) ** 2) / 2 + rho * np.sum(S ** 2) / 2


def kkt_violation(E, s2, ridge, floor, S):
    """How far S is from optimal: S - least I >= 0, gradient >= 0, and their product is zero."""
    rho, least = problem_of(E, s2, ridge, floor)
    gradient = (E.T * (variances(E, S) - s2)) @ E + rho * S
    above = S - least * np.eye(len(S))
    size = np.linalg.norm((E.T * s2) @ E)                                # of the gradient at S = 0
    return max(-np.linalg.eigvalsh(above)[0] / least,
               -np.linalg.eigvalsh(gradient)[0] / size,
               np.linalg.norm(gradient @ above) / size / np.linalg.norm(S))


def random_rows(seed, n=None, g=None):
    """Features, and the s^2 of a covariance: a problem that can be solved exactly."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25)) if n is None else n
    g = int(rng.integers(2, 7)) if g is None else g
    E = rng.normal(size=(n, g))
    M = rng.normal(size=(g, g))
    S_true = M @ M.T / g + 0.2 * np.eye(g)
    return rng, E, variances(E, S_true), S_true


def moved_features(seed, n, g, m=500, dim=20):
    """A buffer as in an agent: ReLU features that moved a little, after m tuples left."""
    rng = np.random.default_rng(seed)
    weights, step = rng.normal(size=(2, g, dim)) / np.sqrt(dim)
    left, rows = rng.normal(size=(m, dim)), rng.normal(size=(n, dim))
    E_left, E_old = np.maximum(left @ weights.T, 0), np.maximum(rows @ weights.T, 0)
    E_new = np.maximum(rows @ (weights + 0.1 * step).T, 0)
    Phi_old = 0.25 * np.eye(g) + E_left.T @ E_left
    return E_new, variances(E_old, np.linalg.inv(Phi_old))


def assert_near(S, expected, rtol=1e-3):
    assert np.linalg.norm(S - expected) <= rtol * np.linalg.norm(expected)


@given(seeds)
@settings(max_examples=8)
def test_fast_solver_and_sdp_solve_the_same_problem(match, seed):
    """CVXPY with Clarabel is the oracle: an objective as low, and the same S."""
    rng, E, s2, _ = random_rows(seed)
    s2 = s2 * 10 ** rng.uniform(-1, 1, len(s2))                          # no S matches all of them
    ridge, floor = 10 ** rng.uniform(-3, -1), 10 ** rng.uniform(-3, -0.5)
    S = match(E, s2, ridge, floor)
    sdp = nlts.match_covariance_sdp(E, s2, ridge, floor, solver="CLARABEL")
    assert objective(E, s2, ridge, S) <= objective(E, s2, ridge, sdp) * (1 + 1e-6)
    assert_near(S, sdp, rtol=1e-2)


@given(seeds)
@settings(max_examples=6)
def test_sdp_as_printed(seed):
    """Eq. 6 without ridge and floor: s^2 are reproduced, S >= 0."""
    _, E, s2, _ = random_rows(seed)
    S = nlts.match_covariance_sdp(E, s2, solver="CLARABEL")
    np.testing.assert_allclose(variances(E, S), s2, rtol=1e-3, atol=1e-4)
    assert np.linalg.eigvalsh(S)[0] > -1e-6 * np.linalg.norm(S)


@pytest.mark.parametrize("n, g", [(25, 50), (60, 120), (300, 50), (1000, 20)])
@pytest.mark.parametrize("ridge, floor", [(1e-3, 1e-2), (1e-5, 1e-4), (0.3, 0.3)])
def test_large_problems_meet_the_optimality_conditions(match, n, g, ridge, floor):
    E, s2 = moved_features(n + g, n, g)
    S = match(E, s2, ridge, floor)
    np.testing.assert_allclose(S, S.T, rtol=0, atol=1e-14 * np.abs(S).max())
    assert kkt_violation(E, s2, ridge, floor, S) < 1e-4


@pytest.mark.parametrize("bug", ["raised only once", "s for s^2", "lower floor", "lower ridge"])
def test_optimality_conditions_tell_planted_bugs(match, bug):
    E, s2 = moved_features(0, 100, 50)
    rho, least = problem_of(E, s2, ridge=0.1, floor=0.1)
    if bug == "raised only once":                                        # Newton's first point
        y = np.linalg.solve((E @ E.T) ** 2 + rho * np.eye(100), s2)
        w, Q = np.linalg.eigh((E.T * y) @ E)
        S = (Q * w.clip(least)) @ Q.T
    elif bug == "s for s^2":
        S = match(E, np.sqrt(s2), 0.1, 0.1)
    elif bug == "lower floor":
        S = match(E, s2, 0.1, 0.05)
    else:
        S = match(E, s2, 0.05, 0.1)
    assert kkt_violation(E, s2, 0.1, 0.1, S) > 1e-3


@given(seeds)
def test_orthogonal_rows_in_closed_form(match, seed):
    """Rows c q_j with orthonormal q_j: S = sum_j x_j q_j q_j', x_j = s_j^2 / c^2 / (1 + ridge)."""
    rng = np.random.default_rng(seed)
    g, c, ridge, floor = 6, 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-6, -0.1), 0.3
    Q = np.linalg.qr(rng.normal(size=(g, g)))[0]
    s2 = rng.exponential(size=g)
    x = np.maximum(s2 / (1 + ridge), floor * s2.mean())                  # some are raised
    assert_near(match(c * Q.T, s2, ridge, floor), (Q * x) @ Q.T / c ** 2)


@given(seeds)
def test_one_tuple_and_one_feature_in_closed_form(match, seed):
    rng, E, s2, _ = random_rows(seed, n=1)
    u = E[0] / np.linalg.norm(E)
    S = 0.01 * np.eye(len(u)) + (1 / 1.001 - 0.01) * np.outer(u, u)      # times s^2 / ||phi||^2
    assert_near(match(E, s2, 1e-3, 1e-2), s2 / (E[0] @ E[0]) * S, rtol=1e-9)
    E, s2 = rng.normal(size=(7, 1)), rng.exponential(size=7)
    scale = (E[:, 0] ** 2 @ s2) / np.sum(E ** 4)
    assert_near(match(E, s2, 1e-3), scale / (1 + 1e-3 / 7), rtol=1e-9)


@given(seeds)
def test_enough_tuples_determine_the_covariance(match, seed):
    _, E, s2, S_true = random_rows(seed, n=60)
    assert_near(match(E, s2, 1e-6, 1e-3), S_true)


@given(seeds, st.sampled_from([1e-6, 1e-3, 0.1]))
def test_s2_that_can_be_matched_are_matched_up_to_the_ridge(match, seed, ridge):
    """The objective at S_true is rho/2 ||S_true||^2: the misfit is at most that."""
    _, E, s2, S_true = random_rows(seed)
    misfit = variances(E, match(E, s2, ridge)) - s2
    rho, _ = problem_of(E, s2, ridge, 0)
    assert misfit @ misfit <= rho * np.sum(S_true ** 2) * (1 + 1e-6)


@pytest.mark.parametrize("n", [25, 60, 100])
def test_default_ridge_gives_up_less_than_one_percent(match, n):
    E, s2 = moved_features(n, n, 50)
    misfit = variances(E, match(E, s2)) / s2 - 1
    assert np.median(np.abs(misfit)) < 0.01


@given(seeds, st.floats(-6, 6), st.floats(-6, 6))
def test_matching_does_not_depend_on_units_basis_and_order(match, seed, features, rewards):
    """phi -> c phi takes S to S/c^2, s^2 -> d s^2 to d S, phi -> Q'phi to Q'S Q."""
    rng, E, s2, _ = random_rows(seed)
    c, d = 10 ** features, 10 ** rewards
    s2 = s2 * 10 ** rng.uniform(-1, 1, len(s2))
    Q = np.linalg.qr(rng.normal(size=(E.shape[1], E.shape[1])))[0]
    order = rng.permutation(len(E))
    S = match(E, s2)
    assert_near(match(c * E, d * s2), S * d / c ** 2)
    assert_near(match(E @ Q, s2), Q.T @ S @ Q)
    assert_near(match(E[order], s2[order]), S)


@given(seeds)
def test_zero_rows_copies_and_dead_features(match, seed):
    """rho is relative to the mean of ||phi||^4: so zero rows and copies act on the ridge alone."""
    rng, E, s2, _ = random_rows(seed)
    n, g = E.shape
    S = match(E, s2, 1e-2)
    assert_near(match(np.vstack([E, E]), np.append(s2, s2), 2e-2), S)
    with_zero = match(np.vstack([E, 0 * E]), np.append(s2, s2), 2e-2)
    assert_near(with_zero, S)
    dead = match(np.hstack([E, np.zeros((n, 2))]), s2, 1e-2)
    _, least = problem_of(E, s2, 1e-2, 1e-2)
    assert_near(dead[:g, :g], S)
    np.testing.assert_allclose(dead[g:], least * np.eye(2, g + 2, g), atol=1e-9 * least)


@given(seeds)
def test_contradictory_copies_are_matched_in_the_mean(match, seed):
    rng, E, s2, _ = random_rows(seed)
    twice = np.vstack([E, E])
    less = rng.uniform(0, 1, len(s2)) * s2
    S = match(twice, np.append(s2 - less, s2 + less))
    assert_near(S, match(twice, np.append(s2, s2)), rtol=1e-2)


@given(seeds)
def test_matching_is_continuous(match, seed):
    """A change of 1e-6 in features and s^2 changes S by less than a thousand times as much."""
    rng, E, s2, _ = random_rows(seed)
    s2 = s2 * 10 ** rng.uniform(-1, 1, len(s2))
    nudge = 1 + 1e-6 * rng.normal(size=E.shape)
    S = match(E, s2, 1e-2)
    assert_near(match(E * nudge, s2 * nudge[:, 0], 1e-2), S)


HARD = ["one row", "one feature", "collinear", "nearly collinear", "copies", "zero rows", "zero s2",
        "one s2 too large", "twelve orders", "rows of all sizes", "columns of all sizes"]


def make_hard(rng, E, s2, case):
    """The problem with something changed that a solver may stumble on."""
    n, g = E.shape
    some = rng.random(n) < 0.5
    if case == "one row":
        return E[:1], s2[:1]
    if case == "one feature":
        return E[:, :1], s2
    if case == "collinear":
        return np.outer(rng.normal(size=n), E[0]), s2
    if case == "nearly collinear":
        return np.outer(rng.normal(size=n), E[0]) + 1e-7 * E, s2
    if case == "copies":
        return np.where(some[:, None], E[0], E), s2
    if case == "zero rows":
        return np.where(some[:, None], 0, E), s2
    if case == "zero s2":
        return E, np.where(some, 0, s2)
    if case == "one s2 too large":
        return E, np.append(1e6 * s2[0], s2[1:])
    if case == "twelve orders":
        return E, s2 * 10 ** rng.uniform(-6, 6, n)
    if case == "rows of all sizes":
        return E * 10 ** rng.uniform(-3, 3, (n, 1)), s2
    return E * 10 ** rng.uniform(-3, 3, g), s2


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 0.5])
@settings(max_examples=30)
@given(seeds, st.sets(st.sampled_from(HARD), min_size=1, max_size=3))
def test_hard_problems_are_solved(match, ridge, seed, cases):
    """Always a symmetric positive definite S that is optimal, and no warning."""
    rng, E, s2, _ = random_rows(seed, n=12, g=6)
    for case in sorted(cases):
        E, s2 = make_hard(rng, E, s2, case)
    if (E ** 2).sum(1) @ s2 == 0:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        S = match(E, s2, ridge)
    np.testing.assert_allclose(S, S.T, rtol=0, atol=1e-14 * np.abs(S).max())
    np.linalg.cholesky(S)
    assert kkt_violation(E, s2, ridge, 1e-2, S) < 1e-3


def assert_same(plain, fast, E, s2, ridge):
    """The plain solver stops at 1e-9 of the ridge's term, the fast one at 1e-7: their distance in S
    is at most the sum of the roots, and their objectives differ by no more than 1e-7."""
    assert_near(fast, plain, rtol=4e-4)
    difference = objective(E, s2, ridge, fast) - objective(E, s2, ridge, plain)
    assert abs(difference) <= 1e-7 * objective(E, s2, ridge, plain)


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 0.5])
@given(seeds, st.integers(1, 60), st.sets(st.sampled_from(HARD), max_size=3))
def test_both_solvers_find_the_same(ridge, seed, n, cases):
    """With fewer tuples than features, more than features, and more than pairs of features."""
    rng, E, s2, _ = random_rows(seed, n=n, g=6)
    s2 = s2 * 10 ** rng.uniform(-1, 1, n)
    for case in sorted(cases):
        E, s2 = make_hard(rng, E, s2, case)
    if (E ** 2).sum(1) @ s2 == 0:
        return
    assert_same(*(match(E, s2, ridge) for match in SOLVERS.values()), E, s2, ridge)


@pytest.mark.parametrize("n", [1, 2, 10, 49, 50, 51, 130, 455])
def test_both_solvers_find_the_same_in_buffers_of_an_agent(n):
    E, s2 = moved_features(n, n, 50)
    assert_same(*(match(E, s2) for match in SOLVERS.values()), E, s2, 1e-3)


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n, g", [(200, 20), (230, 20), (1000, 20), (600, 30)])
def test_many_tuples(match, n, g, noise):
    """More tuples than pairs of features, whose s^2 agree more or less."""
    E, s2 = moved_features(n, n, g)
    s2 = s2 * np.exp(noise * np.random.default_rng(n).normal(size=n))
    S = match(E, s2)
    assert kkt_violation(E, s2, 1e-3, 1e-2, S) < 1e-4


@pytest.mark.parametrize("arguments, name", [
    (([[1.0, np.nan]], [1.0]), "E_new"), (([[1.0, 2.0]], [1.0, 2.0]), "E_new"),
    (([1.0, 2.0], [1.0, 2.0]), "E_new"), (([[1.0, 2.0]], [-1.0]), "s2"),
    (([[1.0, 2.0]], [np.inf]), "s2"), (([[1.0, 2.0]], ["x"]), "s2"),
    (([[1.0, 2.0]], [[1.0]]), "s2"), (([[1e-100, 0.0]], [1.0]), "E_new, s2"),
    ((np.empty((0, 2)), []), "E_new, s2"), (([[0.0, 0.0]], [1.0]), "E_new, s2"),
    (([[1.0, 2.0]], [0.0]), "E_new, s2"), (([[1.0, 2.0], [0.0, 0.0]], [0.0, 1.0]), "E_new, s2"),
])
def test_matching_names_bad_input(arguments, name):
    for function in (*SOLVERS.values(), nlts.match_covariance_sdp):
        with pytest.raises(ValueError, match=f"^(E_new, )?{name}: expected"):
            function(*arguments)


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-7, 1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["ridge", "floor"])
def test_matching_names_a_ridge_or_floor_out_of_reach(match, name, value):
    with pytest.raises(ValueError, match=f"^({name}|ridge, floor): expected"):
        match([[1.0, 2.0]], [1.0], **{name: value})
