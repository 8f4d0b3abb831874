"""Comparing a student's results with expected ones. Both are decoded: plain numbers and arrays.

A comparison returns None where they agree, and otherwise words that say how they differ.
"""
import numpy as np

from .worker import decode

RARE = 1e-6                # draws from the same distribution differ by chance in one of a million


def shown(value):
    """A result in a few words."""
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=5, threshold=12, edgeitems=3, separator=", ")
        text = f"{' '.join(text.split())} of shape {value.shape}"
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = repr(value)
    return text if len(text) < 300 else text[:300] + " ..."


def close(yours, right, rtol=1e-6, atol=1e-8):
    """Numbers and arrays of the same shape that agree up to rounding."""
    if isinstance(right, list):
        if not isinstance(yours, list) or len(yours) != len(right):
            return f"yours is {shown(yours)}, expected {len(right)} results: {shown(right)}"
        told = [close(x, y, rtol, atol) for x, y in zip(yours, right, strict=True)]
        return next((words for words in told if words), None)
    if isinstance(right, (int, float, np.ndarray)) and not isinstance(right, bool):
        if not isinstance(yours, (int, float, np.ndarray)):
            return f"yours is {shown(yours)}, expected {shown(right)}"
        if np.shape(yours) != np.shape(right):
            return f"yours is {shown(yours)}, expected {shown(right)}"
        if np.allclose(yours, right, rtol=rtol, atol=atol):
            return None
    elif type(yours) is type(right) and yours == right:
        return None
    return f"yours is {shown(yours)}, expected {shown(right)}"


def draws(yours, right, p=RARE):
    """Rows drawn from the same distribution: by columns, and along three directions."""
    from scipy.stats import ks_2samp
    if not isinstance(yours, np.ndarray) or yours.shape != right.shape:
        return close(yours, right)
    directions = np.random.default_rng(0).normal(size=(right.shape[1], 3))
    columns = {f"number {i + 1} of each draw": np.eye(right.shape[1])[i]
               for i in range(right.shape[1])}
    columns |= {f"a sum over each draw, weights {shown(w)},": w for w in directions.T}
    for name, weights in columns.items():
        x, y = yours @ weights, right @ weights
        if ks_2samp(x, y, method="asymp").pvalue < p:
            return (f"{name} has mean {x.mean():.4g} and standard deviation {x.std():.4g} over "
                    f"{len(x)} draws, expected {y.mean():.4g} and {y.std():.4g}")
    return None


def fit(yours, right, E, s2, slack=1e-3):
    """A covariance whose quadratic forms miss s2 by no more than the expected one's."""
    if not isinstance(yours, np.ndarray) or yours.shape != right.shape:
        return close(yours, right)
    if not np.allclose(yours, yours.T, atol=1e-6) or np.linalg.eigvalsh(yours).min() < -1e-6:
        return f"yours is not symmetric and positive semidefinite: {shown(yours)}"
    E, s2 = np.array(E), np.array(s2)
    misses = [((E * (E @ S)).sum(1) - s2) for S in (yours, right)]
    cost = [float(miss @ miss) for miss in misses]
    if cost[0] > cost[1] + slack * (s2 @ s2):
        return f"yours misses s2 by {cost[0]:.4g} in squares, {cost[1]:.4g} is possible"
    return None


def priors(yours, right):
    """One (Phi0, mu0) an arm, finite, Phi0 symmetric and positive definite; any will do."""
    if not isinstance(yours, list) or len(yours) != len(right):
        return f"yours is {shown(yours)}, expected {len(right)} pairs (Phi0, mu0)"
    for pair, (Phi0, mu0) in zip(yours, right, strict=True):
        shapes = [np.shape(value) for value in pair] if isinstance(pair, list) else None
        if shapes != [Phi0.shape, mu0.shape]:
            return f"expected Phi0 {Phi0.shape} and mu0 {mu0.shape}, yours is {shown(pair)}"
        if not np.allclose(pair[0], pair[0].T) or np.linalg.eigvalsh(pair[0])[0] <= 0:
            return f"Phi0 has to be symmetric and positive definite, yours is {shown(pair[0])}"
    return None


COMPARISONS = {"close": close, "draws": draws, "fit": fit,
               "priors": priors}


def compare(result, right, how, **options):
    """None, or words: one result of a worker beside the expected one."""
    try:
        yours = decode(result)
        if not finite(yours):
            return f"yours is not finite: {shown(yours)}"
        return COMPARISONS[how](yours, decode(right), **options)
    except (ValueError, TypeError, KeyError, OverflowError, np.linalg.LinAlgError):
        return "yours cannot be read as numbers"


def finite(value):
    """Whether all numbers in a result are."""
    if isinstance(value, list):
        return all(finite(item) for item in value)
    return not isinstance(value, (float, np.ndarray)) or bool(np.isfinite(value).all())


def call_text(step):
    """A step in words: what was called or read."""
    owner = f"{step['on']}." if step["on"] else ""
    if step["do"] == "get":
        return f"{owner}{step['what']}".rstrip(".")
    given = [shown(decode(item)) for item in step["args"]]
    given += [f"{name}={shown(decode(item))}" for name, item in step["kwargs"].items()]
    text = f"{owner}{step['what']}({', '.join(given)})"
    return text if len(text) < 400 else f"{text[:400]} ...)"


def judge(steps, reply, expected):
    """None if a worker's reply to a script is right, or else words for the student."""
    results = reply.get("results")
    if not isinstance(results, list):
        return "what it sent was no answer"
    last_call = ""
    for step, result, right in zip(steps, results, expected, strict=False):
        if step["do"] == "call":
            last_call = call_text(step)
        if "check" not in step:
            continue
        words = compare(result, right, **step["check"])
        if words:
            place = f"{call_text(step)} after {last_call}" if step["do"] == "get" else last_call
            return f"{place}: {words}"
    if "failed" in reply and is_blank(reply):
        return error_text(reply)
    if "failed" in reply:
        return f"{call_text(steps[min(len(results), len(steps) - 1)])}: {error_text(reply)}"
    if len(results) < len(steps):
        return "some results are missing"
    return None


def is_blank(reply):
    """Whether a script ended in a function that is still to be written."""
    failed = reply["failed"]
    return isinstance(failed, dict) and failed.get("error") == "NotImplementedError"


def error_text(reply):
    """An error in the student's code, with the line of the student's own file."""
    failed = reply["failed"] if isinstance(reply["failed"], dict) else {}
    if is_blank(reply):
        return f"{failed.get('within', 'a function')} is not written yet"
    text = f"{failed.get('error')}: {failed.get('message')}"
    if failed.get("line"):
        text += f" (line {failed['line']} of your file, in {failed.get('function', 'nlts.py')})"
    return text
