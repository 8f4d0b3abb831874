"""Tests of a function: recorded with the reference, run on a student's file, and judged.

The grader and check.py share this. A test is its title, the request for a worker, and the steps of
the reference: a call in words and None, or what is compared: {"right": the reference's result,
"how": a comparison, and its options}.
"""
import numpy as np

from . import cases
from .comparisons import compare
from .sandbox import Broken
from .worker import Script

PATIENCE = 2               # tests of a function that may break off; the others are not run then


def record(part, reference, seed):
    """[(title, request, steps)] of a function; the same seed, the same tests."""
    case, names, tests = getattr(cases, part.marker), Script(reference), []
    case(names)
    for title in names.titles:
        own = np.random.default_rng([seed, *f"{part.marker} {title}".encode()])
        request = {"case": part.marker, "title": title, "seed": int(own.integers(2 ** 63))}
        script = Script(reference, title, request["seed"])
        reply = script.play(case)
        if "failed" in reply:
            raise ValueError(f"{part.function}, {title}: the reference fails: {reply['failed']}")
        for (_, check), right in zip(script.steps, script.results, strict=True):
            if check and check["how"] == "draws":    # means and standard deviations, for reports
                right = [np.mean(right, 0).tolist(), np.std(right, 0).tolist()]
            if check:
                check["right"] = right
        tests.append((title, request, script.steps))
    return tests


def judge(steps, reply):
    """None if a worker's reply is right, or else the failure in words."""
    results, call = reply.get("results"), ""
    if not isinstance(results, list):
        return "invalid reply"
    for (text, check), result in zip(steps, results, strict=False):
        if check is None:
            call = text
        elif failure := compare(result, **check):
            return f"{text} after {call}: {failure}" if text else f"{call}: {failure}"
    if "failed" in reply:
        return f"{call}: {str(reply['failed'])[:500]}"
    return None if len(results) == len(steps) else "some results are missing"


def run(worker, tests):
    """[(title, None or the failure)]; after too many that broke off, the others are not run."""
    outcomes, broken = [], 0
    for title, request, steps in tests:
        if broken == PATIENCE:
            outcomes.append((title, "not run: tests before it broke off"))
            continue
        try:
            reply = worker.ask(request)
            failure = judge(steps, reply)
            broken += "TimeoutError" in str(reply.get("failed"))
        except Broken as error:
            failure = str(error)
            broken += 1
        outcomes.append((title, failure))
    return outcomes
