"""Submissions as students send them: a folder, zip or file each, in any encoding.

Everything is bounded before it is parsed, and read into memory once; nothing is written back. An
error belongs to its student.
"""
import contextlib
import csv
import io
import itertools
import os
import re
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from .programs import choose_main, printable

DEEPEST, LONGEST_NAME = 20, 255                  # folders in each other, bytes in a name
MOST_FILES, MOST_BYTES, RATIO = 500, 20 * 2 ** 20, 100
LISTED = 20_000                                  # files that are looked at, at most
SKIPPED = {"__MACOSX", "__pycache__", "checks", "node_modules", "venv"}
WORK = (".py", ".ipynb", ".zip")
MOODLE = re.compile(r"(?P<student>.+_\d+)_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)")
CANVAS = re.compile(r"(?P<student>[^\W_]+?(?:_LATE)?_\d+)_\d+_(?P<file>.+)")
NUMBERED = re.compile(r"-\d+(?=\.\w+$)")         # Canvas: nlts-1.py is a second nlts.py
DAMAGED = (OSError, ValueError, LookupError, RuntimeError, ArithmeticError, EOFError, TypeError,
           AttributeError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error)
WRITTEN = ("answers.md", "answers.txt", "onlinetext.html")


@dataclass(frozen=True)
class Entry:
    """A file: its path in the submission, how large it says it is, and how to read it."""
    path: PurePosixPath
    size: int
    read: object                                 # read(most) gives bytes


@dataclass
class Submission:
    """One student's files, the program that is graded or why there is none, and its points."""
    id: str
    files: dict = field(default_factory=dict)            # {path: bytes}
    main: str = ""                                       # the file that is graded
    source: str = ""
    why: str = ""                                        # why this file
    problem: str = ""
    paths: list = field(default_factory=list)            # where it comes from
    confirmed: bool = False                              # the teacher has looked at its flags
    flags: list = field(default_factory=list)            # for the teacher
    notes: list = field(default_factory=list)            # for the student
    outcomes: dict = field(default_factory=dict)         # {part: [(title, None or the failure)]}
    helped: dict = field(default_factory=dict)           # {part: titles right only with each other}
    scores: dict = field(default_factory=dict)           # {part: points}
    held: float = 0.0                                    # points that wait for the teacher
    rank: dict = field(default_factory=dict)             # of `prior`: {set: what was won back}

    @property
    def points(self):
        return round(sum(self.scores.values()), 2)

    def answers(self):
        """The written answers, as text."""
        found = [data for name, data in self.files.items()
                 if PurePosixPath(name).name.lower() in WRITTEN
                 and data.strip() not in (b"", b"# Answers")]
        return "\n\n".join(data.decode("utf-8", "replace") for data in found)[:50_000]


# Files of a folder or a zip -----------------------------------------------------------------------

def unreadable(path):
    """Why a file is not read, or None: it is hidden or ours, too deep, or has an odd name."""
    if not path.parts or any(part in SKIPPED or part[0] in "./" for part in path.parts):
        return "hidden"
    if len(path.parts) > DEEPEST:
        return f"deeper than {DEEPEST} folders"
    if any(len(part.encode("utf-8", "surrogateescape")) > LONGEST_NAME or "\0" in part
           for part in path.parts):
        return f"a name of more than {LONGEST_NAME} bytes"
    return None


def read_file(path, most):
    with open(path, "rb") as file:
        return file.read(most)


def files_in(folder):
    """[Entry] of a folder: regular files only, no links."""
    found = []
    for place, folders, names in os.walk(folder):
        inside = Path(place).relative_to(folder)
        folders[:] = sorted(folders) if len(inside.parts) < DEEPEST else []
        for name in sorted(names):
            path = Path(place, name)
            with contextlib.suppress(OSError):                   # it has gone
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    found.append(Entry(PurePosixPath(inside, name), status.st_size,
                                       partial(read_file, path)))
        if len(found) > LISTED:
            break
    return found


def read_member(archive, info, most):
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("packed in an unusual way")
    if info.file_size > 2 ** 20 and info.file_size > RATIO * info.compress_size:
        raise ValueError(f"packed more than {RATIO} times smaller")
    with archive.open(info) as file:
        return file.read(most)


def members_of(archive):
    """[Entry] of a zip."""
    return [Entry(PurePosixPath(info.filename.replace("\\", "/")), info.file_size,
                  partial(read_member, archive, info))
            for info in archive.infolist()[:LISTED] if not info.is_dir()]


