"""A student's results beside the expected ones: None where they agree, else the failure in words.

Replies are not trusted: type, shape and size are checked before any value, and a comparison
passes only if a number is within its limit, which NaN never is.
"""
from itertools import combinations, product

import numpy as np
from numpy.linalg import LinAlgError, eigvalsh

from .worker import MOST_NUMBERS, decode

DIGITS = 1e-4              # of the largest entry, so float32 is enough
FAR = 5.6                  # standard errors: chance alone goes so far once in fifty million
FAR_KS = 3.1               # the same for sqrt(n) times the Kolmogorov-Smirnov distance
LAGS = 8


def shown(value, most=300):
    """A result in a few words."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=5, threshold=12, edgeitems=3, separator=", ")
        text = f"{' '.join(text.split())} of shape {value.shape}"
    elif isinstance(value, list):
        text = f"[{', '.join(shown(item, most // 3) for item in value[:12])}]"
    elif isinstance(value, dict):
        text = str(value.get("name", value.get("object")))
    else:
        text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) < most else f"{text[:most]} ..."


def both(yours, right):
    return f"yours is {shown(yours)}, expected {shown(right)}"


# A reply, before it is used -----------------------------------------------------------------------

def is_number(value):
    return type(value) in (bool, int, float)


def read_array(value):
    """The array of a reply, or a ValueError: shape and size first, then what is in it."""
    numbers, shape = value["array"], value.get("shape")
    if not isinstance(shape, list) or len(shape) > 4 or not {*map(type, shape)} <= {int}:
        raise ValueError("an array without a shape")
    if not all(0 <= n < 10 ** 6 for n in shape):
        raise ValueError(f"an array of shape {tuple(shape)}")
    size = int(np.prod(shape))
    if not isinstance(numbers, list) or not size == len(numbers) <= MOST_NUMBERS:
        raise ValueError("an array whose size is not that of its shape")
    if not all(map(is_number, numbers)):
        raise ValueError("an array of anything but numbers")
    return np.array(numbers, float).reshape(shape)


def read(value, depth=3):
    """A result of a reply as numbers, texts, arrays and lists, or a ValueError."""
    if isinstance(value, dict):
        return read_array(value) if "array" in value else {"object": str(value.get("object"))[:200]}
    if isinstance(value, list):
        if not depth or len(value) > 1000:
            raise ValueError("a list that is too long or too deep")
        return [read(item, depth - 1) for item in value]
    return value[:1000] if isinstance(value, str) else value


def as_numbers(value):
    """A list of numbers or of rows as an array: it says the same. Else a ValueError."""
    if isinstance(value, list):
        parts = [as_numbers(item) for item in value]
        if len({part.shape for part in parts}) > 1:
            raise ValueError("rows of different lengths")
        value = np.array(parts, float)
    if isinstance(value, np.ndarray):
        return value
    if not is_number(value):
        raise ValueError(f"{shown(value)} where numbers were expected")
    return np.array(float(value))


# Numbers ------------------------------------------------------------------------------------------

def close(yours, right, digits=DIGITS):
    """Numbers that agree, up to a share of the largest one."""
    size = np.abs(right).max(initial=0.0) + 1e-8
    off = np.abs(yours - right).max(initial=0.0) / size
    if off <= digits:
        return None
    nearly = f"; it is off by {off:.1g} of the largest number, {digits:g} is allowed"
    return both(yours, right) + (nearly if off < 0.01 else "")


def root(yours, right):
    """A root of the same covariance: any is right."""
    failure = close(yours @ yours.T, right @ right.T)
    return failure and f"root root': {failure}"


def positive(yours, right, least=0.0):
    """A matrix that is symmetric and positive definite, any will do; or any vector."""
    if yours.ndim == 1 or np.allclose(yours, yours.T, 1e-4, 1e-6) and eigvalsh(yours)[0] > least:
        return None
    return f"yours is not symmetric and positive definite: {shown(yours)}"


def fits(yours, right, E, s2, slack=1e-3):
    """A covariance whose quadratic forms miss s2 by no more than the expected one's."""
    E, s2 = np.array(E), np.array(s2)
    cost, least = (float((((E @ S * E).sum(1) - s2) ** 2).sum()) for S in (yours, right))
    if not cost <= least + slack * (s2 @ s2):
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
    n = len(x)
    for degree, average in enumerate(P.mean(0), 1):
        if is_far(average, n):
            return WRONG.get(degree, "has wrong tails")
    steps = np.arange(n + 1) / n
    cdf = np.sort(x) / 2 + 0.5
    if not np.sqrt(n) * max((steps[1:] - cdf).max(), (cdf - steps[:-1]).max()) <= FAR_KS:
        return "has a wrong distribution (Kolmogorov-Smirnov)"
    return "has few different values: float16?" if len(np.unique(x)) < 0.95 * n else None


