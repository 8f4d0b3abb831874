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
PAGE = 4096
LONGEST = 2 ** 25                                # bytes in a reply
LOG = 20_000                                     # bytes kept of what the student's code prints
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


def bubblewrap(folder, temporary, hidden):
    """The command that seals a worker: `folder` is the student's, `hidden` is not to be seen."""
    python = Path(sys.executable).absolute()
    wanted = {*SYSTEM, sys.prefix, sys.base_prefix, str(python.parent.parent)}
    wanted |= {str(python.resolve().parent.parent), site.getuserbase()}
    shown = [(Path(path), ["--ro-bind-try", path, path]) for path in sorted(wanted)]
    for path in hidden:
        cover = ["--tmpfs"] if path.is_dir() else ["--ro-bind", os.devnull]
        shown.append((path, [*cover, str(path)]))
    command = ["bwrap", "--die-with-parent", "--new-session", "--unshare-all", "--unshare-user"]
    command += ["--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    for _, option in sorted(shown, key=lambda pair: len(pair[0].parts)):     # inner ones on top
        command += option
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    command += ["--size", str(2 ** 24), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    command += ["--size", str(2 ** 26), "--tmpfs", temporary]
    command += ["--ro-bind", str(folder), "/submission", "--chdir", "/submission"]
    return command + ["--ro-bind", str(HERE / "worker.py"), "/worker.py", "--remount-ro", "/"]


def usage(pid):
    """(tasks, bytes in use) of a process, its descendants and its session; Linux only."""
    processes = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parent, session = int(fields[1]), int(fields[3])
        processes[int(entry.name)] = (parent, session, int(fields[17]), int(fields[21]) * PAGE)
    ours = {pid} | {child for child, process in processes.items() if process[1] == pid}
    grown = True
    while grown:
        more = {child for child, process in processes.items() if process[0] in ours} - ours
        ours |= more
        grown = bool(more)
    counted = [processes[child] for child in ours if child in processes]
    return sum(process[2] for process in counted), sum(process[3] for process in counted)


class Worker:
    """One process for a student's code, as a context manager."""

    def __init__(self, files, sandbox="none", limits=None, hidden=()):
        self.limits = limits or Limits()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        home = Path(self.folder.name)
        copy, temporary = home / "submission", home / "tmp"
        for path in (copy, temporary):
            path.mkdir()
        write_files(copy, files)
        script, command = str(HERE / "worker.py"), []
        where = str(temporary)
        if sandbox == "bwrap":
            script, where = "/worker.py", "/tmp"
            command = bubblewrap(copy, where, hidden)
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": where, "TMPDIR": where,
                       "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1",
                       "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUSERBASE": site.getuserbase(),
                       "MPLBACKEND": "Agg"}
        environment |= {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        self.process = subprocess.Popen(
            [*command, sys.executable, "-P", "-u", script], cwd=copy, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
        self.log, self.printed = b"", 0
        self.replies = queue.Queue()
        for target in (self._read_replies, self._read_log):
            threading.Thread(target=target, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read_replies(self):
        with self.process.stdout as pipe:
            while (line := pipe.readline(LONGEST)) and self.replies.qsize() < 8:
                self.replies.put(line)               # more than one at a time is no answer
        self.replies.put(b"")

    def _read_log(self):
        with self.process.stderr as pipe:
            while text := pipe.read1(2 ** 16):
                self.log += text[:LOG - len(self.log)]
                self.printed += len(text)

    def _write(self, line):
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):                    # it has gone; the reader tells
            return

    def ask(self, request, seconds=None):
        """The reply to a request; Broken if there is none in time or the process has gone."""
        seconds = seconds or self.limits.seconds
        line = json.dumps(request).encode() + b"\n"
        threading.Thread(target=self._write, args=(line,), daemon=True).start()
        end = time.monotonic() + seconds
        while True:
            try:
                return self._reply(self.replies.get(timeout=0.05))
            except queue.Empty:
                self._watch()
            if time.monotonic() > end:
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
        except (ValueError, RecursionError) as error:
            raise Broken("what it sent was no answer") from error
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
        target = folder.joinpath(*path.parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except (OSError, ValueError):                            # a name that cannot be a file here
            continue
