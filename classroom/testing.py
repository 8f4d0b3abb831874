"""Running the tests of a function on a student's file, and judging what comes back.

The grader and check.py share this. A comparison returns None where results agree, and otherwise
words that say how they differ. Both sides are decoded: plain numbers and arrays.
"""
from dataclasses import dataclass
from subprocess import DEVNULL
from typing import NamedTuple

import numpy as np

from .sandbox import Broken, Limits, Worker
from .worker import decode, flat

PATIENCE = 3               # tests of a function that may break off; the others are not run then
RARE = 1e-6                # draws from the same distribution differ by chance in one of a million


class Unloadable(Exception):
    """The student's file cannot be imported; the message says why."""


# Comparisons --------------------------------------------------------------------------------------

def shown(value, most=300):
    """A result in a few words."""
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=5, threshold=12, edgeitems=3, separator=", ")
        text = f"{' '.join(text.split())} of shape {value.shape}"
    elif isinstance(value, list):
        text = f"[{', '.join(shown(item, most // 3) for item in value)}]"
    elif isinstance(value, dict):
        text = str(value.get("name", "rng"))
    else:
        text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) < most else f"{text[:most]} ..."


def close(yours, right, rtol=1e-6, atol=1e-8):
    """Numbers and arrays of the same shape that agree up to rounding."""
    numbers = (int, float, np.ndarray)
    if isinstance(right, list):
        if not isinstance(yours, list) or len(yours) != len(right):
            return f"yours is {shown(yours)}, expected {len(right)} results: {shown(right)}"
        told = [close(x, y, rtol, atol) for x, y in zip(yours, right, strict=True)]
        return next(filter(None, told), None)
    same_shape = isinstance(yours, numbers) and np.shape(yours) == np.shape(right)
    if same_shape and np.allclose(yours, right, rtol=rtol, atol=atol):
        return None
    return f"yours is {shown(yours)}, expected {shown(right)}"


def draws(yours, right):
    """Rows drawn from the same distribution: Kolmogorov-Smirnov, by columns and three sums."""
    if not isinstance(yours, np.ndarray) or yours.shape != right.shape:
        return close(yours, right)
    n, width = right.shape
    most = np.sqrt(-np.log(RARE / 2) / n)
    for weights in (*np.eye(width), *np.random.default_rng(0).normal(size=(3, width))):
        x, y = np.sort(yours @ weights), np.sort(right @ weights)
        both = np.concatenate([x, y])
        shares = [np.searchsorted(z, both, side="right") / n for z in (x, y)]
        if np.abs(shares[0] - shares[1]).max() > most:
            return (f"the sum of each draw with weights {shown(weights)} has mean {x.mean():.4g} "
                    f"and standard deviation {x.std():.4g} over {n} draws, expected {y.mean():.4g} "
                    f"and {y.std():.4g}")
    return None


def fits(yours, right, E, s2, slack=1e-3):
    """A covariance whose quadratic forms miss s2 by no more than the expected one's."""
    if not isinstance(yours, np.ndarray) or yours.shape != right.shape:
        return close(yours, right)
    if not np.allclose(yours, yours.T, atol=1e-6) or np.linalg.eigvalsh(yours).min() < -1e-6:
        return f"yours is not symmetric and positive semidefinite: {shown(yours)}"
    E, s2 = np.array(E), np.array(s2)
    cost, least = (float((((E @ S * E).sum(1) - s2) ** 2).sum()) for S in (yours, right))
    if cost > least + slack * (s2 @ s2):
        return f"yours misses s2 by {cost:.4g} in squares, {least:.4g} is possible"
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


COMPARISONS = {"close": close, "draws": draws, "fits": fits, "priors": priors}


