"""Handouts give nothing away; right work gets its points, however it is sent."""
import ast
import csv
import io
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from classroom_students import BLR, WORKS, submission, text_of

from classroom import catalogue, handout, reports, source, submissions
from classroom.__main__ import main
from classroom.catalogue import ALL, ASSIGNMENTS, HOME
from classroom.grading import ContestGrader, Grader
from classroom.sandbox import bubblewrap_works
from classroom.testing import Unloadable
from classroom.worker import is_blank, load

LINUX = sys.platform == "linux"                  # elsewhere memory is not limited
SANDBOX = "bwrap" if bubblewrap_works() else "none"


@pytest.fixture(scope="module")
def blr():
    return Grader("blr", 7, SANDBOX)


@pytest.fixture(scope="module")
def invertible():
    grader = Grader("invertible", 7, SANDBOX)
    grader.limits = replace(grader.limits, seconds=2.0, memory=0.3)
    return grader


def words_of(result):
    return " ".join(filter(None, [result.problem, *(words for outcomes in result.outcomes.values()
                                                    for _, words in outcomes)]))


# Handouts -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", list(ASSIGNMENTS))
def test_a_handout_has_no_solution_but_the_released_ones(name):
    right = source.definitions(catalogue.program(name, ASSIGNMENTS))
    for text, of in ((catalogue.sealed(name), ""), (catalogue.program(name, [name]), name)):
        found, body = source.definitions(text), ast.unparse(ast.parse(text))
        for function in set(HOME) & set(found):
            assert is_blank(found[function]) == (HOME[function] != of), function
            docstring = ast.get_docstring(found[function])
            assert docstring.startswith(ast.get_docstring(right[function])[:-1])
            if HOME[function] == name and not of:
                (part,) = (p for p in ASSIGNMENTS[name]["parts"] if p.function == function)
                assert part.asks in " ".join(docstring.split())
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


def test_solutions_with_torch_and_cvxpy_get_full_marks():
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
    began = time.monotonic()
    results = blr.grade_all(handed_in, 2)
    assert (time.monotonic() - began) / len(results) * 15 < 180          # 15 in three minutes
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
    report = reports.report("blr", 30, by_name["a counts whole"], 7)
    assert report.count("**wrong**") >= 2 and report.count("- right:") >= 7


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
    "waits in match_mean": (broken("    import time\n    time.sleep(99)\n"), 0, 13, "in 2 sec"),
    "loop once": (broken("    while len(E_new) == 7:\n        pass\n"), 4.67, 13, "did not end"),
    "50 GB": (broken("    np.ones(50 * 2 ** 27)\n"), 0, 13, "MemoryError"),
    "bit by bit": (broken(HOARD, "    input()\n"), 0, 0, "more than 0.3 GB"),
    "leaves": (broken("    import os\n    os._exit(0)\n"), 0, 13, "ended"),
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
    "leaves": (text_of("invertible") + "\nimport os\nos._exit(3)\n", "the program ended"),
    "exits": (text_of("invertible") + "\nraise SystemExit('\\ud800')\n", "SystemExit"),
    "loops": (text_of("invertible") + "\nimport time\ntime.sleep(99)\n", "did not end"),
}


def test_files_that_cannot_be_imported_say_why(invertible):
    limits = invertible.limits
    invertible.limits = replace(limits, load=4.0)
    handed_in = [submission(name, text) for name, (text, _) in UNLOADABLE.items()]
    for result in invertible.grade_all(handed_in, 2):
        assert result.points == 0
        assert UNLOADABLE[result.id][1] in result.problem, result.problem
    invertible.limits = limits


# Odd files ----------------------------------------------------------------------------------------

