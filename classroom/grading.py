"""Grading: each function alone, by scripts that the reference has run before any student's code."""
import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from . import source
from .cases import tests_of
from .catalogue import ASSIGNMENTS, sealed_while
from .compare import error_text
from .runner import Limits
from .testing import Setting, Test, Unloadable, roots_of, run_tests
from .worker import Stage


@dataclass
class Result:
    """What a submission got: {marker: [(title, None or words)]} and {marker: points}."""
    id: str
    outcomes: dict = field(default_factory=dict)
    scores: dict = field(default_factory=dict)
    problem: str = ""
    log: list = field(default_factory=list)
    digest: str = ""
    written: dict = field(default_factory=dict)
    rank: dict = field(default_factory=dict)     # of the open assignment: what was won back


def build_tests(function, reference, seed):
    """The tests of a function, with the answers of the reference."""
    tests = []
    for title, steps in tests_of(function, reference, seed):
        reply = Stage(reference).run(steps)
        if "failed" in reply:
            raise ValueError(f"{function}, {title}: the reference fails: {error_text(reply)}")
        tests.append(Test(title, steps, reply["results"]))
    return tests


class Grader:
    """Everything that grading needs, read once: tests, answers, and what the sandbox may see."""

    def __init__(self, name, seed, sandbox="none", only=None):
        assignment = ASSIGNMENTS[name]
        text = source.read_reference(assignment.extra)
        reference = source.load(text, "nlts_reference")
        limits = Limits(assignment.seconds)
        self.parts = [part for part in assignment.parts if only is None or part.function in only]
        self.tests, self.settings, self.reference = {}, {}, text
        for part in self.parts:
            tests = build_tests(part.function, reference, seed)
            given = source.blank(text, [part.function, *sealed_while(name)])
            self.tests[part] = tests
            self.settings[part] = Setting(given, (part.function,), roots_of(part.function, tests),
                                          limits, sandbox, source.secrets())

    @property
    def points(self):
        return round(sum(part.points for part in self.parts if not part.optional), 2)

    def try_out(self):
        """ValueError unless the reference itself gets full marks here: the sandbox works."""
        part, log = self.parts[0], []
        try:
            outcomes = run_tests(self.tests[part], lambda: self.settings[part].start(
                {}, "nlts.py", self.reference), log)
        except Unloadable as error:
            raise ValueError(f"the sandbox does not work here: {error}") from error
        failed = [words for _, words in outcomes if words]
        if failed:
            raise ValueError(f"the reference fails in the sandbox: {failed[0]} {''.join(log)}")

    def titles(self, part):
        return [test.title for test in self.tests[part]]

    def grade_part(self, submission, part, result):
        """The outcomes of one function."""
        def start():
            files = submission.files
            return self.settings[part].start(files, submission.main, submission.source)
        return run_tests(self.tests[part], start, result.log)

    def grade(self, submission):
        """The result of one submission, whatever is in it."""
        digest = hashlib.sha256(submission.source.encode(errors="replace")).hexdigest()[:12]
        result = Result(submission.id, problem=submission.problem, digest=digest,
                        written=submission.written())
        for part in self.parts:
            outcomes = [(title, "not run") for title in self.titles(part)]
            try:
                if not result.problem:
                    outcomes = self.grade_part(submission, part, result)
            except Unloadable as error:
                result.problem = str(error)
            right = sum(words is None for _, words in outcomes)
            result.outcomes[part.marker] = outcomes
            result.scores[part.marker] = round(part.points * right / len(outcomes), 2)
        return result

    def total(self, result):
        """Points without those of optional parts."""
        needed = [part.marker for part in self.parts if not part.optional]
        return round(sum(result.scores[marker] for marker in needed), 2)

    def grade_all(self, submissions, jobs, progress=print):
        """Results in the order of the submissions, told as they come."""
        results = []
        with ThreadPoolExecutor(jobs) as pool:
            for result in pool.map(self.grade, submissions):
                results.append(result)
                progress(f"{len(results)}/{len(submissions)} {result.id}: {self.total(result):g}"
                         f" of {self.points:g} points. {result.problem}")
        return results
