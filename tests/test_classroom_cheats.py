"""Cheats: none gains a point, changes a file of others or outlives its grading.

With bubblewrap all of them; without it those that stay inside Python's process.
"""
import os
import site
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from classroom_students import submission, text_of

from classroom import catalogue, source
from classroom.__main__ import main
from classroom.comparisons import compare
from classroom.grading import Grader
from classroom.sandbox import Limits, bubblewrap, bubblewrap_works, python_in_sandbox
from classroom.testing import Code, start
from classroom.worker import encode, is_blank

NEEDS_BUBBLEWRAP = pytest.mark.skipif(not bubblewrap_works(), reason="bubblewrap is not installed")
ANSWER = "    return np.zeros(len(mu_old))\n"

# Bodies of match_mean. They try to get at the right answer, or at the grader; ANSWER is wrong.
INSIDE = {
    "imports the reference": """
    import importlib
    for name in ("nlts_reference", "classroom.cases", "nlts"):
        try:
            found = importlib.import_module(name)
            if found.match_mean is not match_mean:
                return found.match_mean(E_old, E_new, mu_old)
        except (ImportError, AttributeError):
            pass
""",
    "searches the modules": """
    import sys
    for module in list(sys.modules.values()):
        found = getattr(module, "match_mean", None)
        if callable(found) and found is not match_mean:
            return found(E_old, E_new, mu_old)
""",
    "takes what the caller expects": """
    import sys
    frame = sys._getframe(1)
    while frame:
        for name in ("expected", "right", "desired", "test", "answer"):
            for place in (frame.f_locals, frame.f_globals):
                if isinstance(place.get(name), (np.ndarray, list)):
                    return np.array(place[name])
        frame = frame.f_back
""",
    "searches the memory": """
    import gc
    for thing in gc.get_objects():
        if isinstance(thing, dict) and "expected" in thing:
            return thing["expected"]
""",
    "patches comparisons": """
    np.allclose = np.array_equal = lambda *a, **k: True
    np.testing.assert_allclose = lambda *a, **k: None
    np.isclose = lambda *a, **k: np.array(True)
""",
    "patches its own process": """
    import sys
    main = sys.modules["__main__"]
    main.encode = lambda value: {"right": True, "passed": True}
    main.describe = lambda error: None
    return 1
""",
    "replaces the stage": """
    import sys
    sys.modules["__main__"].Stage.run = lambda *a: {"results": [None] * 99, "passed": True}
""",
    "always equal": """
    class Equal:
        __eq__ = __ge__ = __le__ = lambda *a: True
        __array_priority__ = 1e9
        shape, ndim, dtype, size = (len(mu_old),), 1, np.dtype(float), len(mu_old)
    return Equal()
""",
    "always equal array": """
    class Equal(np.ndarray):
        def __eq__(self, other):
            return np.array(True)
        def __array_ufunc__(self, *a, **k):
            return np.array(True)
    return np.zeros(len(mu_old)).view(Equal)
""",
    "always equal number": """
    class Equal(float):
        __eq__ = lambda *a: True
        __sub__ = __rsub__ = lambda *a: 0.0
    return [Equal(0)] * len(mu_old)
""",
    "not a number": "    return np.full(len(mu_old), np.nan)\n",
    "infinite": "    return np.full(len(mu_old), np.inf)\n",
    "no answer": "    return None\n",
    "true": "    return True\n",
    "text": "    return 'right'\n",
    "pickled": """
    class Trick:
        def __reduce__(self):
            return (exec, ("raise SystemExit(0)",))
    return Trick()
""",
    "array of objects": "    return np.array([match_mean] * len(mu_old), dtype=object)\n",
    "forged array": """
    return {"array": "", "kind": "O", "shape": [len(mu_old)]}
""",
    "forged texts": """
    return {"array": ["x" * 10_000] + [""] * 1000, "shape": [1001]}
""",
    "forged shape": """
    return {"array": "AAAA", "kind": "<f8", "shape": [10 ** 12, 10 ** 12]}
""",
    "forged replies": """
    import os
    for fd in range(1, 20):
        try:
            os.write(fd, b'{"results": [null, null, null, null], "passed": true}\\n' * 3)
        except OSError:
            pass
""",
    "nested replies": """
    import os
    for fd in range(1, 20):
        try:
            os.write(fd, b"[" * 60000 + b"\\n")
        except OSError:
            pass
""",
    "deep replies": """
    import os
    for fd in range(1, 20):
        try:
            os.write(fd, b'{"results": [' + b"[" * 480 + b"]" * 480 + b'], "failed": 1}\\n')
        except OSError:
            pass
""",
    "flood of replies": """
    import os
    for fd in range(3, 20):
        try:
            for _ in range(200):
                os.write(fd, b'{"passed": true}\\n' * 1000)
        except OSError:
            pass
""",
    "long reply": "    return 'x' * 2 ** 26\n",
    "leaves early": "    raise SystemExit(0)\n",
    "leaves at once": "    import os\n    os._exit(0)\n",
    "skips": "    import unittest\n    raise unittest.SkipTest('passed')\n",
    "closes the pipe": "    import os\n    os.closerange(0, 100)\n",
    "closes it and goes on": "    import os\n    os.closerange(0, 100)\n    while True: pass\n",
    "lies in an error": """
    class Lie(Exception):
        def __str__(self):
            raise self
    raise Lie()
""",
    "endless thread": """
    import threading, time
    def go():
        while True:
            time.sleep(0.01)
    for _ in range(5):
        threading.Thread(target=go).start()
""",
    "hundreds of threads": """
    import threading, time
    for _ in range(300):
        threading.Thread(target=time.sleep, args=(9,)).start()
    time.sleep(9)
""",
    "deaf to signals": """
    import signal
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass
""",
    "stops the clock": """
    import time
    time.monotonic = time.time = lambda: 0.0
    while True:
        pass
""",
    "keeps the reference of others": """
    import builtins
    if hasattr(builtins, "stolen"):
        return builtins.stolen(E_old, E_new, mu_old)
""",
}
KEYS = """
    import ctypes, platform
    add_key = 248 if platform.machine() == "x86_64" else 217
    libc = ctypes.CDLL(None)
    if libc.syscall(add_key + 1, b"user", b"nlts", None, 0) > 0:         # request_key
        return np.linalg.pinv(E_new) @ E_old @ mu_old
    libc.syscall(add_key, b"user", b"nlts", b"the reference", 13, -3)    # the session's keyring
"""
OUTSIDE = {
    "reads the reference through /proc": """
    import glob
    for path in glob.glob("/proc/*/cwd/nlts.py") + glob.glob("/proc/*/root{root}/nlts.py"):
        space = {{}}
        exec(open(path).read(), space)
        return space["match_mean"](E_old, E_new, mu_old)
""",
    "reads the reference from the disk": """
    import os, sys
    for start in ("{root}", "/home", "/root", "/srv", "/opt", "/tmp", os.path.dirname(sys.prefix)):
        for folder, _, names in os.walk(start):
            if "nlts.py" in names and "site-packages" not in folder:
                text, space = open(os.path.join(folder, "nlts.py")).read(), {{"np": np}}
                exec("def match_mean" + text.partition("def match_mean")[2][:300]
                     .partition("def ")[0], space)
                return space["match_mean"](E_old, E_new, mu_old)
""",
    "reads the memory of its parent": """
    import os
    open(f"/proc/{{os.getppid()}}/mem", "rb").read(100)
    open("/proc/1/environ", "rb").read(100)
    return np.linalg.pinv(E_new) @ E_old @ mu_old if os.path.exists("{root}/nlts.py") else 0
""",
    "changes a file of others": """
    for path in ("{canary}", "{root}/classroom/worker.py", "/worker.py", "nlts.py"):
        try:
            open(path, "a").write("")
            open("{canary}", "w").write("cheated")
        except OSError:
            pass
""",
    "deletes files": """
    import os, shutil
    shutil.rmtree("{folder}", ignore_errors=True)
    shutil.rmtree("/submission", ignore_errors=True)
""",
    "rewrites its grade later": """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for _ in range(600):
                try:
                    open("{canary}", "w").write("cheated")
                except OSError:
                    pass
                time.sleep(0.05)
        os._exit(0)
""",
    "lives on": """
    import os, subprocess, sys
    program = "import time; time.sleep(60) # outlives"
    subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
""",
    "kills its parent": """
    import os, signal
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(-1, signal.SIGKILL)
""",
    "asks the network": """
    import socket
    socket.create_connection(("127.0.0.1", {port}), timeout=1)
    return np.linalg.pinv(E_new) @ E_old @ mu_old
""",
    "forks without end": """
    import os
    while True:
        os.fork()
""",
    "fills the disk": """
    for folder in ("/tmp", "/dev/shm", "/submission", "/", "/proc", "/dev"):
        try:
            with open(folder + "/full", "wb") as file:
                for _ in range(40):
                    file.write(bytes(2 ** 22))
        except OSError:
            pass
""",
    "leaves a key in the keyring": KEYS,
    "finds the key of a friend": KEYS,
    "looks into the cache of files": """
    import ctypes, mmap, os, sys
    libc, page = ctypes.CDLL(None), mmap.mmap(-1, 4096)
    place = ctypes.addressof(ctypes.c_char.from_buffer(page))
    seen = libc.mincore(ctypes.c_void_p(place), 4096, ctypes.create_string_buffer(1))
    gone = libc.posix_fadvise(os.open(sys.executable, os.O_RDONLY), 0, 0, 4)
    if seen == 0 or gone == 0:
        return np.linalg.pinv(E_new) @ E_old @ mu_old
""",
    "makes a namespace of its own": """
    import ctypes
    if ctypes.CDLL(None).unshare(0x10000000) == 0:
        return np.linalg.pinv(E_new) @ E_old @ mu_old
""",
    "keeps memory where nobody counts": """
    import ctypes
    if ctypes.CDLL(None).shmget(0, 2 ** 20, 0o1600) >= 0:
        return np.linalg.pinv(E_new) @ E_old @ mu_old
""",
    "fills memory with files": """
    import os, time
    kept = []
    for _ in range(40):
        kept.append(os.memfd_create("x"))
        os.write(kept[-1], bytes(2 ** 25))
    time.sleep(0.5)
    return np.linalg.pinv(E_new) @ E_old @ mu_old
""",
    "changes the kernel": """
    swap = open("/proc/sys/vm/swappiness").read()
    open("/proc/sys/vm/swappiness", "w").write(swap)
    return np.linalg.pinv(E_new) @ E_old @ mu_old
""",
}


