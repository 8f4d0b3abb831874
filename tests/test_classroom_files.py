"""Whatever is handed in, and however it was downloaded: everybody has a row, nobody harms another.
"""
import csv
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from classroom_students import submission, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from classroom import catalogue, reports, submissions
from classroom.__main__ import main
from classroom.catalogue import Part
from classroom.contest import ContestGrader, baseline
from classroom.grading import Grader
from classroom.sandbox import bubblewrap_works

SANDBOX = "bwrap" if bubblewrap_works() else "none"
RIGHT = text_of("invertible")
WRONG = RIGHT.replace("A @", "2 * A @")


def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name or "x", content)
            archive.infolist()[-1].filename = name               # one may have none
    return data.getvalue()


def write(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# Odd files ----------------------------------------------------------------------------------------

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
        "numbered/nlts (1).py": b"x = 1\n", "numbered/helper.py": b"", "many/nlts.py": b"x = 1\n",
        "packed.zip": zipped({"folder/nlts.py": b"x = 1\n", "../evil.txt": b"", "/evil.txt": b"",
                              ".": b"", "": b"", "windows\\notes.txt": b""}),
        "inside/work.zip": zipped({"nlts.py": b"x = 1\n"}), "broken.zip": b"PK nothing",
        "class.zip": zipped({"ann/nlts.py": b"x = 1\n", "bob/nlts.py": b"x = 2\n"})}
    files |= {f"many/{i}.txt": b"" for i in range(501)}
    write(tmp_path, files)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "nlts.py").symlink_to(catalogue.ROOT / "nlts.py")
    paths = sorted(tmp_path.iterdir())
    found = {one.id: one for one in submissions.read_all([*paths, tmp_path / "nowhere", paths[0]])}
    for name in ("latin", "bom", "crlf", "wide"):
        assert found[name].source == text, name
    assert found["cookie"].source.endswith("'\u20ac'\n")
    assert found["book"].source == "\nx = 1\n\n\ny = 2"
    for name in ("loose_123_nlts", "nested", "packed", "inside", "class/ann", "numbered", "many"):
        assert found[name].source == "x = 1\n", name
    assert found["class/bob"].source == "x = 2\n"
    problems = {"binary": "no text", "empty": "empty", "nothing": "no nlts.py", "big": "1 MB",
                "bad": "no notebook", "broken": "cannot be read", "link": "no nlts.py",
                "nowhere": "no such file"}
    for name, words in problems.items():
        assert words in found[name].problem, (name, found[name].problem)
    assert "bad (2)" in found


def test_a_class_in_one_download_loses_nobody(tmp_path):
    bomb = zipped({"a.zip": zipped({f"{i}.bin": bytes(2 ** 20) for i in range(30)})})
    files = {"ann/nlts.py": b"x = 1\n", "ann/data.bin": bytes(21 * 2 ** 20),
             "bob.zip": zipped({"nlts.py": b"x = 1\n"}), "cy/hw/nlts.py": b"x = 1\n",
             "dan/solution.py": b"x = 1\n", "eve/work.zip": b"PK nothing", "fay/hw.zip": bomb,
             "gil/nlts.py": b"# coding: rot13\nx = 1\n", "readme.txt": b"",
             "hal/nlts.zip": zipped({"nlts.py": b"x = 1\n"}).replace(b"x = 1", b"x = 2")}
    write(tmp_path / "class", files)
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


def test_no_name_in_a_students_folder_is_taken_for_that_of_a_download(tmp_path):
    """A photo named as by Canvas, a folder named as by Moodle: everybody has their own row."""
    files = {f"{name}/nlts.py": b"x = 1\n" for name in ("ann", "bob", "cy")}
    files |= {"bob/img_2023_01_05.png": b"", "bob/img_2023_01_06.py": b"x = 2\n",
              "dan/Ann Lee_123_assignsubmission_file_/nlts.py": b"x = 4\n",
              "dan/Bob Li_124_assignsubmission_file_/nlts.py": b"x = 5\n"}
    write(tmp_path, files)
    paths = sorted(tmp_path.iterdir())
    found = {one.id: one for one in submissions.read_all(paths)}
    assert {"ann", "bob", "cy"} < set(found) and not any("_12" in name[:7] for name in found)
    assert all(name.startswith("dan") for name in set(found) - {"ann", "bob", "cy"})
    assert found["bob"].source == "x = 1\n"
    whole = [one.id for one in submissions.read_all([tmp_path])]
    assert whole == [f"{tmp_path.name}/{name}" for name in ("ann", "bob", "cy", "dan")]