def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def test_odd_files_are_read(tmp_path):
    text = "# caf\u00e9\nx = 1\n"
    notebook = {"cells": [{"cell_type": "markdown", "source": ["hello"]},
                          {"cell_type": "code", "source": ["%matplotlib inline\n", "x = 1"]},
                          {"cell_type": "code", "source": "!pip install this\ny = 2"}]}
    files = {
        "latin/nlts.py": text.encode("latin-1"), "bom/nlts.py": text.encode("utf-8-sig"),
        "crlf/nlts.py": text.replace("\n", "\r\n").encode(), "wide/nlts.py": text.encode("utf-16"),
        "binary/nlts.py": bytes(range(256)), "empty/nlts.py": b"", "nothing/other.txt": b"",
        "cookie/nlts.py": b"# coding: cp1252\nx = '\x80'\n", "loose_123_nlts.py": b"x = 1\n",
        "book/nlts.ipynb": json.dumps(notebook).encode(), "bad/nlts.ipynb": b"{}",
        "nested/a/b/nlts.py": b"x = 1\n", "nested/a/b/c/nlts.py": b"x = 2\n",
        "nested/__MACOSX/nlts.py": b"x = 3\n", "big/nlts.py": b"#" * (2 ** 20 + 1),
        "packed.zip": zipped({"folder/nlts.py": b"x = 1\n", "../evil.txt": b"", "/evil.txt": b""}),
        "inside/work.zip": zipped({"nlts.py": b"x = 1\n"}), "broken.zip": b"PK nothing",
        "class.zip": zipped({"ann/nlts.py": b"x = 1\n", "bob/nlts.py": b"x = 2\n"})}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "nlts.py").symlink_to(catalogue.ROOT / "nlts.py")
    paths = sorted(tmp_path.iterdir())
    found = {one.id: one for one in submissions.read_all([*paths, tmp_path / "nowhere", paths[0]])}
    for name in ("latin", "bom", "crlf", "wide"):
        assert found[name].source == text, name
    assert found["cookie"].source.endswith("'\u20ac'\n")
    assert found["book"].source == "\nx = 1\n\n\ny = 2"
    for name in ("loose_123_nlts", "nested", "packed", "inside", "class/ann"):
        assert found[name].source == "x = 1\n", name
    assert found["class/bob"].source == "x = 2\n"
    problems = {"binary": "no text", "empty": "empty", "nothing": "no nlts.py", "big": "1 MB",
                "bad": "no notebook", "broken": "cannot be read", "link": "no nlts.py",
                "nowhere": "no such file"}
    for name, words in problems.items():
        assert words in found[name].problem, (name, found[name].problem)
    assert "bad (2)" in found


def test_a_class_in_one_download_loses_nobody(tmp_path):
    """Moodle: a folder a student, with what the student has sent in it."""
    bomb = zipped({"a.zip": zipped({f"{i}.bin": bytes(2 ** 20) for i in range(30)})})
    files = {"ann/nlts.py": b"x = 1\n", "ann/data.bin": bytes(21 * 2 ** 20),
             "bob.zip": zipped({"nlts.py": b"x = 1\n"}), "cy/hw/nlts.py": b"x = 1\n",
             "dan/solution.py": b"x = 1\n", "eve/work.zip": b"PK nothing", "fay/hw.zip": bomb,
             "gil/nlts.py": b"# coding: rot13\nx = 1\n", "readme.txt": b"",
             "hal/nlts.zip": zipped({"nlts.py": b"x = 1\n"}).replace(b"x = 1", b"x = 2")}
    for name, data in files.items():
        (tmp_path / "class" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "class" / name).write_bytes(data)
    (tmp_path / "class.zip").write_bytes(zipped({f"class/{name}": files[name] for name in files}))
    for path in (tmp_path / "class", tmp_path / "class.zip"):
        found = {one.id: one for one in submissions.read_all([path])}
        assert sorted(found) == [f"class/{name}" for name in
                                 ("ann", "bob", "cy", "dan", "eve", "fay", "gil", "hal")]
        for name in ("ann", "bob", "cy", "dan"):
            assert found[f"class/{name}"].source == "x = 1\n", name
        assert found["class/gil"].source.endswith("x = 1\n")
        for name, words in (("eve", "not a zip file"), ("fay", "more than"), ("hal", "CRC")):
            assert words in found[f"class/{name}"].problem, name


def test_a_process_with_a_name_that_is_no_text_is_graded(invertible):
    named = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0)\n"
    text = f"{text_of('invertible')}\n{named}time.sleep(0.5)\n"
    (result,) = invertible.grade_all([submission("odd", text)], 1)
    assert result.points == invertible.points, words_of(result)


def test_a_grader_that_fails_on_one_submission_goes_on(invertible, monkeypatch):
    def grade_part(part, one):
        raise KeyError(one.id)

    monkeypatch.setattr(invertible, "grade_part", grade_part)
    (result,) = invertible.grade_all([submission("odd", "")], 1)
    assert result.points == 0 and "KeyError('odd')" in result.problem


def test_handouts_speak_of_attributes_that_there_are():
    """`name` of a class in a page, self.name in what a docstring asks."""
    nlts = load(catalogue.reference("prior"), "nlts_reference")
    arm = nlts.BayesianLinearRegression(np.eye(2), np.zeros(2), 1, 1)
    agent = nlts.NeuralLinearTS(nlts.MLP(2, 2), 2, 4)
    page = catalogue.read_text("handouts", "blr.md").split("## By hand")[0]
    attributes = re.findall(r"`(\w+)`", page.split("symbols:")[1])
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


def test_odd_files_are_graded(invertible, tmp_path):
    text = text_of("invertible")
    cell = json.dumps({"cells": [{"cell_type": "code", "source": text}]})
    files = {"latin/nlts.py": ("# caf\u00e9\n" + text).encode("latin-1"),
             "crlf/nlts.py": text.replace("\n", "\r\n").encode("utf-8-sig"),
             "book/nlts.ipynb": cell.encode(), "packed.zip": zipped({"x/nlts.py": text}),
             "hides/nlts.py": text.encode(), "hides/random.py": b"1 / 0",
             "hides/numpy.py": b"1 / 0"}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    for result in invertible.grade_all(submissions.read_all(sorted(tmp_path.iterdir())), 2):
        assert result.points == invertible.points, (result.id, words_of(result))


