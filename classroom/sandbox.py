"""Workers: processes for students' code, started, limited and stopped from outside.

With bubblewrap a worker sees Python, its packages and a copy of the student's folder, all of it
read-only: no network, no other process, no other file. Without, it is a plain process.
"""
import json
import os
import queue
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
LONGEST = 2 ** 25                                # bytes in a reply
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


class Broken(Exception):
    """The worker cannot go on; the message says why, in words for the student."""


@dataclass(frozen=True)
class Limits:
    """What a student's process may use."""
    seconds: float = 10.0                        # for a test
    load: float = 40.0                           # for the import of nlts.py, torch included
    address_space: float = 8.0                   # GB that may be asked for
    memory: float = 3.0                          # GB in use, of all processes together
    tasks: int = 64                              # processes and threads


def bubblewrap_works():
    """Whether bubblewrap is installed and may make its namespaces here."""
    if shutil.which("bwrap") is None:
        return False
    probe = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def bubblewrap(folder):
    """The command that seals a worker: of ours it sees worker.py, of others the student's folder.
    """
    python = Path(sys.executable).absolute()
    wanted = {*SYSTEM, sys.prefix, sys.base_prefix, str(python.parent.parent)}
    wanted |= {str(python.resolve().parent.parent), site.getuserbase()}
    options = {Path(path): ["--ro-bind-try", path, path] for path in wanted}
    options[Path("/tmp")] = ["--size", str(2 ** 26), "--tmpfs", "/tmp"]  # Python may be below it
    options[HERE.parent] = ["--tmpfs", str(HERE.parent)]
    for packages in map(Path, [*site.getsitepackages(), site.getusersitepackages()]):
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
    """(tasks, bytes in use) of a process, its descendants and its session; Linux only."""
    processes = {}                               # pid: parent, session, threads, pages
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        processes[int(name)] = [int(fields[i]) for i in (1, 3, 17, 21)]
    ours = fresh = {pid} & set(processes)
    while fresh:
        fresh = {child for child, (parent, session, *_) in processes.items()
                 if parent in ours or session == pid} - ours
        ours = ours | fresh
    return sum(processes[i][2] for i in ours), sum(processes[i][3] for i in ours) * 4096


class Worker:
    """One process for a student's code. What it prints goes to `output`."""

    def __init__(self, files, sandbox, limits, output=subprocess.DEVNULL):
        self.limits = limits
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        copy, temporary = Path(self.folder.name, "submission"), Path(self.folder.name, "tmp")
        copy.mkdir()
        temporary.mkdir()
        write_files(copy, files)
        script, command = HERE / "worker.py", []
        if sandbox == "bwrap":
            script, temporary, command = "/worker.py", "/tmp", bubblewrap(copy)
        environment = {name: os.environ.get(name, "") for name in ("PATH", "SYSTEMROOT")}
        environment |= {"HOME": str(temporary), "TMPDIR": str(temporary), "PYTHONUTF8": "1",
                        "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                        "PYTHONUSERBASE": site.getuserbase()}
        self.process = subprocess.Popen(
            [*command, sys.executable, "-P", "-u", script], cwd=copy, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, start_new_session=True)
        self.replies = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self.process.stdout as pipe:
            while (line := pipe.readline(LONGEST)) and self.replies.qsize() < 8:
                self.replies.put(line)               # more than one at a time is no answer
        self.replies.put(b"")

    def _write(self, line):
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):                    # it has gone; the reader tells
            return

    def ask(self, request, seconds=None):
        """The reply to a request; Broken if there is none in time or the process has gone."""
        seconds = seconds or self.limits.seconds
        end = time.monotonic() + seconds
        line = json.dumps(request).encode() + b"\n"
        threading.Thread(target=self._write, args=(line,), daemon=True).start()
        while time.monotonic() < end:
            try:
                return self._reply(self.replies.get(timeout=0.1))
            except queue.Empty:
                self._watch()
        raise Broken(f"it did not end in {seconds:g} seconds")

    def _watch(self):
        if not Path("/proc/self/stat").exists():
            return
        tasks, memory = usage(self.process.pid)
        if tasks > self.limits.tasks:
            raise Broken(f"it had {tasks} processes and threads, more than {self.limits.tasks}")
        if memory > self.limits.memory * 2 ** 30:
            raise Broken(f"it used more than {self.limits.memory:g} GB of memory")

    def _reply(self, line):
        if not line:
            code = self.process.wait()
            raise Broken(f"the program ended in the middle of it (exit code {code})")
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            raise Broken("what it sent was no answer")
        return reply

    def close(self):
        """End the process and all that it has started, and remove its folder."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError, PermissionError):
            self.process.kill()
        self.process.wait()
        self.folder.cleanup()


def write_files(folder, files):
    """Write {relative path: bytes} below a folder; a path that would leave it is left out."""
    for name, data in files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            continue
        try:
            target = folder.joinpath(*path.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except (OSError, ValueError):                            # a name that cannot be a file here
            continue
