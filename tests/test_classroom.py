"""Handouts give nothing away; right work gets its points, and mistakes cost what they are."""
import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from classroom_students import BLR, WORKS, submission, text_of

from classroom import catalogue, handout, reports, source, submissions
from classroom.__main__ import main
from classroom.catalogue import ALL, ASSIGNMENTS, HOME
from classroom.grading import Grader
from classroom.sandbox import bubblewrap_works
from classroom.scripts import build_tests
from classroom.testing import judge
from classroom.worker import Stage, decode, flat, is_blank, load

LINUX = sys.platform == "linux"                  # elsewhere memory is not limited
SANDBOX = "bwrap" if bubblewrap_works() else "none"


@pytest.fixture(scope="module")
def blr():
    return Grader("blr", 7, SANDBOX)


@pytest.fixture(scope="module")
def invertible():
    grader = Grader("invertible", 7, SANDBOX)
    grader.limits = replace(grader.limits, seconds=1.0, wait=4.0, memory=0.3)
    return grader


def words_of(result):
    return " ".join(filter(None, [result.problem, *(words for outcomes in result.outcomes.values()
                                                    for _, words in outcomes)]))


# Handouts -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", list(ASSIGNMENTS))
def test_a_handout_has_no_solution_but_the_released_ones(name):
    right = source.definitions(catalogue.program(name, ASSIGNMENTS))
    for text, of in ((catalogue.sealed(name), ""), (catalogue.program(name, [name]), name)):
        found, released = source.definitions(text), [part for part in HOME if HOME[part] == of]
        body = ast.unparse(ast.parse(source.blank(text, released)))
        for function in set(HOME) & set(found):
            assert is_blank(found[function]) == (HOME[function] != of), function
            docstring = ast.get_docstring(found[function])
            assert docstring.startswith(ast.get_docstring(right[function])[:-1])
            if HOME[function] == name and not of:
                (part,) = (p for p in ASSIGNMENTS[name]["parts"] if p.function == function)
                assert part.asks in " ".join(docstring.split())
                assert part.checked in " ".join(docstring.split())       # tolerances are told
            assert ast.dump(found[function].args) == ast.dump(right[function].args)
            if HOME[function] != of:
                written = [ast.unparse(part) for part in right[function].body[1:]]
                told = [part for part in written if len(part) > 45 and part in body]
                assert not told or "raise ValueError" in told[0], (function, told)


def test_a_folder_checks_itself_and_needs_nothing_else(tmp_path):
    folder = tmp_path / "blr"
    assert main(["make", "blr", "--out", str(folder)]) == 0
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1",
                   "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def check(*arguments):
        command = [sys.executable, "-s", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                              check=False)
    run = check("check.py", "blr_variance")
    assert run.returncode == 1 and "2 to go." in run.stdout and "not written yet" in run.stdout
    (folder / "nlts.py").write_text(text_of("blr"))
    run = check("check.py")
    assert run.returncode == 0 and run.stdout.endswith("All right.\n"), run.stdout
    run = check("-m", "pytest", "-q", "-m", "blr_variance", "-p", "no:cacheprovider")
    assert "2 passed" in run.stdout and "deselected" in run.stdout, run.stdout
    page = (folder / "README.md").read_text()
    assert all(part.function in page for part in ASSIGNMENTS["blr"]["parts"])
    with pytest.raises(SystemExit):
        main(["make", "blr", "--out", str(folder)])