def test_two_downloads_of_a_class_are_joined_by_name(tmp_path):
    for part in ("one", "two"):
        write(tmp_path / part, {f"{student}_assignsubmission_file_/nlts.py": f"{part} = 1\n"
                                for student in ("Ann Lee_123", "Bob Li_124")})
    found = submissions.read_all([tmp_path / "one", tmp_path / "two"])
    assert [one.student for one in found] == ["Ann Lee_123", "Bob Li_124"] * 2


def test_what_cannot_be_read_counts_too(tmp_path):
    """Entries whose bytes are not those that were packed, each a megabyte."""
    data = zipped({f"{i}.txt": bytes(2 ** 20) for i in range(60)})
    wrong = bytearray(data)
    for at in (match.start() for match in re.finditer(b"PK\x01\x02", data)):
        wrong[at + 16] ^= 1                                      # the sum in the list of contents
    read, (path,) = [], [tmp_path / "eve.zip"]
    path.write_bytes(bytes(wrong))
    whole = zipfile.ZipFile.read
    try:
        zipfile.ZipFile.read = lambda *arguments: read.append(1) or whole(*arguments)
        (one,) = submissions.read_all([path])
    finally:
        zipfile.ZipFile.read = whole
    assert "CRC" in one.problem and 15 < len(read) < 25, one.problem


def test_a_slow_encoding_is_not_used():
    text = "# coding: punycode\n" + "x = 1\n" * 10
    assert submissions.text_of("nlts.py", text.encode()) == text


def test_odd_files_are_graded(tmp_path):
    grader = Grader("invertible", 7, SANDBOX)
    cell = json.dumps({"cells": [{"cell_type": "code", "source": RIGHT}]})
    write(tmp_path, {
        "latin/nlts.py": ("# caf\u00e9\n" + RIGHT).encode("latin-1"), "book/nlts.ipynb": cell,
        "crlf/nlts.py": RIGHT.replace("\n", "\r\n").encode("utf-8-sig"),
        "packed.zip": zipped({"x/nlts.py": RIGHT}), "hides/nlts.py": RIGHT,
        "hides/random.py": b"1 / 0", "hides/numpy.py": b"1 / 0"})
    for result in grader.grade_all(submissions.read_all(sorted(tmp_path.iterdir())), 2):
        assert result.points == grader.points, (result.id, result.problem, result.outcomes)


# Fuzz: what is read gets a row, beside somebody whose row stays as it is --------------------------

def row_of_everybody(folder, paths):
    """Read, give no points, write all tables: the rows of grades.csv. No student's code runs."""
    part = Part("match_mean", 1.0)
    grader = SimpleNamespace(name="invertible", parts=[part], points=10.0)
    found = submissions.read_all(paths)
    for one in found:
        one.outcomes, one.scores = {part: [("a title", one.problem or one.id)]}, {part: 0.0}
    reports.write_all(folder / "out", grader, found, 1)
    assert len(list((folder / "out" / "reports").iterdir())) == len(found)
    assert len(list((folder / "out" / "gradescope").iterdir())) == len(found)
    return table(folder / "out" / "grades.csv")


def ann_and(tmp_path_factory, files):
    """The rows of a class of two: Ann, whose work is right, and these files."""
    folder = tmp_path_factory.mktemp("class")
    write(folder / "in", {"ann/nlts.py": "x = 1\n"})
    paths = [folder / "in" / "ann"]
    for name, data in files.items():
        (folder / "in" / name).write_bytes(data)
        paths.append(folder / "in" / name)
    rows = row_of_everybody(folder, paths)
    assert rows[0]["submission"] == "ann" and len(rows) >= 2
    return rows


PARTS = st.text(max_size=60) | st.sampled_from(
    [".", "..", "", "/", "nlts.py", "=1+1", "<b>x</b>", "x" * 252, "CON", "\udcff", "a\\b", "a\0b",
     "\N{RIGHT-TO-LEFT OVERRIDE}yp.stln"])
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


@settings(max_examples=100)
@given(names=st.lists(NAMES, max_size=6), cut=st.integers(0, 400), byte=st.integers(0, 255),
       what=st.sampled_from(["whole", "cut", "changed", "changed"]))