def unpack(entries, problems, files=None, left=None, depth=2):
    """{path: bytes} of one student's files, programs first. Zips are opened; problems tell what is
    left out. left: [files, bytes] that may still be read."""
    files = {} if files is None else files
    left = [MOST_FILES, MOST_BYTES] if left is None else left
    wanted = [entry for entry in entries if unreadable(entry.path) != "hidden"]
    for entry in sorted(wanted, key=lambda entry: (entry.path.suffix.lower() not in WORK,
                                                   len(entry.path.parts))):
        if left[0] <= 0 or entry.size > left[1]:
            problems.append(f"{entry.path.name}: more than {MOST_FILES} files or {MOST_BYTES} "
                            "bytes, not read")
            if left[0] <= 0:
                break
            continue
        left[0] -= 1
        try:
            if odd := unreadable(entry.path):
                raise ValueError(odd)
            data = entry.read(left[1] + 1)
            left[1] -= max(len(data), entry.size)
            if depth and entry.path.suffix.lower() == ".zip":
                if data.count(b"PK\x01\x02") > LISTED:
                    raise ValueError("too many files")
                inside = members_of(zipfile.ZipFile(io.BytesIO(data)))
                within = entry.path.with_suffix("")
                unpack([Entry(within / part.path, part.size, part.read) for part in inside],
                       problems, files, left, depth - 1)
            else:
                files[str(entry.path)] = data
        except DAMAGED as error:
            problems.append(f"{printable(entry.path.name)[:80]}: {str(error)[:200]}")
    return files


# Who is who ---------------------------------------------------------------------------------------

def owner(name, is_file):
    """(student, name of the file) of a name at the top: Moodle's, Canvas's, or its own."""
    pattern = MOODLE.fullmatch(name) or (CANVAS.fullmatch(name) if is_file else None)
    if pattern:
        return pattern["student"].replace("_LATE", ""), NUMBERED.sub("", pattern["file"])
    return None, name


def entries_at(path):
    """[Entry] of a folder or a file."""
    path = Path(path)
    if path.is_symlink() or not path.exists():
        raise ValueError("there is no such file or folder, or it is a link")
    if path.is_dir():
        return files_in(path)
    name = PurePosixPath(owner(path.name, True)[1] or path.name)
    return [Entry(name, path.lstat().st_size, partial(read_file, path))]


def students_in(path):
    """The paths of a class: all that is at the top of a folder. A folder with an nlts.py at its top
    is one student's."""
    path = Path(path)
    if not path.is_dir() or (path / "nlts.py").exists():
        return [path]
    return [top for top in sorted(path.iterdir())
            if top.is_dir() or top.suffix.lower() in WORK or CANVAS.fullmatch(top.name)]


def manifest_of(paths):
    """[{student, path}]: one path is a class, several are a student each. Names of Moodle and
    Canvas are joined by student."""
    rows, used = [], set()
    for path in students_in(paths[0]) if len(paths) == 1 else map(Path, paths):
        if path.name in SKIPPED or path.name.startswith("."):
            continue
        student, _ = owner(path.name, path.is_file())
        if student is None:
            name = printable(path.stem if path.is_file() else path.name).strip() or "nameless"
            numbered = (f"{name} ({number})" for number in itertools.count(2))
            student = next(one for one in itertools.chain([name], numbered)
                           if one.casefold() not in used)
            used.add(student.casefold())
        rows.append({"student": student, "path": str(path)})
    return rows


def read_manifest(path):
    """The rows of a manifest that the teacher has corrected."""
    with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        rows = list(csv.DictReader(file))
    if not rows or not {"student", "path"} <= set(rows[0]):
        raise ValueError(f"{path}: expected a table with the columns student and path")
    for row in rows:
        row["student"] = row["student"].removeprefix("'")
        for name in ("path", "file"):
            row[name] = unquote((row.get(name) or "").removeprefix("'"), errors="surrogateescape")
    return rows


def read_student(student, rows, functions):
    """The submission of one student, with its problem, if it has one."""
    submission, problems, files = Submission(student), [], {}
    submission.paths = [row["path"] for row in rows]
    submission.confirmed = any(row.get("confirmed") for row in rows)
    try:
        for row in rows:
            unpack(entries_at(row["path"]), problems, files)
        submission.files = files
        wanted = next((row["file"] for row in rows if row.get("file")), "")
        choose_main(submission, functions, wanted, problems)
    except DAMAGED as error:
        submission.problem = "; ".join([f"it cannot be read: {error}", *problems])[:500]
    submission.flags += problems[:5]
    return submission


def read_all(paths, functions, manifest=None):
    """All submissions, in the order of the manifest."""
    rows = read_manifest(manifest) if manifest else manifest_of(paths)
    students = {}
    for row in rows:
        students.setdefault(row["student"], []).append(row)
    return [read_student(student, rows, functions) for student, rows in students.items()]
