"""Workers: processes for students' code, started, limited and stopped from outside.

With bubblewrap a worker sees Python, its packages and a copy of the student's folder, all of it
read-only: no network, no other process, no other file. Without, it is a plain process of the
teacher's or, if the grader runs as root, of a user of its own without rights.
"""
import contextlib
import itertools
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
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
LONGEST = 2 ** 22                                # bytes in a reply
TASKS = 64                                       # processes and threads
NOBODY = 65534                                   # user and group without rights
NUMBERS = itertools.count()                      # of workers
TEMPORARY = 2 ** 26                              # bytes in a sandbox's /tmp
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


class Broken(Exception):
    """The worker cannot go on; the message says why, in words for the student."""


@dataclass(frozen=True)
class Limits:
    """How a student's process runs, and what it may use."""
    seconds: float = 10.0                        # of CPU time, for a test
    load: float = 40.0                           # for the import of nlts.py, torch included
    wait: float = 5.0                            # on the clock, as a multiple of the CPU time
    memory: float = 3.0                          # GB in use, of all processes together
    sandbox: str = "none"                        # or bwrap, or user: as root, with rights dropped
    output: int | None = subprocess.DEVNULL      # for what it prints


@cache
def bubblewrap_works():
    """Whether bubblewrap is installed, and Python with NumPy runs here as a worker runs."""
    if shutil.which("bwrap") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        return runs_numpy([*bubblewrap(folder), python_in_sandbox()])


def dropping_rights_works():
    """Whether this is root, others may run Python, and cannot enter the project's folder."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    if all(folder.stat().st_mode & 0o001 for folder in HERE.parents):
        return False
    return runs_numpy([sys.executable], user=NOBODY, group=NOBODY, extra_groups=[])


def runs_numpy(command, **rights):
    """Whether Python, started by this command, can import NumPy."""
    try:
        probe = subprocess.run([*command, "-P", "-c", "import numpy"], cwd="/",
                               capture_output=True, **rights)
    except OSError:
        return False
    return probe.returncode == 0


def best_sandbox():
    """bwrap where it works, or user, or none."""
    if bubblewrap_works():
        return "bwrap"
    return "user" if dropping_rights_works() else "none"


def python_in_sandbox():
    """The Python of a virtual environment or, if a link from elsewhere was called, the file."""
    python = Path(sys.executable).absolute()
    return str(python if python.is_relative_to(sys.prefix) else python.resolve())


def shown_folders():
    """What a sealed worker sees: the system's programs, Python, packages; never a whole home."""
    wanted = {*map(Path, SYSTEM), Path(sys.prefix), Path(sys.base_prefix),
              Path(site.getusersitepackages())}
    home = Path(os.path.expanduser("~"))
    return {path for path in wanted if not home.is_relative_to(path)}


def links_outside(folders):
    """[(link, its target)] on the way from Python's name to its file, outside of these folders."""
    link, found = Path(python_in_sandbox()), []
    while link.is_symlink():
        target = link.parent / link.readlink()
        if not any(link.is_relative_to(folder) for folder in folders):
            found.append((link, target))
        link = target
    return found


def installed_references(folders):
    """Copies of nlts.py and nlts_beyond.py among the packages."""
    places = [place for folder in (*folders, Path("/usr/local"))
              for place in folder.glob("lib*/python*/*-packages")]
    for packages in (*places, *folders):         # of a user, packages are a folder that is shown
        yield from packages.glob("nlts*.py")
        yield from packages.glob("__pycache__/nlts*")


