"""Running the tests of one function on a student's file. The grader and check.py share this."""
from dataclasses import dataclass

from .compare import error_text, judge
from .runner import Broken, Worker

PATIENCE = 3               # tests of a function that may break off; the others are not run then


class Unloadable(Exception):
    """The student's file cannot be imported; the message says why."""


@dataclass(frozen=True)
class Test:
    """A script, and what the reference answers."""
    title: str
    steps: list
    expected: list

    def bare(self):
        """The steps as the worker gets them."""
        return [{key: value for key, value in step.items() if key != "check"}
                for step in self.steps]


@dataclass(frozen=True)
class Setting:
    """How the functions in `own` are tested: the code that is given, the sandbox, the limits."""
    given: str
    own: tuple
    roots: tuple
    limits: object
    sandbox: str = "none"
    hidden: tuple = ()

    def start(self, files, main, student):
        """A worker that has imported the student's file; Unloadable if that fails."""
        request = {"student": student, "given": self.given, "own": self.own, "roots": self.roots,
                   "memory": self.limits.address_space}
        worker = Worker(files, self.sandbox, self.limits, self.hidden)
        try:
            reply = worker.ask(request, self.limits.load)
            words = error_text(reply) if "failed" in reply else None
        except Broken as error:
            words = str(error)
        if words:
            worker.close()
            raise Unloadable(f"{main} cannot be imported: {words}")
        return worker


def named(value):
    """The functions of the module that an argument names."""
    if isinstance(value, list):
        return set().union(*(named(item) for item in value))
    return {value["name"]} if isinstance(value, dict) and "name" in value else set()


def roots_of(function, tests):
    """The names of the module that the tests of a function touch."""
    roots = {function.partition(".")[0]}
    for step in (step for test in tests for step in test.steps if step["do"] == "call"):
        roots |= named(step["args"]) | named(list(step["kwargs"].values()))
        if step["on"] is None:
            roots.add(step["what"])
    return tuple(sorted(roots))


def run_tests(tests, start, log):
    """[(title, None or words)]. A test that breaks its worker costs itself only."""
    outcomes, worker, broken = [], None, 0
    try:
        for test in tests:
            if broken == PATIENCE:
                outcomes.append((test.title, f"not run: {PATIENCE} tests before it broke off"))
                continue
            worker = worker or start()
            try:
                reply = worker.ask({"steps": test.bare()})
                outcomes.append((test.title, judge(test.steps, reply, test.expected)))
            except Broken as error:
                outcomes.append((test.title, str(error)))
                broken += 1
                close(worker, log)
                worker = None
    finally:
        if worker:
            close(worker, log)
    return outcomes


def close(worker, log):
    """End a worker and keep what it printed."""
    worker.close()
    log.append(worker.log.decode(errors="replace"))
