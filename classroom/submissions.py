"""Submissions as students send them: loose files, folders, zips, notebooks, in any encoding.

Everything is read into memory once, and nothing is ever written back.
"""
import io
import json
import re
import tokenize
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from .downloads import SKIPPED_TESTS, listing, students_of
from .source import parse

MOST_FILES, MOST_BYTES, MOST_SOURCE = 500, 20 * 2 ** 20, 2 ** 20
WRITTEN = ("answers.md", "answers.txt", "answers.pdf", "answers.tex", "onlinetext.html")
NLTS = re.compile(r"nlts[ _-]*(\(?\d+\)?)?\.py")             # browsers number their downloads
ENCODINGS = re.compile(r"utf-8(-sig)?|ascii|iso-8859-\d+|(windows-|cp)125\d")
PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%writefile", "%%prun")


@dataclass
class Submission:
    """One student's files, the text that is graded or why there is none, and what it gets."""
    id: str
    files: dict = field(default_factory=dict)    # {path: bytes}
    main: str = ""                               # the file that is graded
    source: str = ""
    problem: str = ""
    student: str = ""                            # whose it is; the id, without a number
    folder: str = ""                             # its folder in Moodle's download
    outcomes: dict = field(default_factory=dict)         # {part: [(title, None or words)]}
    broken: dict = field(default_factory=dict)           # {part: titles that broke off}
    borrowed: dict = field(default_factory=dict)         # {part: titles right among ours only}
    unloadable: str = ""                         # why it cannot be imported
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


def program_first(entry):
    """The order in which files are read, as long as there is room: programs, then the others."""
    return entry.path.suffix.lower() not in (".py", ".ipynb"), len(entry.path.parts)


def unpacked(entries, depth=2, tried=None):
    """({path: bytes}, problems) of one student's files. Zips are opened; what cannot be read or is
    too much is left out. tried: sizes of the files so far, whether they could be read or not."""
    files, problems = {}, []
    tried = [] if tried is None else tried
    for entry in sorted(entries, key=program_first):
        if entry.size > MOST_BYTES:
            problems.append(f"{entry.path.name} is larger than {MOST_BYTES} bytes")
            continue
        if len(tried) >= MOST_FILES or sum(tried) > MOST_BYTES:
            problems.append(f"it has more than {MOST_FILES} files or {MOST_BYTES} bytes")
            break
        tried.append(entry.size)
        try:
            data = {str(entry.path): entry.read()}
            if depth and entry.path.suffix.lower() == ".zip":
                archive = zipfile.ZipFile(io.BytesIO(data[str(entry.path)]))
                inside, more = unpacked(listing(archive), depth - 1, tried)
                problems += more
                data = {str(entry.path.with_suffix("") / name): text
                        for name, text in inside.items()}
            files |= data
        except Exception as error:               # a damaged zip raises almost anything
            problems.append(f"{entry.path.name}: {error}")
    return files, problems


def main_of(files):
    """The file to grade: nlts.py, or the one program or notebook that there is."""
    paths = [path for path in map(PurePosixPath, files)
             if not path.name.lower().startswith(SKIPPED_TESTS)]
    choices = [[path for path in paths if path.name.lower() == "nlts.py"],
               [path for path in paths if NLTS.fullmatch(path.name.lower())]]
    for suffix in (".py", ".ipynb"):
        alone = [path for path in paths if path.suffix.lower() == suffix]
        choices.append(alone if len(alone) == 1 else [])
    found = next(filter(None, choices), [])
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
        text = decoded(data, notebook)
    if notebook:
        text = notebook_text(name, text)
    if not text.strip():
        raise ValueError(f"{name} is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decoded(data, notebook):
    """The text in the encoding that it names, if that is a usual one, or in Latin-1."""
    try:
        found = "utf-8-sig" if notebook else tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        return data.decode(found if ENCODINGS.fullmatch(found.lower()) else "latin-1")
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return data.decode("latin-1")


def notebook_text(name, text):
    """The code cells of a notebook that are Python, one after the other."""
    try:
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        texts = ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{name} is no notebook") from error
    return "\n\n".join(map(cell_text, texts))


def cell_text(text):
    """A cell without lines for the shell and questions to Jupyter; nothing if it is no Python."""
    if text.lstrip().startswith("%%") and not text.lstrip().startswith(PYTHON_MAGICS):
        return ""
    text = re.sub(r"^[ \t]*[%!].*", "", text, flags=re.MULTILINE)
    for attempt in (text, re.sub(r"^.*\?[ \t]*$|^[ \t]*\?.*", "", text, flags=re.MULTILINE)):
        try:
            parse(attempt)
            return attempt
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return ""


def read_bundle(bundle):
    """The submission of one student, with its problem, if it has one."""
    one, problems = Submission(bundle.id, folder=bundle.folder), []
    try:
        if bundle.problem:
            raise ValueError(bundle.problem)
        one.files, problems = unpacked(bundle.entries)
        one.main = main_of(one.files)
        one.source = text_of(one.main, one.files[one.main])
    except ValueError as error:
        one.problem = "; ".join([f"it cannot be read: {error}", *problems])[:500]
    return one


def read_all(paths, single=False):
    """All submissions, with ids that differ. single: a path is one submission, whatever is in it.
    """
    submissions, used = [], set()
    for bundle in students_of([Path(path) for path in paths], single):
        one = read_bundle(bundle)
        one.id = one.student = printable(bundle.id).strip() or "nameless"
        number = 1
        while one.id.casefold() in used:
            number += 1
            one.id = f"{one.student} ({number})"
        used.add(one.id.casefold())
        submissions.append(one)
    return submissions


def chosen(submissions, several):
    """Of each student's submissions the best or the last, in the order of the students."""
    kept = {}
    for one in submissions:
        before = kept.get(one.student)
        if before is None or several == "last" or one.points > before.points:
            kept[one.student] = one
    for one in kept.values():
        one.id = one.student
    return list(kept.values())

