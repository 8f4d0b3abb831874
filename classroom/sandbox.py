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
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
LONGEST = 2 ** 22                                # bytes in a reply
LOAD = 40                                        # seconds of CPU time for the import of a file
TASKS = 32                                       # processes and threads
USERS = itertools.count()                        # of workers, if the grader is root
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


class Broken(Exception):
    """The worker cannot go on; the message says why, in words for the student."""


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
    for name in ("worker.py", "cases.py"):
        command += ["--ro-bind", str(HERE / name), f"/{name}"]
    return [*command, "--remount-ro", "/"]


@cache
def bubblewrap_works():
    """Whether bubblewrap is installed, and Python with NumPy runs here as a worker runs."""
    if shutil.which("bwrap") is None:
        return False
    try:
        with Worker("", "", {}, sandbox="bwrap"):
            return True
    except Broken:
        return False


@dataclass
class Worker:
    """A process for a student's code, in a copy of the student's files, and a new one after a
    request that broke it: each costs itself."""
    student: str                                 # the program
    given: str                                   # ours, with blanks: what is written in it counts
    files: dict                                  # {path: bytes}, the student's
    main: str = ""                               # which of them is the program
    seconds: float = 10.0                        # of CPU time per test; ten times on the clock
    sandbox: str = "none"                        # or bwrap
    output: int | None = subprocess.DEVNULL      # for prints
    process: object = None
    notes: list = field(default_factory=list)    # on lines that were not run

    def start(self):
        """Start a process and load the program; Broken if that fails."""
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        copy, script, command = Path(self.folder.name, "submission"), HERE / "worker.py", []
        copy.mkdir()
        for name, data in self.files.items():
            with contextlib.suppress(OSError, ValueError):       # a name that no file here can have
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).write_bytes(data)
        user, tasks, home = 0, 0, self.folder.name
        if self.sandbox == "bwrap":
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
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.output, start_new_session=True)
        home = str(PurePosixPath(self.main).parent)
        reply = self.exchange({"student": self.student, "given": self.given, "home": home,
                               "seconds": self.seconds}, LOAD)
        if "failed" in reply:
            self.close()
            raise Broken(f"your file cannot be imported: {str(reply['failed'])[:500]}")
        notes = reply.get("notes")
        self.notes = [str(note)[:300] for note in notes[:10]] if isinstance(notes, list) else []

    def ask(self, request):
        """The reply to a request; Broken if there is none in time or the process has gone."""
        if not self.process:
            self.start()
        return self.exchange(request | {"seconds": self.seconds}, self.seconds)

    def exchange(self, request, seconds):
        """Send a request, and take the line that answers it. Both may block: in a thread."""
        lines, process = [], self.process

        def speak():
            with contextlib.suppress(OSError):                   # it has gone: there is no line
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            lines.append(process.stdout.readline(LONGEST))
        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        thread.join(10 * seconds + 5)            # in time for its own clock to tell the line
        problem = "invalid reply"
        if not lines:
            problem = f"it did not end in {10 * seconds:g} seconds on the clock"
        elif not lines[0]:
            problem = "the process exited by itself, or at a limit of time or memory"
        else:
            with contextlib.suppress(ValueError, RecursionError):
                if isinstance(reply := json.loads(lines[0]), dict):
                    return reply
        self.close()
        raise Broken(problem)

    def close(self):
        """End the process and all that it has started, and remove its folder."""
        if self.process:
            with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
            self.folder.cleanup()
            self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()
