"""A student's results beside the expected ones: None where they agree, else the failure in words.

Replies are not trusted: their size is bounded, type and shape are checked before any value, and a
comparison passes only if a number is within its limit, which NaN never is.
"""
from itertools import combinations

import numpy as np
from numpy.linalg import eigvalsh

from .cases import DRAWS
from .worker import numbers_in, shown

DIGITS = 1e-4              # of the largest entry, so float32 is enough
FAR = 5.6                  # standard errors: chance alone goes so far once in fifty million
FAR_KS = 3.1               # the same for sqrt(n) times the Kolmogorov-Smirnov distance
LAGS = 8


def both(yours, right):
    return f"yours is {shown(yours)}, expected {shown(right)}"


# Numbers ------------------------------------------------------------------------------------------

def close(yours, right, digits=DIGITS):
    """Numbers that agree, up to a share of the largest one."""
    size = np.abs(right).max(initial=0.0) + 1e-8
    off = np.abs(yours - right).max(initial=0.0) / size
    if off <= digits:
        return None
    nearly = f"; it is off by {off:.1g} of the largest number, {digits:g} is allowed"
    return both(yours, right) + (nearly if off < 0.01 else "")


def positive(yours, right, least=0.0):
    """A matrix that is symmetric and positive definite, any will do; or any vector."""
    if yours.ndim == 1 or np.allclose(yours, yours.T, 1e-4, 1e-6) and eigvalsh(yours)[0] > least:
        return None
    return f"yours is not symmetric and positive definite: {shown(yours)}"


def fits(yours, right, E, s2):
    """A covariance whose quadratic forms miss s2 by no more than the expected one's."""
    E, s2 = np.array(E), np.array(s2)
    cost, least = (float((((E @ S * E).sum(1) - s2) ** 2).sum()) for S in (yours, right))
    if not cost <= least + 1e-3 * (s2 @ s2):
        return f"yours misses s2 by {cost:.4g} in squares, {least:.4g} is possible"
    return positive(yours, right, least=-1e-3 * np.abs(yours).max())


# Draws --------------------------------------------------------------------------------------------
# Each draw is turned into numbers that are uniform on (-1, 1) and independent if the draw is right.
# Then the averages of Legendre polynomials of one of them, of products of two or three, and of
# products with those of earlier draws are all 0. All are bounded, so an average of 10,000 is as
# good as normal, even FAR out.

WRONG = {1: "is shifted", 2: "has a wrong spread", 3: "is skewed"}


def is_far(averages, n):
    """Whether any average of n numbers of variance 1 is too far from 0; NaN is."""
    return not (np.abs(averages) * np.sqrt(n) <= FAR).all()


def odd_marginal(x, P):
    """None if the numbers x (n,) look uniform on (-1, 1), with polynomials P (n, 8); or words."""
    from scipy.stats import kstest  # slow to import
    n = len(x)
    for degree, average in enumerate(P.mean(0), 1):
        if is_far(average, n):
            return WRONG.get(degree, "has wrong tails")
    if not np.sqrt(n) * kstest(x, "uniform", (-1, 2), method="asymp").statistic <= FAR_KS:
        return "has a wrong distribution (Kolmogorov-Smirnov)"
    return "has few different values: float16?" if len(np.unique(x)) < 0.95 * n else None


def odd_draws(x):
    """None if rows x (n, m) look uniform on (-1, 1) and independent, or words."""
    n, m = x.shape
    P = np.polynomial.legendre.legvander(x, 8)[..., 1:] * np.sqrt(2 * np.arange(1, 9) + 1)
    for i in range(m):
        if words := odd_marginal(x[:, i], P[:, i]):
            return f"number {i} {words}"
    for i, j in combinations(range(m), 2):
        if is_far(P[:, i, :4].T @ P[:, j, :4] / n, n):
            return f"numbers {i} and {j} depend on each other"
    for trio in combinations(range(m), 3):
        pairs, third = P[:, trio[0], :2, None] * P[:, trio[1], None, :2], P[:, trio[2], :2]
        if is_far(pairs.reshape(n, 4).T @ third / n, n):
            return f"numbers {trio} depend on each other"
    Q = P[..., :2].reshape(n, -1)
    for lag in range(1, LAGS + 1):
        if is_far(Q[:-lag].T @ Q[lag:] / (n - lag), n - lag):
            return f"a draw depends on the one {lag} before"
    return None


def draws(yours, right, law, args=(), mean=0.0, root=None):
    """Rows of independent draws. law: of scipy.stats, with args that have a number per column.
    mean and root: of vectors, which are whitened first."""
    from scipy import stats  # slow to import
    numbers = (yours - mean) @ np.array(root) if root else yours
    words = odd_draws(2 * getattr(stats, law).cdf(numbers, *map(np.array, args)) - 1)
    return words and (
        f"over {len(yours)} draws {words}{' (whitened)' if root else ''}. Your means are "
        f"{shown(yours.mean(0))}, expected about {shown(right[0])}; your standard deviations "
        f"{shown(yours.std(0))}, expected about {shown(right[1])}")


# One result ---------------------------------------------------------------------------------------

COMPARISONS = {"close": close, "fits": fits, "priors": positive, "draws": draws}


def difference(yours, right, how, options):
    """A number, an array, a text, or a list of them, beside the expected one."""
    wanted, found = numbers_in(right), numbers_in(yours)
    if wanted is None and isinstance(right, list):
        if not isinstance(yours, list) or len(yours) != len(right):
            return f"yours is {shown(yours)}, expected {len(right)} results: {shown(right)}"
        each = (difference(x, y, how, options) for x, y in zip(yours, right, strict=True))
        return next(filter(None, each), None)
    if wanted is None:                                           # a text
        return None if yours == right else both(yours, right)
    if found is None:
        return f"yours is {shown(yours)} where numbers were expected"
    shape = (DRAWS, wanted.shape[1]) if how == "draws" else wanted.shape
    if found.shape != shape:
        return f"{both(found, wanted)}: expected shape {shape}"
    if not np.isfinite(found).all():
        return f"yours is not finite: {shown(found)}"
    return COMPARISONS[how](found.astype(float), wanted, **options)


def compare(result, right, how, **options):
    """One result of a worker beside the expected one, or the failure in words."""
    try:
        with np.errstate(all="ignore"):
            return difference(result, right, how, options)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        return f"yours cannot be read as numbers: {str(error)[:200]}"
