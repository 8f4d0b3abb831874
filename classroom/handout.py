"""Folders for students, as {path: text}: of assignments and of hunts."""
import json
from functools import cache

import numpy as np

from . import source
from .catalogue import ALL, ASSIGNMENTS, BUGS, HOME, ROOT, handed_out, read_text, reference
from .contest import TIMES, baselines_of, draw_problems
from .testing import judge, play, record
from .worker import load

CHECK_SEED = 20190124                            # the grader draws another
SHARED = ("worker.py", "sandbox.py", "comparisons.py", "testing.py", "cases.py")


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


@cache
def recorded(name):
    """{marker: (function, its tests)} of an assignment, for check.py."""
    nlts = load(reference(name), "nlts_reference")
    return {part.marker: (part.function, record(part, nlts, CHECK_SEED))
            for part in ASSIGNMENTS[name]["parts"]}


def assignment(name):
    """The folder of an assignment. Solutions of earlier ones are in its nlts.py."""
    text = handed_out(name)
    page = {"README.md": readme(name)}
    if name != "prior":
        return checked(name, "nlts.py", recorded(name), text) | page | {"nlts.py": text}
    problems = draw_problems(CHECK_SEED)
    return checked(name, "better_prior.py", recorded(name), text) | page | {
        "better_prior.py": source.blank(read_text("student", "better_prior.py"), ["better_prior"]),
        "nlts.py": (ROOT / "nlts.py").read_text(encoding="utf-8"),
        "checks/arena.py": read_text("arena.py"),
        "checks/arena.json": json.dumps([problems, baselines_of(problems)],
                                        default=np.ndarray.tolist)}


def hunt(name):
    """The folder of a hunt: the tests of its assignment show the bug."""
    text = handed_out(name)
    tests, wrong, seen = recorded(HOME[BUGS[name]["function"]]), load(text, "nlts_wrong"), ""
    for _, group in tests.values():
        for title, request, steps in group:
            failure = judge(steps, play(wrong, request))
            seen += f"- {title}: {failure}\n" if failure else ""
    page = read_text("student", "hunt.md").format(symptom=BUGS[name]["symptom"], seen=seen)
    return checked(name, "nlts.py", tests, "") | {"README.md": page, "nlts.py": text}
