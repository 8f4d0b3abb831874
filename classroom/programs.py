"""The program of a submission: which of its files is graded, and the text of it."""
import io
import json
import re
import tokenize
from pathlib import PurePosixPath

from . import source

MOST_SOURCE, MOST_PARSED = 2 ** 18, 2 ** 20      # bytes of one program, of all that are looked at
TESTS = ("test_", "check.py", "conftest.py")
NLTS = re.compile(r"nlts[ _-]*(\(?\d+\)?)?\.py")         # browsers number their downloads
ENCODINGS = re.compile(r"utf-8(-sig)?|ascii|iso-8859-\d+|(windows-|cp)125\d")
PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


def printable(text):
    """A line of text without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def decoded(data, notebook):
    """The text in the encoding that it names, if that is a usual one, or in Latin-1."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if b"\0" in data:
        raise ValueError("it is no text")
    try:
        found = "utf-8-sig" if notebook else tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        return data.decode(found if ENCODINGS.fullmatch(found.lower()) else "latin-1")
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return data.decode("latin-1")


def cell_text(text):
    """A cell without lines for the shell and questions to Jupyter; nothing if it is no Python."""
    if text.lstrip().startswith("%%") and not text.lstrip().startswith(PYTHON_MAGICS):
        return ""
    return re.sub(r"^[ \t]*[%!].*|^[^#'\"\n]*\?[ \t]*$", "", text, flags=re.MULTILINE)


def notebook_text(text):
    """(the code cells of a notebook, notes of those that do not parse)."""
    try:
        cells = [cell["source"] for cell in json.loads(text)["cells"]
                 if cell["cell_type"] == "code"]
        texts = [cell_text("".join(cell)) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("it is no notebook") from error
    kept, notes = [], []
    for number, cell in enumerate(texts, 1):
        try:
            source.written(cell[:MOST_SOURCE])
            kept.append(cell)
        except ValueError as error:
            notes.append(f"code cell {number} was left out, {error}")
    return "\n\n".join(kept), notes


def text_of(name, data):
    """(the Python text of a file, notes), or a ValueError that says why it is none."""
    notebook, notes = name.lower().endswith(".ipynb"), []
    if len(data) > MOST_SOURCE and not notebook:
        raise ValueError(f"it is larger than {MOST_SOURCE} bytes")
    text = decoded(data, notebook)
    if notebook:
        text, notes = notebook_text(text)
    if not text.strip():
        raise ValueError("; ".join(["it is empty", *notes]))
    if len(text) > MOST_SOURCE:
        raise ValueError(f"it is larger than {MOST_SOURCE} bytes")
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def is_nlts(path):
    return bool(NLTS.fullmatch(PurePosixPath(path).name.lower()))


def candidates(files, functions, problems):
    """{path: (text, notes, which of the functions it defines)} of the programs, most likely first,
    as long as there is time."""
    paths = [path for path in files if path.lower().endswith((".py", ".ipynb"))
             and not PurePosixPath(path).name.lower().startswith(TESTS)]
    names = [function.rpartition(".")[2].encode() for function in functions]
    found, parsed = {}, 0
    for path in sorted(paths, key=lambda path: (not is_nlts(path), path.count("/"), path)):
        hopeful = is_nlts(path) or any(name in files[path] for name in names)
        if not hopeful and len(paths) > 1:
            continue
        try:
            text, notes = text_of(path, files[path])
            parsed += len(text)
            if parsed > MOST_PARSED and found:
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
