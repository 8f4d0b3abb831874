"""Bug hunts: the mended function is graded, and the student's own test."""
import os
from pathlib import PurePosixPath

from .catalogue import Part, handed_out, other_bugs
from .grading import Grader
from .sandbox import Broken, Worker
from .submissions import text_of
from .testing import run

PYTEST = ["test_bug.py", "--rootdir", ".", "-p", "no:cacheprovider", "--noconftest",
          "--import-mode=append", "-c", os.devnull]


class HuntGrader(Grader):
    """Grades the mended function, then the student's test on programs with and without the bug."""

    def __init__(self, name, seed, sandbox):
        super().__init__(name, seed, sandbox)
        (self.function,) = self.parts
        self.test = Part("test_bug", 0.5)
        self.parts.append(self.test)
        self.bug, self.others = handed_out(name), other_bugs(name)

    def first(self, submission):
        try:
            with self.worker(submission) as worker:
                outcomes = run(worker, self.tests[self.function])
            wrong = next((failure for _, failure in outcomes if failure), None)
        except Broken as error:                      # test_bug.py runs on our programs
            wrong = str(error)
        submission.outcomes[self.function] = [("the function is mended", wrong)]

    def second(self, submission):
        try:
            failure = self.grade_test(submission)
        except (Broken, ValueError) as error:
            failure = str(error)
        submission.outcomes[self.test] = [("test_bug.py tells the bug", failure)]

    def copies(self, submission):
        return []                                    # the right line is the reference's

    def grade_test(self, submission):
        """None if the test finds the bug and nothing else; else why it does not."""
        path = str(PurePosixPath(submission.main).with_name("test_bug.py"))
        if path not in submission.files:
            return f"there is no test_bug.py beside {submission.main}"
        text, _ = text_of(path, submission.files[path])
        if not self.fails(submission, path, text, self.bug):
            return "it passes on the bug"
        if self.fails(submission, path, text, self.text):
            return "it fails on the right program"
        if all(self.fails(submission, path, text, program) for program in self.others):
            return ("it fails on each of three other bugs, too: it tells that something is wrong, "
                    "and not what. Test what the wrong line computes")
        return None

    def fails(self, submission, path, text, program):
        """Whether the student's test fails on a program."""
        files = {name: data for name, data in submission.files.items() if name != submission.main}
        files[path] = text.encode()
        program = f"import pytest\n{program}"
        with Worker("", program, files, path, self.seconds, self.sandbox) as worker:
            codes = worker.ask({"case": "run_pytest", "told": PYTEST}).get("results")
        if codes not in ([0], [1]):
            raise Broken("pytest cannot run it")
        return codes == [1]
