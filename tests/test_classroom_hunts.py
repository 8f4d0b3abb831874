"""Bug hunts: each bug shows, nothing betrays it, and mending and testing it is paid."""
import pytest
from classroom_students import SANDBOX, check, first_failure, submission

from classroom import source
from classroom.__main__ import main
from classroom.catalogue import BUGS, HOME, ORDER, handed_out, other_bugs, reference
from classroom.handout import recorded
from classroom.hunting import HuntGrader
from classroom.testing import record
from classroom.worker import is_blank, load


@pytest.mark.parametrize("name", BUGS)
def test_each_bug_shows_in_the_tests_of_its_assignment(name):
    tests = [test for _, group in recorded(BUGS[name]["home"]).values() for test in group]
    for text in (handed_out(name), *other_bugs(name)):
        assert text != reference(name) and first_failure(text, tests)
    right = load(reference(name), "nlts_right")
    assert first_failure(handed_out(name), record(BUGS[name]["parts"][0], right, 8))


@pytest.mark.parametrize("name", BUGS)
def test_nothing_betrays_the_line(name):
    text, right = handed_out(name), reference(name)
    assert "#" not in text
    assert sum(a != b for a, b in zip(text.split("\n"), right.split("\n"), strict=True)) == 1
    home, found = BUGS[name]["home"], source.definitions(text)
    for later in set(HOME) & set(found):
        assert is_blank(found[later]) == (ORDER.index(HOME[later]) > ORDER.index(home))


def test_a_hunt_is_a_folder_that_can_be_solved(tmp_path):
    name, folder = "wrong-arm-evicted", tmp_path / "hunt"
    main(["make", name, "--out", str(folder)])
    assert BUGS[name]["symptom"] in (folder / "README.md").read_text()
    texts = "\n".join(path.read_text() for path in folder.rglob("*.*"))
    assert name not in texts and BUGS[name]["right"] not in texts
    for text, end in ((handed_out(name), " to go.\n"), (reference(name), "All right.\n")):
        (folder / "nlts.py").write_text(text)
        told = check(folder).stdout
        assert told.endswith(end), told


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
    assert [int(row[0][0]) for row in buffer.tuples] == [2, 4, 5, 10, 11, 12, 13, 14, 15]
"""


@pytest.mark.slow
def test_who_mends_and_tests_gets_the_points():
    name = "wrong-arm-evicted"
    grader, bug, right = HuntGrader(name, 5, SANDBOX), handed_out(name), reference(name)
    cases = {"both": (right, GOOD, 5, 5, ""), "neither": (bug, None, 0, 0, "no test_bug.py"),
             "always": (right, "def test_x():\n    pass\n", 5, 0, "passes on the bug"),
             "never": (right, "def test_x():\n    assert 0\n", 5, 0, "fails on the right"),
             "no program": ("1 / 0\n", GOOD, 0, 5, ""), "binary": (right, "\0", 5, 0, "no text"),
             "broken": (right, "import nowhere\n", 5, 0, "cannot run"),
             "leaves": (right, "import os\nos._exit(1)\n", 5, 0, "exited"),
             "replays": (bug, REPLAYS, 0, 0, "three other bugs")}
    handed_in = [submission(key, text, {"test_bug.py": test.encode()} if test else None)
                 for key, (text, test, *_) in cases.items()]
    for result in grader.grade_all(handed_in):
        *_, mended, tested, words = cases[result.id]
        assert list(result.scores.values()) == [mended, tested], (result.id, result.outcomes)
        assert words in (result.outcomes[grader.test][0][1] or ""), result.outcomes
