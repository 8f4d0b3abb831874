"""Students' work for the tests of the classroom: right in other ways than ours."""
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from classroom import cases, catalogue, source
from classroom.sandbox import bubblewrap_works
from classroom.submissions import Submission
from classroom.testing import judge
from classroom.worker import Script, load

SANDBOX = "bwrap" if bubblewrap_works() else "none"
WORKS = tomllib.loads(Path(__file__).with_name("classroom_right.toml").read_text(encoding="utf-8"))


def fill(text, work):
    """The text with the functions of `work` in place of its own, {function: text}."""
    lines, ours, given = text.split("\n"), source.definitions(text), source.definitions(work)
    for name in (name for name in reversed(ours) if name in given):
        lines[source.span(ours[name])] = work.split("\n")[source.span(given[name])]
    return "\n".join(lines)


def text_of(name, work=None):
    """A student's nlts.py: the handout with this work filled in."""
    return fill(catalogue.handed_out(name), WORKS[name] if work is None else work)


def submission(identity, text, files=None):
    """A submission that is nothing but a text, and perhaps files beside it."""
    files = {"nlts.py": text.encode(errors="replace"), **(files or {})}
    return Submission(identity, files, "nlts.py", text)


def check(folder, *arguments):
    """A run of check.py in a student's folder."""
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-s", "check.py", *arguments], cwd=folder, text=True,
                          env=environment, capture_output=True, check=False)


def failures(result):
    """Everything that a report says against a submission."""
    told = [words for outcomes in result.outcomes.values() for _, words in outcomes]
    return " ".join(filter(None, [result.problem, *told]))


def first_failure(text, tests):
    """The first failure of a program in these tests, without a sandbox; or None."""
    module = load(text, "nlts")
    for title, request, steps in tests:
        script = Script(module, title, request["seed"])
        if failure := judge(steps, script.play(getattr(cases, request["case"]))):
            return failure
    return None
