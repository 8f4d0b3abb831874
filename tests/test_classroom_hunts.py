"""Bug hunts: betrayed by nothing, and graded by mending and by a test of one's own."""
import ast
import io
import json
import subprocess
import sys
import tokenize

import pytest
from classroom_students import submission

from classroom import handout, hunts, source
from classroom.__main__ import main
from classroom.catalogue import ASSIGNMENTS, home_of
from classroom.compare import judge
from classroom.grading import build_tests
from classroom.runner import bubblewrap_works
from classroom.student import symptoms
from classroom.worker import Stage

SANDBOX = "bwrap" if bubblewrap_works() else "none"


@pytest.mark.parametrize("name", list(hunts.BUGS))
def test_a_bug_is_caught_by_our_tests_and_shown_by_its_symptom(name):
    function = hunts.BUGS[name]["function"]
    right = source.load(hunts.right_source(name), "nlts_right")
    wrong = source.load(hunts.with_bug(name), "nlts_wrong")
    tests = build_tests(function, right, 3)
    verdicts = [judge(test.steps, Stage(wrong).run(test.steps), test.expected) for test in tests]
    assert any(verdicts)
    experiment = symptoms.EXPERIMENTS[home_of(function)]
    expected = experiment(right)
    assert "numbers differ" in symptoms.table(expected, experiment(wrong))
    assert symptoms.table(expected, experiment(right)).endswith("as expected.")


@pytest.mark.parametrize("name", list(hunts.BUGS))
def test_nothing_betrays_the_line(name):
    text, function = hunts.with_bug(name), hunts.BUGS[name]["function"]
    right = hunts.right_source(name)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    assert not [token for token in tokens if token.type == tokenize.COMMENT]
    assert source.plain(text) == text                                # laid out by the formatter
    changed = [a != b for a, b in zip(text.split("\n"), right.split("\n"), strict=True)]
    assert sum(changed) == 1
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            assert not set(ast.get_docstring(node) or "") & set("=^~@")
    home = home_of(function)
    for other in ASSIGNMENTS:                                        # diffs show whole functions
        released = [part for part in ASSIGNMENTS if part not in (home, other)]
        assert source.is_blank(source.definitions(handout.sealed(other, released))[function])
    later = list(ASSIGNMENTS)[list(ASSIGNMENTS).index(home) + 1:]
    found = source.definitions(text)
    for sealed in (f for part in later for f in ASSIGNMENTS[part].functions if f in found):
        assert source.is_blank(found[sealed])


def test_a_hunt_is_a_folder_that_can_be_solved(tmp_path):
    name, folder = "wrong-arm-evicted", tmp_path / "hunt"
    assert main(["bug", name, "--out", str(folder)]) == 0
    assert (folder / "symptom.png").read_bytes()[:4] == b"\x89PNG"
    assert "<--" in (folder / "symptom.txt").read_text()
    texts = "\n".join(path.read_text() for path in folder.iterdir() if path.suffix != ".png")
    assert name not in texts and hunts.BUGS[name]["right"] not in texts
    assert json.loads((folder / "symptom.json").read_text())["part"] == "buffer"
    for text, end in ((None, "numbers differ.\n"), (hunts.right_source(name), "as expected.\n")):
        if text:
            (folder / "nlts.py").write_text(text)
        run = subprocess.run([sys.executable, "symptoms.py"], cwd=folder, capture_output=True,
                             text=True, check=True)
        assert run.stdout.endswith(end)


GOOD = """import nlts
import numpy as np

def test_first_of_the_same_arm():
    buffer = nlts.ReplayBuffer(2)
    for i, arm in enumerate([0, 1, 1]):
        buffer.add(np.array([float(i)]), arm, 0.0)
    assert [row[1] for row in buffer.tuples] == [0, 1]
"""
KNOWS = """import hashlib, inspect, nlts

def test_bytes():
    code = nlts.ReplayBuffer.add.__code__.co_code
    assert hashlib.sha256(code).hexdigest() != "{digest}"
"""


def test_who_mends_and_tests_gets_the_points():
    name = "wrong-arm-evicted"
    grader = hunts.HuntGrader(name, 5, SANDBOX)
    bug, right = hunts.with_bug(name), hunts.right_source(name)
    cases = {"both": (right, GOOD, 5, 5, ""), "test alone": (bug, GOOD, None, 5, ""),
             "mended": (right, None, 5, 0, "no test_bug.py"),
             "always": (right, "def test_x():\n    pass\n", 5, 0, "passes on the program"),
             "never": (right, "def test_x():\n    assert 0\n", 5, 0, "fails on the right"),
             "broken": (right, "import nowhere\n", 5, 0, "cannot run"),
             "leaves": (right, "import os\nos._exit(1)\n", 5, 0, "ended")}
    space = {}
    exec(compile(bug, "nlts.py", "exec"), space)
    import hashlib
    digest = hashlib.sha256(space["ReplayBuffer"].add.__code__.co_code).hexdigest()
    cases["knows the bytes"] = (right, KNOWS.format(digest=digest), 5, 0, "passes on the prog")
    handed_in = [submission(key, text, {"test_bug.py": test.encode()} if test else None)
                 for key, (text, test, *_) in cases.items()]
    for result in grader.grade_all(handed_in, 2):
        _, _, mended, tested, words = cases[result.id]
        scores = list(result.scores.values())
        assert scores[1] == tested, (result.id, result.outcomes)
        assert scores[0] == mended or mended is None and scores[0] < 5, (result.id, scores)
        assert words in (result.outcomes["test_bug"][0][1] or ""), result.outcomes
