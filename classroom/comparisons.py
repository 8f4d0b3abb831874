"""Results of a student beside the expected ones: None where they agree, and otherwise words."""
from itertools import combinations

import numpy as np
from numpy.linalg import LinAlgError, eigvalsh

from .worker import decode, flat

DIGITS = 1e-4              # of the largest entry: what may be missing, so float32 is enough
FAR = 5.6                  # standard errors: chance alone goes so far once in fifty million


def shown(value, most=300):
    """A result in a few words."""
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
    words = close(yours @ yours.T, right @ right.T)
    return words and f"root root': {words}"


def positive(yours, right, least=0.0):
    """A matrix that is symmetric and positive definite, any will do; or any vector."""
    if yours.ndim == 1 or np.allclose(yours, yours.T, atol=1e-6) and eigvalsh(yours)[0] > least:
        return None
    return f"yours is not symmetric and positive definite: {shown(yours)}"


def fits(yours, right, E, s2, slack=1e-3):
    """A covariance whose quadratic forms miss s2 by no more than the expected one's."""
    E, s2 = np.array(E), np.array(s2)
    cost, least = (float((((E @ S * E).sum(1) - s2) ** 2).sum()) for S in (yours, right))
    if cost > least + slack * (s2 @ s2):
        return f"yours misses s2 by {cost:.4g} in squares, {least:.4g} is possible"
    return positive(yours, right, least=-1e-6)


# Draws --------------------------------------------------------------------------------------------
# Each draw is turned into numbers that are uniform on (-1, 1) and independent if the draw is right.
# Then the averages of Legendre polynomials of one of them, of products of two, and of products of
# one with that of the next draw are all 0: mean, spread, skewness and tails; correlation, and a
# spread that depends on another number; a generator that repeats itself. All are bounded, so an
# average of 10,000 is as good as normal, even FAR out.

LEGENDRE = {1: lambda x: x, 2: lambda x: (3 * x * x - 1) / 2,
            3: lambda x: (5 * x ** 3 - 3 * x) / 2,
            4: lambda x: (35 * x ** 4 - 30 * x * x + 3) / 8}
WRONG = {1: "is shifted", 2: "has a wrong spread", 3: "is skewed", 4: "has wrong tails"}


def polynomials(x):
    """{degree: of each number, with mean 0 and variance 1 if it is uniform}."""
    return {degree: np.sqrt(2 * degree + 1) * p(x) for degree, p in LEGENDRE.items()}


def odd_average(x, names):
    """None if rows x (n, m) look uniform on (-1, 1) and independent, or words."""
    n, bases = len(x), [polynomials(column) for column in x.T]

    def far(values):
        return abs(values.mean()) * np.sqrt(len(values)) > FAR
    for name, base in zip(names, bases, strict=True):
        for degree, values in base.items():
            if far(values):
                return f"{name} {WRONG[degree]}"
    for i, j in combinations(range(len(names)), 2):
        if any(far(bases[i][k] * bases[j][m]) for k in (1, 2) for m in (1, 2)):
            return f"{names[i]} and {names[j]} depend on each other"
    for name, base in zip(names, bases, strict=True):
        if any(far(base[k][:-1] * base[k][1:]) for k in (1, 2)):
            return f"{name} depends on that of the draw before"
        if len(np.unique(base[1])) < 0.95 * n:
            return f"{name} has few different values: float16?"
    return None


def whitened(rows, arm, name):
    """Uniform numbers of each draw (nu2, mu_tilde) of an arm, {what: numbers}; or words."""
    from scipy.stats import norm  # slow to import
    nu2, mu_tilde = rows[:, 0], rows[:, 1:]
    uniform = {}
    if "nu2" not in arm:
        uniform[f"nu2{name}"] = cdf_of_noise(nu2, arm)
    elif not np.allclose(nu2, arm["nu2"], rtol=1e-3):
        return f"nu2{name} is {nu2[0]:.6g}, given was {arm['nu2']:.6g}"
    chol = np.linalg.cholesky(arm["precision"])                  # white: chol'(mu_tilde - mu_hat)
    white = (mu_tilde - arm["mu_hat"]) @ chol / np.sqrt(nu2)[:, None]
    for i, column in enumerate(2 * norm.cdf(white).T - 1):
        uniform[f"coordinate {i} of mu_tilde{name}, whitened,"] = column
    return uniform


