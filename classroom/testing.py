"""Running the tests of a function on a student's file, and judging the replies.

The grader and check.py share this. A test is its title, the steps of a script, and for each step
None or what is compared: {"right": the reference's result, "how": a comparison, and its options}.
"""
from .comparisons import compare, shown
from .sandbox import Broken
from .worker import decode

PATIENCE = 2               # tests of a function that may break off; the others are not run then


def call_text(step):
    """A step in words: what was called or looked at."""
    if "args" not in step:
        return step["path"]
    args, kwargs = decode([step["args"], [*step["kwargs"].values()]], lambda name: {"object": name})
    given = [shown(item) for item in args]
    given += [f"{name}={shown(item)}" for name, item in zip(step["kwargs"], kwargs, strict=True)]
    return f"{step['path']}({', '.join(given)})"[:500]


def judge(steps, answers, reply):
    """None if a worker's reply to a script is right, or else the failure in words."""
    results = reply.get("results")
    if not isinstance(results, list):
        return "invalid reply"
    last = ""
    for step, answer, result in zip(steps, answers, results, strict=False):
        last = call_text(step) if "args" in step else last
        if answer and "before" in answer:
            answer = answer | {"before": results[answer["before"]]}
        failure = compare(result, **answer) if answer else None
        if failure:
            where = last if "args" in step else f"{step['path']} after {last}"
            return f"{where}: {failure}"
    if "failed" in reply:
        called = call_text(steps[min(len(results), len(steps) - 1)])
        return f"{called}: {str(reply['failed'])[:500]}"
    return None if len(results) == len(steps) else "some results are missing"


def run(worker, tests, patience=PATIENCE):
    """[(title, None or the failure)]; after too many that broke off, the others are not run."""
    outcomes, broken = [], 0
    for title, steps, answers in tests:
        if broken >= patience:
            outcomes.append((title, "not run: tests before it broke off"))
            continue
        try:
            reply = worker.ask(steps)
            failure = judge(steps, answers, reply)
            broken += "TimeoutError" in str(reply.get("failed"))
        except Broken as error:
            failure = str(error)
            broken += 1
        outcomes.append((title, failure))
    return outcomes