def test_solutions_are_released_part_by_part(tmp_path):
    """LinearTS.update of a student needs that of blr: blank, then from solutions/."""
    folder = tmp_path / "thompson"
    main(["make", "thompson", "--out", str(folder)])
    (folder / "nlts.py").write_text(text_of("thompson"))
    command = [sys.executable, "check.py", "linearts_update"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "update is not written yet" in run.stdout
    main(["release", "blr", "--out", str(tmp_path / "released")])
    released = (tmp_path / "released" / "blr.py").read_text()
    (folder / "solutions" / "blr.py").write_text(released)
    assert is_blank(source.definitions(released)["BayesianLinearRegression.sample"])
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    main(["release", "thompson", "--out", str(tmp_path / "own")])
    own = (tmp_path / "own" / "thompson.py").read_text()
    (folder / "solutions" / "thompson.py").write_text(own)
    (folder / "nlts.py").write_text(text_of("thompson").replace("self.t + 1", "self.t + 2"))
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "1 to go" in run.stdout       # the student's work is checked
    subprocess.run([sys.executable, "check.py", "--fill"], cwd=folder, check=True)
    filled = source.definitions((folder / "nlts.py").read_text())
    assert not is_blank(filled["BayesianLinearRegression.update"])
    assert not is_blank(filled["LinearTS.act"])


def test_points_are_in_proportion_to_hours_and_pages_are_there(capsys):
    for name, a in ASSIGNMENTS.items():
        assert sum(part.points for part in a["parts"] if not part.optional) == 10 * a["hours"]
        page, rubric = catalogue.read_text("handouts", f"{name}.md"), None
        for heading in ("Before you start", "By hand", "Steps", "Plot"):
            assert f"## {heading}" in page, (name, heading)
        assert page.count("<details>") == page.count("</details>") > 0
        assert main(["rubric", name]) == 0
        rubric = capsys.readouterr().out
        assert len(rubric) > 300 and rubric[:200] not in handout.readme(name)
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ALL)


# Right and partly right work ----------------------------------------------------------------------

@pytest.mark.parametrize("name", ["thompson", "buffer"])
def test_other_right_solutions_get_full_marks(name):
    grader = Grader(name, 11, SANDBOX)
    (result,) = grader.grade_all([submission("right", text_of(name))], 1)
    assert result.points == grader.points, words_of(result)
    assert not any(result.borrowed.values())


def test_solutions_with_torch_and_cvxpy_get_full_marks():
    """`learn` hands a generator to `train` that it has spawned from its own."""
    assert "self.rng.spawn" in WORKS["limited"]
    for name, only in (("matching", {"match_covariance_sdp"}),
                       ("limited", {"likelihood_matching", "NeuralLinearTS.learn"})):
        grader = Grader(name, 3, SANDBOX)
        grader.parts = [part for part in grader.parts if part.function in only]
        (result,) = grader.grade_all([submission("right", text_of(name))], 1)
        assert result.points == grader.points, words_of(result)


def test_each_function_is_graded_alone(blr):
    """Partly right, wrong, broken: every other function keeps its points."""
    wrong = {
        "right": (BLR, (13, 4, 4, 9)),
        "update alone": (BLR[:BLR.index("    def variance")], (13, 0, 0, 0)),
        "a counts whole": (BLR.replace("self.a + 0.5", "self.a + 1"), (None, 4, 4, 9)),
        "raises and exits": (BLR.replace("return np.array([row", "return None([row")
                             .replace("s2 = self", "exit()\n        s2 = self"), (13, 0, 0, 9)),
    }
    handed_in = [submission(name, text_of("blr", work)) for name, (work, _) in wrong.items()]
    results = blr.grade_all(handed_in, 2)
    for result in results:
        for got, expected in zip(result.scores.values(), wrong[result.id][1], strict=True):
            if expected is None:
                assert 0 < got < 13, (result.id, result.scores)
            else:
                assert got == expected, (result.id, result.scores, words_of(result))
    by_name = {result.id: result for result in results}
    assert "not written yet" in words_of(by_name["update alone"])
    text = text_of("blr", wrong["raises and exits"][0])
    line = 1 + next(i for i, row in enumerate(text.split("\n")) if "None([row" in row)
    assert f"(line {line} of your file, in variance)" in words_of(by_name["raises and exits"])
    assert "yours is" in words_of(by_name["a counts whole"])
    report = reports.report("blr", 30, by_name["a counts whole"])
    assert report.count("**wrong**") >= 2 and report.count("- right:") >= 7


