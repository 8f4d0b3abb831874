"""Folders for students, as {path: text}: of assignments and of hunts."""
import json
from functools import cache

import numpy as np

from . import source
from .catalogue import ALL, ASSIGNMENTS, BUGS, ROOT, handed_out, read_text, reference
from .contest import TIMES, baselines_of, draw_problems
from .testing import record
from .worker import load

CHECK_SEED = 20190124                            # the grader draws another
SHARED = ("worker.py", "sandbox.py", "comparisons.py", "testing.py", "cases.py")


def write(out, name):
    """Write the folder of an assignment or a hunt to one that is not there yet or empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"--out: {out} exists and is not an empty folder")
    for file, text in files_of(name).items():
        path = out / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"wrote {out}" + (f". {TIMES}" if name == "prior" else ""))


def page_of(name):
    """The README of an assignment or a hunt."""
    if name in BUGS:
        return read_text("student", "hunt.md").format(**BUGS[name])
    a = ASSIGNMENTS[name]
    rows = [f"| `{part.function}` | {part.marker} | {part.hours:g} | {part.points:g} |"
            for part in a["parts"]]
    return read_text("student", "handout.md").format(
        **a, name=name, table="\n".join(rows), marker=a["parts"][0].marker, file=main_of(name),
        body=read_text("handouts", f"{name}.md").replace("{TIMES}", TIMES))


def main_of(name):
    """The file to hand in."""
    return "better_prior.py" if name == "prior" else "nlts.py"


@cache
def recorded(name):
    """{marker: (function, its tests)} of an assignment, for check.py."""
    nlts = load(reference(name), "nlts_reference")
    return {part.marker: (part.function, record(part, nlts, CHECK_SEED))
            for part in ASSIGNMENTS[name]["parts"]}


def files_of(name):
    """The folder of an assignment or a hunt. Solutions of earlier assignments are in its nlts.py;
    a hunt has the tests of its assignment."""
    text = handed_out(name)
    saved = {"main": main_of(name), "seconds": ALL[name]["seconds"],
             "tests": recorded(ALL[name]["home"])}
    files = {
        "README.md": page_of(name), "answers.md": "# Answers\n", "nlts.py": text,
        "check.py": read_text("student", "check.py"), "checks/tests.json": json.dumps(saved),
        "checks/__init__.py": "", "checks/given.txt": "" if name in BUGS else text,
        "requirements.txt": (ROOT / "requirements.txt").read_text(encoding="utf-8")}
    files |= {f"checks/{file}": read_text(file) for file in SHARED}
    if name == "prior":
        problems = draw_problems(CHECK_SEED)
        played = json.dumps([problems, baselines_of(problems)], default=np.ndarray.tolist)
        files |= {
            "better_prior.py": source.blank(read_text("student", "better_prior.py"),
                                            ["better_prior"]),
            "nlts.py": (ROOT / "nlts.py").read_text(encoding="utf-8"),
            "checks/arena.py": read_text("arena.py"), "checks/arena.json": played}
    return files
