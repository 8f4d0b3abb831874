"""Submissions as students send them: a folder, zip or file each, in any encoding; whose they are,
and which of their files is graded.

Everything is bounded before it is parsed, and read into memory once; nothing is written back. An
error belongs to its student.
"""
import csv
import io
import itertools
import json
import os
import re
import zipfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from . import source

DEEPEST, LONGEST_NAME = 20, 255                  # folders in each other, bytes in a name
MOST_FILES, MOST_BYTES, RATIO = 500, 20 * 2 ** 20, 100
MOST_SOURCE = 2 ** 18                            # characters of all programs that are looked at
LISTED = 20_000                                  # files that are looked at, at most
SKIPPED = {"__MACOSX", "__pycache__", "checks", "node_modules", "venv"}
WORK = (".py", ".ipynb", ".zip")
MOODLE = re.compile(r"(?P<student>.+_\d+)_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)")
CANVAS = re.compile(r"(?P<student>[^\W_]+?(?:_LATE)?_\d+)_\d+_(?P<file>.+)")
NUMBERED = re.compile(r"-\d+(?=\.\w+$)")         # Canvas: nlts-1.py is a second nlts.py
WRITTEN = ("answers.md", "answers.txt", "onlinetext.html")


def printable(text):
    """A line of text without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


@dataclass
class Submission:
    """One student's files, the program that is graded or why there is none, and its points."""
    id: str
    files: dict = field(default_factory=dict)            # {path: bytes}
    main: str = ""                                       # the file that is graded
    source: str = ""
    why: str = ""                                        # why this file, or none
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


# Files of a folder or a zip: (path in the submission, size, function that reads it) ---------------

def files_in(folder):
    """The files of a folder: regular ones only, no links."""
    for place, folders, names in os.walk(folder):
        inside = PurePosixPath(Path(place).relative_to(folder))
        if len(inside.parts) >= DEEPEST:
            folders.clear()
        for path in (Path(place, name) for name in names):
            if os.path.isfile(path) and not os.path.islink(path):
                yield inside / path.name, path.stat().st_size, path.read_bytes


def read_member(archive, info):
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("packed in an unusual way")
    if info.file_size > 2 ** 20 and info.file_size > RATIO * info.compress_size:
        raise ValueError(f"packed more than {RATIO} times smaller")
    with archive.open(info) as file:
        return file.read(info.file_size)


def members_of(data, within):
    """The files of a zip, below a folder of its name."""
    if data.count(b"PK\x01\x02") > LISTED:
        raise ValueError("too many files")
    archive = zipfile.ZipFile(io.BytesIO(data))
    return [(within / info.filename.replace("\\", "/").lstrip("/"), info.file_size,
             partial(read_member, archive, info))
            for info in archive.infolist() if not info.is_dir()]


def is_hidden(path):
    return any(part in SKIPPED or part.startswith(".") for part in path.parts)


def unpack(entries, files, problems, depth=2):
    """Add one student's files to {path: bytes}, programs first. Zips are opened; problems tell
    what is left out."""
    wanted = [entry for entry in itertools.islice(entries, LISTED) if not is_hidden(entry[0])]
    for path, size, read in sorted(wanted, key=lambda entry: (
            entry[0].suffix.lower() not in WORK, len(entry[0].parts), entry[0])):
        if len(files) + len(problems) >= MOST_FILES:
            problems.append(f"more than {MOST_FILES} files, the others are not read")
            break
        try:
            if len(path.parts) > DEEPEST:
                raise ValueError(f"deeper than {DEEPEST} folders")
            if any(len(os.fsencode(part)) > LONGEST_NAME for part in path.parts):
                raise ValueError(f"a name of more than {LONGEST_NAME} bytes")
            if size > MOST_BYTES - sum(map(len, files.values())):
                raise ValueError(f"more than {MOST_BYTES} bytes, not read")
            data = files[str(path)] = read()
            if depth and path.suffix.lower() == ".zip":
                unpack(members_of(data, path.with_suffix("")), files, problems, depth - 1)
        except Exception as error:                               # a damaged file can raise any
            problems.append(f"{printable(path.name)[:80]}: {str(error)[:200]}")


# The program that is graded -----------------------------------------------------------------------