DERIVED = """
def match_mean(E_old, E_new, mu_old):
    return invertible_prior(E_old, E_new, mu_old, np.eye(len(mu_old)))[1]


def invertible_prior(E_old, E_new, mu_old, Phi_old):
    back = np.array([match_mean(E_old, E_new, row) for row in np.eye(len(mu_old))])
    A = np.linalg.inv(back)
    return A @ Phi_old @ A.T, match_mean(E_old, E_new, mu_old)
"""
FROM_MINE = WORKS["invertible"].replace("np.linalg.solve(E_new, E_old @ mu_old)",
                                        "match_mean(E_old, E_new, mu_old)")


@pytest.mark.parametrize("borrowed", [1.0, 0.0])
def test_what_is_right_among_ours_only_is_flagged_and_costs_what_the_teacher_says(borrowed):
    """A function made from ours of the other (ours of the first calls the second, so the second
    cannot be made from it); or from one's own, which is wrong."""
    grader = Grader("invertible", 5, SANDBOX, borrowed)
    works = {"derived": DERIVED, "own": FROM_MINE,
             "half": FROM_MINE.replace("np.linalg.pinv(E_new) @", "2 * np.linalg.pinv(E_new) @")}
    handed_in = [submission(name, text_of("invertible", work)) for name, work in works.items()]
    by_name = {one.id: one for one in grader.grade_all(handed_in, 2)}
    assert by_name["own"].points == 20 and not any(by_name["own"].borrowed.values())
    assert by_name["derived"].points == by_name["half"].points == 13 * borrowed
    flagged = {(row[0], row[1]) for row in reports.flags(by_name.values())}
    assert flagged == {(name, "invertible_prior") for name in ("derived", "half")}
    assert reports.ONLY_AMONG_OURS in reports.report("invertible", 20, by_name["half"])


def test_the_untouched_folder_of_one_part_is_worth_nothing_in_another():
    grader = Grader("buffer", 5, SANDBOX)
    text = catalogue.sealed("blr")
    chooses = {"pyproject.toml": b'[tool.nlts]\nassignment = "thompson"\n'}
    (result,) = grader.grade_all([submission("untouched", text, chooses)], 1)
    assert result.points == 0


INVERTIBLE = WORKS["invertible"]
LOOP = "    while True:\n        pass\n"
MEAN = "    return np.linalg.pinv(E_new)"
HOARD = "    x = [b'x' * 2 ** 24 for _ in range(60)]\n" + LOOP
PRIOR = "    A = np.linalg.solve"


def broken(mean="", prior="", work=INVERTIBLE):
    """Right work with these lines before those of match_mean and of invertible_prior."""
    return work.replace(MEAN, mean + MEAN).replace(PRIOR, prior + PRIOR)


ACCIDENTS = {                       # work, points of match_mean and of invertible_prior, words
    "waits in match_mean": (broken("    import time\n    time.sleep(99)\n"), 0, 13, "in 4 sec"),
    "loop once": (broken("    while len(E_new) == 7:\n        pass\n"), 4.67, 13, "did not end"),
    "50 GB": (broken("    np.ones(50 * 2 ** 27)\n"), 0, 13, "MemoryError"),
    "bit by bit": (broken(HOARD, "    input()\n"), 0, 0, "more than 0.3 GB"),
    "leaves": (broken("    import os\n    os._exit(0)\n"), 0, 13, "exited during"),
    "leaves once": (broken("    import os\n    len(E_new) == 7 and os._exit(0)\n"), 4.67, 13,
                    "exited during"),
    "a table of names": (broken("    return {'mean': np.zeros(3)}\n"), 0, 13, "read as numbers"),
    "megabytes": (broken("    print('x' * 3_000_000)\n", "    Phi_old += 0.1\n"), 7, 0, "yours is"),
    "renamed": (INVERTIBLE.replace("def match_mean", "def matched_mean"), 0, 13, "not written"),
    "helper": (INVERTIBLE.replace(MEAN, "    return helped(E_new)")
               + "\n\ndef helped(E):\n    return np.linalg.pinv(E)\n", 7, 13, ""),
    "deleted": (None, 0, 0, "not written"),
}