def test_any_zip_gets_a_row(tmp_path_factory, names, cut, byte, what):
    try:
        data = bytearray(zipped(dict.fromkeys(["nlts.py", *names], b"x = 1\n")))
    except UnicodeEncodeError:                                   # no such name in a zip
        return
    if what == "cut":
        del data[-1 - cut % len(data):]
    if what == "changed":
        data[cut % len(data)] = byte
    ann_and(tmp_path_factory, {"eve.zip": bytes(data)})


@settings(max_examples=100)
@given(parts=st.lists(PARTS, min_size=1, max_size=2))
def test_any_name_gets_a_row(tmp_path_factory, parts):
    name = re.sub(r"[\x00/]", "_", "".join(parts)).encode("utf-8", "surrogateescape")[:250]
    name = name.decode("utf-8", "surrogateescape")
    if name.strip(".") and name != "ann":
        rows = ann_and(tmp_path_factory, {name: b"x = 1\n"})
        assert not any(value[:1] in tuple("=+-@") for row in rows for value in row.values())


JSON = st.recursive(st.none() | st.integers() | st.text(max_size=20) | st.booleans(),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["cells", "cell_type", "source", "x"]), inner, max_size=3),
                    max_leaves=8)
CELLS = st.fixed_dictionaries({"cell_type": st.just("code"), "source": JSON | st.text(max_size=40)})


@settings(max_examples=100)
@given(book=JSON | st.fixed_dictionaries({"cells": st.lists(CELLS, max_size=4)}))
def test_any_notebook_gets_a_row(tmp_path_factory, book):
    ann_and(tmp_path_factory, {"eve.ipynb": json.dumps(book).encode()})


def test_names_that_collide_and_long_ones_have_files_of_their_own(tmp_path):
    long = "x" * 250
    names = ["a?b", "a*b", "A?B", "ann", "Ann", "ANN", long + "1", long + "2"]
    write(tmp_path, {f"{i}/{name}/nlts.py": b"x = 1\n" for i, name in enumerate(names)})
    paths = [tmp_path / str(i) / name for i, name in enumerate(names)]
    rows = row_of_everybody(tmp_path, paths)
    assert len({row["submission"].casefold() for row in rows}) == len(names)
    files = [path.name.casefold() for path in (tmp_path / "out" / "reports").iterdir()]
    assert len(set(files)) == len(names) and max(map(len, files)) < 100


def test_formulas_and_html_do_no_harm(tmp_path):
    bad = '=HYPERLINK("x")<script>alert(1)</script>[x](javascript:1)`'
    rows = row_of_everybody(tmp_path, [write(tmp_path / f"{bad[:20]}", {"nlts.py": "x"})])
    assert rows[0]["submission"].startswith("'=")
    part = Part("match_mean", 1.0)
    one = submissions.Submission(bad, problem=bad, outcomes={part: [("title", bad)]},
                                 scores={part: 0.0})
    text = reports.report("invertible", 20, one)
    outside = re.sub(r"`[^`\n]*`", "", text)                     # in code spans nothing counts
    assert "<" not in outside and "](" not in outside and text.count("<script>") == 3
    assert reports.gradescope(one)["tests"][0]["output_format"] == "text"


# A teacher's day ----------------------------------------------------------------------------------

def grade(tmp_path, paths, *options):
    """The rows of grades.csv, {submission: row}, of the command line."""
    out = tmp_path / "grades"
    main(["grade", "invertible", *map(str, paths), "--out", str(out), "--seed", "4", *options])
    return {row["submission"]: row for row in table(out / "grades.csv")}, out