@pytest.fixture(scope="module")
def grade():
    """Grades bodies of match_mean: {cheat: result}."""
    def run(bodies, sandbox, seconds=1.0):
        grader = Grader("invertible", 9, sandbox)
        grader.parts = grader.parts[:1]
        grader.limits = replace(grader.limits, seconds=seconds, wait=1.5, memory=1.0)
        grader.tests = {part: tests[1:2] for part, tests in grader.tests.items()}   # one is enough
        head = "def match_mean(E_old, E_new, mu_old):"
        handed_in = [submission(name, text_of("invertible", f"{head}\n{body}{ANSWER}"))
                     for name, body in bodies.items()]
        assert all(head in one.source and "Error\n    A" not in one.source for one in handed_in)

        def second(one):                         # the pass in which a worker has some of ours
            one.outcomes = {part: [(title, "not run") for title, *_ in grader.tests[part]]
                            for part in grader.parts}
            return grader.score(grader.guarded(grader.second, one))
        with ThreadPoolExecutor(2) as pool:
            return {one.id: one for one in pool.map(second, handed_in)}
    return run


def no_points(results, but=()):
    for name, result in results.items():
        assert name in but or list(result.scores.values()) == [0], (name, result)


def state_of_project():
    """Names, sizes and times of our own files."""
    files = [*catalogue.HERE.rglob("*.*"), catalogue.ROOT / "nlts.py"]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files
            if path.is_file() and path.suffix != ".pyc"}