def test_accidents_cost_their_own_tests_only(invertible):
    handed_in = []
    for name, (work, *_, words) in ACCIDENTS.items():
        if not LINUX and ("Memory" in words or "GB" in words):
            continue
        text = "x = 1\n" if work is None else text_of("invertible", work)
        if name in ("renamed", "helper"):
            text = text_of("invertible", "") + work          # at the end of the file, beside blanks
        handed_in.append(submission(name, text))
    for result in invertible.grade_all(handed_in, 2):
        _, mean, prior, words = ACCIDENTS[result.id]
        assert list(result.scores.values()) == [mean, prior], (result.id, words_of(result))
        assert words in words_of(result), (result.id, words_of(result))


UNLOADABLE = {
    "syntax": ("def f(:\n", "invalid syntax (line 1 of your file"),
    "deep": ("x = " + "-" * 50_000 + "1\n", "cannot be imported"),
    "raises": (text_of("invertible") + "\n1 / 0\n", "ZeroDivisionError"),
    "leaves": (text_of("invertible") + "\nimport os\nos._exit(3)\n", "the process exited"),
    "exits": (text_of("invertible") + "\nraise SystemExit('\\ud800')\n", "SystemExit"),
    "loops": (text_of("invertible") + "\nimport time\ntime.sleep(99)\n", "did not end"),
}


def test_files_that_cannot_be_imported_say_why(invertible):
    limits = invertible.limits
    invertible.limits = replace(limits, load=2.0)
    handed_in = [submission(name, text) for name, (text, _) in UNLOADABLE.items()]
    for result in invertible.grade_all(handed_in, 2):
        assert result.points == 0
        assert UNLOADABLE[result.id][1] in result.problem, result.problem
    invertible.limits = limits


def test_a_file_that_does_not_load_among_ours_keeps_its_points(invertible):
    """Its last line needs the student's own match_mean, which has one more argument."""
    work = INVERTIBLE.replace("mu_old):\n" + MEAN, "mu_old, how=1):\n" + MEAN)
    work = work.replace(PRIOR, "    return Phi_old, mu_old\n" + PRIOR)
    text = text_of("invertible", work) + "\nmatch_mean(np.eye(2), np.eye(2), np.ones(2), how=1)\n"
    (result,) = invertible.grade_all([submission("own", text)], 1)
    assert list(result.scores.values()) == [7, 0] and not result.problem, words_of(result)


def test_a_test_that_breaks_off_makes_no_other_one_borrowed(invertible):
    work = broken("    import os\n    len(mu_old) == 1 and os._exit(0)\n")
    (result,) = invertible.grade_all([submission("once", text_of("invertible", work))], 1)
    assert "exited" in words_of(result) and 0 < result.points < invertible.points
    assert not any(result.borrowed.values())


# What is right is right ---------------------------------------------------------------------------

MEAN_ONLY = "def match_mean(E_old, E_new, mu_old):\n    {}\n"
PINV = "np.linalg.pinv(E_new) @ E_old @ mu_old"
CELLS = ["import numpy as np\nfrom nowhere import nothing", text_of("invertible"),
         "display(match_mean)\n1 / 0", "x = 1 / 0", "for i in range(3):\n    raise ValueError",
         "what is this?", "match_mean?", "%%bash\nrm -rf x", "%timeit match_mean", "exit()"]
NOTEBOOK = json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in CELLS]})


def fair_cases():
    """{name: (files, main)}: right work that was once worth little or nothing."""
    lean = text_of("invertible").replace(MEAN, "    return pinv(E_new)")
    helper = b"import numpy as np\n\ndef pinv(E):\n    return np.linalg.pinv(E)\n"
    small = text_of("invertible").replace(PINV, f"({PINV}).astype(np.float32)").replace(
        "A = np.linalg.solve(E_old, E_new).T",
        "A = np.linalg.solve(np.float32(E_old), np.float32(E_new)).T")
    lists = text_of("invertible").replace(PINV, f"list({PINV})")
    slow = text_of("invertible").replace(MEAN, "    import time\n    time.sleep(1.2)\n" + MEAN)
    return {
        "helper in a subfolder": ({"nlts.py": f"from tools.algebra import pinv\n{lean}".encode(),
                                   "tools/algebra.py": helper}, "nlts.py"),
        "all in a subfolder": ({"hw/nlts.py": f"from algebra import pinv\n{lean}".encode(),
                                "hw/algebra.py": helper, "notes.txt": b""}, "hw/nlts.py"),
        "helper elsewhere": ({"src/nlts.py": f"from algebra import pinv\n{lean}".encode(),
                              "lib/algebra.py": helper}, "src/nlts.py"),
        "a list": ({"nlts.py": lists.encode()}, "nlts.py"),
        "float32": ({"nlts.py": small.encode()}, "nlts.py"),
        "waits, as on a busy machine": ({"nlts.py": slow.encode()}, "nlts.py"),
        "scratch cells": ({"nlts.ipynb": NOTEBOOK.encode()}, "nlts.ipynb"),
        "a corrupt zip beside it": ({"nlts.py": text_of("invertible").encode(),
                                     "old.zip": b"PK nothing"}, "nlts.py"),
    }


