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
WRITTEN = ("answers.md", "answers.txt", "answers.pdf", "answers.tex")


@dataclass
class Submission:
    """One student's files, and the text that is graded, or why there is none."""
    id: str
    files: dict = field(default_factory=dict)
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


def wanted(path):
    """Whether a file can be a student's own work."""
    return not any(part in SKIPPED or part.startswith(".") for part in PurePosixPath(path).parts)


def files_of_folder(folder):
    """{relative path: bytes} of the plain files in a folder; links are not followed."""
    files, size = {}, 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if wanted(name))
        for name in sorted(names):
            path = Path(root) / name
            info = path.lstat()
            if not stat.S_ISREG(info.st_mode) or not wanted(name):
                continue
            size += info.st_size
            if len(files) < MOST_FILES and size <= MOST_BYTES:
                files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def files_of_zip(data):
    """{path: bytes} of the files in a zip, as far as they are not too many or too large."""
    files, size = {}, 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            size += info.file_size
            if info.is_dir() or not wanted(info.filename) or stat.S_ISLNK(info.external_attr >> 16):
                continue
            if len(files) < MOST_FILES and size <= MOST_BYTES:
                files[info.filename] = archive.read(info)
    return files


def unpacked(files, depth=2):
    """The files, with those of zips among them in folders of the zips' names."""
    result = {}
    for name, data in files.items():
        if depth and name.lower().endswith(".zip"):
            inside = unpacked(files_of_zip(data), depth - 1)
            result |= {f"{name[:-4]}/{path}": inner for path, inner in inside.items()}
        else:
            result[name] = data
    return result


def mains(files):
    """The files to grade: nlts.py, or the one program or notebook that there is."""
    named = [name for name in files if PurePosixPath(name).name.lower() == "nlts.py"]
    if named:
        depth = min(len(PurePosixPath(name).parts) for name in named)
        return [name for name in named if len(PurePosixPath(name).parts) == depth]
    programs = [name for name in files if name.lower().endswith(".py")]
    programs = [name for name in programs
                if not PurePosixPath(name).name.startswith(("test_", "check.py", "symptom"))]
    notebooks = [name for name in files if name.lower().endswith(".ipynb")]
    return next((found for found in (programs, notebooks) if len(found) == 1), [])


def text_of(name, data):
    """The Python text of a file, or a ValueError that says why it is none."""
    if len(data) > MOST_SOURCE and not name.lower().endswith(".ipynb"):
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
    if name.lower().endswith(".ipynb"):
        text = code_of_notebook(name, text)
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
        files = files_of_folder(path) if path.is_dir() else {path.name: path.read_bytes()}
        files = unpacked(files)
        if path.suffix.lower() == ".zip":
            files = {PurePosixPath(*PurePosixPath(n).parts[1:]).as_posix(): data
                     for n, data in files.items()}
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        return [Submission(name, problem=f"it cannot be read: {error}")]
    found = mains(files)
    if not found:
        return [Submission(name, files, problem="there is no nlts.py in it")]
    if len(found) == 1:
        return [Submission(name, files, found[0])]
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
    for submission in (one for path in paths for one in read_one(Path(path))):
        submission.id = "".join(c if c.isprintable() else "?" for c in submission.id) or "?"
        seen[submission.id] = seen.get(submission.id, 0) + 1
        if seen[submission.id] > 1:
            submission.id += f" ({seen[submission.id]})"
        if not submission.problem:
            try:
                submission.source = text_of(submission.main, submission.files[submission.main])
            except (ValueError, RecursionError) as error:
                submission.problem = str(error)
        if not submission.problem and not submission.source.strip():
            submission.problem = f"{submission.main} is empty"
        submissions.append(submission)
    return submissions