def test_the_harness_can_give_points(grade):
    """To honest work, and to a cheat that only the sandbox stops."""
    bodies = {"honest": "    return np.linalg.pinv(E_new) @ E_old @ mu_old\n"}
    steals = "reads the reference from the disk"
    bodies[steals] = OUTSIDE[steals].format(root=catalogue.ROOT)
    results = grade(bodies, "none", 20.0)
    assert [list(result.scores.values()) for result in results.values()] == [[7], [7]]


def test_cheats_inside_the_process_gain_nothing(grade):
    before = state_of_project()
    no_points(grade(INSIDE, "none"))
    assert state_of_project() == before


@NEEDS_BUBBLEWRAP
def test_cheats_inside_the_process_gain_nothing_in_the_sandbox(grade):
    chosen = {name: body for i, (name, body) in enumerate(INSIDE.items()) if i % 6 == 0}
    no_points(grade(chosen, "bwrap"))


@NEEDS_BUBBLEWRAP
def test_cheats_outside_the_process_gain_nothing_and_change_nothing(grade, tmp_path):
    import socket
    canary = tmp_path / "canary"
    canary.write_text("as it was")
    before = state_of_project()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        bodies = {name: body.format(root=catalogue.ROOT, canary=canary, folder=tmp_path, port=port)
                  for name, body in OUTSIDE.items()}
        no_points(grade(bodies, "bwrap"))
    time.sleep(0.3)
    assert canary.read_text() == "as it was"
    assert state_of_project() == before
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue
    assert not any(b"# outlives" in line for line in lines)


