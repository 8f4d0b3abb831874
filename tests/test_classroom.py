"""Handouts give nothing away; right work gets its points, and mistakes cost what they are."""
import ast
import re
import textwrap

import numpy as np
import pytest
from classroom_students import SANDBOX, WORKS, check, failures, submission, text_of

from classroom import catalogue, handout, reports, source
from classroom.__main__ import main
from classroom.catalogue import ALL, ASSIGNMENTS, HOME, ORDER
from classroom.comparisons import compare
from classroom.grading import Grader
from classroom.testing import record
from classroom.worker import is_blank, load

BLR, INVERTIBLE = WORKS["blr"], WORKS["invertible"]


@pytest.fixture(scope="module")
def invertible():
    grader = Grader("invertible", 7, SANDBOX)
    grader.seconds = 0.5
    return grader


# Handouts -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ORDER)
def test_a_handout_has_the_part_that_is_needed_and_no_solution_of_its_own(name):
    text, right = catalogue.handed_out(name), catalogue.reference(name)
    found, rights = source.definitions(text), source.definitions(right)
    assert ("torch" in text.partition('\n"""\n')[2]) == (name in ("limited", "prior"))
    for function in set(HOME) & set(found):
        due = ORDER.index(HOME[function]) >= ORDER.index(name)
        assert is_blank(found[function]) == due, function
        assert ast.dump(found[function].args) == ast.dump(rights[function].args)
    for part in ASSIGNMENTS[name]["parts"]:
        docstring = " ".join(ast.get_docstring(found[part.function]).split())
        assert part.asks in docstring and part.checked in docstring      # tolerances are told
    load(text, "nlts_handout")


def test_points_are_in_proportion_to_hours_and_pages_are_there(capsys):
    for name, a in ASSIGNMENTS.items():
        assert sum(part.points for part in a["parts"]) == 10 * a["hours"]
        page = handout.page_of(name)
        assert "Zahavy" in page and "2019" in page and "1901.08612" in page
        assert page.count("<details>") == page.count("</details>") >= 2      # a nudge, then a step
        assert all(part.function in page for part in a["parts"])
        rubric = catalogue.read_text("rubrics", f"{name}.md")
        assert len(rubric) > 300 and rubric[:200] not in page
    main([])
    listed = capsys.readouterr().out
    assert all(name in listed for name in ALL)


def test_no_hint_is_the_answer():
    """No statement of the reference stands in a page."""
    for name in ORDER:
        page = " ".join(handout.page_of(name).split())
        for part in ASSIGNMENTS[name]["parts"]:
            for node in source.definitions(catalogue.reference(name))[part.function].body[1:]:
                assert ast.unparse(node) not in page, ast.unparse(node)


def test_a_folder_checks_itself_and_needs_nothing_else(tmp_path):
    folder = tmp_path / "blr"
    main(["make", "blr", "--out", str(folder)])
    run = check(folder, "blr_s2")
    assert run.returncode == 1 and "3 to go." in run.stdout and "not written yet" in run.stdout
    (folder / "nlts.py").write_text(text_of("blr"))
    run = check(folder)
    assert run.returncode == 0 and run.stdout.endswith("All right.\n"), run.stdout
    with pytest.raises(SystemExit):
        main(["make", "blr", "--out", str(folder)])


def test_the_examples_by_hand_are_the_tests_of_that_name():
    page = " ".join(catalogue.read_text("handouts", "blr.md").split())
    assert "phi = 2, r = 3" in page and "= 6.9" in page and "= 7.5" in page
    part, nlts = ASSIGNMENTS["blr"]["parts"][0], load(catalogue.reference("blr"), "nlts_right")
    tests = record(part, nlts, 3)
    (steps,) = [steps for title, _, steps in tests if "by hand" in title]
    for name, numbers in (("mu_hat", (6 / 5, 1)), ("b", (6.9, 7.5)), ("precision", (5, 6))):
        right = [check["right"] for text, check in steps if text == f"{name} of arm 0"]
        assert np.allclose(np.ravel(right), numbers), name


def test_handouts_speak_of_attributes_that_there_are():
    nlts = load(catalogue.reference("prior"), "nlts_reference")
    arm = nlts.BayesianLinearRegression(np.eye(2), np.zeros(2), 1, 1)
    agent = nlts.NeuralLinearTS(nlts.MLP(2, 2), 2, 4)
    asked = " ".join(part.asks for a in ASSIGNMENTS.values() for part in a["parts"])
    pages = asked + "".join(catalogue.read_text("handouts", f"{name}.md") for name in ORDER)
    for name in set(re.findall(r"self\.(\w+)", pages)):
        assert any(hasattr(one, name) for one in (arm, agent, agent.buffer)), name


