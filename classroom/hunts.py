"""Bug hunts: nlts.py with one wrong line, and the grading of who mends it and writes a test."""
import ast
import secrets
import tomllib
from dataclasses import replace

from . import source
from .catalogue import HOME, Part, sealed_while
from .grading import Grader, build_tests
from .handout import CHECK_SEED, checked, new_folder
from .sandbox import Broken
from .testing import Unloadable, judge
from .worker import Stage

ROUNDS = 2                 # runs of a student's test on the bug, and as many on the right program
BUGS = tomllib.loads(source.read_text("hunts.toml"))
TITLE = "test_bug.py fails on the bug and passes on the right program"


def right_source(name):
    """The program of a hunt before the bug: no comments, later parts sealed."""
    closed = sealed_while(HOME[BUGS[name]["function"]])
    return source.plain(source.blank(source.read_reference(), closed))


def with_bug(name):
    """The same with the bug."""
    bug, text = BUGS[name], right_source(name)
    where = source.span(source.definitions(text)[bug["function"]])
    lines = text.split("\n")
    inside = "\n".join(lines[where])
    if inside.count(bug["right"]) != 1:
        raise ValueError(f"{name}: expected its line once in {bug['function']}")
    lines[where] = inside.replace(bug["right"], bug["wrong"]).split("\n")
    return "\n".join(lines)


def symptom(name, wrong):
    """(title, words) of what our experiments find wrong with a program."""
    right = source.load(right_source(name), "nlts_right")
    tests = build_tests(f"symptom_{HOME[BUGS[name]['function']]}", right, CHECK_SEED)
    told = [judge(test.steps, Stage(wrong).run(test.steps), test.expected) for test in tests]
    return [(test.title, words) for test, words in zip(tests, told, strict=True) if words]


def make_hunt(name, out):
    """The folder of a hunt. Neither the bug's name nor the right line is in it."""
    text, experiment = with_bug(name), Part(f"symptom_{HOME[BUGS[name]['function']]}", 0.5)
    right, wrong = source.load(right_source(name), "nlts_right"), source.load(text, "nlts_wrong")
    seen = "".join(f"- {title}: {words}\n" for title, words in symptom(name, wrong))
    page = source.read_text("student", "hunt.md").format(symptom=BUGS[name]["symptom"], seen=seen)
    return new_folder(out, checked([experiment], text, "", right, 30.0) | {"README.md": page})


def disguised(text):
    """The same program with other code objects, so that a test cannot know it by its bytes."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            start = 1 if ast.get_docstring(node) else 0
            node.body[start:start] = ast.parse(f"_unused = {secrets.randbits(30)}").body
    return ast.unparse(tree)


class HuntGrader(Grader):
    """Grades the mended function, and the student's test on the bug and on the right program."""

    def __init__(self, name, seed, sandbox="none"):
        text, mended = right_source(name), Part(BUGS[name]["function"], 0.5)
        super().__init__(text, [mended], [], seed, sandbox, seconds=30.0)
        self.test = Part("test_bug", 0.5)
        self.parts.append(self.test)
        self.setting = self.settings[mended]
        self.versions = {True: with_bug(name), False: text}

    def grade_part(self, part, result):
        if part is self.test:
            return [(TITLE, self.grade_test(result))]
        return super().grade_part(part, result)

    def grade_test(self, result):
        """None if the test tells both programs apart, every time and in any order; else words."""
        text = result.submission.read("test_bug.py")
        if text is None:
            return f"there is no test_bug.py beside {result.submission.main}"
        files = dict(result.submission.files)
        files.pop(result.submission.main)                        # it is not what is tested
        runs = [True, False] * ROUNDS
        secrets.SystemRandom().shuffle(runs)
        for has_bug in runs:
            try:
                code = self.run_test(text, has_bug, files)
            except (Broken, Unloadable) as error:
                return str(error)
            if code not in (0, 1):
                return "pytest cannot run it"
            if has_bug != bool(code):
                return f"it {'fails on the right program' if code else 'passes on the bug'}"
        return None

    def run_test(self, text, has_bug, files):
        """pytest's exit code for the student's tests on one of the programs."""
        program = disguised(self.versions[has_bug])
        names = {name.partition(".")[0] for name in source.definitions(program)}
        roots = tuple(name for name in names if name in text)
        setting = replace(self.setting, given=program, own=(), roots=roots)
        worker = setting.start(files, "nlts.py", "")
        try:
            return worker.ask({"test": text}).get("exit")
        finally:
            worker.close()