def test_right_work_gets_full_marks_however_it_is_made(tmp_path):
    grader = Grader("invertible", 7, SANDBOX)
    grader.limits = replace(grader.limits, seconds=1.0)          # of CPU time
    cases = fair_cases()
    for name, (files, _) in cases.items():
        for path, data in files.items():
            (tmp_path / name / path).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / name / path).write_bytes(data)
    handed_in = submissions.read_all(sorted(tmp_path.iterdir()))
    assert [one.main for one in handed_in] == [cases[one.id][1] for one in handed_in]
    for result in grader.grade_all(handed_in, 2):
        assert result.points == 20, (result.id, words_of(result))
        assert not any(result.borrowed.values()), result.id


def test_an_answer_of_another_shape_is_told_in_words(invertible):
    text = text_of("invertible").replace(PINV, f"({PINV})[None]")
    (result,) = invertible.grade_all([submission("row", text)], 1)
    assert "expected shape (1,)" in words_of(result)


# What is asked is clear ---------------------------------------------------------------------------

def test_prior_and_posterior_share_no_array():
    """Once Phi0 and precision were one: += on one of them changed both."""
    nlts = load(catalogue.reference("blr"), "nlts_reference")
    arm = nlts.BayesianLinearRegression(np.eye(2), np.zeros(2), 1, 1)
    assert not np.shares_memory(arm.Phi0, arm.precision)
    assert not np.shares_memory(arm.mu0, arm.mu_hat)


GREEN = ["self.Phi = self.Phi + np.outer(phi, phi)", "self.f = self.f + phi * r",
         "self.R2 = self.R2 + r * r", "self.a = self.a + 0.5", "self.n = self.n + 1",
         "self.root = root_of_inverse(self.precision)", "before = self.mu_hat",
         "self.mu_hat = np.linalg.solve(self.precision, self.Phi0 @ self.mu0 + self.f)",
         "self.b = self.b + (r - phi @ before) * (r - phi @ self.mu_hat) / 2"]


def test_tests_turn_green_from_the_top():
    """`update` of blr, line by line in the order of its page."""
    function = "BayesianLinearRegression.update"
    tests = build_tests(function, load(catalogue.reference("blr"), "nlts_reference"), 3)
    greens = []
    for lines in range(1, len(GREEN) + 1):
        body = "".join(f"        {line}\n" for line in GREEN[:lines])
        work = f"class BayesianLinearRegression:\n    def update(self, phi, r):\n{body}"
        module = load(source.fill(catalogue.sealed("blr"), work), "nlts")
        right = [judge(steps, answers, Stage(module).run(steps)) is None
                 for _, steps, answers in tests]
        greens.append(right.index(False))
        assert not any(right[greens[-1]:]), (lines, right)       # nothing below the first red one
    assert greens == [0, 0, 1, 1, 2, 3, 3, 4, 6]