# The teacher's tools ------------------------------------------------------------------------------

def test_the_command_line_grades_a_class(tmp_path, capsys):
    texts = {"ann": text_of("invertible"), "bob": text_of("invertible").replace("A @", "2 * A @"),
             "cy": text_of("invertible", ""),
             "dan": text_of("invertible").replace("E_old", "E_alt")}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "nlts.py").write_text(text)
    (tmp_path / "ann" / "answers.md").write_text("# Proof\nIt is clear.\n")
    (tmp_path / "bob" / "answers.md").write_text("# Answers\n")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    out = tmp_path / "grades"
    paths = [str(tmp_path / name) for name in texts]
    assert main(["grade", "invertible", *paths, "--out", str(out), "--seed", "4"]) == 1
    told = capsys.readouterr()
    assert "1/4 ann: 20 of 20 points" in told.out and "seed 4" in told.out
    assert ("bubblewrap" in told.err) == (SANDBOX == "none")
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")
             if path != out and out not in path.parents}
    assert after == before
    with open(out / "grades.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["submission", "points", "of", "match_mean", "invertible_prior"]
    assert rows[1] == ["ann", "20.0", "20.0", "7.0", "13.0"]
    assert rows[2][0] == "bob" and rows[2][3] == "7.0" and float(rows[2][1]) < 20
    results = json.loads((out / "gradescope" / "bob.json").read_text())
    assert results["tests"][0]["score"] == results["tests"][0]["max_score"] == 7
    assert "wrong" in (out / "reports" / "bob.md").read_text()
    assert (out / "answers" / "ann answers.md").read_text() == "# Proof\nIt is clear.\n"
    assert "- ann: answers.md\n- bob: none" in (out / "answers.md").read_text()
    with open(out / "similarity.csv", newline="") as file:
        alike = {frozenset(row[1:]) for row in csv.reader(file)}
    assert {"ann", "dan"} in alike and not any("cy" in pair for pair in alike)
    assert main(["grade", "invertible", paths[0], "--out", str(out)]) == 0


def test_gradescope_gets_its_files(tmp_path):
    folder = tmp_path / "scope"
    assert main(["gradescope", "blr", "--out", str(folder)]) == 0
    run = (folder / "run_autograder").read_text()
    assert "grade blr /autograder/submission" in run
    assert os.access(folder / "run_autograder", os.X_OK)
    assert (folder / "setup.sh").exists() and (folder / "requirements.txt").exists()
    command = [sys.executable, "-m", "classroom"]
    listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert "blr" in listed.stdout


def test_the_open_assignment_ranks_what_is_won_back(tmp_path):
    """Two features, one of them new to the network every phase: rewards that a prior can carry."""
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(300, 3))
    paid = np.column_stack([contexts[:, 0], -contexts[:, 0]]) + 0.1 * rng.normal(size=(300, 2))
    problem = "small", 1, {"L": 120, "P": 30}, contexts, paid
    grader = ContestGrader("prior", 2, SANDBOX, [problem])
    head = "def better_prior(left, E_old, E_new, weights, lam):\n"
    bodies = {"paper": "    return likelihood_matching(left, E_old, E_new, weights, lam)\n",
              "invalid": "    return [(-np.eye(3), np.zeros(3))]\n",
              "breaks": "    1 / (len(E_old[0]) < 9)\n    return no_prior(*[left, E_old, E_new,"
                        " weights, lam])\n"}
    handed_in = [submission(name, text_of("prior", head + body)) for name, body in bodies.items()]
    results = {result.id: result for result in grader.grade_all(handed_in, 2)}
    kinds = "none", "paper", "perfect"
    none, paper, perfect = (grader.baselines[kind]["small"] for kind in kinds)
    right = (paper - none) / (perfect - none)
    assert results["paper"].rank["small"] == pytest.approx(right)
    assert not results["invalid"].rank and results["invalid"].points == 0
    assert "ZeroDivisionError" in words_of(results["breaks"])
    reports.write_all(tmp_path, "prior", grader, list(results.values()), 2)
    ranking = (tmp_path / "ranking.csv").read_text().split("\n")
    assert ranking[0] == "submission,won back,small" and len(ranking) == 3


def test_a_sandbox_that_does_not_work_is_no_fault_of_students():
    grader = Grader("invertible", 1, "none")
    grader.try_out()
    grader.text += "\n1 / 0\n"
    with pytest.raises(Unloadable, match="ZeroDivisionError"):
        grader.try_out()
