"""Whatever is handed in, and however it was downloaded: everybody has a row, nobody harms another.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from classroom_fuzz import make_class, zipped
from classroom_students import SANDBOX, failures, submission, text_of

from classroom import catalogue, reports, submissions
from classroom.__main__ import main
from classroom.catalogue import Part
from classroom.contest import ContestGrader, baselines_of
from classroom.handout import files_of
from classroom.submissions import text_of as program_text

FUNCTIONS = ["match_mean", "invertible_prior"]
RIGHT = text_of("invertible")
BLANK = text_of("invertible", "")


def write(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


def read(folder):
    handed_in = submissions.read_all(submissions.manifest_of(folder), FUNCTIONS)
    return {one.id: one for one in handed_in}


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# Who is who ---------------------------------------------------------------------------------------

def test_a_class_is_one_folder_zip_or_file_per_student(tmp_path):
    files = {"ann/nlts.py": RIGHT, "bob.zip": zipped({"nlts.py": RIGHT}), "cy.py": RIGHT,
             "dan/solutions/nlts.py": RIGHT, "eve.ipynb": "{}", "hal.7z": "7z", ".git/x.py": "",
             "fay.zip": zipped({f"try{i}/nlts.py": RIGHT for i in range(3)}), "gil.zip": b"PK"}
    write(tmp_path / "class", files)
    os.mkfifo(tmp_path / "class" / "ian.py")
    found = read(tmp_path / "class")
    assert list(found) == ["ann", "bob.zip", "cy.py", "dan", "eve.ipynb", "fay.zip", "gil.zip",
                           "hal.7z", "ian.py"]
    for name in ("ann", "bob.zip", "cy.py", "dan", "fay.zip"):
        assert found[name].source == RIGHT
    assert found["fay.zip"].main == "fay/try2/nlts.py"
    assert "there is also fay/try1/nlts.py, fay/try0" in found["fay.zip"].flags[0]
    assert "notebook" in found["eve.ipynb"].problem and "zip file" in found["gil.zip"].problem
    assert "no program" in found["hal.7z"].problem and "no such file" in found["ian.py"].problem
    assert list(read(tmp_path / "class" / "ann")) == ["ann"]


def test_names_of_moodle_and_canvas_are_joined_by_student(tmp_path):
    moodle = {"Ann Lee_12_assignsubmission_file_/nlts.py": RIGHT,
              "Ann Lee_12_assignsubmission_onlinetext_/onlinetext.html": "<p>because</p>",
              "Bob Li_13_assignsubmission_file_/nlts.py": BLANK}
    found = read(write(tmp_path / "moodle", moodle))
    assert list(found) == ["Ann Lee_12", "Bob Li_13"]
    assert found["Ann Lee_12"].answers() == "<p>because</p>"
    canvas = {"leeann_LATE_12_400_nlts-1.py": RIGHT, "leeann_12_401_answers.md": "because",
              "libob_13_402_nlts.py": RIGHT}
    found = read(write(tmp_path / "canvas", canvas))
    assert list(found) == ["leeann_12", "libob_13"]
    assert set(found["leeann_12"].files) == {"nlts.py", "answers.md"}


def test_a_manifest_is_printed_and_can_be_corrected(tmp_path, capsys):
    write(tmp_path / "class", {"ann/nlts.py": BLANK, "ann/old/nlts.py": RIGHT, "bob/nlts.py": RIGHT,
                               "m;o=r %41/work.py": RIGHT})
    out = tmp_path / "out"
    arguments = ["--out", str(out), "--seed", "4"]
    main(["grade", "invertible", str(tmp_path / "class"), *arguments])
    assert "ann: old/nlts.py (defines 2 of 2)" in capsys.readouterr().out
    rows = table(out / "manifest.csv")
    assert [row["student"] for row in rows] == ["ann", "bob", "m,o=r %41"]
    rows[0]["file"], rows[2]["student"], rows[1]["file"] = "nlts.py", "bob", ""
    with open(tmp_path / "mine.csv", "w", newline="") as file:
        csv.DictWriter(file, rows[0]).writeheader()
        csv.DictWriter(file, rows[0]).writerows(rows)
    main(["grade", "invertible", "--manifest", str(tmp_path / "mine.csv"), *arguments])
    points = {row["submission"]: row["points"] for row in table(out / "grades.csv")}
    assert points == {"ann": "0.0", "bob": "20.0"}


# Which program ------------------------------------------------------------------------------------

def notebook(*cells):
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})


def test_the_file_that_defines_the_blanks_is_graded(tmp_path):
    defined = RIGHT[RIGHT.index("def match_mean"):RIGHT.index("def _check")]
    write(tmp_path, {
        "book/nlts.py": BLANK, "book/hw.ipynb": notebook("import numpy as np", RIGHT, "print(1)"),
        "file/nlts.py": BLANK, "file/solution.py": f"from nlts import *\n{defined}",
        "typo/nlts.py": "def f(:\n", "typo/hw.ipynb": notebook(RIGHT, "x = = 1", "%%bash\nrm x"),
        "number/nlts (1).py": RIGHT, "number/helper.py": "x = 1\n", "none/answers.md": "?"})
    found = read(tmp_path)
    assert [found[name].main for name in ("book", "file", "typo", "number", "none")] == [
        "hw.ipynb", "solution.py", "hw.ipynb", "nlts (1).py", ""]
    assert "there is also nlts.py" in found["book"].flags[0]
    assert "code cell 2 was left out, line 1: invalid syntax" in found["typo"].notes
    assert "nlts.py: line 1: invalid syntax" in " ".join(found["typo"].flags)
    main(["grade", "invertible", str(tmp_path), "--out", str(tmp_path / "out"), "--seed", "3"])
    points = {row["submission"]: row["points"] for row in table(tmp_path / "out" / "grades.csv")}
    assert points == dict.fromkeys(("book", "file", "number", "typo"), "20.0") | {"none": "0.0"}


@pytest.mark.parametrize("name, data, text", [
    ("nlts.py", "# caf\u00e9\n".encode("latin-1"), "# caf\u00e9\n"),
    ("nlts.py", "x = 1\r\n".encode("utf-8-sig"), "x = 1\n"),
    ("nlts.py", "x = 1\n".encode("utf-16"), "x = 1\n"),
    ("nlts.py", b"# coding: punycode\nx = 1\n", "# coding: punycode\nx = 1\n"),
    ("a.ipynb", notebook("%matplotlib inline\nx = 1", "match_mean?", "!ls\ny = 2").encode(),
     "\nx = 1\n\n\n\n\ny = 2"),
    ("nlts.py", bytes(range(256)), "no text"), ("nlts.py", b" \n", "empty"),
    ("nlts.py", b"#" * 2 ** 19, "exceed"), ("a.ipynb", b"{}", "no notebook"),
    ("a.ipynb", b"[" * 100_000, "no notebook")])
def test_texts_in_any_encoding_are_read_or_explained(name, data, text):
    try:
        assert program_text(name, data)[0] == text
    except ValueError as error:
        assert text in str(error)


# Odd folders and zips -----------------------------------------------------------------------------

def test_what_is_too_much_is_left_out_and_told(tmp_path):
    deep = "/".join("d" * 30)
    write(tmp_path, {f"deep/{deep}/nlts.py": RIGHT, "many/nlts.py": RIGHT,
                     **{f"many/x{i}.txt": "" for i in range(600)},
                     "big/nlts.py": RIGHT, "big/data.bin": bytes(21 * 2 ** 20),
                     "bomb.zip": zipped({"a.py": bytes(2 ** 24), "nlts.py": RIGHT}),
                     "names.zip": zipped({f"{i}{'n' * 60_000}": b"" for i in range(140)})})
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "nlts.py").symlink_to(catalogue.ROOT / "nlts.py")
    found = read(tmp_path)
    for name in ("many", "big", "bomb.zip"):
        assert found[name].source == RIGHT and found[name].flags, name
    for name in ("deep", "link", "names.zip"):
        assert "no program" in found[name].problem, name
    assert "255 bytes" in found["names.zip"].problem and "100 times" in found["bomb.zip"].flags[0]


@pytest.fixture
def odd_class():
    """A place for odd folders: deeper than Python, and so pytest, can remove. In memory, if that is
    possible: disks are slow to remove them."""
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    yield Path(folder) / "class"
    subprocess.run(["rm", "-rf", folder], check=True)


def test_odd_submissions_have_rows(odd_class):
    make_class(odd_class, 5, seed=1)
    assert len(read(odd_class)) == 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_500_odd_submissions_have_500_rows(odd_class, seed):
    make_class(odd_class, 100, seed)
    write(odd_class, {"honest/nlts.py": text_of("buffer")})
    fuzz = Path(__file__).with_name("classroom_fuzz.py")
    run = subprocess.run([sys.executable, fuzz, odd_class], capture_output=True, text=True,
                         env=os.environ | {"TMPDIR": str(odd_class.parent)}, check=False)
    assert run.returncode == 0, run.stderr
    measured = json.loads(run.stdout.splitlines()[-1])
    print(measured)
    assert measured["rows"] == 101 and measured["honest"] == 15
    assert measured["memory"] < 1 and measured["start"] < 2
    assert len(table(odd_class.with_name("out") / "grades.csv")) == 101


# Reports ------------------------------------------------------------------------------------------

def test_formulas_and_html_do_no_harm(tmp_path):
    bad = '=HYPERLINK("x");=1+1\t@SUM<script>alert(1)</script>[x](javascript:1)`\r# 20 points'
    part = Part("match_mean", 1.0)
    one = submissions.Submission(bad, problem=bad, outcomes={part: [("title", bad)]}, flags=[bad],
                                 scores={part: 0.0}, files={"answers.md": bad.encode()},
                                 paths=[bad])

    class Grader:
        name, parts, points = "invertible", [part], 10.0
    reports.write_all(tmp_path, Grader, [one], 1)
    for file in ("grades.csv", "manifest.csv"):
        for cell in (cell for row in table(tmp_path / file) for cell in row.values()):
            assert ";" not in cell and "\t" not in cell
            assert not any(piece.strip()[:1] in tuple("=+-@") for piece in cell.split(",")), cell
    (report,) = (tmp_path / "reports").iterdir()
    lines = [line for line in report.read_text().splitlines() if not line.startswith("    ")]
    outside = "".join("\n".join(lines).split("`")[::2])
    assert "<" not in outside and "](" not in outside and "# 20" not in outside


def test_reports_have_plain_names_of_their_own():
    names = ["a?b", "a*b", "x" * 250, "", "..", "con/aux"]
    files = [reports.file_name(number, name) for number, name in enumerate(names)]
    assert len(set(files)) == len(names) and max(map(len, files)) < 60
    assert not any("/" in file for file in files)


# A class, from the command line -------------------------------------------------------------------

def test_the_command_line_grades_a_class(tmp_path, capsys):
    write(tmp_path / "in", {"ann/nlts.py": RIGHT, "ann/answers.md": "# Proof\nIt is clear.\n",
                            "bob/nlts.py": RIGHT.replace("A @", "2 * A @")})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    out = tmp_path / "out"
    main(["grade", "invertible", str(tmp_path / "in"), "--out", str(out)])
    told = capsys.readouterr()
    assert "1/2 ann: 20 of 20 points" in told.out
    assert ("honest work only" in told.err) == (SANDBOX == "none")
    assert before == {path: path.stat().st_mtime_ns for path in before}
    rows = table(out / "grades.csv")
    assert rows[0] == {"submission": "ann", "points": "20.0", "of": "20.0", "waits": "0.0",
                       "match_mean": "7.0", "invertible_prior": "13.0", "look at": ""}
    assert "    It is clear." in (out / "reports" / "001 ann.md").read_text()
    assert "**wrong**" in (out / "reports" / "002 bob.md").read_text()
    seed = (out / "seed.txt").read_text().split()[0]
    assert 2 ** 32 < int(seed) < 2 ** 63 and seed not in told.out        # for the teacher only
    with pytest.raises(SystemExit):
        main(["grade", "invertible", "--out", str(out)])


# The open assignment ------------------------------------------------------------------------------

def tiny_problems():
    rng = np.random.default_rng(1)
    contexts = rng.normal(size=(60, 3))
    rewards = np.stack([contexts[:, 0] > 0, contexts[:, 0] <= 0], 1).astype(float)
    return [("tiny", 5, {"L": 20, "P": 5}, contexts, rewards)]


@pytest.mark.slow
def test_a_prior_is_played_and_ranked():
    problems = tiny_problems()
    baselines = baselines_of(problems) | {"none": {"tiny": -1.0}, "perfect": {"tiny": 60.0}}
    grader = ContestGrader("prior", 3, SANDBOX, problems, baselines)
    invalid = "def better_prior(*_):\n    return []\n"
    carried = (catalogue.ROOT / "nlts_beyond.py").read_text()
    carried = carried.replace("carried_prior", "better_prior")
    blank = files_of("prior")["better_prior.py"]
    results = grader.grade_all([submission("right", text_of("prior")),
                                submission("invalid", text_of("prior", invalid)),
                                submission("copied", carried), submission("untouched", blank)])
    assert "syntax tree" in results[2].flags[0] and not results[0].flags
    assert results[3].points == 0 and "not written yet" in failures(results[3])
    assert results[0].rank["tiny"] > 0 and results[0].points >= 30, failures(results[0])
    assert results[1].points == 0 and not results[1].rank and "expected 2" in failures(results[1])