def test_the_examples_by_hand_are_the_tests_of_that_name():
    page = " ".join(catalogue.read_text("handouts", "blr.md").split())
    assert "phi = 2, r = 3" in page and "phi = 1, r = 0" in page
    nlts = load(catalogue.reference("blr"), "nlts_reference")
    ((_, steps, answers),) = [test for test in build_tests(
        "BayesianLinearRegression.update", nlts, 3) if "by hand" in test[0]]
    given = [step["args"] for step in steps if step.get("args") and "update" in step["path"]]
    assert [(decode(phi)[0], r) for phi, r in given] == [(2, 3), (1, 0)]
    results = {}
    for step, answer in zip(steps, answers, strict=True):
        if answer:
            results.setdefault(step["path"].split(".")[1], []).append(flat(decode(answer["right"])))
    for name, numbers in (("mu_hat", (6 / 5, 1)), ("b", (6.9, 7.5)), ("precision", (5, 6))):
        assert np.allclose(np.ravel(results[name]), numbers), name
    assert "mu_hat = 6/5" in page and "= 6.9" in page and "= 7.5" in page


def test_plots_need_no_data_that_are_not_in_the_folder():
    for name in ASSIGNMENTS:
        plot = catalogue.read_text("handouts", f"{name}.md").split("## Plot")[1].split("##")[0]
        named = [word for word in ("Statlog", "Mushroom", "Adult", "Census") if word in plot]
        assert not named, name
        assert ("checks/arena.json" in plot) == (name == "prior")


def test_a_process_with_a_name_that_is_no_text_is_graded(invertible):
    named = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0)\n"
    text = f"{text_of('invertible')}\n{named}time.sleep(0.5)\n"
    (result,) = invertible.grade_all([submission("odd", text)], 1)
    assert result.points == invertible.points, words_of(result)


def test_a_grader_that_fails_on_one_submission_goes_on(invertible, monkeypatch):
    def first(one):
        raise KeyError(one.id)

    monkeypatch.setattr(invertible, "first", first)
    (result,) = invertible.grade_all([submission("odd", "")], 1)
    assert result.points == 0 and "KeyError('odd')" in result.problem


def test_handouts_speak_of_attributes_that_there_are():
    """`name` of a class in a page, self.name in what a docstring asks."""
    nlts = load(catalogue.reference("prior"), "nlts_reference")
    arm = nlts.BayesianLinearRegression(np.eye(2), np.zeros(2), 1, 1)
    agent = nlts.NeuralLinearTS(nlts.MLP(2, 2), 2, 4)
    page = catalogue.read_text("handouts", "blr.md").split("## By hand")[0]
    attributes = re.findall(r"`(\w+)`", page.split("symbols:")[1].split("`update`")[0])
    assert len(attributes) > 8 and all(hasattr(arm, name) for name in attributes)
    page = catalogue.read_text("handouts", "limited.md").split("## By hand")[0]
    attributes = re.findall(r"`(\w+)`", page.split("`NeuralLinearTS`:")[1].split(".")[0])
    assert len(attributes) > 6 and all(hasattr(agent, name) for name in attributes)
    asked = " ".join(part.asks for a in ASSIGNMENTS.values() for part in a["parts"])
    pages = asked + "".join(catalogue.read_text("handouts", f"{name}.md") for name in ASSIGNMENTS)
    linear = nlts.LinearTS(2, 2)
    for name in set(re.findall(r"self\.(\w+)", pages)):
        assert any(hasattr(one, name) for one in (arm, agent, agent.buffer, linear)), name


def test_what_is_optional_is_no_help_with_what_is_not():
    grader = Grader("matching", 3, SANDBOX)
    grader.parts = [part for part in grader.parts if part.function == "match_covariance_sdp"]
    lazy = "def match_covariance_sdp(E_new, s2, ridge=0, floor=0, **solver):\n" \
           "    return match_covariance(E_new, s2, max(ridge, 1e-6), max(floor, 1e-6))\n"
    (result,) = grader.grade_all([submission("lazy", text_of("matching", lazy))], 1)
    assert result.points == 0 and "match_covariance is not written yet" in words_of(result)


def test_a_sandbox_that_does_not_work_is_no_fault_of_students():
    grader = Grader("invertible", 1, "none")
    grader.try_out()
    grader.text += "\n1 / 0\n"
    with pytest.raises(ValueError, match="sandbox does not work here.*ZeroDivisionError"):
        grader.try_out()
