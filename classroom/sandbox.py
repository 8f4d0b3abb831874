"""Workers: processes for students' code, started, limited and stopped from outside.

With bubblewrap a worker sees Python, its packages and a copy of the student's folder, all of it
read-only: no network, no other process, no other file. Without, it is a plain process.
"""
import contextlib
import json
import os
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LONGEST = 2 ** 21                                # bytes in a reply
TASKS = 64                                       # processes and threads
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


class Broken(Exception):
    """The worker cannot go on; the message says why, in words for the student."""


@dataclass(frozen=True)
class Limits:
    """How a student's process runs, and what it may use."""
    seconds: float = 10.0                        # for a test
    load: float = 40.0                           # for the import of nlts.py, torch included
    memory: float = 3.0                          # GB in use, of all processes together
    sandbox: str = "none"                        # or bwrap
    output: int | None = subprocess.DEVNULL      # for what it prints


def bubblewrap_works():
    """Whether bubblewrap is installed and may make its namespaces here."""
    probe = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    installed = shutil.which("bwrap") is not None
    return installed and subprocess.run(probe, capture_output=True).returncode == 0


def bubblewrap(folder):
    """The command that seals a worker: it sees worker.py and the student's folder."""
    python = Path(sys.executable).absolute()
    wanted = {*SYSTEM, sys.prefix, sys.base_prefix, str(python.parent.parent)}
    wanted |= {str(python.resolve().parent.parent), site.getusersitepackages()}
    wanted.discard("/")                          # of /bin/python3
    options = {Path(path): ["--ro-bind-try", path, path] for path in wanted}
    options[Path("/tmp")] = ["--size", str(2 ** 26), "--tmpfs", "/tmp"]  # Python may be below it
    options[HERE.parent] = ["--tmpfs", str(HERE.parent)]
    places = site.getsitepackages([sys.prefix, sys.base_prefix, "/usr", "/usr/local"])
    for packages in map(Path, [*places, site.getusersitepackages()]):
        for copy in (*packages.glob("nlts.py"), *packages.glob("__pycache__/nlts.*")):
            options[copy] = ["--ro-bind", os.devnull, str(copy)]         # an installed reference
    command = ["bwrap", "--die-with-parent", "--new-session", "--unshare-all", "--unshare-user"]
    command += ["--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    for path in sorted(options, key=lambda path: len(path.parts)):       # inner ones on top
        command += options[path]
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    command += ["--size", str(2 ** 24), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    command += ["--ro-bind", str(folder), "/submission", "--chdir", "/submission"]
    return command + ["--ro-bind", str(HERE / "worker.py"), "/worker.py", "--remount-ro", "/"]


def usage(pid):
    """(tasks, bytes in use) of a process, its descendants and its session; 0 where no /proc is."""
    processes = {}                               # pid: parent, session, threads, pages
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_bytes().rpartition(b")")[2].split()
            processes[int(path.parent.name)] = [int(fields[i]) for i in (1, 3, 17, 21)]
    ours = fresh = {pid} & set(processes)
    while fresh:
        fresh = {child for child, (parent, session, *_) in processes.items()
                 if parent in ours or session == pid} - ours
        ours = ours | fresh
    return sum(processes[i][2] for i in ours), sum(processes[i][3] for i in ours) * 4096


class Worker:
    """One process for a student's code, in a copy of the student's files, {path: bytes}."""

    def __init__(self, files, limits):
        self.limits, self.line = limits, b""
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        copy, temporary = Path(self.folder.name, "submission"), Path(self.folder.name, "tmp")
        copy.mkdir()
        temporary.mkdir()
        for name, data in files.items():
            with contextlib.suppress(OSError, ValueError):       # a name that cannot be a file here
                path = (copy / name).resolve()
                path.relative_to(copy.resolve())                 # ValueError if it would leave
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        script, command = HERE / "worker.py", []
        if limits.sandbox == "bwrap":
            script, temporary, command = "/worker.py", "/tmp", bubblewrap(copy)
        environment = {name: os.environ.get(name, "") for name in ("PATH", "SYSTEMROOT")}
        environment |= {"HOME": str(temporary), "TMPDIR": str(temporary), "PYTHONUTF8": "1",
                        "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                        "PYTHONUSERBASE": site.getuserbase(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self.process = subprocess.Popen(
            [*command, sys.executable, "-P", "-u", script], cwd=copy, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=limits.output,
            start_new_session=True)

    def _exchange(self, request):
        """Send a request and take the line that answers it. Both may block: run in a thread."""
        with contextlib.suppress(OSError):                       # it has gone: there is no line
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        self.line = self.process.stdout.readline(LONGEST)

    def ask(self, request, seconds=None):
        """The reply to a request; Broken if there is none in time or the process has gone."""
        seconds = seconds or self.limits.seconds
        end = time.monotonic() + seconds
        thread = threading.Thread(target=self._exchange, args=(request,), daemon=True)
        thread.start()
        thread.join(0.1)
        while thread.is_alive():
            tasks, memory = usage(self.process.pid)
            if tasks > TASKS:
                raise Broken(f"it had {tasks} processes and threads, more than {TASKS}")
            if memory > self.limits.memory * 2 ** 30:
                raise Broken(f"it used more than {self.limits.memory:g} GB of memory")
            if time.monotonic() > end:
                raise Broken(f"it did not end in {seconds:g} seconds")
            thread.join(0.1)
        if not self.line:
            raise Broken("the program ended in the middle of it")
        try:
            reply = json.loads(self.line)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            raise Broken("what it sent was no answer")
        return reply

    def close(self):
        """End the process and all that it has started, and remove its folder."""
        with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
