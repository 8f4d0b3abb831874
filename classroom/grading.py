"""Grading: first all of a student's functions together, then those that failed among ours.

The reference has run the scripts before any student's code. In the first pass no worker is given
one of our versions of a function that is due: there is nothing that one student could pass on to
another. What passes in the second pass only is right, but perhaps made from ours: it is flagged.
"""
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath

from . import source
from .catalogue import ALL, reference
from .sandbox import Limits
from .scripts import build_tests
from .submissions import Submission, printable
from .testing import Code, Session, Unloadable, run_tests
from .worker import load


class Grader:
    """Everything that grading needs, read once: tests, answers, and what the sandbox may see.

    borrowed: the share of a test's points if it passes among our versions of other functions only.
    """

    def __init__(self, name, seed, sandbox="none", borrowed=1.0):
        self.name, self.borrowed = name, borrowed
        self.parts, self.text = list(ALL[name]["parts"]), reference(name)
        self.limits = Limits(ALL[name]["seconds"], sandbox=sandbox)
        self.nlts = load(self.text, "nlts_reference")
        self.tests = {part: build_tests(part.function, self.nlts, seed) for part in self.parts}
        self.own = source.blank(self.text, [part.function for part in self.parts])
        self.given = {}
        for part in self.parts:                      # what is optional helps with nothing else
            hidden = [one.function for one in self.parts if one.optional and not part.optional]
            self.given[part] = source.blank(self.text, [part.function, *hidden])

    @property
    def points(self):
        return round(sum(part.points for part in self.parts if not part.optional), 2)

    def code(self, given, one):
        """What a worker gets for a submission."""
        return Code(one.source, given, one.files, str(PurePosixPath(one.main).parent),
                    one.main.lower().endswith(".ipynb"), self.limits)

    def try_out(self):
        """ValueError unless the reference itself gets full marks here: the sandbox works."""
        one = Submission("reference", source=self.text)
        tests = [test for part in self.tests for test in self.tests[part]]
        try:
            told = [words for _, words in run_tests(tests, self.code(self.own, one)) if words]
        except Unloadable as error:
            told = [str(error)]
        if told:
            raise ValueError(f"the sandbox does not work here, tried on the reference: {told[0]}")

    def first(self, one):
        """The first pass: the student's functions together."""
        tests = {part: self.tests[part] for part in self.parts}
        session = Session(sum(tests.values(), []), self.code(self.own, one))
        try:
            for part in self.parts:
                one.outcomes[part] = session.run(tests[part])
                one.broken[part] = session.broken
        except Unloadable as error:                  # perhaps it loads among ours
            one.unloadable = str(error)
            one.outcomes = {part: [(title, str(error)) for title, *_ in tests[part]]
                            for part in tests}
        finally:
            session.close()

    def second(self, one):
        """The second pass: tests that failed run again, with ours in place of other functions."""
        for part in self.parts:
            if self.given[part] == self.own:     # no other function is due: it would be the same
                continue
            failed = [title for title, words in one.outcomes[part] if words is not None]
            told = self.run_again(part, failed, one) if failed else {}
            one.borrowed[part] = [title for title, words in told.items() if words is None]
            one.outcomes[part] = [(title, told.get(title, words))
                                  for title, words in one.outcomes[part]]
        if one.unloadable:
            raise Unloadable(one.unloadable)

    def run_again(self, part, failed, one):
        """{title: None or words} of tests among ours; those that broke off come last, until one of
        them does again. Nothing if the file cannot be imported among ours."""
        tests = [test for test in self.tests[part] if test[0] in failed]
        broken = [test for test in tests if test[0] in one.broken.get(part, [])]
        session = Session(tests, self.code(self.given[part], one))
        try:
            told = session.run([test for test in tests if test not in broken])
            told += session.run(broken, patience=1)
            one.unloadable = ""
            return dict(told)
        except Unloadable:
            return {}
        finally:
            session.close()

    def guarded(self, step, one):
        """A pass over one submission, whatever is in it: the others are graded, still."""
        try:
            if not one.problem:
                step(one)
        except Unloadable as error:
            one.problem = str(error)
        except Exception as error:                   # a mistake of ours that this submission shows
            one.problem = f"the grader failed, look into it: {error!r}"
        return one

    def score(self, one):
        """Points of each part: its tests share them."""
        for part in self.parts:
            if one.problem:
                one.outcomes[part], one.borrowed[part] = [("all tests", one.problem)], []
            right = sum(words is None for _, words in one.outcomes[part])
            right -= (1 - self.borrowed) * len(one.borrowed.get(part, []))
            one.scores[part] = round(part.points * right / len(one.outcomes[part]), 2)
        return one

    def grade_all(self, submissions, jobs):
        """The submissions in their order, graded, told as they come."""
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda one: self.guarded(self.first, one), submissions))
            graded = pool.map(lambda one: self.guarded(self.second, one), submissions)
            for i, one in enumerate(map(self.score, graded), 1):
                print(f"{i}/{len(submissions)} {one.id}: {one.points:g} of {self.points:g} points. "
                      f"{printable(one.problem)}")
        return submissions
