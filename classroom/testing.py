"""Running the tests of a function on a student's file, and judging what comes back.

The grader and check.py share this. A test is its title, the steps of a script, and for each step
None or what is compared: {"right": the reference's result, "how": a comparison, and its options}.
"""
import json
import re
from dataclasses import dataclass, field

from .comparisons import compare, shown
from .sandbox import Broken, Limits, Worker
from .worker import decode

PATIENCE = 3               # tests of a function that may break off; the others are not run then


class Unloadable(Broken):
    """The student's file cannot be imported; the message says why."""


@dataclass(frozen=True)
class Code:
    """What a worker loads: the student's source, with ours of what is given and not blank."""
    student: str
    given: str
    files: dict = field(default_factory=dict)    # {path: bytes}, the student's
    home: str = "."                              # the folder of the student's file in them
    notebook: bool = False
    limits: Limits = Limits()


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
        return "invalid reply"
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


def start(text, code):
    """A worker that has imported the code, as far as words of the text lead to it.
    Unloadable if that fails."""
    worker = Worker(code.files, code.limits)
    try:
        roots = sorted(set(re.findall(r"[A-Za-z_]\w*", text)))
        request = {"student": code.student, "given": code.given, "roots": roots,
                   "home": code.home, "notebook": code.notebook}
        reply = worker.ask(request, code.limits.load)
        if "failed" in reply:
            raise Broken(str(reply["failed"])[:500])
    except (Broken, RecursionError) as error:                    # a forged reply may be deep
        worker.close()
        raise Unloadable(f"your file cannot be imported: {error}") from error
    return worker


class Session:
    """Runs tests in a worker, and in a new one after a test that broke it: each costs itself."""

    def __init__(self, tests, code):
        self.code, self.worker = code, None
        self.broken = []                         # titles of tests that broke off, or were not run
        self.text = json.dumps([steps for _, steps, _ in tests])

    def run(self, tests, patience=PATIENCE):
        """[(title, None or words)]; when so many tests have broken off, the others are not run."""
        outcomes, self.broken = [], []
        for title, steps, answers in tests:
            if len(self.broken) >= patience:
                outcomes.append((title, "not run: tests before it broke off"))
                self.broken.append(title)
                continue
            self.worker = self.worker or start(self.text, self.code)
            try:
                words = judge(steps, answers, self.worker.ask({"steps": steps}))
            except (Broken, RecursionError) as error:
                words = str(error)
                self.broken.append(title)
                self.close()
            outcomes.append((title, words))
        return outcomes

    def close(self):
        if self.worker:
            self.worker.close()
        self.worker = None


def run_tests(tests, code):
    """[(title, None or words)] of the tests of one function."""
    session = Session(tests, code)
    try:
        return session.run(tests)
    finally:
        session.close()
