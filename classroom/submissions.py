"""Submissions as students send them: loose files, folders, zips, notebooks, in any encoding.

Everything is read into memory once, and nothing is ever written back.
"""
import io
import json
import os
import stat
import tokenize
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

MOST_FILES, MOST_BYTES, MOST_SOURCE = 500, 20 * 2 ** 20, 2 ** 20
SKIPPED = {"__MACOSX", "__pycache__", "checks", "solutions", "node_modules", "venv"}
OURS = ("test_", "check.py", "symptom")
WRITTEN = ("answers.md", "answers.txt", "answers.pdf", "answers.tex")
UNREADABLE = (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError)


@dataclass
class Submission:
    """One student's files, and the text that is graded, or why there is none."""
    id: str
    files: dict = field(default_factory=dict)    # {path: bytes}
    main: str = ""                               # the file that is graded
    source: str = ""
    problem: str = ""

    def read(self, name):
        """The text of one more file beside the main one, or None."""
        data = self.files.get(str(PurePosixPath(self.main).parent / name))
        return None if data is None else text_of(name, data)

    def written(self):
        """The written answers, {file name: bytes}."""
        return {PurePosixPath(name).name: data for name, data in self.files.items()
                if PurePosixPath(name).name.lower() in WRITTEN
                and data.strip() not in (b"", b"# Answers")}             # as it was handed out


def entries(path):
    """(name, size, read) of the plain files in a folder or zip; links are not followed."""
    if isinstance(path, zipfile.ZipFile):
        for info in path.infolist():
            if not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16):
                yield info.filename, info.file_size, lambda info=info: path.read(info)
        return
    for root, folders, names in os.walk(path):
        folders.sort()
        for file in (Path(root, name) for name in sorted(names)):
            if stat.S_ISREG(file.lstat().st_mode):
                yield file.relative_to(path).as_posix(), file.lstat().st_size, file.read_bytes


def collect(path, depth=2):
    """{name: bytes} of students' own files, as far as they are few and small; zips are opened."""
    files, total = {}, 0
    for name, size, read in entries(path):
        if any(part in SKIPPED or part.startswith(".") for part in PurePosixPath(name).parts):
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
    paths = [PurePosixPath(name) for name in files]
    found = [path for path in paths if path.name.lower() == "nlts.py"]
    depth = min((len(path.parts) for path in found), default=0)
    found = [str(path) for path in found if len(path.parts) == depth]
    for suffix in (".py", ".ipynb"):
        own = [str(path) for path in paths
               if path.suffix.lower() == suffix and not path.name.startswith(OURS)]
        found = found or (own if len(own) == 1 else [])
    return found


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
    text = code_of_notebook(name, text) if notebook else text
    return text.replace("\r\n", "\n").replace("\r", "\n")


def code_of_notebook(name, text):
    """The code cells of a notebook, one after the other, without lines for the shell."""
    try:
        cells = json.loads(text)["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{name} is no notebook") from error
    lines = "\n\n".join(code).split("\n")
    return "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)


def read_one(path):
    """The submissions at a path: one, or several if it is a folder or zip of many."""
    name = path.name if path.is_dir() else path.stem
    try:
        if path.is_symlink() or not path.exists():
            raise ValueError("there is no such file or folder, or it is a link")
        if path.is_dir():
            files = collect(path)
        elif path.suffix.lower() == ".zip":
            files = collect(zipfile.ZipFile(path))
        else:
            files = {path.name: path.read_bytes()}
    except UNREADABLE as error:
        return [Submission(name, problem=f"it cannot be read: {error}")]
    found = mains(files)
    if len(found) < 2:
        problem = "" if found else "there is no nlts.py in it"
        return [Submission(name, files, "".join(found), problem=problem)]
    submissions = []
    for main in found:
        folder = PurePosixPath(main).parent
        own = {path: data for path, data in files.items()
               if PurePosixPath(path).is_relative_to(folder)}
        submissions.append(Submission(f"{name}/{folder}", own, main))
    return submissions


def read_all(paths):
    """All submissions, with ids that differ."""
    submissions, seen = [], {}
    for one in (one for path in paths for one in read_one(Path(path))):
        one.id = "".join(c if c.isprintable() else "?" for c in one.id) or "?"
        seen[one.id] = seen.get(one.id, 0) + 1
        if seen[one.id] > 1:
            one.id += f" ({seen[one.id]})"
        if not one.problem:
            try:
                one.source = text_of(one.main, one.files[one.main])
            except (ValueError, RecursionError) as error:
                one.problem = str(error)
        if not one.problem and not one.source.strip():
            one.problem = f"{one.main} is empty"
        submissions.append(one)
    return submissions
