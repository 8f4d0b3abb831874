"""Folders, as {path: text}: of assignments, of hunts, and for Gradescope."""
import json

from .catalogue import ALL, ASSIGNMENTS, BUGS, ROOT, read_text, reference, sealed
from .contest import all_baselines, draw_problems
from .scripts import build_tests
from .testing import judge
from .worker import Stage, encode, load

CHECK_SEED = 20190124                            # the grader draws another
SHARED = ("worker.py", "sandbox.py", "comparisons.py", "testing.py", "source.py")


def write(out, maker, name):
    """Write what one of the makers below makes to a folder that is not there yet or empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"--out: {out} exists and is not an empty folder")
    for file, text in maker(name).items():
        path = out / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if text.startswith("#!") else 0o644)


def readme(name):
    """The page of an assignment."""
    a = ASSIGNMENTS[name]
    rows = []
    for part in a["parts"]:
        points = "optional" if part.optional else f"{part.points:g}"
        rows.append(f"| `{part.function}` | {part.marker} | {part.hours:g} | {points} |")
    return read_text("student", "handout.md").format(
        **a, name=name, table="\n".join(rows), marker=a["parts"][0].marker,
        body=read_text("handouts", f"{name}.md"))


def checked(name, tests, given):
    """A folder that checks itself by tests, {marker: (function, its tests)}."""
    files = {
        "nlts.py": sealed(name), "answers.md": "# Answers\n", "checks/__init__.py": "",
        "requirements.txt": (ROOT / "requirements.txt").read_text(encoding="utf-8"),
        "check.py": read_text("student", "check.py"), "checks/given.txt": given,
        "pytest.ini": read_text("student", "pytest.ini"),
        "checks/tests.json": json.dumps({"seconds": ALL[name]["seconds"], "tests": tests})}
    return files | {f"checks/{file}": read_text(file) for file in SHARED}


def assignment(name):
    """The folder of an assignment."""
    nlts = load(reference(name), "nlts_reference")
    tests = {part.marker: (part.function, build_tests(part.function, nlts, CHECK_SEED))
             for part in ASSIGNMENTS[name]["parts"]}
    files = checked(name, tests, sealed(name))
    files |= {"README.md": readme(name),
              "solutions/README.md": "Solutions of other parts go here when they are released.\n"}
    if name == "prior":
        problems = draw_problems(CHECK_SEED)
        files |= {"checks/arena.py": read_text("arena.py"),
                  "checks/arena.json": json.dumps(encode([problems, all_baselines(problems)]))}
    return files


def hunt(name):
    """The folder of a hunt. Neither the bug's name nor the right line is in it."""
    bug, nlts = BUGS[name], load(sealed(name), "nlts_wrong")
    tests = build_tests(bug["experiment"], load(reference(name), "nlts_right"), CHECK_SEED)
    seen = ""
    for title, steps, answers in tests:
        words = judge(steps, answers, Stage(nlts).run(steps))
        seen += f"- {title}: {words}\n" if words else ""
    page = read_text("student", "hunt.md").format(symptom=bug["symptom"], seen=seen)
    return checked(name, {"symptom": (bug["experiment"], tests)}, "") | {"README.md": page}


def gradescope(name):
    """setup.sh, run_autograder and requirements.txt, with all that they use: zip the folder."""
    wanted = [*ROOT.glob("*.py"), ROOT / "requirements.txt"]
    for folder in ("classroom", "lab"):
        wanted += [path for path in (ROOT / folder).rglob("*.*") if path.suffix != ".pyc"]
    files = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in wanted}
    run = read_text("student", "run_autograder.sh").format(name=name)
    return files | {"setup.sh": read_text("student", "setup.sh"), "run_autograder": run}
