"""The classroom works: blanks fail exactly their own tests, planted bugs are caught, nothing stops the grader."""
import ast
import io
import itertools
import json
import runpy
import subprocess
import sys
import tokenize
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import Phase, settings

import assignments
from assignments import ASSIGNMENTS, BUGS

REFERENCE = assignments.SOURCE.read_text()
PARTS = list(ASSIGNMENTS)


@pytest.fixture(scope="module")
def tests():
    """A short version of test_nlts.py: ten cases a property, without search for the smallest one, and 1000 updates."""
    profile = settings.get_current_profile_name()
    settings.register_profile("short", settings.get_profile("ci"), max_examples=10, phases=[Phase.generate])
    settings.load_profile("short")
    source = (assignments.HERE / "test_nlts.py").read_text().replace("100_000", "1000")
    yield assignments.import_source(source.replace("max_examples=60", "max_examples=30"), "short_tests")
    settings.load_profile(profile)


def cases(tests, name):
    """What pytest would call for a test's name, or its name[parameters]."""
    name, _, wanted = name.rstrip("]").partition("[")
    test = getattr(tests, name)
    marks = [mark.args for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for values in itertools.product(*(values for _, values in marks)):
        if wanted in ("", "-".join(map(str, values))):
            arguments = {}
            for (names, _), value in zip(marks, values):
                arguments |= dict(zip(names.split(", "), value if "," in names else [value]))
            yield lambda arguments=arguments: test(**arguments)


def fails(call):
    """Whether a test meets a blank. (One that waits for a warning says so instead.)"""
    try:
        call()
    except (NotImplementedError, pytest.fail.Exception):
        return True
    return False


# Planted bugs -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("bug, test", [(bug, test) for bug in BUGS for test in BUGS[bug].caught_by])
def test_planted_bug_is_caught(bug, test, tests):
    tests.nlts = assignments.import_source(assignments.with_bug(bug), "nlts_with_bug")
    (call,) = cases(tests, test)
    with pytest.raises(AssertionError):
        call()


def test_symptoms_show_every_bug_and_only_the_bug():
    right = assignments.import_source(REFERENCE, "nlts_right")
    expected = {bug.experiment: bug.experiment(right) for bug in BUGS.values()}
    for name, bug in BUGS.items():
        actual = bug.experiment(assignments.import_source(assignments.with_bug(name), "nlts_wrong"))
        assert "numbers differ" in assignments.table(expected[bug.experiment], actual), name
        assert len(assignments.writes_of(name)) == 1
    assert assignments.table(expected[assignments.phases], assignments.phases(right)).endswith("as expected.")


def test_a_hunt_has_a_symptom_and_no_key(tmp_path, capsys):
    name, out = "wrong-arm-evicted", tmp_path / "hunt"
    assert assignments.main(["bug", name, "--out", str(out)]) == 0
    assert {p.name for p in out.iterdir()} == {"nlts.py", "symptom.py", "symptom.json", "symptom.txt", "symptom.png",
                                               "README.md", "requirements.txt"}
    assert (out / "symptom.png").read_bytes()[:4] == b"\x89PNG" and "<--" in (out / "symptom.txt").read_text()
    text = "\n".join(p.read_text() for p in out.iterdir() if p.suffix != ".png")
    assert BUGS[name].right not in text and BUGS[name].wrong in text and "BUGS" not in text
    assert not any(word in text for bug in BUGS for word in (f'"{bug}"', f"# {bug}", *BUGS[bug].caught_by))
    (out / "nlts.py").write_text(REFERENCE)                               # mended, as is what symptom.py imports here
    runpy.run_path(str(out / "symptom.py"))
    assert capsys.readouterr().out.endswith("All numbers are as expected.\n")
    assert assignments.main(["grade", str(out), "--name", name, "--seed", "1"]) == 0


# Assignments --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("part", PARTS)
def test_all_tests_of_a_part_fail_while_it_is_blank(part, tests):
    """Every case of every test, even if all other parts are done: so they fail, too, while others are blank as well."""
    tests.nlts = assignments.import_source(assignments.blank(REFERENCE, ASSIGNMENTS[part].writes), "nlts_blank")
    for test, (_, number) in assignments.tests_of(part).items():
        calls = list(cases(tests, test))
        assert len(calls) == number and all(map(fails, calls)), test


@pytest.mark.parametrize("part", PARTS)
def test_all_tests_of_a_part_pass_while_later_parts_are_blank(part, tests):
    """So they pass in the folder of a later part, and in the folder of all for who has done parts 1 to this one."""
    later = [f for name in PARTS[PARTS.index(part) + 1:] for f in ASSIGNMENTS[name].writes]
    tests.nlts = assignments.import_source(assignments.blank(REFERENCE, later), "nlts_blank")
    for test in assignments.tests_of(part):
        for call in cases(tests, test):
            call()


@pytest.mark.parametrize("name", [*PARTS, "all"])
def test_blanks_keep_the_hints_and_lose_the_solution(name):
    writes = assignments.writes_of(name)
    blank = assignments.blank(REFERENCE, writes)
    before, after = assignments.definitions(REFERENCE), assignments.definitions(blank)
    assert list(before) == list(after)
    for f in writes:
        (old,), (new,) = before[f], after[f]
        assert ast.dump(old.args) == ast.dump(new.args) and ast.get_docstring(old) == ast.get_docstring(new)
        assert ast.unparse(new.body[-1]) == "raise NotImplementedError" and len(new.body) <= 2
        lines = REFERENCE.split("\n")[old.body[bool(ast.get_docstring(old))].lineno - 1:old.end_lineno]
        for line in {line.partition("  # ")[0].strip() for line in lines}:
            if len(line) > 25 and not line.startswith("#"):               # other functions may have the line too
                assert blank.count(line) <= REFERENCE.count(line) - 1, line
    comments = [[t.string for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.COMMENT]
                for source in (REFERENCE, blank)]
    assert comments[0] == comments[1]
    assert assignments.overlay(blank, REFERENCE, ()) == REFERENCE         # put back, they pass all tests


def test_a_folder_stands_alone(tmp_path, capsys):
    """The real thing: its own tests fail, earlier ones pass, later ones are deselected, nothing else is needed."""
    out = tmp_path / "thompson"
    subprocess.run([sys.executable, assignments.__file__, "make", "thompson", "--out", out], check=True)
    assert {p.name for p in out.iterdir()} == {"nlts.py", "test_nlts.py", "conftest.py", "pyproject.toml",
                                               "requirements.txt", "README.md"}
    pytest_run = [sys.executable, "-m", "pytest", "-rpf", "--tb=no", "-k", "not 100000", "-p", "no:cacheprovider"]
    run = subprocess.run(pytest_run, cwd=out, capture_output=True, text=True, check=False)
    for word, part in (("PASSED", "blr"), ("FAILED", "thompson")):
        told = [line.split("::")[1] for line in run.stdout.splitlines() if line.startswith(word)]
        wanted = {test for test in assignments.tests_of(part) if "100000" not in test}
        assert {line.split("[")[0].split(" ")[0] for line in told} == wanted
    readme = (out / "README.md").read_text()
    assert "python -m pytest -m thompson" in readme and "Algorithm 1" in readme
    assert f"`{sum(n for _, n in assignments.tests_of('thompson').values())} passed`" in readme
    with pytest.raises(SystemExit):
        assignments.main(["make", "blr", "--out", str(out)])
    assert "--out" in capsys.readouterr().err


def test_the_list_names_everything(capsys):
    assert assignments.main([]) == 0
    text = capsys.readouterr().out
    assert all(name in text and ASSIGNMENTS[name].goal in text for name in PARTS) and all(bug in text for bug in BUGS)


# Grading ------------------------------------------------------------------------------------------------------------

SOLVED = "    A = np.linalg.lstsq(E_old, E_new, rcond=None)[0].T\n"
BLANK = assignments.blank(REFERENCE, ASSIGNMENTS["invertible"].writes)
SUBMISSIONS = {                                                          # source, points of 2, and words of the reason
    "right": (REFERENCE.replace(SOLVED, "    A = solution(E_old, E_new)\n") +
               "\n\ndef solution(x, y):\n    import math\n    print('\\0' * int(math.pi * 1e6))\n"
               "    return np.linalg.lstsq(x, y, rcond=None)[0].T\n\n\ndef _array(*anything):\n    return 0\n", 2, ""),
    "blank": (BLANK, 0, "invertible_prior is not written yet"),
    "wrong": (REFERENCE.replace(SOLVED, SOLVED.replace(".T", "")), 0, "for seed="),
    "exits": (REFERENCE + "\nraise SystemExit('\\ud800\\x1b[2J')\n", 0, "SystemExit"),
    "crashes": (REFERENCE.replace(SOLVED, SOLVED + "    np.lib.stride_tricks.as_strided(A, (9,), (2 ** 40,)).sum()\n"),
                0, "broke off in test_"),
    "odd import": ("import antigravity\n" + REFERENCE, 0, "line 1 imports antigravity"),
    "odd import inside": (REFERENCE.replace(SOLVED, "    from pytest import skip\n" + SOLVED), 0, "imports pytest"),
    "system": (REFERENCE.replace(SOLVED, "    os._exit(0)\n" + SOLVED), 0, "uses os"),
    "tampers": (REFERENCE + "\nnp.testing.assert_allclose = print\n", 0, "changes np.testing.assert_allclose"),
    "renamed": (REFERENCE.replace("def match_mean", "def matched_mean"), 0, "match_mean is missing"),
    "no python": ("def f(:\n", 0, "does not parse"),
    "deep": ("x = " + "-" * 100_000 + "1\n", 0, "nested too deeply"),
    "empty": ("", 0, "is missing"),
}


def submission(folder, source, name="invertible"):
    folder.mkdir()
    (folder / "pyproject.toml").write_text(f'[tool.nlts]\nassignment = "{name}"\n')
    (folder / "nlts.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    (folder / "conftest.py").write_text("raise SystemExit(0)\n")          # only nlts.py of the student's is used
    return str(folder)


def test_thirty_folders_of_all_kinds_are_graded_in_one_call(tmp_path, capsys):
    assert REFERENCE.count(SOLVED) == 1
    folders = [submission(tmp_path / name.replace(" ", "-"), source) for name, (source, _, _) in SUBMISSIONS.items()]
    folders += [submission(tmp_path / f"noise{i}", bytes(range(i, 200))) for i in range(14)]
    folders += [submission(tmp_path / "unknown", REFERENCE, "swimming"), str(tmp_path / "nowhere"), str(tmp_path)]
    (tmp_path / "noise0" / "pyproject.toml").write_text("tool = 3\n")
    (tmp_path / "right" / "grade.json").symlink_to(tmp_path / "precious")
    assert len(folders) == 30 and assignments.main(["grade", *folders, "--seed", "3"]) == 1
    text = capsys.readouterr().out
    assert "1 of 30 with full marks (--seed 3)" in text and "nowhere: None 0/0 points: " in text
    for name, (_, points, reason) in SUBMISSIONS.items():
        result = json.loads((tmp_path / name.replace(" ", "-") / "grade.json").read_text())
        says = [result["reason"] or "", *(task["says"] for task in result["tasks"])]
        assert (result["points"], result["of"], result["seed"]) == (points, 2, 3), (name, says)
        assert any(reason in line for line in says) and (points == 2 or any(says)), (name, says)
    assert not (tmp_path / "precious").exists()


LOOP = REFERENCE.replace(SOLVED, "    while True:\n        print(E_old)\n")
RARE = REFERENCE.replace(SOLVED, SOLVED + "    A = A * (1 + (0.9 < E_old[0, 0] < 1))\n")    # wrong in few cases
TESTS = ["test_analytical_prior_solves_both_matching_equations"]
REPORT = [{"test": TESTS[0], "passed": True, "says": ""}, {"end": 0}]
FORGED = f"""{REFERENCE}
for fd in range(1, 9):
    try:
        os.write(fd, {"".join(json.dumps({"key": "0" * 32} | record) + chr(10) for record in REPORT)!r}.encode())
    except OSError:
        pass
os._exit(0)
"""


def test_the_child_is_stopped_in_time_believed_only_with_the_key_and_draws_cases_by_the_seed():
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(assignments.run, source, TESTS, seed, limit)
                for source, seed, limit in ((RARE, 1, 100), (LOOP, 1, 7), (RARE, 2, 100), (FORGED, 1, 100))]
    assert jobs[0].result() != jobs[2].result()
    with pytest.raises(ValueError, match="^no end after 7 seconds"):
        jobs[1].result()
    with pytest.raises(ValueError, match="^the program broke off when nlts.py was imported"):
        jobs[3].result()
