"""Eq. 6 beyond the core of test_nlts.py: large problems, which solution is chosen, bad input."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import array_of, assert_near, kkt_violation, maps, positive, variances


def moved_features(seed, n, g, m=500, dim=20):
    """A buffer as in an agent: ReLU features that moved a little, after m tuples left."""
    rng = np.random.default_rng(seed)
    weights, step = rng.normal(size=(2, g, dim)) / np.sqrt(dim)
    left, rows = rng.normal(size=(m, dim)), rng.normal(size=(n, dim))
    E_left, E_old = np.maximum(left @ weights.T, 0), np.maximum(rows @ weights.T, 0)
    E_new = np.maximum(rows @ (weights + 0.1 * step).T, 0)
    Phi_old = 0.25 * np.eye(g) + E_left.T @ E_left
    return E_new, variances(E_old, np.linalg.inv(Phi_old))


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("n, g", [(25, 50), (60, 120), (300, 50), (400, 20)])
@pytest.mark.parametrize("ridge, floor", [(1e-3, 1e-2), (1e-5, 1e-4), (0.3, 0.3)])
def test_large_problems_meet_the_optimality_conditions(nlts, n, g, ridge, floor, noise):
    """Fewer and more tuples than features, and than pairs of them; s^2 that agree more or less."""
    E, s2 = moved_features(n + g, n, g)
    s2 = s2 * np.exp(noise * np.random.default_rng(n).normal(size=n))
    S = nlts.match_covariance(E, s2, ridge, floor)
    np.testing.assert_allclose(S, S.T, rtol=0, atol=1e-14 * np.abs(S).max())
    assert kkt_violation(E, s2, ridge, floor, S) < 1e-4


@given(Q=maps(4, scales=(1.0,)), s2=array_of(4, positive),
       c=st.integers(-3, 3).map(lambda k: 10.0 ** k), ridge=st.sampled_from([1e-6, 1e-3, 0.8]))
def test_orthogonal_rows_in_closed_form(nlts, Q, s2, c, ridge):
    """Rows c q_j with orthonormal q_j: S = sum_j x_j q_j q_j', x_j = s_j^2 / c^2 / (1 + ridge)."""
    x = np.maximum(s2 / (1 + ridge), 0.3 * s2.mean())                    # some are raised
    assert_near(nlts.match_covariance(c * Q.T, s2, ridge, 0.3), (Q * x) @ Q.T / c ** 2)


def test_where_nothing_chooses_among_solutions_the_choice_matters(nlts):
    """Three tuples, S has 15 numbers. Several S match s^2 as well as each other, and disagree by
    a factor of ten where the buffer shows nothing."""
    E, s2 = np.eye(5)[:3] + 1, np.ones(3)
    unseen = np.eye(5)[4:] - np.eye(5)[3:4]
    found = []
    for floor in (1e-2, 0.5):
        S = nlts.match_covariance(E, s2, 1e-6, floor)
        np.testing.assert_allclose(variances(E, S), s2, rtol=1e-3)
        found.append(variances(unseen, S)[0])
    S = nlts.match_covariance_sdp(E, s2, solver="CLARABEL")
    np.testing.assert_allclose(variances(E, S), s2, rtol=1e-3)
    found.append(variances(unseen, S)[0])
    assert max(found) > 10 * min(found)


def test_eq_6_may_have_one_solution_with_fewer_tuples_than_numbers_in_S(nlts):
    """Five tuples, S has six numbers. The objective is strictly convex in the five variances, and
    S with the same variances differ in S_23 only: but no other S_23 leaves S >= 0."""
    e1, e2, e3 = np.eye(3)
    E = np.array([e1, e2, e3, e1 + e2, e1 + e3])
    S = nlts.match_covariance_sdp(E, np.array([1.0, 1, 1, 10, 10]), solver="CLARABEL")
    N = np.outer(e2, e3) + np.outer(e3, e2)
    basis = np.array([np.outer(phi, phi).ravel() for phi in E])
    assert np.linalg.matrix_rank(basis) == 5 and not (basis @ N.ravel()).any()
    assert np.linalg.eigvalsh(S)[0] > -1e-5
    for other in (S + 0.01 * N, S - 0.01 * N):
        assert np.linalg.eigvalsh(other)[0] < -1e-3
    almost = nlts.match_covariance(E, [1.0, 1, 1, 10, 10], 1e-6, 1e-6)
    assert_near(almost, S)                                   # any right solver finds it


# what is refused ----------------------------------------------------------------------------------

@pytest.mark.parametrize("E_new, s2, name", [
    ([[1.0, np.nan]], [1.0], "E_new"), ([[1.0, 2.0]], [1.0, 2.0], "E_new"),
    ([[1.0, 2.0]], [np.inf], "s2"), ([[1.0, 2.0]], [[1.0]], "s2"),
    ([[1.0, 2.0]], [-1.0], "E_new, s2"), ([[1e-100, 0.0]], [1.0], "E_new, s2"),
    (np.empty((0, 2)), [], "E_new, s2"), ([[1.0, 2.0], [0.0, 0.0]], [0.0, 1.0], "E_new, s2"),
])
def test_matching_names_bad_input(nlts, E_new, s2, name):
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        nlts.match_covariance(E_new, s2)


@pytest.mark.parametrize("value", [-1.0, 1e-7, 1.0, np.nan])
@pytest.mark.parametrize("name", ["ridge", "floor"])
def test_matching_names_a_ridge_or_floor_out_of_reach(nlts, name, value):
    with pytest.raises(ValueError, match="^ridge, floor: expected"):
        nlts.match_covariance([[1.0, 2.0]], [1.0], **{name: value})
