"""Running the tests of a function on a student's file, and judging the replies.

The grader and check.py share this. A test is its title, the steps of a script, and for each step
None or what is compared: {"right": the reference's result, "how": a comparison, and its options}.
"""
from dataclasses import dataclass, field

from .comparisons import compare, shown
from .sandbox import Broken, Limits, Worker
from .worker import decode

PATIENCE = 2               # tests of a function that may break off; the others are not run then


class Unloadable(Broken):
    """The student's file cannot be imported; the message says why."""


@dataclass(frozen=True)
class Code:
    """What a worker loads: the student's source, with ours of what is given and not blank."""
    student: str
    given: str
    files: dict = field(default_factory=dict)    # {path: bytes}, the student's
    home: str = "."                              # the folder of the student's file in them
    limits: Limits = Limits()


def call_text(step):
    """A step in words: what was called or looked at."""
    if "args" not in step:
        return step["path"]
    given = [shown(decode(item)) for item in step["args"]]
    given += [f"{name}={shown(decode(item))}" for name, item in step["kwargs"].items()]
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


def start(code):
    """(worker that has imported the code, notes). Unloadable if that fails."""
    worker = Worker(code.files, code.limits)
    try:
        request = {"student": code.student, "given": code.given, "home": code.home,
                   "seconds": code.limits.seconds}
        reply = worker.ask(request, code.limits.load)
        if "failed" in reply:
            raise Broken(str(reply["failed"])[:500])
    except Broken as error:
        worker.close()
        raise Unloadable(f"your file cannot be imported: {error}") from error
    notes = reply.get("notes")
    return worker, [str(note)[:300] for note in notes[:10]] if isinstance(notes, list) else []


class Session:
    """Runs tests in a worker, and in a new one after a test that broke it: each costs itself."""

    def __init__(self, code):
        self.code, self.worker, self.notes = code, None, []

    def run(self, tests, patience=PATIENCE):
        """[(title, None or the failure)]; after too many tests that broke off, the others are not
        run."""
        outcomes, broken = [], 0
        for title, steps, answers in tests:
            if broken >= patience:
                outcomes.append((title, "not run: tests before it broke off"))
                continue
            if not self.worker:
                self.worker, self.notes = start(self.code)
            seconds = self.code.limits.seconds
            try:
                reply = self.worker.ask({"steps": steps, "seconds": seconds}, seconds)
                failure = judge(steps, answers, reply)
                broken += "TimeoutError" in str(reply.get("failed"))
            except Broken as error:
                failure = str(error)
                broken += 1
                self.close()
            outcomes.append((title, failure))
        return outcomes

    def close(self):
        if self.worker:
            self.worker.close()
        self.worker = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
