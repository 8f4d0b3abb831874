"""Submissions as students send them: loose files, folders, zips, notebooks, in any encoding.

Everything is read into memory once, and nothing is ever written back.
"""
import io
import json
import re
import tokenize
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

MOST_FILES, MOST_BYTES, MOST_SOURCE = 500, 20 * 2 ** 20, 2 ** 20
SKIPPED = {"__MACOSX", "__pycache__", "checks", "solutions", "node_modules", "venv"}
OURS = ("test_", "check.py")
WRITTEN = ("answers.md", "answers.txt", "answers.pdf", "answers.tex")


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


def collect(place, depth=2):
    """{name: bytes} of students' own files in a folder or zip, or of a file, as far as they are
    few and small. Zips in it are opened, links are not followed."""
    if isinstance(place, zipfile.ZipFile):
        entries = [(info.filename, info.file_size, partial(place.read, info))
                   for info in place.infolist()]
    else:
        folder, paths = (place, place.rglob("*")) if place.is_dir() else (place.parent, [place])
        entries = [(path.relative_to(folder).as_posix(), path.stat().st_size, path.read_bytes)
                   for path in sorted(paths) if path.is_file() and not path.is_symlink()]
    files, total = {}, 0
    for name, size, read in entries:
        parts = PurePosixPath(name).parts
        if name.endswith("/") or any(part in SKIPPED or part[0] in "./" for part in parts):
            continue
        total += size
        if len(files) == MOST_FILES or total > MOST_BYTES:
            break
        if depth and name.lower().endswith(".zip"):
            inside = collect(zipfile.ZipFile(io.BytesIO(read())), depth - 1)
            files |= {f"{name[:-4]}/{inner}": data for inner, data in inside.items()}
        else:
            files[name] = read()
    return files


def mains(files):
    """The files to grade: nlts.py, or the one program or notebook that there is."""
    paths = [path for path in map(PurePosixPath, files) if not path.name.startswith(OURS)]
    found = [path for path in paths if path.name.lower() == "nlts.py"]
    for suffix in (".py", ".ipynb"):
        alone = [path for path in paths if path.suffix.lower() == suffix]
        found = alone if not found and len(alone) == 1 else found
    if not found:
        raise ValueError("there is no nlts.py in it")
    depth = min(len(path.parts) for path in found)
    return [path for path in found if len(path.parts) == depth]


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
        except (SyntaxError, UnicodeDecodeError):
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
    """The submissions at a path: one, or several if it is a folder or zip of many."""
    name = path.name if path.is_dir() else path.stem
    try:
        if path.is_symlink() or not path.exists():
            raise ValueError("there is no such file or folder, or it is a link")
        zipped = path.is_file() and path.suffix.lower() == ".zip"
        files = collect(zipfile.ZipFile(path) if zipped else path)
        found = mains(files)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        yield Submission(name, problem=f"it cannot be read: {error}")
        return
    for main in found:
        folder = main.parent if len(found) > 1 else PurePosixPath()
        own = {path: data for path, data in files.items()
               if PurePosixPath(path).is_relative_to(folder)}
        yield Submission(str(PurePosixPath(name, folder)), own, str(main))


def read_all(paths):
    """All submissions, with ids that differ."""
    submissions, seen = [one for path in paths for one in read_one(Path(path))], Counter()
    for one in submissions:
        one.id = printable(one.id)
        seen[one.id] += 1
        if seen[one.id] > 1:
            one.id += f" ({seen[one.id]})"
        try:
            one.source = "" if one.problem else text_of(one.main, one.files[one.main])
        except (ValueError, RecursionError) as error:
            one.problem = str(error)
    return submissions
