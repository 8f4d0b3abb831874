"""Folders for students: an assignment, and the solutions that the teacher releases."""
import json
from pathlib import Path

from . import arena, source
from .catalogue import ASSIGNMENTS, HOME
from .grading import build_tests

CHECK_SEED = 20190124                            # the grader draws another
SHARED = ("worker.py", "sandbox.py", "testing.py", "source.py")


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


def sealed(name):
    """nlts.py with the functions of all assignments blank, for this one."""
    a = ASSIGNMENTS[name]
    return source.blank(source.read_reference(a.extra), HOME, a.asks)


def solution(name):
    """nlts.py with the functions of one assignment written, and no others."""
    others = [function for function in HOME if HOME[function] != name]
    return source.blank(source.read_reference(ASSIGNMENTS[name].extra), others)


def checked(parts, text, given, module, seconds):
    """The files that a folder checks itself with; module answers the tests of these parts."""
    saved = {part.marker: {"function": part.function,
                           "tests": build_tests(part.function, module, CHECK_SEED)}
             for part in parts}
    markers = "".join(f'    "{part.marker}: {part.function}",\n' for part in parts)
    files = {
        "nlts.py": text, "answers.md": "# Answers\n", "checks/__init__.py": "",
        "requirements.txt": (source.ROOT / "requirements.txt").read_text(encoding="utf-8"),
        "check.py": source.read_text("student", "check.py"),
        "pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["check.py"]\n'
                          f"markers = [\n{markers}]\n",
        "checks/given.txt": given,
        "checks/tests.json": json.dumps({"seconds": seconds, "parts": saved})}
    return files | {f"checks/{file}": source.read_text(file) for file in SHARED}


def make(name, out):
    """The folder of an assignment."""
    a, text = ASSIGNMENTS[name], sealed(name)
    module = source.load(source.read_reference(a.extra), "nlts_reference")
    files = checked(a.parts, text, text, module, a.seconds)
    files |= {"README.md": readme(name),
              "solutions/README.md": "Solutions of other parts go here when they are released.\n"}
    if name != "prior":
        return new_folder(out, files)
    from .contest import all_baselines, draw_problems  # needs data
    folder = new_folder(out, files | {"checks/arena.py": source.read_text("arena.py")})
    problems = draw_problems(CHECK_SEED)
    arena.save(folder / "checks" / "arena.npz", problems, all_baselines(problems))
    return folder
