"""Files of data: found, downloaded, and read strictly.

A bad file is named, with its line where that is known, and with what to do about it.
"""
import csv
import gzip
import http.client
import io
import os
import re
import urllib.request
import zipfile
import zlib
from contextlib import contextmanager
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

def folders():
    """Folders to search, in this order; downloads go to the first."""
    own = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "nlts"
    places = os.environ.get("NLTS_DATA"), own
    return [Path(place).expanduser() for place in places if place]


def locate(source):
    """Path of each of the source's files, or of the archive that has it."""
    for folder in folders():
        found = []
        for names in source.files:
            paths = [folder / (name + end) for name in names for end in ("", ".gz")]
            found += [path for path in paths if path.is_file()][:1]
        if len(found) == len(source.files):
            return tuple(found)
    name = source.files[0][0]
    advice = f"run: python datasets.py fetch {source.name}"
    if not source.url:
        advice = f"download {name} from {source.page} into {folders()[0]}"
    what = f"{name} is not in {', '.join(map(str, folders()))}"
    raise MissingData(source.name, what, advice=advice)


def download(url):
    """Put the file at `url` into the first of the folders."""
    target = folders()[0] / url.rpartition("/")[2]
    try:
        with urllib.request.urlopen(url, timeout=30) as response, replacing(target) as f:
            f.write(response.read())
    except (OSError, http.client.HTTPException) as error:
        advice = "check connection, address and folder, and run it again"
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


def contents(path, names):
    """Bytes of `path`, unpacked: a .gz, or one of `names` in a .zip or in a .zip inside it."""
    data = path.read_bytes()
    wanted = {os.path.basename(name) + end for name in names for end in ("", ".gz")}
    try:
        while data.startswith(b"PK\x03\x04"):
            archive = zipfile.ZipFile(io.BytesIO(data))
            found = [name for name in archive.namelist() if os.path.basename(name) in wanted]
            if not found:
                raise DataError(path, f"no {os.path.basename(names[0])} in the archive")
            data = archive.read(found[0])
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(path, f"broken archive ({error})") from error


# --- tables of numbers, tables of text ------------------------------------------------------------

def read_numbers(path, data, columns, header=None, sep=None, dtype="int32", words=()):
    """(finite numbers, line of the first row) of a table of text; `sep=None` is white space.

    header: how the line of names begins, a regular expression; what is above it is cut off, too.
    words: what stands for a number, a regular expression, and the number.
    """
    first = 1
    if header is not None:
        names = re.search(b"^" + header.encode() + rb".*\n(?=\s*\S)", data, re.MULTILINE)
        if not names or names[0].count(b",") != columns - 1:
            raise DataError(path, f"expected a header of {columns} names, then rows", first)
        first += data.count(b"\n", 0, names.end())
        data = data[names.end():]
    for word, number in words:
        data = re.sub(word.encode(), number.encode(), data, flags=re.MULTILINE)
    rows = data.rstrip().decode("latin-1").split("\n")
    for line, row in enumerate(rows, first):
        found = len(row.split(sep))
        if found != columns:
            raise DataError(path, f"{found} columns instead of {columns}", line)
    try:
        X = np.loadtxt(rows, dtype, delimiter=sep, comments=None, ndmin=2)
    except ValueError as error:
        what, _, row = str(error).partition(" at row ")  # as in "at row 3, column 2", from 0
        raise DataError(path, what, first + int(row.partition(",")[0])) from error
    bad = np.flatnonzero(~np.isfinite(X).all(1))
    if len(bad):
        raise DataError(path, "a number that is not finite", first + bad[0])
    return X, first


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
    number = any(re.fullmatch(r"[-+]?[.\d]+", name) for name in names)
    if number or len(set(names)) < max(len(names), 2) or len(rows) < 2:
        raise DataError(path, "expected a header of two or more different names, then rows", 1)
    return lines[1:], dict(zip(names, zip(*rows[1:], strict=True), strict=True))
