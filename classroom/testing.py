"""Running the tests of a function on a student's file, and judging what comes back.

The grader and check.py share this. A test is its title, the steps of a script, and for each step
None or what is compared: {"right": the reference's result, "how": a comparison, and its options}.
"""
import json
import re

import numpy as np
from numpy.linalg import LinAlgError, eigvalsh

from .sandbox import Broken, Worker
from .worker import decode, flat

PATIENCE = 3               # tests of a function that may break off; the others are not run then
RARE = 1e-6                # draws from the same distribution differ by chance in one of a million


class Unloadable(Broken):
    """The student's file cannot be imported; the message says why."""


# Comparisons of decoded results: None where they agree, and otherwise words -----------------------

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


def close(yours, right, rtol=1e-6, atol=1e-8):
    """Numbers that agree up to rounding."""
    if np.allclose(yours, right, rtol=rtol, atol=atol):
        return None
    return f"yours is {shown(yours)}, expected {shown(right)}"


def draws(yours, right):
    """Rows drawn from the same distribution: Kolmogorov-Smirnov, by columns and three sums."""
    from scipy.stats import ks_2samp  # slow to import
    n, width = right.shape
    for weights in (*np.eye(width), *np.random.default_rng(0).normal(size=(3, width))):
        x, y = yours @ weights, right @ weights
        if ks_2samp(x, y, method="asymp").pvalue < RARE:
            return (f"the sum of each draw with weights {shown(weights)} has mean {x.mean():.4g} "
                    f"and standard deviation {x.std():.4g} over {n} draws, expected {y.mean():.4g} "
                    f"and {y.std():.4g}")
    return None


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


COMPARISONS = {"close": close, "draws": draws, "fits": fits, "priors": positive}


def compare(result, right, how, **options):
    """One result of a worker beside the expected one; in lists one by one."""
    try:
        yours, wanted = decode(result), decode(right)
        if isinstance(wanted, list):
            if not isinstance(yours, list) or len(yours) != len(wanted):
                return f"yours is {shown(yours)}, expected {len(wanted)} results: {shown(wanted)}"
            told = [compare(x, y, how, **options) for x, y in zip(result, right, strict=True)]
            return next(filter(None, told), None)
        if not np.isfinite(flat(yours)).all():
            return f"yours is not finite: {shown(yours)}"
        if isinstance(yours, list) or np.shape(yours) != np.shape(wanted):
            return f"yours is {shown(yours)}, expected {shown(wanted)}"
        return COMPARISONS[how](yours, wanted, **options)
    except (ValueError, TypeError, KeyError, OverflowError, LinAlgError):
        return "yours cannot be read as numbers"


# A script and the reply to it ---------------------------------------------------------------------

def call_text(step):
    """A step in words: what was called or looked at."""
    if "args" not in step:
        return step["path"]
    given = [shown(decode(item)) for item in step["args"]]
    given += [f"{name}={shown(decode(item))}" for name, item in step["kwargs"].items()]
    return f"{step['path']}({', '.join(given)})"[:500]


def judge(steps, answers, reply):
    """None if a worker's reply to a script is right, or else words for the student."""
    results = reply.get("results")
    if not isinstance(results, list):
        return "what it sent was no answer"
    last = ""
    for step, answer, result in zip(steps, answers, results, strict=False):
        last = call_text(step) if "args" in step else last
        words = compare(result, **answer) if answer else None
        if words:
            return f"{last}: {words}" if "args" in step else f"{step['path']} after {last}: {words}"
    if "failed" in reply:
        called = call_text(steps[min(len(results), len(steps) - 1)])
        return f"{called}: {str(reply['failed'])[:500]}"
    return None if len(results) == len(steps) else "some results are missing"


def start(text, files, student, given, limits):
    """A worker that has imported the student's source, with ours of what is given and not blank,
    as far as words of the text lead to it. Unloadable if that fails."""
    worker = Worker(files, limits)
    try:
        roots = sorted(set(re.findall(r"[A-Za-z_]\w*", text)))
        reply = worker.ask({"student": student, "given": given, "roots": roots}, limits.load)
        if "failed" in reply:
            raise Broken(str(reply["failed"])[:500])
    except (Broken, RecursionError) as error:                    # a forged reply may be deep
        worker.close()
        raise Unloadable(f"your file cannot be imported: {error}") from error
    return worker


def run_tests(tests, *code):
    """[(title, None or words)]; code: as `start` takes it. A test that breaks its worker costs
    itself only."""
    outcomes, worker, broken = [], None, 0
    text = json.dumps([steps for _, steps, _ in tests])
    for title, steps, answers in tests:
        words = f"not run: {PATIENCE} tests before it broke off"
        if broken < PATIENCE:
            worker = worker or start(text, *code)
            try:
                words = judge(steps, answers, worker.ask({"steps": steps}))
            except (Broken, RecursionError) as error:
                words, broken = str(error), broken + 1
                worker = worker.close()
        outcomes.append((title, words))
    if worker:
        worker.close()
    return outcomes
