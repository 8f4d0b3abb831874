"""Grading: each function alone, by scripts that the reference has run before any student's code."""
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from . import source
from .cases import scripts_of
from .catalogue import ASSIGNMENTS, sealed_while
from .sandbox import Limits
from .submissions import Submission
from .testing import Setting, Test, Unloadable, error_text, roots_of, run_tests
from .worker import Stage


@dataclass
class Result:
    """What a submission got: {part: [(title, None or words)]} and {part: points}."""
    submission: Submission
    problem: str
    outcomes: dict = field(default_factory=dict)
    scores: dict = field(default_factory=dict)
    rank: dict = field(default_factory=dict)     # of the open assignment: what was won back

    @property
    def id(self):
        return self.submission.id

    @property
    def points(self):
        return round(sum(n for part, n in self.scores.items() if not part.optional), 2)


def build_tests(function, reference, seed):
    """The tests of a function, with the answers of the reference."""
    tests = []
    for title, steps in scripts_of(function, reference, seed).items():
        reply = Stage(reference).run(steps)
        if "failed" in reply:
            raise ValueError(f"{function}, {title}: the reference fails: {error_text(reply)}")
        tests.append(Test(title, steps, reply["results"]))
    return tests


class Grader:
    """Everything that grading needs, read once: tests, answers, and what the sandbox may see."""

    def __init__(self, text, parts, closed, seed, sandbox="none", seconds=10.0):
        self.text, self.parts = text, parts
        self.tests, self.settings = {}, {}
        reference = source.load(text, "nlts_reference")
        for part in parts:
            tests = self.tests[part] = build_tests(part.function, reference, seed)
            given = source.blank(text, [part.function, *closed])
            roots = roots_of(part.function, tests)
            self.settings[part] = Setting(given, (part.function,), roots, Limits(seconds), sandbox)

    @property
    def points(self):
        return round(sum(part.points for part in self.parts if not part.optional), 2)

    def try_out(self):
        """ValueError unless the reference itself gets full marks here: the sandbox works."""
        part, reference = self.parts[0], Submission("reference", {}, "nlts.py", self.text)
        for _, words in run_tests(self.tests[part], lambda: self.start(reference, part)):
            if words:
                raise ValueError(f"the sandbox does not work here: {words}")

    def start(self, submission, part):
        """A worker with the student's file, for this function."""
        return self.settings[part].start(submission.files, submission.main, submission.source)

    def grade_part(self, part, result):
        """The outcomes of one function."""
        return run_tests(self.tests[part], lambda: self.start(result.submission, part))

    def grade(self, submission):
        """The result of one submission, whatever is in it."""
        result = Result(submission, submission.problem)
        for part in self.parts:
            try:
                outcomes = None if result.problem else self.grade_part(part, result)
            except Unloadable as error:
                result.problem = str(error)
            outcomes = [("all tests", result.problem)] if result.problem else outcomes
            right = sum(words is None for _, words in outcomes)
            result.outcomes[part] = outcomes
            result.scores[part] = round(part.points * right / len(outcomes), 2)
        return result

    def grade_all(self, submissions, jobs):
        """Results in the order of the submissions, told as they come."""
        results = []
        with ThreadPoolExecutor(jobs) as pool:
            for result in pool.map(self.grade, submissions):
                results.append(result)
                print(f"{len(results)}/{len(submissions)} {result.id}: {result.points:g} of "
                      f"{self.points:g} points. {result.problem}")
        return results


def assignment_grader(name, seed, sandbox="none", only=None, kind=Grader, **options):
    """The grader of an assignment; only: some of its functions."""
    a = ASSIGNMENTS[name]
    parts = [part for part in a.parts if only is None or part.function in only]
    text = source.read_reference(a.extra)
    return kind(text, parts, sealed_while(name), seed, sandbox, a.seconds, **options)
