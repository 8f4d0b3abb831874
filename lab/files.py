"""Files of data: found, downloaded, and read strictly.

A bad file is named, with its line where that is known, and with what to do about it.
"""
import csv
import gzip
import io
import os
import re
import zipfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

FIX = "correct the file, or delete it and get it again (the paper's: `python datasets.py` says how)"


class DataError(ValueError):
    """A data file that cannot be used: names the file and line, and says what to do."""

    def __init__(self, path, what, line=None, advice=FIX):
        place = f"{path}, line {line}" if line else str(path)
        super().__init__(f"{place}: {what}; {advice}")
        self.advice = advice


class MissingData(DataError):
    """The data set is neither bundled nor in any of the folders searched."""


# --- files as bytes -------------------------------------------------------------------------------

def folders(data_dir=None):
    """Folders to search, in this order; downloads go to the first, the per-user one is the last."""
    own = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "nlts"
    places = (data_dir, os.environ.get("NLTS_DATA"), own)
    return [Path(place).expanduser() for place in places if place]


def locate(source, data_dir=None):
    """Path of each of the source's files, or of the archive that has it."""
    places = folders(data_dir)
    for folder in places:
        found = []
        for names in source.files:
            paths = [folder / (name + end) for name in names for end in ("", ".gz", ".zip")]
            found += [path for path in paths if path.is_file()][:1]
        if len(found) == len(source.files):
            return tuple(found)
    name = source.files[0][0]
    advice = f"run: python datasets.py fetch {source.name}"
    if not source.url:
        advice = f"download {name} from {source.page} into {places[0]}"
    what = f"{name} is not in {', '.join(map(str, places))}"
    raise MissingData(source.name, what, advice=advice)


def download(url, timeout):
    """The bytes at `url`."""
    import http.client  # only here: both are slow to import
    import urllib.request
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            return response.read()
    except (OSError, http.client.HTTPException) as error:
        advice = "check connection and address, and run it again"
        raise DataError(url, str(error) or type(error).__name__, advice=advice) from error


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


def contents(path, names, data=None):
    """Bytes of `path`, unpacked: a .gz, or one of `names` in a .zip or in a .zip inside it."""
    data = path.read_bytes() if data is None else data
    wanted = {os.path.basename(name) + end for name in names for end in ("", ".gz")}
    try:
        while data.startswith(b"PK\x03\x04"):
            archive = zipfile.ZipFile(io.BytesIO(data))
            found = [name for name in archive.namelist() if os.path.basename(name) in wanted]
            if not found:
                raise DataError(path, f"no {os.path.basename(names[0])} in the archive")
            path, data = f"{path}:{found[0]}", archive.read(found[0])
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        raise DataError(path, f"broken archive ({error})") from error  # RuntimeError: encrypted
    if not data or data.isspace():
        raise DataError(path, "the file is empty", 1)
    if data[:200].lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(path, "a web page, not data", 1)
    return data


def arrays(path, data=None, advice=FIX):
    """The array of an .npy, or {name: array} of an .npz; never pickled ones."""
    try:
        found = np.load(path if data is None else io.BytesIO(data), allow_pickle=False)
        return found if isinstance(found, np.ndarray) else dict(found)
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(path, f"not plain numpy arrays ({error})", advice=advice) from error


# --- tables of numbers, tables of text ------------------------------------------------------------

def is_number(field, dtype="float"):
    """Finite, not too large for the type, and not 1_000, which int() and float() accept."""
    with suppress(ValueError, OverflowError):
        return "_" not in field and bool(np.isfinite(np.dtype(dtype).type(field)))
    return False


def read_numbers(path, data, columns, header=None, sep=None, dtype="int32", words=()):
    """(finite numbers, line of the first row) of a table of text; `sep=None` is white space.

    header: how the line of names begins, a regular expression; what is above it is cut off, too.
    words: what stands for a number, a regular expression, and the number.
    """
    line = 1
    if header is not None:
        names = re.search(b"^" + header.encode() + rb".*\n(?=\s*\S)", data, re.MULTILINE)
        if not names or names[0].count(b",") != columns - 1:
            raise DataError(path, f"expected a header of {columns} names, then rows", line)
        line += data.count(b"\n", 0, names.end())
        data = data[names.end():]
    for word, number in words:
        data = re.sub(word.encode(), number.encode(), data, flags=re.MULTILINE)
    rows = data.rstrip().decode("latin-1").split("\n")
    with suppress(ValueError):
        X = np.loadtxt(rows, dtype, delimiter=sep, ndmin=2, comments=None)
        if X.shape == (len(rows), columns) and np.isfinite(X).all():
            return X, line
    for i, row in enumerate(rows, line):  # slow, but the file is known to be bad
        fields = row.split(sep)
        if len(fields) != columns:
            raise DataError(path, f"{len(fields)} columns instead of {columns}", i)
        for field in fields:
            if not is_number(field, dtype):
                raise DataError(path, f"{field[:40]!r} is not a number, or too large", i)
    raise DataError(path, "not a table of numbers")


def csv_columns(path, data):
    """(line of each row, {name: fields of its column}), split by comma, semicolon or tab."""
    text = data.decode("utf-8-sig", "replace")
    sep = max(",;\t", key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep)
    lines, rows = [], []
    try:
        for row in filter(None, reader):  # without blank lines
            lines.append(reader.line_num)
            rows.append([field.strip() for field in row])
            if len(row) != len(rows[0]):
                raise DataError(path, f"{len(row)} columns instead of {len(rows[0])}", lines[-1])
    except csv.Error as error:
        raise DataError(path, str(error), reader.line_num) from error
    names = rows[0] if rows else []
    unnamed = len(set(names)) < len(names) or any(is_number(name) for name in names)
    if unnamed or len(names) < 2 or len(rows) < 2:
        raise DataError(path, "expected a header of two or more different names, then rows", 1)
    return lines[1:], dict(zip(names, zip(*rows[1:], strict=True), strict=True))


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
        raise DataError(path, what, lines[values.index(text[0])])
    return codes, len(kinds)
