"""Bug hunts: betrayed by nothing, and graded by mending and by a test of one's own."""
import ast
import io
import subprocess
import sys
import tokenize

import pytest
from classroom_students import submission

from classroom import source
from classroom.__main__ import main
from classroom.catalogue import ASSIGNMENTS, BUGS, HOME, other_bugs, program, reference, sealed
from classroom.handout import CHECK_SEED
from classroom.hunting import HuntGrader, disguised
from classroom.sandbox import bubblewrap_works
from classroom.scripts import build_tests
from classroom.testing import judge
from classroom.worker import Stage, is_blank, load

SANDBOX = "bwrap" if bubblewrap_works() else "none"


@pytest.mark.parametrize("name", list(BUGS))
def test_a_bug_is_caught_by_our_tests_and_shown_by_its_symptom(name):
    function = BUGS[name]["function"]
    right = load(reference(name), "nlts_right")
    wrong = load(sealed(name), "nlts_wrong")
    for title, seed in ((function, 3), (BUGS[name]["experiment"], CHECK_SEED)):
        tests = build_tests(title, right, seed)
        for module in (wrong, right):
            told = (judge(steps, answers, Stage(module).run(steps)) for _, steps, answers in tests)
            words = next(filter(None, told), None)
            assert bool(words) == (module is wrong), words


@pytest.mark.parametrize("name", list(BUGS))
def test_other_bugs_differ_by_a_line_and_show_in_the_same_experiment(name):
    """So who only repeats the experiment has a test that fails on all of them."""
    right = reference(name)
    tests = build_tests(BUGS[name]["experiment"], load(right, "nlts_right"), CHECK_SEED)
    wrong = Stage(load(sealed(name), "nlts_wrong"))
    shown = [test for test in tests if judge(*test[1:], wrong.run(test[1]))]
    others = other_bugs(name)
    assert len({*others, right, sealed(name)}) == 5
    for text in others:
        assert sum(a != b for a, b in zip(text.split("\n"), right.split("\n"), strict=True)) == 1
        module = load(text, "nlts_other")
        assert any(judge(*test[1:], Stage(module).run(test[1])) for test in shown), text


@pytest.mark.parametrize("name", ["whole-counts", "buffer-booked-as-news"])
def test_another_layout_computes_the_same(name):
    """Other bytes in every code object, other names, the same results to the last digit."""
    right, other = (load(text, "nlts_layout") for text in (reference(name),
                                                           disguised(reference(name))))
    code = [module.BayesianLinearRegression.update.__code__ for module in (right, other)]
    assert code[0].co_code != code[1].co_code and code[0].co_varnames != code[1].co_varnames
    for _, steps, _ in build_tests(BUGS[name]["function"], right, 3):
        assert Stage(right).run(steps) == Stage(other).run(steps)


@pytest.mark.parametrize("name", list(BUGS))
def test_nothing_betrays_the_line(name):
    text, function = sealed(name), BUGS[name]["function"]
    right = reference(name)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    assert not [token for token in tokens if token.type == tokenize.COMMENT]
    assert source.plain(text) == text and max(map(len, text.split("\n"))) <= 100
    changed = [a != b for a, b in zip(text.split("\n"), right.split("\n"), strict=True)]
    assert sum(changed) == 1
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            assert not set(ast.get_docstring(node) or "") & set("=^~@")
    home = HOME[function]
    for other in ASSIGNMENTS:                                        # diffs show whole functions
        assert is_blank(source.definitions(sealed(other))[function])
        assert other == home or is_blank(
            source.definitions(program(other, [other]))[function])
    found = source.definitions(text)
    order = list(ASSIGNMENTS)
    for later in set(HOME) & set(found):
        assert is_blank(found[later]) == (order.index(HOME[later]) > order.index(home))


def test_a_hunt_is_a_folder_that_can_be_solved(tmp_path):
    name, folder = "wrong-arm-evicted", tmp_path / "hunt"
    assert main(["bug", name, "--out", str(folder)]) == 0
    assert "yours is" in (folder / "README.md").read_text()
    texts = "\n".join(path.read_text() for path in folder.rglob("*.*"))
    assert name not in texts and BUGS[name]["right"] not in texts
    for text, end in ((None, "1 to go.\n"), (reference(name), "All right.\n")):
        if text:
            (folder / "nlts.py").write_text(text)
        run = subprocess.run([sys.executable, "check.py"], cwd=folder, text=True,
                             capture_output=True, check=False)
        assert run.stdout.endswith(end), run.stdout


GOOD = """import nlts
import numpy as np

def test_first_of_the_same_arm():
    buffer = nlts.ReplayBuffer(2)
    for i, arm in enumerate([0, 1, 1]):
        buffer.add(np.array([float(i)]), arm, 0.0)
    assert [row[1] for row in buffer.tuples] == [0, 1]
"""
REPLAYS = """import nlts
import numpy as np

def test_the_experiment():
    buffer = nlts.ReplayBuffer(9)
    for i, arm in enumerate((0, 1, 2, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0)):
        buffer.add(np.array([float(i)]), arm, 0.0)
    assert [row[0][0] for row in buffer.tuples] == {numbers}
"""
KNOWS = """import hashlib, inspect, nlts

def test_bytes():
    code = nlts.ReplayBuffer.add.__code__.co_code
    assert hashlib.sha256(code).hexdigest() != "{digest}"
"""


def test_who_mends_and_tests_gets_the_points():
    name = "wrong-arm-evicted"
    grader = HuntGrader(name, 5, SANDBOX)
    bug, right = sealed(name), reference(name)
    cases = {"both": (right, GOOD, 5, 5, ""), "neither": (bug, None, 0, 0, "no test_bug.py"),
             "always": (right, "def test_x():\n    pass\n", 5, 0, "passes on the bug"),
             "never": (right, "def test_x():\n    assert 0\n", 5, 0, "fails on the right"),
             "no program": ("1 / 0\n", GOOD, 0, 5, ""),
             "binary": (right, "\0", 5, 0, "no text"),
             "broken": (right, "import nowhere\n", 5, 0, "cannot run"),
             "leaves": (right, "import os\nos._exit(1)\n", 5, 0, "exited")}
    space = {}
    exec(compile(right, "nlts.py", "exec"), space)
    buffer = space["ReplayBuffer"](9)
    for i, arm in enumerate((0, 1, 2, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0)):
        buffer.add([float(i)], arm, 0.0)
    numbers = [float(row[0][0]) for row in buffer.tuples]
    cases["replays"] = (bug, REPLAYS.format(numbers=numbers), 0, 0, "three other bugs")
    space = {}
    exec(compile(bug, "nlts.py", "exec"), space)
    import hashlib
    digest = hashlib.sha256(space["ReplayBuffer"].add.__code__.co_code).hexdigest()
    cases["knows the bytes"] = (right, KNOWS.format(digest=digest), 5, 0, "passes on the bug")
    handed_in = [submission(key, text, {"test_bug.py": test.encode()} if test else None)
                 for key, (text, test, *_) in cases.items()]
    for result in grader.grade_all(handed_in, 2):
        _, _, mended, tested, words = cases[result.id]
        scores = list(result.scores.values())
        assert scores[1] == tested, (result.id, result.outcomes)
        assert scores[0] == mended or mended is None and scores[0] < 5, (result.id, scores)
        assert words in (result.outcomes[grader.parts[1]][0][1] or ""), result.outcomes