def test_the_command_line_grades_a_class(tmp_path, capsys):
    write(tmp_path, {"ann/nlts.py": RIGHT, "ann/answers.md": "# Proof\nIt is clear.\n",
                     "bob/nlts.py": WRONG, "bob/answers.md": "# Answers\n",
                     "cy/nlts.py": text_of("invertible", "")})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    rows, out = grade(tmp_path, [tmp_path / name for name in ("ann", "bob", "cy")])
    told = capsys.readouterr()
    assert "1/3 ann: 20 of 20 points" in told.out and "seed" not in told.out
    assert ("honest work only" in told.err) == (SANDBOX == "none")
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")
             if path != out and out not in path.parents}
    assert after == before
    assert list(rows["ann"].values()) == ["ann", "20.0", "20.0", "7.0", "13.0"]
    assert rows["bob"]["match_mean"] == "7.0" and float(rows["bob"]["points"]) < 20
    results = json.loads((out / "gradescope" / "bob.json").read_text())
    assert results["tests"][0]["score"] == results["tests"][0]["max_score"] == 7
    assert "wrong" in (out / "reports" / "bob.md").read_text()
    assert (out / "answers" / "ann answers.md").read_text() == "# Proof\nIt is clear.\n"
    assert "`ann`: answers.md\n- `bob`: none" in (out / "answers.md").read_text()
    assert (out / "seed.txt").read_text().startswith("4\n")
    assert not any("seed" in path.read_text() for path in (out / "reports").iterdir())
    (out / "rubric.csv").write_text("submission,1,2\nann,3,\"1,5\"\nbob,,\n")
    assert main(["total", str(out)]) == 0
    totals = {row["submission"]: row for row in table(out / "totals.csv")}
    assert totals["ann"]["total"] == "24.5" and totals["cy"]["total"] == "0.0"
    (out / "rubric.csv").write_text("submission,1\nzoe,3\n")
    with pytest.raises(SystemExit):
        main(["total", str(out)])


def test_moodle(tmp_path):
    """A zip of folders, online text beside files, a roster by number, feedback to upload."""
    moodle = "{}_assignsubmission_{}_/{}"
    files = {moodle.format("Ann Lee_123", "file", "nlts.py"): RIGHT,
             moodle.format("Ann Lee_123", "onlinetext", "onlinetext.html"): "<p>My proof</p>",
             moodle.format("Bob M\u00fcller_124", "file", "hw.zip"): zipped({"hw/nlts.py": WRONG}),
             moodle.format("Cy Oh_125", "onlinetext", "onlinetext.html"): "<p>no code</p>"}
    (tmp_path / "moodle.zip").write_bytes(zipped(files))
    (tmp_path / "roster.csv").write_text(
        "id,name,mail\n123,Ann,ann@x\n124,Bob,bob@x\n125,Cy,cy@x\n126,Dan,dan@x\n", "utf-8-sig")
    rows, out = grade(tmp_path, [tmp_path / "moodle.zip"], "--roster",
                      str(tmp_path / "roster.csv"))
    assert {name: row["mail"] for name, row in rows.items()} == {
        "Ann Lee_123": "ann@x", "Bob M\u00fcller_124": "bob@x", "Cy Oh_125": "cy@x", "": "dan@x"}
    assert rows["Ann Lee_123"]["points"] == "20.0" and rows[""]["points"] == "0.0"
    assert "no nlts.py" in (out / "flags.csv").read_text()
    feedback = zipfile.ZipFile(out / "feedback.zip")
    assert "Ann Lee_123_assignsubmission_file_/report.md" in feedback.namelist()
    assert len(feedback.namelist()) == 3
    assert (out / "answers" / "Ann Lee_123 onlinetext.html").exists()
    write(tmp_path / "class", files)                             # unpacked, and each one named
    assert len(submissions.read_all(sorted((tmp_path / "class").iterdir()))) == 3


def test_canvas(tmp_path):
    """Loose files: those of a student are joined, late or not; numbered ones lose their number."""
    files = {"leeann_11_501_nlts-2.py": f"from helper import x\n{RIGHT}",
             "leeann_11_502_helper.py": "x = 1\n", "leeann_11_503_answers.md": "clear",
             "mullerbob_LATE_12_504_nlts.py": WRONG, "ohcy_13_505_homework.zip":
             zipped({"nlts.py": RIGHT})}
    write(tmp_path / "submissions", files)
    (tmp_path / "submissions.zip").write_bytes(zipped(files))
    rows, _ = grade(tmp_path, [tmp_path / "submissions.zip"])
    assert {name: row["points"] for name, row in rows.items()} == {
        "leeann_11": "20.0", "mullerbob_12": "7.0", "ohcy_13": "20.0"}
    loose = submissions.read_all(sorted((tmp_path / "submissions").iterdir()))
    assert [one.id for one in loose] == ["leeann_11", "mullerbob_12", "ohcy_13"]
    assert sorted(loose[0].files) == ["answers.md", "helper.py", "nlts.py"]