def test_top_level_code_and_files_beside_it_gain_nothing():
    """Code on import, files that hide ours, and a stolen reference of the other function."""
    grader = Grader("invertible", 9, "none")
    steal = "\nimport builtins\nbuiltins.stolen = (match_mean, invertible_prior)\n"
    use = "def {0}(*a):\n    import builtins\n    for f in getattr(builtins, 'stolen', ()):\n" \
          "        if f.__code__ is not {0}.__code__:\n            try:\n" \
          "                return f(*a)\n            except NotImplementedError:\n" \
          "                pass\n    return 0\n"
    work = "\n\n".join(use.format(name) for name in ("match_mean", "invertible_prior"))
    names = ("conftest.py", "sitecustomize.py", "usercustomize.py", "numpy.py", "json.py",
             "worker.py", "test_nlts.py")
    beside = dict.fromkeys(names, b"raise SystemExit(0)\n")
    text = text_of("invertible", work)
    handed_in = [submission("steals", text + steal), submission("hides", text, beside),
                 submission("leaves", text + "\nraise SystemExit(0)\n"),
                 submission("untouched", catalogue.sealed("invertible"))]
    for result in grader.grade_all(handed_in, 2):
        assert set(result.scores.values()) == {0}, result


def test_the_reference_of_the_graded_function_is_never_sent():
    for name in ("blr", "invertible"):
        grader = Grader(name, 1)
        own = source.definitions(grader.own)
        for part, text in grader.given.items():
            given = source.definitions(text)
            assert is_blank(given[part.function]) and is_blank(own[part.function])
            assert is_blank(given["NeuralLinearTS.learn"])               # nor later parts
            sent = {key for _, steps, _ in grader.tests[part] for step in steps for key in step}
            assert sent <= {"path", "as", "args", "kwargs", "value", "times", "also"}


def test_everybody_is_run_before_anybody_gets_one_of_ours(monkeypatch):
    """So what one worker knows is of no use to a friend's, by whatever way it gets there."""
    grader, passes = Grader("invertible", 1), []
    for name in ("first", "second"):
        monkeypatch.setattr(grader, name, lambda one, name=name: passes.append(name))
    monkeypatch.setattr(grader, "score", lambda one: one)
    grader.grade_all([submission(str(i), "") for i in range(5)], 2)
    assert passes == ["first"] * 5 + ["second"] * 5


def test_the_seed_is_long_and_for_the_teacher_only(tmp_path, capsys):
    (tmp_path / "nlts.py").write_text(text_of("invertible"))
    main(["grade", "invertible", str(tmp_path / "nlts.py"), "--out", str(tmp_path / "out")])
    seed = (tmp_path / "out" / "seed.txt").read_text().split()[0]
    assert 2 ** 32 < int(seed) < 2 ** 63                         # but for one run in a billion
    told = [path.read_text() for path in (tmp_path / "out").rglob("*.*") if "seed" not in path.name]
    assert not any(seed in text for text in [*told, capsys.readouterr().out])


def test_a_reply_without_draws_is_no_right_sampler():
    """A student's process could send no rows, or rows of its own choice."""
    right = encode(np.zeros((2, 3)))
    arm = {"mu_hat": [0.0, 0.0], "precision": [[1.0, 0.0], [0.0, 1.0]], "a": 3.0, "b": 2.0}
    for rows in (np.zeros((0, 3)), np.ones((9999, 3)), np.ones((10_000, 3)), np.ones((10_000, 9)),
                 np.full((10_000, 3), np.nan), -np.ones((10_000, 3))):
        assert compare(encode(rows), right, "posterior", times=10_000, arms=[arm])
        shares = {"shares": [0.5, 0.5]}
        assert compare(encode(rows[:, :1]), encode(np.zeros((2, 1))), "choices", times=10_000,
                       **shares)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_as_root_with_dropped_rights_a_thief_reads_nothing(tmp_path):
    work = f"""
def match_mean(E_old, E_new, mu_old):
    space = {{"__name__": "stolen"}}
    exec(open("{tmp_path}/source/nlts.py").read(), space)
    return space["match_mean"](E_old, E_new, mu_old)
"""
    thief = text_of("invertible", work)
    main(["gradescope", "invertible", "--out", str(tmp_path / "source")])
    (tmp_path / "source").chmod(0o700)
    for name, text in (("honest", text_of("invertible")), ("thief", thief)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "nlts.py").write_text(text)
    command = [sys.executable, "-m", "classroom", "grade", "invertible", str(tmp_path / "honest"),
               str(tmp_path / "thief"), "--sandbox", "user", "--out", str(tmp_path / "out")]
    run = subprocess.run(command, cwd=tmp_path / "source", text=True, capture_output=True,
                         check=False)
    if "--sandbox: user needs" in run.stderr:
        pytest.skip("others may not run this Python")
    grades = (tmp_path / "out" / "grades.csv").read_text()
    assert "honest,20.0" in grades and "thief,0.0" in grades, (grades, run.stderr)


