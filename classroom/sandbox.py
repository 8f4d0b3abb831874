"""Workers: processes for students' code, started, limited and stopped from outside.

With bubblewrap a worker sees Python, its packages and a copy of the student's folder, all of it
read-only: no network, no other process, no other file. Without, it is a plain process.
"""
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
LONGEST = 2 ** 22                                # bytes in a reply
TASKS = 32                                       # processes and threads
OUT_OF_TIME = (-24, 128 + 24)                    # ended by SIGXCPU, and so in bubblewrap
USERS = itertools.count()                        # of workers, if the grader is root
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


class Broken(Exception):
    """The worker cannot go on; the message says why, in words for the student."""


@dataclass(frozen=True)
class Limits:
    """How a student's process runs, and what it may use."""
    seconds: float = 10.0                        # of CPU time per test; ten times on the clock
    load: float = 40.0                           # the same for the import of the file
    sandbox: str = "none"                        # or bwrap
    output: int | None = subprocess.DEVNULL      # for prints


def packages():
    """The folders of installed packages."""
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def bubblewrap(folder):
    """The command that seals a worker. As root no user namespace is needed: the worker becomes
    another user by itself, so that the limit on processes counts."""
    root = os.geteuid() == 0
    home = Path(os.path.expanduser("~"))
    command = ["bwrap", "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid",
               "--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"]
    command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if root else \
               ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    command += ["--perms", "1777", "--size", str(2 ** 26), "--tmpfs", "/tmp"]
    shown = {*map(Path, SYSTEM), Path(sys.base_prefix), *map(Path, packages())}
    for path in sorted(shown):
        if path.exists() and not home.is_relative_to(path):      # never a whole home
            for parent in reversed(path.parents[:-1]):
                command += ["--perms", "0755", "--dir", str(parent)]
            command += ["--ro-bind", str(path), str(path)]
    command += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    command += ["--ro-bind", str(folder), "/submission", "--chdir", "/submission"]
    return command + ["--ro-bind", str(HERE / "worker.py"), "/worker.py", "--remount-ro", "/"]


@cache
def bubblewrap_works():
    """Whether bubblewrap is installed, and Python with NumPy runs here as a worker runs."""
    if shutil.which("bwrap") is None:
        return False
    worker = Worker({}, Limits(sandbox="bwrap"))
    try:
        return worker.ask({"steps": [], "seconds": 9}, 9) == {"results": []}
    except Broken:
        return False
    finally:
        worker.close()


def write_files(folder, files):
    """Write {path: bytes} below a folder, but for names that no file there can have."""
    for name, data in files.items():
        with contextlib.suppress(OSError, ValueError):
            path = (folder / name).resolve()
            path.relative_to(folder.resolve())                   # ValueError if it would leave
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


class Worker:
    """One process for a student's code, in a copy of the student's files, {path: bytes}."""

    def __init__(self, files, limits):
        self.limits, self.line = limits, b""
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        copy, script, command = Path(self.folder.name, "submission"), HERE / "worker.py", []
        copy.mkdir()
        write_files(copy, files)
        user, tasks, home = 0, 0, self.folder.name
        if limits.sandbox == "bwrap":
            script, command, tasks, home = "/worker.py", bubblewrap(copy), TASKS, "/tmp"
            user = 60_000 + next(USERS) % 5000 if os.geteuid() == 0 else 0
            for path in [copy, *copy.rglob("*")]:
                path.chmod(0o755)                # another user reads it
        environment = {name: os.environ.get(name, "") for name in ("PATH", "SYSTEMROOT")}
        environment |= {"HOME": home, "TMPDIR": home, "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1",
                        "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                        "PYTHONPATH": os.pathsep.join(packages())}
        python = os.path.realpath(sys.executable)
        self.process = subprocess.Popen(
            [*command, python, "-P", "-u", str(script), str(user), str(tasks)], cwd=copy,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=limits.output,
            start_new_session=True)

    def _exchange(self, request):
        """Send a request and take the line that answers it. Both may block: run in a thread."""
        with contextlib.suppress(OSError):                       # it has gone: there is no line
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        self.line = self.process.stdout.readline(LONGEST)

    def ask(self, request, seconds):
        """The reply to a request; Broken if there is none in time or the process has gone."""
        thread = threading.Thread(target=self._exchange, args=(request,), daemon=True)
        thread.start()
        thread.join(10 * seconds + 5)            # in time for its own clock to tell the line
        if thread.is_alive():
            raise Broken(f"it did not end in {10 * seconds:g} seconds on the clock")
        if not self.line:
            code = self.process.wait()
            if code in OUT_OF_TIME:
                raise Broken(f"it did not end in {seconds:g} seconds of CPU time")
            raise Broken("the process exited during this test")
        try:
            reply = json.loads(self.line)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            raise Broken("invalid reply")
        return reply

    def close(self):
        """End the process and all that it has started, and remove its folder."""
        with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
