"""Submissions as students send them: loose files, folders, zips, notebooks, in any encoding.

Everything is read into memory once, and nothing is ever written back.
"""
import io
import json
import lzma
import posixpath
import re
import tokenize
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

MOST_FILES, MOST_BYTES, MOST_SOURCE = 500, 20 * 2 ** 20, 2 ** 20
SKIPPED = {"__MACOSX", "__pycache__", "checks", "solutions", "node_modules", "venv"}
OURS = ("test_", "check.py")
WRITTEN = ("answers.md", "answers.txt", "answers.pdf", "answers.tex")
UNREADABLE = (OSError, ValueError, NotImplementedError, RuntimeError, EOFError, zipfile.BadZipFile,
              zlib.error, lzma.LZMAError)


@dataclass
class Submission:
    """One student's files, the text that is graded or why there is none, and what it gets."""
    id: str
    files: dict = field(default_factory=dict)    # {path: bytes}
    main: str = ""                               # the file that is graded
    source: str = ""
    problem: str = ""
    outcomes: dict = field(default_factory=dict)         # {part: [(title, None or words)]}
    scores: dict = field(default_factory=dict)           # {part: points}
    rank: dict = field(default_factory=dict)     # of the open assignment: {set: what was won back}

    @property
    def points(self):
        return round(sum(n for part, n in self.scores.items() if not part.optional), 2)

    def written(self):
        """The written answers, {file name: bytes}."""
        names = {PurePosixPath(name).name: data for name, data in self.files.items()}
        return {name: data for name, data in names.items() if name.lower() in WRITTEN
                and data.strip() not in (b"", b"# Answers")}             # as it was handed out


def printable(text):
    """A line of text without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def listing(place):
    """(path, size, read) of students' own files in a folder or zip, or of a file; no links."""
    if isinstance(place, zipfile.ZipFile):
        found = [(info.filename, info.file_size, partial(place.read, info))
                 for info in place.infolist() if not info.is_dir()]
    else:
        folder, paths = (place, place.rglob("*")) if place.is_dir() else (place.parent, [place])
        found = [(path.relative_to(folder).as_posix(), path.stat().st_size, path.read_bytes)
                 for path in sorted(paths) if path.is_file() and not path.is_symlink()]
    found = [(PurePosixPath(name), size, read) for name, size, read in found]
    return [entry for entry in found
            if not any(part in SKIPPED or part[0] in "./" for part in entry[0].parts)]


def by_student(listed):
    """{name: its part of a listing}: of a class each folder or zip at the top, else all."""
    depth = len(PurePosixPath(posixpath.commonpath([path.parent for path, *_ in listed])).parts)
    tops = {}
    for entry in listed:
        tops.setdefault(entry[0].parts[depth], []).append(entry)
    programs = [top for top in tops
                if top.lower().endswith((".py", ".ipynb")) and not top.startswith(OURS)]
    work = {path.parts[depth] for path, *_ in listed
            if path.name.lower().endswith(("nlts.py", ".ipynb", ".zip"))}
    if programs or len(work) < 2:
        return {"": listed}
    return {top: own for top, own in tops.items()
            if len(own[0][0].parts) > depth + 1 or top.lower().endswith(".zip")}


def unpacked(listed, depth=2):
    """{path: bytes} of one student's files; zips are opened, a too large file is left out."""
    files = {}
    for path, size, read in listed:
        if size > MOST_BYTES:
            continue
        files[str(path)] = read()
        if depth and path.suffix.lower() == ".zip":
            inside = listing(zipfile.ZipFile(io.BytesIO(files.pop(str(path)))))
            for name, data in unpacked(inside, depth - 1).items():
                files[str(path.with_suffix("") / name)] = data
        if len(files) > MOST_FILES or sum(map(len, files.values())) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_FILES} files or {MOST_BYTES} bytes")
    return files


def main_of(files):
    """The file to grade: nlts.py, or the one program or notebook that there is."""
    paths = [path for path in map(PurePosixPath, files) if not path.name.startswith(OURS)]
    found = [path for path in paths if path.name.lower() == "nlts.py"]
    for suffix in (".py", ".ipynb"):
        alone = [path for path in paths if path.suffix.lower() == suffix]
        found = alone if not found and len(alone) == 1 else found
    least = min((len(path.parts) for path in found), default=0)
    found = [str(path) for path in found if len(path.parts) == least]
    if len(found) != 1:
        raise ValueError("there is no nlts.py in it, or more than one")
    return found[0]


def text_of(name, data):
    """The Python text of a file, or a ValueError that says why it is none."""
    notebook = name.lower().endswith(".ipynb")
    if len(data) > MOST_SOURCE and not notebook:
        raise ValueError(f"{name} is larger than 1 MB")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16")
    elif b"\0" in data:
        raise ValueError(f"{name} is no text")
    else:
        try:
            text = data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0])
        except (SyntaxError, UnicodeDecodeError, LookupError):
            text = data.decode("latin-1")
    if notebook:
        try:
            cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
            text = "\n\n".join("".join(cell["source"]) for cell in cells)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{name} is no notebook") from error
        text = re.sub(r"^[ \t]*[%!].*", "", text, flags=re.MULTILINE)    # lines for the shell
    if not text.strip():
        raise ValueError(f"{name} is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_one(path):
    """The submissions at a path: one, or those of a class; each with its problem, if it has one."""
    name = path.name if path.is_dir() else path.stem
    zipped = path.is_file() and path.suffix.lower() == ".zip"
    try:
        if path.is_symlink() or not path.exists():
            raise ValueError("there is no such file or folder, or it is a link")
        listed = listing(zipfile.ZipFile(path) if zipped else path)
        students = by_student(listed) if listed else {"": []}
    except UNREADABLE as error:
        yield Submission(name, problem=f"it cannot be read: {error}")
        return
    for top, own in students.items():
        one = Submission(str(PurePosixPath(name, top.removesuffix(".zip"))))
        try:
            one.files = unpacked(own)
            one.main = main_of(one.files)
            one.source = text_of(one.main, one.files[one.main])
        except UNREADABLE as error:
            one.problem = f"it cannot be read: {error}"
        yield one


def read_all(paths):
    """All submissions, with ids that differ."""
    submissions, seen = [one for path in paths for one in read_one(Path(path))], Counter()
    for one in submissions:
        one.id = printable(one.id)
        seen[one.id] += 1
        if seen[one.id] > 1:
            one.id += f" ({seen[one.id]})"
    return submissions