# Right and partly right work ----------------------------------------------------------------------

@pytest.mark.parametrize("name", [name for name in ORDER if name != "prior"])
def test_other_right_solutions_get_full_marks(name):
    grader = Grader(name, 11, SANDBOX)
    (result,) = grader.grade_all([submission("right", text_of(name))])
    assert result.points == grader.points, failures(result)
    assert name in ("thompson", "limited") or not result.flags, result.flags


def test_each_function_is_graded_alone():
    """Partly right, wrong, broken: every other function keeps its points."""
    works = {
        "update alone": (BLR[:BLR.index("    def s2")], (15, 0, 0)),
        "a counts whole": (BLR.replace("self.a + 0.5", "self.a + 1"), (None, 4, 11)),
        "raises": (BLR.replace("return np.array([row", "return None([row"), (15, 0, 11)),
    }
    grader = Grader("blr", 7, SANDBOX)
    handed_in = [submission(name, text_of("blr", work)) for name, (work, _) in works.items()]
    by_name = {result.id: result for result in grader.grade_all(handed_in)}
    for name, result in by_name.items():
        for got, expected in zip(result.scores.values(), works[name][1], strict=True):
            assert got == expected or expected is None and 0 < got < 15, (name, result.scores)
    assert "not written yet" in failures(by_name["update alone"])
    text = text_of("blr", works["raises"][0])
    line = 1 + next(i for i, row in enumerate(text.split("\n")) if "None([row" in row)
    assert f"(line {line} of your file, in s2)" in failures(by_name["raises"])
    assert "**wrong**" in reports.report("blr", 30, by_name["a counts whole"])


def test_methods_may_be_set_upon_a_class():
    methods = textwrap.dedent(WORKS["buffer"].partition("ReplayBuffer:\n")[2])
    text = f"from nlts import *\nimport numpy as np\n{methods}\n" + \
           "ReplayBuffer.add = add\nReplayBuffer.arrays = arrays\n"
    assert {"ReplayBuffer.add", "ReplayBuffer.arrays"} <= set(source.written(text))
    (result,) = Grader("buffer", 5, SANDBOX).grade_all([submission("set", text)])
    assert result.points == 15, failures(result)


FROM_MINE = INVERTIBLE.replace("np.linalg.pinv(new) @ E @ old.mu_hat",
                               "match_mean(E, new, old.mu_hat)")
MUTUAL = BLR.replace("    def s2(self, E):\n",
                     "    def s2(self, E):\n        self.without(E[:0], E[:0, 0])\n")
MUTUAL = MUTUAL.replace("        P = self", "        self.s2(E)\n        P = self")


def test_a_function_whose_helper_is_wrong_is_paid():
    """match_mean is wrong and has lost its points; invertible_prior calls it."""
    half = FROM_MINE.replace("return np.linalg.pinv(E_new)", "return 2 * np.linalg.pinv(E_new)")
    handed_in = [submission("own", text_of("invertible", FROM_MINE)),
                 submission("half", text_of("invertible", half))]
    own, half = Grader("invertible", 5, SANDBOX).grade_all(handed_in)
    assert own.points == 20 and not own.flags
    assert list(half.scores.values()) == [0, 13] and half.held == 0


def test_functions_that_pass_only_with_each_others_help_wait_for_the_teacher():
    handed_in = [submission(name, text_of("blr", MUTUAL)) for name in ("waits", "confirmed")]
    handed_in[1].confirmed = True
    waits, confirmed = Grader("blr", 5, SANDBOX).grade_all(handed_in)
    assert (waits.points, waits.held, confirmed.points) == (15, 15, 30), waits.scores
    assert "15 more wait" in reports.report("blr", 30, waits) and len(waits.flags) == 2


def test_copies_of_the_reference_are_flagged():
    grader = Grader("blr", 5, SANDBOX)
    renamed = catalogue.reference("blr").replace("error_before", "e0").replace("Phi_old", "P")
    short = text_of("blr", BLR[:BLR.index("    def s2")] +
                    "    def s2(self, E):\n        return ((E @ self.root) ** 2).sum(1)\n")
    whole = (catalogue.ROOT / "nlts.py").read_text()
    texts = {"whole": whole, "renamed": renamed, "own": text_of("blr"), "short": short}
    handed_in = [submission(name, text) for name, text in texts.items()]
    flagged = {one.id: one.flags for one in grader.grade_all(handed_in)}
    assert "update" in flagged["whole"][0] and "without" in flagged["renamed"][0]
    assert flagged["own"] == [] and flagged["short"] == []