def cdf_of_noise(nu2, arm):
    """nu2 ~ Inv-Gamma(a, b), as numbers that are uniform on (-1, 1)."""
    from scipy.stats import invgamma  # slow to import
    return 2 * invgamma.cdf(nu2, arm["a"], scale=arm["b"]) - 1


def posterior(yours, right, arms):
    """Rows of (nu2, mu_tilde) of some arms, each drawn from its posterior.
    arms: {mu_hat, precision, and a and b, or nu2 if it is known}, in the order of the columns."""
    uniform, start = {}, 0
    for i, arm in enumerate(arms):
        rows = yours[:, start:start + 1 + len(arm["mu_hat"])]
        start += rows.shape[1]
        if not (rows[:, 0] > 0).all():
            return "nu2 is not always positive"
        found = whitened(rows, arm, f" of arm {i}" if len(arms) > 1 else "")
        if isinstance(found, str):
            return found
        uniform |= found
    return verdict(uniform, yours, right)


def noises(yours, right, laws):
    """Rows of a nu2 per arm, each inverse gamma with its own a and b."""
    uniform = {f"nu2 of arm {i}": cdf_of_noise(yours[:, i], law) for i, law in enumerate(laws)}
    return verdict(uniform, yours, right)


def verdict(uniform, yours, right):
    """None, or what is odd, with means and standard deviations of the student's draws and ours."""
    words = odd_average(np.column_stack(list(uniform.values())), list(uniform))
    return words and (
        f"over {len(yours)} draws {words}. Your means are {shown(yours.mean(0))}, expected about "
        f"{shown(right[0])}; your standard deviations {shown(yours.std(0))}, expected about "
        f"{shown(right[1])}")


def choices(yours, right, shares):
    """Rows of one arm each, played with these shares and independently of the one before."""
    played, shares = yours[:, 0], np.array(shares)
    hits = played[:, None] == np.arange(len(shares))
    found = hits.mean(0)
    white = (hits - shares) / np.sqrt(shares * (1 - shares))     # (n, N), mean 0 and variance 1
    if (np.abs(white.mean(0)) * np.sqrt(len(white)) > FAR).any() or found.sum() < 0.9999:
        return f"over {len(played)} calls the arms' shares are {shown(found)}, not {shown(shares)}"
    before = np.abs(white[:-1].T @ white[1:]) / np.sqrt(len(white))
    return "an action depends on the one before" if (before > FAR).any() else None


# One result ---------------------------------------------------------------------------------------

COMPARISONS = {"close": close, "root": root, "fits": fits, "priors": positive,
               "posterior": posterior, "noises": noises, "choices": choices}


def as_array(value):
    """Lists of numbers, of one length, as an array: they say the same."""
    try:
        return np.array(value, float) if isinstance(value, list) else value
    except (ValueError, TypeError):
        return value


def one_by_one(result, right, how, options):
    """Lists of results, each beside the expected one."""
    if isinstance(result, dict) and "array" in result:           # three numbers as an array of 3
        result = decode(result).tolist()
    if not isinstance(result, list) or len(result) != len(right):
        return f"yours is {shown(decode(result))}, expected {len(right)} results: " \
               f"{shown(decode(right))}"
    told = [compare(x, y, how, **options) for x, y in zip(result, right, strict=True)]
    return next(filter(None, told), None)


def compare(result, right, how, times=None, **options):
    """One result of a worker beside the expected one; in lists one by one. times: it is that many
    draws, and the expected ones are summed up in two rows."""
    try:
        wanted = decode(right)
        if isinstance(wanted, list):
            return one_by_one(result, right, how, options)
        yours = as_array(decode(result)) if isinstance(wanted, np.ndarray) else decode(result)
        if not np.isfinite(flat(yours)).all():
            return f"yours is not finite: {shown(yours)}"
        shape = (times, wanted.shape[1]) if times else np.shape(wanted)
        if isinstance(yours, list) or np.shape(yours) != shape:
            return f"{both(yours, wanted)}: expected shape {shape}"
        return COMPARISONS[how](yours, wanted, **options)
    except (ValueError, TypeError, KeyError, OverflowError, LinAlgError, MemoryError):
        return "yours cannot be read as numbers"
