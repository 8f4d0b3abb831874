"""Attacks gain nothing, change nothing, and leave nothing behind; they are data.

With bubblewrap all of them; without it those that README does not name.
"""
import socket
import subprocess
import textwrap
import time
import tomllib
from pathlib import Path

import pytest
from classroom_students import failures, submission, text_of

from classroom import catalogue, reports
from classroom.grading import Grader
from classroom.sandbox import bubblewrap_works

DATA = tomllib.loads(Path(__file__).with_name("classroom_attacks.toml").read_text())
ATTACKS = {name: attack["body"] for name, attack in DATA.items()}
PLAIN = {name: attack["body"] for name, attack in DATA.items() if attack["plain"]}


def graded(bodies, sandbox, **places):
    """The results of these attacks, and of an honest neighbour among them."""
    grader = Grader("invertible", 9, sandbox)
    grader.seconds = 0.5
    handed_in = [submission("honest", text_of("invertible"))]
    for name, body in bodies.items():
        for place, value in places.items():
            body = body.replace(f"@{place}@", str(value))
        work = "def match_mean(E_old, E_new, mu_old):\n" + textwrap.indent(body, "    ") + \
               "    return np.zeros(len(mu_old))\n"
        handed_in.append(submission(name, text_of("invertible", work)))
    results = grader.grade_all(handed_in)
    assert results[0].points == 20, failures(results[0])
    return results[1:], grader


def files_of_project():
    """Names, sizes and times of our own files."""
    files = [*catalogue.HERE.rglob("*.*"), catalogue.ROOT / "nlts.py"]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files
            if path.is_file() and path.suffix != ".pyc"}


def nothing_gained(results):
    for result in results:
        assert result.points == 0 and result.held == 0, (result.id, failures(result))


@pytest.mark.slow
@pytest.mark.skipif(not bubblewrap_works(), reason="bubblewrap is not installed")
def test_no_attack_gains_points_changes_a_file_or_leaves_a_process(tmp_path):
    assert len(ATTACKS) >= 40
    canary, before = tmp_path / "canary", files_of_project()
    canary.write_text("as it was")
    with socket.create_server(("127.0.0.1", 0)) as server:
        results, grader = graded(ATTACKS, "bwrap", root=catalogue.ROOT, canary=canary,
                                 folder=tmp_path, port=server.getsockname()[1])
    nothing_gained(results)
    reports.write_all(tmp_path / "out", grader, results, 1)
    time.sleep(0.3)
    assert canary.read_text() == "as it was" and files_of_project() == before
    assert not subprocess.run(["pgrep", "-f", "# outlives"], stdout=-1, check=False).stdout
    assert len((tmp_path / "out" / "grades.csv").read_text().splitlines()) == 1 + len(ATTACKS)


@pytest.mark.slow
def test_attacks_that_need_no_bubblewrap_gain_nothing_without_it():
    before = files_of_project()
    nothing_gained(graded(PLAIN, "none")[0])
    assert files_of_project() == before


def test_some_attacks_gain_nothing_without_bubblewrap():
    names = ["searches the modules", "always equal array", "forged replies", "deep replies",
             "not a number", "writes a script into the report"]
    results, _ = graded({name: PLAIN[name] for name in names}, "none")
    nothing_gained(results)
    report = reports.report("invertible", 20, results[-1])
    outside = "".join(report.split("`")[::2])                    # in code spans nothing counts
    assert "<script>" in report and "<" not in outside and "](" not in outside
    assert report.count("\n# ") == 0


def test_the_readme_names_what_is_not_stopped_without_bubblewrap():
    page = " ".join(catalogue.read_text("README.md").split())
    for name in ATTACKS:
        assert (f'"{name}"' in page) == (name not in PLAIN), name


@pytest.mark.skipif(not bubblewrap_works(), reason="bubblewrap is not installed")
def test_the_sandbox_shows_python_and_the_students_folder_and_nothing_else():
    (result,), _ = graded({"looks around": """
import os
seen = [path for path in ("@root@/nlts.py", "/etc/passwd", "/sys", "/var", "/run", "/home")
        if os.path.exists(path)]
home, user = os.path.expanduser("~"), os.getuid()
pids = [name for name in os.listdir("/proc") if name.isdigit()]
raise ValueError(f"seen: {seen}, home {home}, processes: {len(pids)}, user {user}")
"""}, "bwrap", root=catalogue.ROOT)
    words = failures(result)
    assert "seen: [], home /tmp, processes: 2" in words and "user 0" not in words, words