# Accidents ----------------------------------------------------------------------------------------

LOOP = "    while True:\n        pass\n"
MEAN = "    return np.linalg.pinv(E_new)"


def broken(mean, end=""):
    """Right work with these lines in match_mean, and at the end of the file."""
    return text_of("invertible", INVERTIBLE.replace(MEAN, mean + MEAN)) + end


ACCIDENTS = {                       # text, points of match_mean and of invertible_prior, words
    "loop once": (broken("    while len(E_new) == 7:\n        pass\n"), 4.67, 13, "did not end"),
    "50 GB": (broken("    np.ones(50 * 2 ** 27)\n"), 0, 13, "MemoryError"),
    "leaves once": (broken("    import os\n    len(E_new) == 7 and os._exit(0)\n"), 4.67, 13,
                    "exited by itself"),
    "a table": (broken("    return {'mean': np.zeros(3)}\n"), 0, 13, "numbers were expected"),
    "30 million rows": (broken("    return np.zeros((30_000_000, 0))\n"), 0, 13, "30000000"),
    "complex": (broken("    return np.zeros(len(mu_old), complex)\n"), 0, 13, "complex128"),
    "overwrites": (broken("    E_old *= 2\n    E_old /= 3\n"), 0, 13, "in place"),
    "a row": (broken("    return (np.linalg.pinv(E_new) @ E_old @ mu_old)[None]\n"), 0, 13,
              "expected shape (1,)"),
    "megabytes": (broken("    print('x' * 3_000_000)\n"), 7, 13, ""),
    "longdouble": (broken("    return (np.linalg.pinv(E_new) @ E_old @ mu_old).astype('g')\n"),
                   7, 13, ""),
    "a list": (broken("    return list(np.linalg.pinv(E_new) @ E_old @ mu_old)\n"), 7, 13, ""),
    "asks": (broken("", "\ninput()\nprint(match_mean(1))\nexit()\n"), 7, 13, ""),
    "a demo": (broken("", "\nwhile True:\n    pass\n"), 7, 13, ""),
    "syntax": ("def f(:\n", 0, 0, "line 1"),
}


def test_accidents_cost_their_own_tests_only(invertible):
    handed_in = [submission(name, text) for name, (text, *_) in ACCIDENTS.items()]
    for result in invertible.grade_all(handed_in):
        _, mean, prior, words = ACCIDENTS[result.id]
        assert list(result.scores.values()) == [mean, prior], (result.id, failures(result))
        assert words in failures(result), (result.id, failures(result))
    assert "not run: EOFError" in handed_in[-3].notes[0]


def test_a_grader_that_fails_on_one_submission_goes_on(invertible):
    odd, right = submission("odd", "x"), submission("right", text_of("invertible"))
    odd.files = None
    results = invertible.grade_all([odd, right])
    assert [one.points for one in results] == [0, 20] and "grader failed" in odd.problem


def test_a_sandbox_that_does_not_work_is_no_fault_of_students():
    grader = Grader("buffer", 1, "none")
    grader.try_out()
    grader.text = grader.text.replace("del self.tuples", "self.tuples")
    with pytest.raises(ValueError, match="sandbox does not work here"):
        grader.try_out()


# Replies ------------------------------------------------------------------------------------------

def test_replies_are_checked_before_they_are_used():
    forged = [None, True, "x", [], [1], {"array": [0, 0, 0], "shape": [3]}, ["0", 0, 0],
              [[0], 0, 0], [0, 0, None], [np.nan] * 3, [np.inf, 0, 0], [[[[[[0]]]]]],
              [10 ** 400, 0, 0], [1e-3, 0], {"object": "x"}, [[0, 0, 0]], "000"]
    for reply in forged:
        assert compare(reply, [0.0, 0.0, 0.0], "close"), reply
    assert compare([0, 0.0, False], [0.0, 0.0, 0.0], "close") is None


def test_not_a_number_is_never_right():
    E, s2 = [[1.0, 0.0]], [1.0]
    for value in (np.nan, 1e200, -1e200, np.inf):
        for how, options in (("close", {}), ("priors", {}),
                             ("fits", {"E": E, "s2": s2})):
            assert compare([[value] * 2] * 2, [[1.0, 0.0], [0.0, 1.0]], how, **options)
    for rows in (np.zeros((0, 1)), np.ones((9999, 1)), np.ones((10_000, 1)), np.ones((10_000, 2)),
                 np.full((10_000, 1), np.nan)):
        assert compare(rows.tolist(), [[0.0], [0.0]], "draws", law="t", args=[6])
