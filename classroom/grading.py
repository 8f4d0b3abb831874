"""Grading: a student's functions together, then failed tests again, with ours for all others.

A function that passes only in the second pass is paid at once if it needs nothing of ours but
functions that the student has wrong: those have lost their points. Functions that pass only with
each other's help wait for the teacher.
"""
import os
from concurrent.futures import ThreadPoolExecutor

from . import source
from .catalogue import ALL, reference
from .sandbox import Broken, Worker
from .submissions import Submission, printable
from .testing import record, run
from .worker import load


class Grader:
    """Everything that grading needs, read once: tests, answers, and the reference."""

    def __init__(self, name, seed, sandbox):
        self.name = name
        self.parts, self.text = list(ALL[name]["parts"]), reference(name)
        self.seconds, self.sandbox = ALL[name]["seconds"], sandbox
        self.nlts = load(self.text, "nlts_reference")
        self.tests = {part: record(part, self.nlts, seed) for part in self.parts}

    @property
    def points(self):
        return round(sum(part.points for part in self.parts), 2)

    def worker(self, submission, ours=()):
        """A worker for a submission, with our versions of these parts."""
        due = [part.function for part in self.parts if part not in ours]
        return Worker(submission.source, source.blank(self.text, due), submission.files,
                      submission.main, self.seconds, self.sandbox)

    def try_out(self):
        """ValueError unless the reference itself gets full marks here: the sandbox works."""
        self.first(tried := Submission("reference", source=self.text))
        for part, outcomes in tried.outcomes.items():
            if failure := next((failure for _, failure in outcomes if failure), None):
                raise ValueError("the sandbox does not work here, tried on the reference: "
                                 f"{part.function}: {failure}")

    def first(self, submission):
        """The first pass: the student's functions together."""
        with self.worker(submission) as worker:
            for part in self.parts:
                submission.outcomes[part] = run(worker, self.tests[part])
            submission.notes += worker.notes

    def second(self, submission):
        """The second pass: tests that failed run again, with ours in place of other functions."""
        failed = {part: {title for title, failure in outcomes if failure}
                  for part, outcomes in submission.outcomes.items()}
        gained = {part: self.run_again(submission, part, failed[part], self.parts)
                  for part in self.parts}
        wrong = [part for part in self.parts if failed[part] - gained[part]]
        for part in self.parts:
            paid = self.run_again(submission, part, gained[part], wrong)
            submission.helped[part] = sorted(gained[part] - paid)
            submission.outcomes[part] = [(title, None if title in gained[part] else failure)
                                         for title, failure in submission.outcomes[part]]

    def run_again(self, submission, part, titles, helpers):
        """Which of these tests of a part pass with our versions of these functions."""
        tests = [test for test in self.tests[part] if test[0] in titles]
        helpers = [helper for helper in helpers if helper is not part]
        if not tests or not helpers:
            return set()
        try:
            with self.worker(submission, helpers) as worker:
                return {title for title, failure in run(worker, tests) if not failure}
        except Broken:                               # with ours it does not load: nothing is gained
            return set()

    def score(self, submission):
        """Points of each part: its tests share them. Those of `helped` wait for the teacher."""
        if submission.problem or submission.confirmed:
            submission.helped = {}
        if submission.problem:
            submission.outcomes = {part: [("all tests", submission.problem)] for part in self.parts}
            submission.flags.insert(0, submission.problem)
        elif copied := self.copies(submission):
            submission.flags.append(f"has the reference's syntax tree: {', '.join(copied)}")
        for part in self.parts:
            outcomes, waiting = submission.outcomes[part], submission.helped.get(part, [])
            right = sum(failure is None for _, failure in outcomes) - len(waiting)
            submission.scores[part] = round(part.points * right / len(outcomes), 2)
            if waiting:
                points = round(part.points * len(waiting) / len(outcomes), 2)
                submission.held += points
                submission.flags.append(
                    f"{part.function}: {points:g} points wait, passes only with our versions of "
                    f"functions that need help themselves: {'; '.join(waiting)}")

    def copies(self, submission):
        """Which functions are the reference's, names of locals aside."""
        return source.copies(submission.source, self.text, [part.function for part in self.parts])

    def grade(self, submission):
        """Both passes, and the points."""
        try:
            if not submission.problem:
                self.first(submission)
                self.second(submission)
        except Broken as error:
            submission.problem = str(error)
        self.score(submission)

    def grade_all(self, submissions):
        """The submissions in their order, graded. An error of the grader costs one row only."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            futures = [pool.submit(self.grade, submission) for submission in submissions]
            for i, (submission, future) in enumerate(zip(submissions, futures, strict=True), 1):
                if error := future.exception():
                    submission.problem = f"the grader failed, look into it: {error!r}"
                    self.score(submission)
                print(printable(f"{i}/{len(submissions)} {submission.id}: {submission.points:g} of "
                                f"{self.points:g} points. {submission.problem}"))
        return submissions
