"""Folders for students: an assignment, and the solutions that the teacher releases."""
import json
from pathlib import Path

from . import arena, source
from .catalogue import ASSIGNMENTS
from .grading import build_tests

CHECK_SEED = 20190124                            # the grader draws another
SHARED = ("worker.py", "runner.py", "compare.py", "testing.py", "source.py")


def new_folder(out, files):
    """Write these files, {path: text}, to a folder that is not there yet or empty."""
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"--out: {out} exists and is not an empty folder")
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return out


def requirements():
    return (source.ROOT / "requirements.txt").read_text(encoding="utf-8")


def readme(name):
    """The page of an assignment."""
    a = ASSIGNMENTS[name]
    rows = []
    for part in a.parts:
        points = "optional" if part.optional else f"{part.points:g}"
        rows.append(f"| `{part.function}` | {part.marker} | {part.hours:g} | {points} |")
    return source.read_text("student", "handout.md").format(
        name=name, goal=a.goal, reads=a.reads, hours=a.hours, table="\n".join(rows),
        marker=a.parts[0].marker, seconds=a.seconds,
        body=source.read_text("handouts", f"{name}.md"))


def sealed(name, released=()):
    """nlts.py with the functions of all assignments blank, but for the released ones."""
    closed = [function for other in ASSIGNMENTS if other == name or other not in released
              for function in ASSIGNMENTS[other].functions]
    a = ASSIGNMENTS[name]
    return source.blank(source.read_reference(a.extra), closed, a.asks)


def solution(name):
    """nlts.py with the functions of one assignment written, and no others."""
    others = [function for other in ASSIGNMENTS if other != name
              for function in ASSIGNMENTS[other].functions]
    return source.blank(source.read_reference(ASSIGNMENTS[name].extra), others)


def saved_tests(name):
    """The tests of check.py, with the reference's answers."""
    a = ASSIGNMENTS[name]
    reference = source.load(source.read_reference(a.extra), "nlts_reference")
    parts = {}
    for part in a.parts:
        tests = build_tests(part.function, reference, CHECK_SEED)
        parts[part.marker] = {"function": part.function,
                              "tests": [(t.title, t.steps, t.expected) for t in tests]}
    return json.dumps({"seconds": a.seconds, "parts": parts})


def make(name, out, released=()):
    """The folder of an assignment; `released`: others whose solutions are in it."""
    unknown = [other for other in released if other not in ASSIGNMENTS or other == name]
    if unknown:
        raise ValueError(f"--released: expected names of other assignments, got {unknown[0]}")
    parts = ASSIGNMENTS[name].parts
    markers = "".join(f'    "{part.marker}: {part.function}",\n' for part in parts)
    files = {
        "nlts.py": sealed(name, released), "README.md": readme(name), "answers.md": "# Answers\n",
        "requirements.txt": requirements(),
        "check.py": source.read_text("student", "check.py"),
        "test_steps.py": source.read_text("student", "steps.py"),
        "pyproject.toml": f"[tool.pytest.ini_options]\nmarkers = [\n{markers}]\n",
        "checks/__init__.py": "", "checks/given.txt": sealed(name),
        "checks/tests.json": saved_tests(name),
        "solutions/README.md": "Solutions of other parts go here when they are released.\n"}
    files |= {f"checks/{file}": source.read_text(file) for file in SHARED}
    files |= {f"solutions/{other}.py": solution(other) for other in released}
    if name == "prior":
        files |= {"checks/arena.py": source.read_text("arena.py")}
    folder = new_folder(out, files)
    if name == "prior":
        arena.save(folder / "checks" / "arena.npz", CHECK_SEED)
    return folder