def compare(result, right, how, **options):
    """None, or words: one result of a worker beside the expected one."""
    try:
        yours = decode(result)
        if not np.isfinite(flat(yours)).all():
            return f"yours is not finite: {shown(yours)}"
        return COMPARISONS[how](yours, decode(right), **options)
    except (ValueError, TypeError, KeyError, OverflowError, np.linalg.LinAlgError):
        return "yours cannot be read as numbers"


# A script and the reply to it ---------------------------------------------------------------------

def call_text(step):
    """A step in words: what was called or looked at."""
    if "args" not in step:
        return step["path"]
    given = [shown(decode(item)) for item in step["args"]]
    given += [f"{name}={shown(decode(item))}" for name, item in step["kwargs"].items()]
    return f"{step['path']}({', '.join(given)})"[:500]


def error_text(reply):
    """An error in the student's code, with the line of the student's own file."""
    failed = reply["failed"] if isinstance(reply["failed"], dict) else {}
    if failed.get("error") == "NotImplementedError":
        return f"{failed.get('within', 'a function')} is not written yet"
    text = f"{failed.get('error')}: {failed.get('message')}"
    if failed.get("line"):
        text += f" (line {failed['line']} of your file, in {failed.get('function', 'nlts.py')})"
    return text


def judge(steps, reply, expected):
    """None if a worker's reply to a script is right, or else words for the student."""
    results = reply.get("results")
    if not isinstance(results, list):
        return "what it sent was no answer"
    last = ""
    for step, result, right in zip(steps, results, expected, strict=False):
        last = call_text(step) if "args" in step else last
        words = compare(result, right, **step["check"]) if "check" in step else None
        if words:
            return f"{last}: {words}" if "args" in step else f"{step['path']} after {last}: {words}"
    if "failed" in reply:
        return f"{call_text(steps[min(len(results), len(steps) - 1)])}: {error_text(reply)}"
    return None if len(results) == len(steps) else "some results are missing"


class Test(NamedTuple):
    """A script, and what the reference answers."""
    title: str
    steps: list
    expected: list

    def bare(self):
        """The steps as the worker gets them: nothing of what is compared, and how."""
        return [{key: step[key] for key in step if key != "check"} for step in self.steps]


def named(value):
    """The names that an argument holds."""
    if isinstance(value, list):
        return set().union(*map(named, value))
    return {value["name"]} if isinstance(value, dict) and "name" in value else set()


@dataclass(frozen=True)
class Setting:
    """How a function is tested: the code that is given, what is the student's, the limits."""
    given: str
    own: tuple
    roots: tuple               # names that the tests touch; given code they do not need is left out
    limits: Limits
    sandbox: str = "none"
    output: int | None = DEVNULL

    def start(self, files, main, student):
        """A worker that has imported the student's file; Unloadable if that fails."""
        worker = Worker(files, self.sandbox, self.limits, self.output)
        try:
            reply = worker.ask({"student": student, "given": self.given, "own": self.own,
                                "roots": self.roots, "memory": self.limits.address_space},
                               self.limits.load)
            if "failed" in reply:
                raise Broken(error_text(reply))
        except Broken as error:
            worker.close()
            raise Unloadable(f"{main} cannot be imported: {error}") from error
        return worker


def roots_of(function, tests):
    """The names that the tests of a function touch."""
    roots = {function}
    for step in (step for test in tests for step in test.steps):
        roots |= {step["path"]} | named(step.get("args")) | named(step.get("value"))
    return tuple(sorted({name.partition(".")[0] for name in roots}))


def run_tests(tests, start):
    """[(title, None or words)]. A test that breaks its worker costs itself only."""
    outcomes, worker, broken = [], None, 0
    for test in tests:
        words = f"not run: {PATIENCE} tests before it broke off"
        if broken < PATIENCE:
            worker = worker or start()
            try:
                words = judge(test.steps, worker.ask({"steps": test.bare()}), test.expected)
            except Broken as error:
                words, broken = str(error), broken + 1
                worker = worker.close()
        outcomes.append((test.title, words))
    if worker:
        worker.close()
    return outcomes