def odd_draws(x, names):
    """None if rows x (n, m) look uniform on (-1, 1) and independent, or words."""
    n, m = x.shape
    P = np.polynomial.legendre.legvander(x, 8)[..., 1:] * np.sqrt(2 * np.arange(1, 9) + 1)
    for i, name in enumerate(names):
        if words := odd_marginal(x[:, i], P[:, i]):
            return f"{name} {words}"
    for i, j in combinations(range(m), 2):
        if is_far(P[:, i, :4].T @ P[:, j, :4] / n, n):
            return f"{names[i]} and {names[j]} depend on each other"
    for trio in combinations(range(m), 3):
        for degrees in product((0, 1), repeat=3):
            if is_far(np.prod(P[:, trio, degrees], axis=1).mean(), n):
                return f"{', '.join(names[i] for i in trio)} depend on each other"
    Q = P[..., :2].reshape(n, -1)
    for lag in range(1, LAGS + 1):
        if is_far(Q[:-lag].T @ Q[lag:] / (n - lag), n - lag):
            return f"a draw depends on the one {lag} before"
    return None


def uniform_of(rows, law, start):
    """Columns of draws, from `start` on, as {name: numbers that are uniform on (-1, 1)}."""
    from scipy.stats import invgamma, norm, t  # slow to import
    column = rows[:, start]
    if law["law"] == "inverse gamma":
        return {f"nu2 of arm {start}": 2 * invgamma.cdf(column, law["a"], scale=law["b"]) - 1}
    if law["law"] == "t":
        frozen = t(law["df"]) if law["df"] else norm
        return {f"the score of arm {start}":
                2 * frozen.cdf((column - law["mean"]) / law["scale"]) - 1}
    g = len(law["mean"])                                         # whitened by chol'
    white = (rows[:, start:start + g] - law["mean"]) @ np.linalg.cholesky(law["precision"])
    white = 2 * norm.cdf(white / np.sqrt(law["nu2"])) - 1
    return {f"number {start + i} of the draw, whitened,": white[:, i] for i in range(g)}


def draws(yours, right, laws):
    """Rows of independent draws; the laws are those of its columns."""
    uniform = {}
    for law in laws:
        uniform |= uniform_of(yours, law, len(uniform))
    words = odd_draws(np.column_stack(list(uniform.values())), list(uniform))
    return words and (
        f"over {len(yours)} draws {words}. Your means are {shown(yours.mean(0))}, expected about "
        f"{shown(right[0])}; your standard deviations {shown(yours.std(0))}, expected about "
        f"{shown(right[1])}")


# One result ---------------------------------------------------------------------------------------

COMPARISONS = {"close": close, "root": root, "fits": fits, "priors": positive, "draws": draws}


def repeated(result, before):
    if result == before:
        return None
    return f"yours is {shown(read(result))} with one generator and {shown(read(before))} with " \
           "another in the same state: draw from the rng that is passed in, and from nothing else"


def largest(result, before):
    scores = as_numbers(read(before))
    if is_number(result) and scores.ndim == 1 and result == scores.argmax():
        return None
    return f"yours is {shown(read(result))}, with scores {shown(scores)} in the same state"


def one_by_one(yours, right, how, options):
    """Lists of results, each beside the expected one; three numbers may come as an array."""
    if isinstance(yours, np.ndarray) and len(yours.shape) and yours.shape[0] == len(right):
        yours = list(yours)
    if not isinstance(yours, list) or len(yours) != len(right):
        return f"yours is {shown(yours)}, expected {len(right)} results: {shown(right)}"
    told = (judge_value(x, y, how, options) for x, y in zip(yours, right, strict=True))
    return next(filter(None, told), None)


def judge_value(yours, right, how, options, times=None):
    """One value, or a list of them, beside the expected one; times: so many draws."""
    if isinstance(right, list):
        return one_by_one(yours, right, how, options)
    if not (is_number(right) or isinstance(right, np.ndarray)):
        return None if yours == right else both(yours, right)
    yours, wanted = as_numbers(yours), np.asarray(right, float)
    shape = (times, wanted.shape[1]) if times else wanted.shape
    if yours.shape != shape:
        return f"{both(yours, right)}: expected shape {shape}"
    if not np.isfinite(yours).all():
        return f"yours is not finite: {shown(yours)}"
    return COMPARISONS[how](yours, wanted, **options)


def compare(result, right, how, before=None, times=None, **options):
    """One result of a worker beside the expected one, or the failure in words."""
    try:
        if how == "raises":
            raised = result.get("raises") if isinstance(result, dict) else None
            return None if raised == right["raises"] else \
                f"expected a {right['raises']}, yours raises {str(raised)[:100]}"
        if how in ("repeats", "largest"):
            return (repeated if how == "repeats" else largest)(result, before)
        with np.errstate(all="ignore"):
            return judge_value(read(result), decode(right), how, options, times)
    except (ValueError, TypeError, OverflowError, LinAlgError, RecursionError) as error:
        return f"yours cannot be read as numbers: {str(error)[:200]}"