def decoded(data):
    """The text, in UTF-16, UTF-8 or Latin-1."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if b"\0" in data:
        raise ValueError("it is no text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def cells_of(text):
    """The code cells of a notebook, without magics, commands of the shell and questions."""
    try:
        cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"]
                 if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("it is no notebook") from error
    return [re.sub(r"^[ \t]*[%!].*|^[^#'\"\n]*\?[ \t]*$", "", cell, flags=re.MULTILINE)
            for cell in cells]


def text_of(name, data, most=MOST_SOURCE):
    """(the Python text of a file, notes), or a ValueError that says why it is none."""
    text, notes = decoded(data).replace("\r\n", "\n").replace("\r", "\n"), []
    is_notebook = name.lower().endswith(".ipynb")
    cells = cells_of(text) if is_notebook else [text]
    if sum(map(len, cells)) > most:
        raise ValueError(f"left out, all programs together exceed {MOST_SOURCE} characters")
    for i, cell in enumerate(cells if is_notebook else []):
        try:
            source.written(cell)
        except ValueError as error:
            notes.append(f"code cell {i + 1} was left out, {error}")
            cells[i] = ""
    text = "\n\n".join(cells)
    if not text.strip():
        raise ValueError("; ".join(["it is empty", *notes]))
    return text, notes


def is_nlts(path):
    return PurePosixPath(path).name == "nlts.py"


def candidates(files, functions, problems):
    """{path: (text, notes, which of the functions it defines)} of the programs: nlts.py first, then
    the least deep, then the last by name, up to a size in all."""
    paths = [path for path in files if path.lower().endswith((".py", ".ipynb"))]
    paths.sort(key=lambda path: (is_nlts(path), -path.count("/"), path), reverse=True)
    found, left = {}, MOST_SOURCE
    for path in paths:
        try:
            text, notes = text_of(path, files[path], left)
            left -= len(text)
            found[path] = text, notes, set(source.written(text)) & set(functions)
        except ValueError as error:
            problems.append(f"{path}: {error}")
    return found


def choose_main(submission, functions, wanted, problems):
    """Set what is graded: the file that the teacher wants, or else the one that defines most of
    the functions; of several, the first candidate. ValueError if there is none."""
    files = submission.files
    if wanted:
        if wanted not in files:
            raise ValueError(f"there is no {wanted}, which the manifest names")
        files = {wanted: files[wanted]}
    found = candidates(files, functions, problems)
    if not found:
        raise ValueError("there is no program in it")
    submission.main = max(found, key=lambda path: len(found[path][2]))
    submission.source, submission.notes, defined = found.pop(submission.main)
    submission.why = f"defines {len(defined)} of {len(functions)}"
    if others := [path for path in found if found[path][2] or is_nlts(path)]:
        also = ", ".join(others[:5])
        submission.flags.append(f"graded is {submission.main}; there is also {also}")
    submission.flags += submission.notes


# Who is who ---------------------------------------------------------------------------------------

def owner(name, is_file):
    """(student, name of the file) of a name at the top: Moodle's, Canvas's, or its own."""
    pattern = MOODLE.fullmatch(name) or (CANVAS.fullmatch(name) if is_file else None)
    if pattern:
        return pattern["student"].replace("_LATE", ""), NUMBERED.sub("", pattern["file"])
    return name, name


def entries_at(path):
    """The files of a folder, or a file."""
    path = Path(path)
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        raise ValueError("there is no such file or folder, or it is a link")
    if path.is_dir():
        return files_in(path)
    name = owner(path.name, True)[1] or path.name
    return [(PurePosixPath(name), path.stat().st_size, path.read_bytes)]


def manifest_of(folder):
    """[{student, path}] of a class. Names of Moodle and Canvas are joined by student. A folder with
    nlts.py at its top is one student's."""
    folder = Path(folder).resolve()
    paths = [folder] if (folder / "nlts.py").exists() else sorted(folder.iterdir())
    return [{"student": owner(path.name, path.is_file())[0], "path": str(path)}
            for path in paths if path == folder or not is_hidden(PurePosixPath(path.name))]


def read_manifest(path):
    """The rows of a manifest that the teacher has corrected."""
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = list(csv.DictReader(file, restval=""))
    if not rows or not {"student", "path", "file", "confirmed"} <= set(rows[0]):
        raise ValueError(f"{path}: expected columns student, path, file and confirmed, "
                         "separated by commas")
    for row in rows:
        for name in ("path", "file"):
            row[name] = unquote(row[name].removeprefix("'"), errors="surrogateescape")
    return rows


def read_student(student, rows, functions):
    """The submission of one student, with its problem, if it has one."""
    submission, problems = Submission(student), []
    submission.paths = [row["path"] for row in rows]
    submission.confirmed = any(row.get("confirmed", "").lower() == "yes" for row in rows)
    try:
        for row in rows:
            unpack(entries_at(row["path"]), submission.files, problems)
        wanted = next((row["file"] for row in rows if row.get("file")), "")
        choose_main(submission, functions, wanted, problems)
    except Exception as error:                                   # it belongs to this student
        submission.problem = "; ".join([f"it cannot be read: {error}", *problems])[:500]
        submission.why = submission.problem
    submission.flags += problems[:5]
    return submission


def read_all(rows, functions):
    """All submissions, in the order of a manifest."""
    students = {}
    for row in rows:
        students.setdefault(row["student"], []).append(row)
    return [read_student(student, rows, functions) for student, rows in students.items()]
