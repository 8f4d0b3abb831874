"""Planted bugs in nlts.match_covariance that change S: each must be noticed by tests/test_matching.

As in tests/test_planted.py, a bug is a line of nlts.py replaced by a wrong one. Bugs that only make
Newton's method slower (a wrong H, a wrong start) are no part of this: S stays right; nor are
bugs with which it ends in an error.
"""
import functools

import numpy as np
import pytest
import test_matching
from test_matching import assert_near, moved_features
from test_planted import run, with_bug

import nlts

in_closed_form = test_matching.test_orthogonal_rows_in_closed_form
optimal = functools.partial(
    test_matching.test_large_problems_meet_the_optimality_conditions,
    n=25, g=50, ridge=1e-3, floor=1e-2)

UNITS = "    rho, least, n = ridge, floor, len(E) "
ROOT = "root = Q * np.sqrt(scale * x)"
GRADIENT = "gradient = p ** 2 @ x + rho * y - s2"
RAISED = "x = np.maximum(w, least)"

# name: the line, the line with the bug, the check that must fail
BUGS = {
    "s for s^2": (UNITS, "    s2 = np.sqrt(s2)\n" + UNITS, in_closed_form),
    "s^4 for s^2": (UNITS, "    s2 = s2 ** 2\n" + UNITS, in_closed_form),
    "s^2 over their mean": (UNITS, "    s2 = s2 / s2.mean()\n" + UNITS, optimal),
    "the last tuple is lost": (UNITS, "    E, s2 = E[:-1], s2[:-1]\n" + UNITS, in_closed_form),
    "features about their mean": (UNITS, "    E = E - E.mean(0)\n" + UNITS, in_closed_form),
    "features of length 1": (
        UNITS, "    E = E / np.linalg.norm(E, axis=1, keepdims=True)\n" + UNITS, optimal),
    "ridge and floor exchanged": (
        UNITS, "    rho, least, n = floor, ridge, len(E) ", in_closed_form),
    "ridge over n": (UNITS, "    rho, least, n = ridge / len(E), floor, len(E) ", in_closed_form),
    "ridge times n": (UNITS, "    rho, least, n = ridge * len(E), floor, len(E) ", in_closed_form),
    "twice the ridge": (UNITS, "    rho, least, n = 2 * ridge, floor, len(E) ", in_closed_form),
    "ridge squared": (UNITS, "    rho, least, n = ridge ** 2, floor, len(E) ", in_closed_form),
    "half the floor": (UNITS, "    rho, least, n = ridge, floor / 2, len(E) ", in_closed_form),
    "floor squared": (UNITS, "    rho, least, n = ridge, floor ** 2, len(E) ", in_closed_form),
    "floor in units twice": (
        UNITS, "    rho, least, n = ridge, floor * scale, len(E) ", in_closed_form),
    "no floor": (UNITS, "    rho, least, n = ridge, 0.0, len(E) ", in_closed_form),
    "gradient of Z": (GRADIENT, "gradient = p ** 2 @ w + rho * y - s2", optimal),
    "stops too early": ("<= 1e-9 * rho * x @ x", "<= 1e-1 * x @ x", optimal),
    "stops at once": ("1e-30 * s2 @ s2:", "1e-3 * s2 @ s2:", optimal),
    "root left out": (ROOT, "root = Q * (scale * x)", in_closed_form),
    "scale left out": (ROOT, "root = Q * np.sqrt(x)", in_closed_form),
    "scale twice": (ROOT, "root = Q * (scale * np.sqrt(x))", in_closed_form),
    "precision for covariance": (ROOT, "root = Q / np.sqrt(x / scale)", in_closed_form),
    "the absolute Z for S": (ROOT, "root = Q * np.sqrt(scale * np.abs(w))", in_closed_form),
    "the floor added twice": (ROOT, "root = Q * np.sqrt(scale * (x + least))", in_closed_form),
    "raised eigenvalues left out": (
        ROOT, "root = Q * np.sqrt(scale * x * (w > least))", in_closed_form),
    "eigenvalues in the other order": (ROOT, "root = Q * np.sqrt(scale * x[::-1])", in_closed_form),
    "eigenvectors in rows": (ROOT, "root = Q.T * np.sqrt(scale * x)", in_closed_form),
    "root transposed": ("return root @ root.T ", "return root.T @ root ", in_closed_form),
    "root for S": ("return root @ root.T ", "return root ", in_closed_form),
    "variances alone": (
        "return root @ root.T ", "return np.diag((root ** 2).sum(1)) ", in_closed_form),
    "raised to zero": (RAISED, "x = np.maximum(w, 0)", in_closed_form),
    "raised to twice the floor": (
        RAISED, "x = np.where(w > least, w, 2 * least)", in_closed_form),
    "raised to a share of the largest": (
        RAISED, "x = np.maximum(w, least * w[-1])", in_closed_form),
    "not raised": (RAISED, "x = w", in_closed_form),
    "mirrored, not raised": (RAISED, "x = np.maximum(np.abs(w), least)", optimal),
}


def broken(name):
    """The solver with a bug."""
    right, wrong, _ = BUGS[name]
    return with_bug("nlts.py", right, wrong).match_covariance


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_in_the_solver_changes_S_and_is_noticed(name):
    E, s2 = moved_features(0, 25, 20)
    s2 = s2 * np.exp(np.random.default_rng(0).normal(size=25))
    with pytest.raises(AssertionError):                      # farther than two solvers may be
        assert_near(broken(name)(E, s2), nlts.match_covariance(E, s2), rtol=4e-4)
    with pytest.raises(AssertionError):
        run(BUGS[name][-1], match=broken(name))


@pytest.mark.parametrize("check", dict.fromkeys(check for *_, check in BUGS.values()))
def test_the_checks_pass_without_a_bug(check):
    """On the same seeds."""
    run(check, match=nlts.match_covariance)