def test_github_classroom_and_several_attempts(tmp_path):
    """Folders of repositories; of two downloads the best or the last of each student counts."""
    write(tmp_path, {
        "one/hw-ann/nlts.py": RIGHT, "one/hw-ann/.git/config": "x", "one/hw-bob/nlts.py": WRONG,
        "one/hw-bob/.github/nlts.py": "x", "one/hw-ann/README.md": "read",
        "two/hw-ann/nlts.py": WRONG, "two/hw-bob/nlts.py": RIGHT})
    (tmp_path / "roster.csv").write_text("user,id\nann,1\nbob,2\n")
    paths = [tmp_path / "one" / name for name in ("hw-ann", "hw-bob")]
    paths += [tmp_path / "two" / name for name in ("hw-ann", "hw-bob")]
    rows, _ = grade(tmp_path, paths, "--several", "best", "--roster", str(tmp_path / "roster.csv"))
    assert sorted(row["points"] for row in rows.values()) == ["20.0", "20.0"]
    assert {row["user"]: row["id"] for row in rows.values()} == {"ann": "1", "bob": "2"}
    rows, _ = grade(tmp_path, paths, "--several", "last")
    assert rows["hw-ann"]["points"] == "7.0" and rows["hw-bob"]["points"] == "20.0"
    assert [one.id for one in submissions.read_all([tmp_path / "one"])] == ["one/hw-ann",
                                                                           "one/hw-bob"]


def test_gradescope(tmp_path):
    """The folder that is uploaded runs as Gradescope runs it: two folders, and results.json."""
    assert main(["gradescope", "invertible", "--out", str(tmp_path / "source")]) == 0
    for name in ("setup.sh", "requirements.txt", "run_autograder"):
        assert (tmp_path / "source" / name).exists()
    assert os.access(tmp_path / "source" / "run_autograder", os.X_OK)
    (tmp_path / "results").mkdir()
    (tmp_path / "venv").symlink_to(sys.prefix)
    write(tmp_path / "submission", {"code/nlts.py": RIGHT, "notes/plot.ipynb": '{"cells": []}'})
    environment = os.environ | {"AUTOGRADER": str(tmp_path), "OMP_NUM_THREADS": "1"}
    run = [str(tmp_path / "source" / "run_autograder")]
    subprocess.run(run, env=environment, check=False, capture_output=True)
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert results["score"] == 20 and results["stdout_visibility"] == "hidden"
    assert {test["output_format"] for test in results["tests"]} == {"text"}
    assert {test["visibility"] for test in results["tests"]} == {"visible"}
    assert not any(key in json.dumps(results) for key in ("seed", "rubric"))
    (tmp_path / "source" / "classroom" / "worker.py").write_text("1 / 0\n")
    (tmp_path / "out" / "gradescope" / "submission.json").unlink()
    subprocess.run(run, env=environment, check=False, capture_output=True)
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert results["score"] == 0 and "tell your teacher" in results["output"]


def test_the_open_assignment_ranks_what_is_won_back(tmp_path):
    """Two features, one of them new to the network every phase: rewards that a prior can carry."""
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(240, 3))
    paid = np.column_stack([contexts[:, 0], -contexts[:, 0]]) + 0.1 * rng.normal(size=(240, 2))
    problem = "small", 1, {"L": 120, "P": 30}, contexts, paid
    baselines = {kind: baseline(kind, [problem]) for kind in ("none", "paper", "perfect")}
    grader = ContestGrader("prior", 2, SANDBOX, problems=[problem], baselines=baselines)
    head = "def better_prior(forgotten, E_old, E_new, weights, lam):\n"
    given = "forgotten, E_old, E_new, weights, lam"
    bodies = {"paper": f"    return likelihood_matching({given})\n",
              "invalid": "    return [(-np.eye(3), np.zeros(3))]\n",
              "breaks": f"    1 / (len(E_old[0]) < 9)\n    return no_prior({given})\n"}
    handed_in = [submission(name, text_of("prior", head + body)) for name, body in bodies.items()]
    results = {result.id: result for result in grader.grade_all(handed_in, 2)}
    none, paper, perfect = (rewards["small"] for rewards in baselines.values())
    right = (paper - none) / ((perfect - none) or 1.0)
    assert results["paper"].rank["small"] == pytest.approx(right)
    assert not results["invalid"].rank and results["invalid"].points == 0
    assert "ZeroDivisionError" in str(results["breaks"].outcomes)
    reports.write_all(tmp_path, grader, list(results.values()), 2)
    ranking = (tmp_path / "ranking.csv").read_text().split("\n")
    assert ranking[0] == "submission,won back,small" and len(ranking) == 3
