"""Bug hunts: the mended function is graded, and the student's own test."""
import ast
import os
import secrets
from contextlib import closing
from pathlib import PurePosixPath

from .catalogue import Part, other_bugs, sealed
from .grading import Grader
from .sandbox import Broken
from .scripts import Name
from .source import parse
from .submissions import text_of
from .testing import Code, Unloadable, run_tests, start

ROUNDS = 2                 # runs of a student's test on the bug, and as many on the right program
PYTEST = ["test_bug.py", "--rootdir", ".", "-p", "no:cacheprovider", "--noconftest",
          "--import-mode=append", "-c", os.devnull]


class Renamed(ast.NodeTransformer):
    """Local variables with other names, and statements that do nothing among the others."""

    def visit_FunctionDef(self, node):
        arguments = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        stored = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)
                  and isinstance(part.ctx, ast.Store)}
        names = {name: f"{name}_{secrets.randbits(20)}" for name in stored - arguments}
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                part.id = names.get(part.id, part.id)
        for _ in range(3):
            place = secrets.randbelow(len(node.body)) if ast.get_docstring(node) is None else 1
            node.body.insert(place, parse(f"_unused = {secrets.randbits(30)}").body[0])
        return node


def disguised(text):
    """The same program in another layout, and pytest: each time code objects of other bytes."""
    tree = parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            node.body = [Renamed().visit(part) if isinstance(part, ast.FunctionDef) else part
                         for part in node.body]
    return f"import pytest\n{ast.unparse(ast.fix_missing_locations(tree))}"


class HuntGrader(Grader):
    """Grades the mended function, then the student's test on programs with and without the bug."""

    def __init__(self, name, seed, sandbox="none", borrowed=1.0):
        super().__init__(name, seed, sandbox, borrowed)
        (self.function,) = self.parts
        self.test = Part("test_bug", 0.5)
        self.parts.append(self.test)
        self.bug, self.others = sealed(name), other_bugs(name)

    def first(self, one):
        try:
            outcomes = run_tests(self.tests[self.function], self.code(self.own, one))
            wrong = [words for _, words in outcomes if words]
        except Unloadable as error:                  # test_bug.py runs on our programs
            wrong = [str(error)]
        one.outcomes[self.function] = [("the function is mended", wrong[0] if wrong else None)]

    def second(self, one):
        try:
            words = self.grade_test(one)
        except (Broken, ValueError) as error:
            words = str(error)
        one.outcomes[self.test] = [("test_bug.py tells the bug", words)]

    def grade_test(self, one):
        """None if the test finds the bug, every time and in any order; else words."""
        path = str(PurePosixPath(one.main).with_name("test_bug.py"))
        if path not in one.files:
            return f"there is no test_bug.py beside {one.main}"
        text = text_of(path, one.files[path])
        runs = [(self.bug, True), (self.text, False)] * ROUNDS
        secrets.SystemRandom().shuffle(runs)
        for program, has_bug in runs:
            if self.fails(one, path, text, program) != has_bug:
                return "it passes on the bug" if has_bug else \
                    "it fails on the right program, in another layout"
        if all(self.fails(one, path, text, program) for program in self.others):
            return ("it fails on each of three other bugs, too: it tells that something is wrong, "
                    "and not what. Test what the wrong line computes")
        return None

    def fails(self, one, path, text, program):
        """Whether the student's test fails on a program."""
        files = one.files | {path: text.encode()}
        del files[one.main]                                      # it is not what is tested
        steps = []
        Name(steps, "pytest").main(PYTEST)
        code = Code("", disguised(program), files, str(PurePosixPath(path).parent),
                    limits=self.limits)
        with closing(start(f"pytest {text}", code)) as worker:
            codes = worker.ask({"steps": steps}).get("results")
        if codes not in ([0], [1]):
            raise Broken("pytest cannot run it")
        return codes == [1]
