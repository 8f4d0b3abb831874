"""The program of a submission: which of its files is graded, and the text of it."""
import json
import re
from pathlib import PurePosixPath

from . import source

MOST_SOURCE, MOST_PARSED = 2 ** 18, 2 ** 20      # bytes of one program, of all that are looked at
TESTS = ("test_", "check.py", "conftest.py")
NLTS = re.compile(r"nlts[ _-]*(\(?\d+\)?)?\.py")         # browsers number their downloads


def printable(text):
    """A line of text without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


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


def text_of(name, data):
    """(the Python text of a file, notes), or a ValueError that says why it is none."""
    text, notes, kept = decoded(data), [], []
    cells = cells_of(text) if name.lower().endswith(".ipynb") else []
    if sum(map(len, cells or [text])) > MOST_SOURCE:
        raise ValueError(f"it is larger than {MOST_SOURCE} bytes")
    for number, cell in enumerate(cells, 1):
        try:
            source.written(cell)
            kept.append(cell)
        except ValueError as error:
            notes.append(f"code cell {number} was left out, {error}")
    text = "\n\n".join(kept) if cells else text
    if not text.strip():
        raise ValueError("; ".join(["it is empty", *notes]))
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def is_nlts(path):
    return bool(NLTS.fullmatch(PurePosixPath(path).name.lower()))


def candidates(files, functions, problems):
    """{path: (text, notes, which of the functions it defines)} of the programs, most likely first,
    up to a size in all."""
    paths = [path for path in files if path.lower().endswith((".py", ".ipynb"))
             and not PurePosixPath(path).name.lower().startswith(TESTS)]
    found, parsed = {}, 0
    for path in sorted(paths, key=lambda path: (not is_nlts(path), path.count("/"), path)):
        try:
            text, notes = text_of(path, files[path])
            parsed += len(text)
            if parsed > MOST_PARSED:
                break
            found[path] = text, notes, set(source.written(text)) & set(functions)
        except ValueError as error:
            problems.append(f"{path}: {error}")
    return found


def choose_main(submission, functions, wanted, problems):
    """Set what is graded: the file that the teacher wants, or else the one that defines most of
    the functions; of several nlts.py, then the one that is least deep, then the last by name.
    ValueError if there is none."""
    files = submission.files
    if wanted:
        if wanted not in files:
            raise ValueError(f"there is no {wanted}, which the manifest names")
        files = {wanted: files[wanted]}
    found = candidates(files, functions, problems)
    if not found:
        raise ValueError("there is no program in it")
    main = max(found, key=lambda path: (len(found[path][2]), is_nlts(path), -path.count("/"), path))
    text, notes, defined = found[main]
    submission.main, submission.source, submission.notes = main, text, notes
    submission.why = f"defines {len(defined)} of {len(functions)}"
    others = [path for path in found if path != main and found[path][2]]
    if others:
        submission.flags.append(f"graded is {main}; also written in {', '.join(others[:5])}")
    elif not is_nlts(main) and any(map(is_nlts, found)):
        submission.flags.append(f"graded is {main}: nothing is written in nlts.py")
    submission.flags += notes