def bubblewrap(folder):
    """The command that seals a worker: it sees worker.py and the student's folder."""
    folders = shown_folders()
    options = {path: ["--ro-bind-try", str(path), str(path)] for path in folders}
    options[Path("/tmp")] = ["--size", str(TEMPORARY), "--tmpfs", "/tmp"]  # Python may be below it
    for shown in folders:                        # the project, by any name that it has in them
        if HERE.parent.is_relative_to(shown.resolve()):
            project = shown / HERE.parent.relative_to(shown.resolve())
            options[project] = ["--tmpfs", str(project)]
    options[HERE.parent] = ["--tmpfs", str(HERE.parent)]
    for copy in installed_references(folders):
        options[copy] = ["--ro-bind", os.devnull, str(copy)]
    for link, target in links_outside(folders):
        options[link] = ["--symlink", str(target), str(link)]
    command = ["bwrap", "--die-with-parent", "--new-session", "--unshare-all", "--unshare-user"]
    command += ["--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL"]
    for path in sorted(options, key=lambda path: len(path.parts)):       # inner ones on top
        command += options[path]
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    command += ["--size", str(2 ** 24), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    command += ["--ro-bind", str(folder), "/submission", "--chdir", "/submission"]
    return command + ["--ro-bind", str(HERE / "worker.py"), "/worker.py", "--remount-ro", "/"]


@dataclass(frozen=True)
class Usage:
    """What a process, its descendants and its session use; 0 where there is no /proc."""
    tasks: int = 0                               # processes and threads
    seconds: float = 0.0                         # of CPU time, of ended children, too
    memory: int = 0                              # bytes: resident, in memfds and on its tmpfs


def family(pid):
    """{pid: (threads, CPU ticks, resident pages)} of a process and all that it has started."""
    processes = {}                               # pid: parent, session, (threads, ticks, pages)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_bytes().rpartition(b")")[2].split()
            parent, session, threads, pages = (int(fields[i]) for i in (1, 3, 17, 21))
            ticks = sum(map(int, fields[11:15]))
            processes[int(path.parent.name)] = parent, session, (threads, ticks, pages)
    ours = fresh = {pid} & set(processes)
    while fresh:
        fresh = {child for child, (parent, session, _) in processes.items()
                 if parent in ours or session == pid} - ours
        ours = ours | fresh
    return {child: processes[child][2] for child in ours}


def files_in_memory(pid, sealed):
    """{what: bytes} of memfds that a process has open, and of a sandbox's own tmpfs."""
    held = {}
    with contextlib.suppress(OSError):                           # it has gone
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(entry.path).startswith("/memfd:"):
                    status = os.stat(entry.path)
                    held[status.st_dev, status.st_ino] = status.st_blocks * 512
        for place in ("tmp", "dev/shm") if sealed else ():
            status = os.stat(f"/proc/{pid}/root/{place}")
            disk = os.statvfs(f"/proc/{pid}/root/{place}")
            if disk.f_blocks * disk.f_frsize <= TEMPORARY:       # the sandbox's, not the machine's
                held[status.st_dev] = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
    return held


def usage(pid, sealed=False):
    """The Usage of a process and all that it has started."""
    ours, held = family(pid), {}
    if not ours:
        return Usage()
    for child in ours:
        held |= files_in_memory(child, sealed)
    tasks, ticks, pages = (sum(column) for column in zip(*ours.values(), strict=True))
    memory = pages * os.sysconf("SC_PAGE_SIZE") + sum(held.values())
    return Usage(tasks, ticks / os.sysconf("SC_CLK_TCK"), memory)


def write_files(folder, files):
    """Write {path: bytes} below a folder, but for names that no file there can have."""
    for name, data in files.items():
        with contextlib.suppress(OSError, ValueError):
            path = (folder / name).resolve()
            path.relative_to(folder.resolve())                   # ValueError if it would leave
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def end_all_of(user):
    """Kill every process of a user: some may have left the worker's session."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):       # it has gone
            if folder.stat().st_uid == user:
                os.kill(int(folder.name), signal.SIGKILL)


class Worker:
    """One process for a student's code, in a copy of the student's files, {path: bytes}."""

    def __init__(self, files, limits):
        self.limits, self.line = limits, b""
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        top = Path(self.folder.name)
        copy, temporary, script, command = top / "submission", top / "tmp", top / "worker.py", []
        copy.mkdir()
        temporary.mkdir()
        write_files(copy, files)
        shutil.copy(HERE / "worker.py", script)
        python, self.user, rights = sys.executable, None, {}
        if limits.sandbox == "bwrap":
            script, temporary, command = "/worker.py", "/tmp", bubblewrap(copy)
            python = python_in_sandbox()
        elif limits.sandbox == "user":
            self.user = NOBODY - 1 - next(NUMBERS) % 1000        # nobody else's
            rights = {"user": self.user, "group": self.user, "extra_groups": []}
            for place in (top, temporary):       # closed to other workers
                os.chown(place, self.user, self.user)
        environment = {name: os.environ.get(name, "") for name in ("PATH", "SYSTEMROOT")}
        environment |= {"HOME": str(temporary), "TMPDIR": str(temporary), "PYTHONUTF8": "1",
                        "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                        "PYTHONUSERBASE": site.getuserbase(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self.process = subprocess.Popen(
            [*command, python, "-P", "-u", script], cwd=copy, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=limits.output,
            start_new_session=True, **rights)

    def _exchange(self, request):
        """Send a request and take the line that answers it. Both may block: run in a thread."""
        with contextlib.suppress(OSError):                       # it has gone: there is no line
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        self.line = self.process.stdout.readline(LONGEST)

    def usage(self):
        return usage(self.process.pid, self.limits.sandbox == "bwrap")

    def watch(self, began, seconds, end):
        """Broken if it uses more than it may: since it had used `began`, and until `end`."""
        now = self.usage()
        if now.tasks > TASKS:
            raise Broken(f"it had {now.tasks} processes and threads, more than {TASKS}")
        if now.memory > self.limits.memory * 2 ** 30:
            raise Broken(f"it used more than {self.limits.memory:g} GB of memory")
        if now.seconds - began.seconds > seconds:
            raise Broken(f"it did not end in {seconds:g} seconds of CPU time")
        if time.monotonic() > end:
            raise Broken(f"it did not end in {seconds * self.limits.wait:g} seconds")

    def ask(self, request, seconds=None):
        """The reply to a request; Broken if there is none in time or the process has gone."""
        seconds = seconds or self.limits.seconds
        began, end = self.usage(), time.monotonic() + seconds * self.limits.wait
        thread = threading.Thread(target=self._exchange, args=(request,), daemon=True)
        thread.start()
        thread.join(0.1)
        while thread.is_alive():
            self.watch(began, seconds, end)
            thread.join(0.1)
        if not self.line:
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
        if self.user is not None:
            end_all_of(self.user)
        self.folder.cleanup()