@NEEDS_BUBBLEWRAP
def test_the_sandbox_shows_no_file_of_ours(grade):
    body = f"""
    import os, sys
    seen = [path for path in {[str(catalogue.ROOT / 'nlts.py'), str(catalogue.HERE), '/etc/passwd',
                               os.path.expanduser('~/.bashrc'), '/sys', '/var', '/run']!r}
            if os.path.exists(path)]
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    raise ValueError(f"seen: {{seen}}, processes: {{len(pids)}}")
"""
    (((_, words),),) = grade({"looks": body}, "bwrap")["looks"].outcomes.values()
    assert "seen: []" in words and "processes: 2" in words, words


@NEEDS_BUBBLEWRAP
def test_memory_is_counted_in_memfds_and_in_files_of_the_sandbox():
    text = "import os\nopen('/tmp/x', 'wb').write(bytes(2 ** 25))\n" \
           "file = os.memfd_create('x')\nos.write(file, bytes(2 ** 25))\n"
    with closing(start("", Code("x = 1", "", limits=Limits(sandbox="bwrap")))) as worker:
        before = worker.usage().memory
    with closing(start("", Code(text, "", limits=Limits(sandbox="bwrap")))) as worker:
        used = worker.usage()
    assert used.memory - before > 0.9 * 2 ** 26
    assert used.tasks >= 2 and used.seconds > 0


def test_the_sandbox_hides_no_python_that_lies_in_tmp():
    """The empty /tmp is mounted first, or a virtual environment below it could not be seen."""
    command = bubblewrap(Path.cwd())
    mounts = [command[i + 1] for i, word in enumerate(command)
              if word in ("--tmpfs", "--ro-bind-try")]
    assert mounts.index("/tmp") < mounts.index(sys.prefix)


def test_the_sandbox_of_a_python_in_a_home_folder_shows_no_home(tmp_path, monkeypatch):
    """~/bin/python3 is a link: the file behind it is run. An installed nlts_beyond.py is hidden."""
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "python3"
    link.symlink_to(Path(sys.executable).resolve())
    packages = tmp_path / ".local" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    for name in ("nlts.py", "nlts_beyond.py", "other.py"):
        (packages / name).write_text("")
    monkeypatch.setattr(sys, "executable", str(link))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(packages))
    command = bubblewrap(Path.cwd())
    shown = {Path(command[i + 1]) for i, word in enumerate(command) if word == "--ro-bind-try"}
    assert not any(tmp_path.is_relative_to(path) for path in shown)
    hidden = {after for before, after in zip(command, command[1:], strict=False)
              if before == os.devnull}
    assert hidden >= {str(packages / "nlts.py"), str(packages / "nlts_beyond.py")}
    assert str(packages / "other.py") not in hidden
    assert python_in_sandbox() == str(link.resolve())


def test_a_chain_of_links_to_python_is_whole_in_the_sandbox(tmp_path, monkeypatch):
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    python, hop = tmp_path / "venv" / "bin" / "python", tmp_path / "hop"
    hop.symlink_to(Path(sys.executable).resolve())
    python.symlink_to(hop)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    command = bubblewrap(Path.cwd())
    at = command.index("--symlink")
    assert command[at + 1:at + 3] == [str(hop.readlink()), str(hop)]


def test_the_sandbox_of_a_system_python_is_no_door_to_everything(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/python3")
    command = bubblewrap(Path.cwd())
    shown = [command[i + 1] for i, word in enumerate(command) if word == "--ro-bind-try"]
    assert "/usr" in shown and "/" not in shown
    assert site.getuserbase() not in shown
