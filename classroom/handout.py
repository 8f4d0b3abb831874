"""Folders for students, as {path: text}: of assignments and of hunts."""
import json

from .catalogue import ALL, ASSIGNMENTS, BUGS, ROOT, handed_out, read_text, reference
from .contest import TIMES, all_baselines, draw_problems
from .scripts import build_tests
from .testing import judge
from .worker import Interpreter, encode, load

CHECK_SEED = 20190124                            # the grader draws another
SHARED = ("worker.py", "sandbox.py", "comparisons.py", "testing.py", "source.py")


def write(out, name):
    """Write the folder of an assignment or a hunt to one that is not there yet or empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"--out: {out} exists and is not an empty folder")
    for file, text in (hunt if name in BUGS else assignment)(name).items():
        path = out / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"wrote {out}" + (f". {TIMES}" if name == "prior" else ""))


def readme(name):
    """The page of an assignment."""
    a = ASSIGNMENTS[name]
    rows = [f"| `{part.function}` | {part.marker} | {part.hours:g} | {part.points:g} |"
            for part in a["parts"]]
    file = "better_prior.py" if name == "prior" else "nlts.py"
    return read_text("student", "handout.md").format(
        **a, name=name, table="\n".join(rows), marker=a["parts"][0].marker, file=file,
        body=read_text("handouts", f"{name}.md").replace("{TIMES}", TIMES))


def checked(name, main, tests, given):
    """A folder that checks itself by tests, {marker: (function, its tests)}."""
    saved = {"main": main, "seconds": ALL[name]["seconds"], "tests": tests}
    files = {
        "answers.md": "# Answers\n", "checks/__init__.py": "", "checks/given.txt": given,
        "requirements.txt": (ROOT / "requirements.txt").read_text(encoding="utf-8"),
        "check.py": read_text("student", "check.py"), "checks/tests.json": json.dumps(saved)}
    return files | {f"checks/{file}": read_text(file) for file in SHARED}


def assignment(name):
    """The folder of an assignment. Solutions of earlier ones are in its nlts.py."""
    nlts = load(reference(name), "nlts_reference")
    tests = {part.marker: (part.function, build_tests(part.function, nlts, CHECK_SEED))
             for part in ASSIGNMENTS[name]["parts"]}
    text = handed_out(name)
    if name != "prior":
        return checked(name, "nlts.py", tests, text) | {"README.md": readme(name), "nlts.py": text}
    problems = draw_problems(CHECK_SEED)
    return checked(name, "better_prior.py", tests, text) | {
        "README.md": readme(name), "better_prior.py": read_text("student", "better_prior.py"),
        "nlts.py": (ROOT / "nlts.py").read_text(encoding="utf-8"),
        "checks/arena.py": read_text("arena.py"),
        "checks/arena.json": json.dumps(encode([problems, all_baselines(problems)]))}


def hunt(name):
    """The folder of a hunt. Neither the bug's name nor the right line is in it."""
    bug, nlts = BUGS[name], load(handed_out(name), "nlts_wrong")
    tests = build_tests(bug["experiment"], load(reference(name), "nlts_right"), CHECK_SEED)
    seen = ""
    for title, steps, answers in tests:
        failure = judge(steps, answers, Interpreter(nlts).run(steps))
        seen += f"- {title}: {failure}\n" if failure else ""
    page = read_text("student", "hunt.md").format(symptom=bug["symptom"], seen=seen)
    return checked(name, "nlts.py", {"symptom": (bug["experiment"], tests)}, "") | {
        "README.md": page, "nlts.py": handed_out(name)}
