"""Bug hunts: nlts.py with one wrong line, and the grading of who mends it and writes a test."""
import ast
import json
import secrets
import tomllib

from . import source
from .catalogue import Part, home_of, sealed_while
from .grading import Grader, build_tests
from .handout import new_folder, requirements
from .runner import Broken, Limits
from .student import symptoms
from .testing import Setting, Unloadable, close, roots_of

ROUNDS = 2                 # runs of a student's test on the bug, and as many on the right program
BUGS = tomllib.loads(source.read_text("hunts.toml"))


def right_source(name):
    """The program of a hunt before the bug: plain layout, later parts sealed."""
    closed = sealed_while(home_of(BUGS[name]["function"]))
    return source.plain(source.blank(source.read_reference(), closed))


def with_bug(name):
    """The same with the bug."""
    bug, text = BUGS[name], right_source(name)
    where = source.span(source.definitions(text)[bug["function"]])
    lines = text.split("\n")
    inside = "\n".join(lines[where])
    found = inside.count(bug["right"])
    if found != 1:
        raise ValueError(f"{name}: expected its line once in {bug['function']}, found {found}")
    lines[where] = inside.replace(bug["right"], bug["wrong"]).split("\n")
    return source.plain("\n".join(lines))                        # laid out again


def make_hunt(name, out):
    """The folder of a hunt. Neither the bug's name nor the right line is in it."""
    part = home_of(BUGS[name]["function"])
    experiment = symptoms.EXPERIMENTS[part]
    text = with_bug(name)
    expected = experiment(source.load(right_source(name), "nlts_right"))
    actual = experiment(source.load(text, "nlts_wrong"))
    out = new_folder(out, {
        "nlts.py": text, "requirements.txt": requirements(), "answers.md": "# Answers\n",
        "README.md": source.read_text("student", "hunt.md").format(symptom=BUGS[name]["symptom"]),
        "symptom.txt": symptoms.table(expected, actual) + "\n",
        "symptom.json": json.dumps({"part": part, "expected": expected}, indent=1),
        "symptoms.py": source.read_text("student", "symptoms.py")})
    picture(expected, actual, out / "symptom.png")
    return out


def picture(expected, actual, path):
    """A panel for each result of an experiment."""
    from matplotlib.figure import Figure
    figure = Figure(figsize=(5 * len(expected), 3.6), layout="constrained")
    axes = figure.subplots(1, len(expected), squeeze=False)[0]
    for axis, title in zip(axes, expected, strict=True):
        axis.plot(*zip(*expected[title], strict=True), label="expected", linewidth=3, alpha=0.5)
        axis.plot(*zip(*actual[title], strict=True), label="this program", marker=".")
        axis.set_title(title.rpartition(", by ")[0], fontsize=8)
        axis.set_xlabel(title.rpartition(", by ")[2])
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=120)


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
        function, text = BUGS[name]["function"], right_source(name)
        tests = build_tests(function, source.load(text, "nlts_reference"), seed)
        self.mended, self.test = Part(function, 0.5), Part("test_bug", 0.5)
        self.parts, self.reference = [self.mended, self.test], text
        self.tests = {self.mended: tests}
        self.versions = {True: with_bug(name), False: text}
        self.settings = {self.mended: Setting(
            source.blank(text, [function]), (function,), roots_of(function, tests),
            Limits(30.0), sandbox, source.secrets())}

    def titles(self, part):
        if part is self.test:
            return ["test_bug.py fails on the bug and passes on the right program"]
        return super().titles(part)

    def grade_part(self, submission, part, result):
        if part is self.test:
            return [(self.titles(part)[0], self.grade_test(submission, result))]
        return super().grade_part(submission, part, result)

    def grade_test(self, submission, result):
        """None if the test tells both programs apart, every time and in any order; else words."""
        text = submission.read("test_bug.py")
        if text is None:
            return f"there is no test_bug.py beside {submission.main}"
        runs = [True, False] * ROUNDS
        secrets.SystemRandom().shuffle(runs)
        for has_bug in runs:
            try:
                count = self.run_test(submission, text, has_bug, result)
            except (Broken, Unloadable) as error:
                return str(error)
            passed, failed, errors = (count.get(key) for key in ("passed", "failed", "errors"))
            if errors != 0 or not isinstance(passed, int) or not isinstance(failed, int):
                return "pytest cannot run it"
            if has_bug and not failed:
                return "it passes on the program with the bug"
            if not has_bug and (failed or not passed):
                return "it fails on the right program"
        return None

    def run_test(self, submission, text, has_bug, result):
        """How many tests of the student's file passed and failed on one of the programs."""
        program = disguised(self.versions[has_bug])
        names = {name.partition(".")[0] for name in source.definitions(program)}
        roots = tuple(sorted(name for name in names if name in text))
        first = self.settings[self.mended]
        setting = Setting(program, (), roots, first.limits, first.sandbox, first.hidden)
        files = {name: data for name, data in submission.files.items() if name != submission.main}
        worker = setting.start(files, "nlts.py", "")
        try:
            return worker.ask({"test": text})
        finally:
            close(worker, result.log)
