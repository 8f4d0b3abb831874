"""Files of data, read strictly: a bad one is named, with its line and what to do about it."""
import csv
import gzip
import hashlib
import io
import os
import re
import zipfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

AGAIN = "delete the file and get it again (of the paper's data, `python datasets.py` says how)"
FIX = "correct the file"
MISSING = {"", "?", "na", "n/a", "nan", "null", "none"}


class DataError(ValueError):
    """A data file that cannot be used: names the file and line, and says what to do."""

    def __init__(self, path, what, line=None, advice=AGAIN):
        place = f"{path}, line {line}" if line else str(path)
        super().__init__(f"{place}: {what}; {advice}")
        self.advice = advice


class MissingData(DataError):
    """The data set is neither bundled nor in any of the folders searched."""


# --- files as bytes -------------------------------------------------------------------------------

def cache_dir():
    """Per-user folder for downloads and parsed tables."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlts"


@contextmanager
def replacing(path):
    """A file that takes the place of `path` when all went well, and is removed otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w+b") as f:
            yield f
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def parsed_once(source, paths, parse, code):
    """The arrays of parse(source, paths), cached until the files or the program `code` change."""
    stats = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    programs = Path(code).read_bytes() + Path(__file__).read_bytes()
    key = hashlib.sha256(repr((source, stats)).encode() + programs).hexdigest()
    cached = cache_dir() / "parsed" / f"{source.name}.npy"
    with suppress(OSError, ValueError, EOFError), open(cached, "rb") as f:  # absent, or damaged
        if np.load(f) == key:
            return [np.load(f) for _ in range(3)]
    arrays = parse(source, paths)
    if arrays[0].dtype == object:
        return arrays
    with suppress(OSError), replacing(cached) as f:  # without a cache the next time is slower
        for array in (np.array(key), *arrays):
            np.save(f, array)
    return arrays


def contents(path, names, data=None):
    """Bytes of `path`, unpacked: a .gz, or one of `names` in a .zip or in a .zip inside it."""
    if data is None:
        data = Path(path).read_bytes()
    try:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        elif data.startswith(b"PK\x03\x04"):
            return unzipped(path, names, data)
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        raise DataError(path, f"broken archive ({error})") from error  # RuntimeError: encrypted
    if not data or data.isspace():
        raise DataError(path, "the file is empty", 1)
    if data[:200].lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(path, "a web page, not data", 1)
    return data


def unzipped(path, names, data):
    """Nothing is extracted to disk; still, a host's own archive has no name that points outside."""
    wanted = {os.path.basename(name) + end for name in names for end in ("", ".gz")}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.namelist()
        for member in members:
            if ".." in member or member.startswith(("/", "\\")):
                raise DataError(path, f"unsafe name {member!r} in the archive")
        if found := [member for member in members if os.path.basename(member) in wanted]:
            return contents(f"{path}:{found[0]}", names, archive.read(found[0]))
    raise DataError(path, f"no {os.path.basename(names[0])} in the archive")


def arrays(path, data=None, advice=AGAIN):
    """The array of an .npy, or {name: array} of an .npz; never pickled ones."""
    try:
        data = path.read_bytes() if data is None else data
        found = np.load(io.BytesIO(data), allow_pickle=False)
        return found if isinstance(found, np.ndarray) else dict(found)
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(path, f"not plain numpy arrays ({error})", advice=advice) from error


# --- tables of numbers, tables of text ------------------------------------------------------------

def is_number(field, dtype="float"):
    """Finite, not too large for the type, and not 1_000, which int() and float() accept."""
    with suppress(ValueError, OverflowError):
        return "_" not in field and bool(np.isfinite(np.dtype(dtype).type(field)))
    return False


def read_numbers(path, data, columns, line=1, sep=None, dtype="float"):
    """Finite numbers from text that starts at `line` of the file; `sep=None` is white space."""
    data = data.rstrip()
    text = io.TextIOWrapper(io.BytesIO(data), encoding="latin-1")
    try:
        X = np.loadtxt(text, dtype, delimiter=sep, ndmin=2, comments=None)
    except ValueError:
        X = np.empty((0, 0))
    if X.shape == (data.count(b"\n") + 1, columns) and np.isfinite(X).all():
        return X
    rows = data.decode("latin-1").split("\n")
    for i, row in enumerate(rows, line):  # slow, but the file is known to be bad
        fields = row.split(sep)
        if len(fields) != columns:
            raise DataError(path, f"{len(fields)} columns instead of {columns}", i)
        for field in fields:
            if not is_number(field, dtype):
                raise DataError(path, f"{field[:40]!r} is not a number, or too large", i)
    raise DataError(path, "not a table of numbers")


def cut_header(path, data, columns, start):
    """Cut off the header and what is above it: (the rest, its first line)."""
    found = re.search(b"^" + start.encode() + rb".*\n(?=\s*\S)", data, re.MULTILINE)
    if not found or found[0].count(b",") != columns - 1:
        raise DataError(path, f"expected a header of {columns} names, then rows", 1)
    return data[found.end():], data.count(b"\n", 0, found.end()) + 1


def csv_rows(path, data):
    """(line, fields) of each row, first the header; split by comma, semicolon or tab."""
    text = data.decode("utf-8-sig", "replace")
    sep = max(",;\t", key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep)
    width = 0
    try:
        for row in reader:
            width = width or len(row)
            if len(row) not in (0, width):
                raise DataError(path, f"{len(row)} columns instead of {width}", reader.line_num)
            if row:
                yield reader.line_num, [field.strip() for field in row]
    except csv.Error as error:
        raise DataError(path, str(error), reader.line_num) from error


def own_table(path, label):
    """(inputs, number of categories of each or 0, classes) of a table; arguments: see from_csv."""
    (_, names), *rows = csv_rows(path, contents(path, (path.stem,)))
    unnamed = len(set(names)) < len(names) or any(is_number(name) for name in names)
    if unnamed or len(names) < 2 or not rows:
        what = "expected a header of two or more different names, then rows"
        raise DataError(path, what, 1, FIX)
    if label not in (None, *names):
        raise ValueError(f"label: no column {label!r}, expected one of {', '.join(names)}")
    for line, row in rows:
        if missing := MISSING.intersection(value.lower() for value in row):
            raise DataError(path, f"{missing.pop()!r} is a missing value", line, FIX)
    columns = {name: [row[i] for _, row in rows] for i, name in enumerate(names)}
    y = columns.pop(names[-1] if label is None else label)
    with suppress(ValueError):
        y = np.array(y, float)  # so that class 10 comes after class 9
    lines = [line for line, _ in rows]
    inputs = [own_column(path, name, values, lines) for name, values in columns.items()]
    X = np.column_stack([x for x, _ in inputs])
    return X, np.array([n for _, n in inputs]), np.array(y)


def own_column(path, name, values, lines):
    """(numbers, 0), or (codes of texts, how many)."""
    with suppress(ValueError):
        x = np.array(values, float)
        if np.isfinite(x).all():
            return x, 0
    kinds, codes = np.unique(values, return_inverse=True)
    text = [value for value in values if not is_number(value)]
    if len(kinds) > 20 and (len(text) < 0.1 * len(values) or len(kinds) > 0.5 * len(values)):
        what = f"{text[0][:40]!r} in column {name!r} is neither a number nor a category"
        raise DataError(path, what, lines[values.index(text[0])], FIX)
    return codes, len(kinds)
