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
MISSING = ("", "?", "na", "n/a", "nan", "null", "none")


class DataError(ValueError):
    """A data file that cannot be used: names the file and line, and says what to do."""

    def __init__(self, path, what, line=None, advice=AGAIN):
        place = f"{path}, line {line}" if line else str(path)
        super().__init__(f"{place}: {what}; {advice}")


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


def parsed_once(name, paths, parse, code):
    """The three arrays that parse() makes of the files at `paths`; from the cache if there.

    They are made afresh after any change of the files, or of `code`, the program that parses them.
    """
    stats = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    programs = Path(code).read_bytes() + Path(__file__).read_bytes()
    key = hashlib.sha256(repr(stats).encode() + programs).hexdigest()[:16]
    cached = cache_dir() / "parsed" / f"{name}-{key}.npy"
    with suppress(OSError, ValueError, EOFError), open(cached, "rb") as f:  # absent, or damaged
        return [np.load(f, allow_pickle=False) for _ in range(3)]
    arrays = parse()
    if any(array.dtype == object for array in arrays):
        return arrays
    with suppress(OSError):  # without a cache the next time is slower, nothing else
        for old in cached.parent.glob(f"{name}-*.npy"):
            old.unlink(missing_ok=True)
        with replacing(cached) as f:
            for array in arrays:
                np.save(f, array, allow_pickle=False)
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
            absolute = member.startswith(("/", "\\")) or member[1:2] == ":"
            if absolute or ".." in re.split(r"[/\\]", member):
                raise DataError(path, f"unsafe name {member!r} in the archive")
        files = [m for m in members if os.path.basename(m) in wanted]
        archives = [m for m in members if m.endswith(".zip")]
        if found := files + archives:
            return contents(f"{path}:{found[0]}", names, archive.read(found[0]))
    raise DataError(path, f"no {' or '.join(sorted(wanted))} in the archive")


# --- tables of numbers ----------------------------------------------------------------------------

def is_number(field, dtype=float):
    """Neither nan nor 1_000, which float() accepts, nor too large for the type."""
    if dtype is float:
        number = re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", field, re.ASCII)
        return bool(number) and bool(np.isfinite(float(field)))
    number = re.fullmatch(r"[-+]?\d{1,10}", field, re.ASCII)
    return bool(number) and abs(int(field)) <= np.iinfo(dtype).max


def blame(path, data, columns, line, sep, dtype):
    """Raise at the first bad line. Slow, but only run on a file that is known to be bad."""
    for i, row in enumerate(data.decode("latin-1").split("\n"), line):
        fields = row.split(sep)
        if len(fields) != columns:
            raise DataError(path, f"{len(fields)} columns instead of {columns}", i)
        for field in fields:
            if not is_number(field.strip(), dtype):
                raise DataError(path, f"{field[:40]!r} is not a number, or too large", i)
    raise DataError(path, "not a table of numbers")


def read_numbers(path, data, columns, line=1, sep=None, dtype=float):
    """Finite numbers from text that starts at `line` of the file; `sep=None` is white space."""
    data = data.rstrip()
    text = io.TextIOWrapper(io.BytesIO(data), encoding="latin-1")
    try:
        X = np.loadtxt(text, dtype, delimiter=sep, ndmin=2, comments=None)
    except ValueError:
        X = np.empty((0, 0))
    if X.shape != (data.count(b"\n") + 1, columns) or not np.isfinite(X).all():
        blame(path, data, columns, line, sep, dtype)
    return X


def cut_header(path, data, columns, start=b"", line=1):
    """Cut the header off: (its names, the rest)."""
    head, _, rest = data.partition(b"\n")
    names = [name.strip().strip('"') for name in head.decode("latin-1").split(",")]
    if len(names) != columns or not head.startswith(start):
        what = f"expected a header of {columns} names that starts with {start.decode()!r}"
        raise DataError(path, what, line)
    if not rest or rest.isspace():
        raise DataError(path, "a header but no rows", line + 1)
    return names, rest


# --- anybody's table: numbers, text and a column of classes ---------------------------------------

def own_table(path, label, header):
    """(inputs, number of categories of each or 0, classes) of a table; arguments: see from_csv."""
    if path.suffix in (".npy", ".npz"):
        X, y = arrays(path, label)
        return X, np.zeros(X.shape[1], int), y
    names, columns, lines = fields(path, header)
    at = position(label, len(columns), names)
    y = columns.pop(at)
    names.pop(at)
    for line, value in zip(lines, y, strict=True):
        if value.lower() in MISSING:
            raise DataError(path, f"{value!r} is not a class", line, FIX)
    inputs = [column(path, c, name, lines) for c, name in zip(columns, names, strict=True)]
    X = np.column_stack([x for x, _ in inputs])
    levels = np.array([n for _, n in inputs])
    with suppress(ValueError):
        y = np.array(y, float)  # so that class 10 comes after class 9
    return X, levels, np.array(y)


def arrays(path, label):
    """X and y of an .npz, or of a 2-d .npy with a column of classes."""
    try:
        with open(path, "rb") as f:
            found = np.load(f, allow_pickle=False)
            X, y = (found["X"], found["y"]) if path.suffix == ".npz" else (found, None)
    except (ValueError, EOFError, KeyError, IndexError, zlib.error, zipfile.BadZipFile) as error:
        advice = "save plain arrays: numpy.savez(path, X=X, y=y)"
        raise DataError(path, f"cannot be read ({error})", advice=advice) from error
    fits = y is None or y.shape == X.shape[:1]
    if X.ndim != 2 or X.dtype.kind not in "biuf" or not X.size or not fits:
        what = f"expected numbers X (rows, columns) and y (rows,), got shape {X.shape}"
        raise DataError(path, what, advice=FIX)
    if y is None:
        at = position(label, X.shape[1])
        X, y = np.delete(X, at, axis=1), X[:, at]
    elif label is not None:
        raise ValueError(f"label: the classes of an .npz are its y, got {label!r}")
    is_nan = y != y
    bad = np.flatnonzero(~np.isfinite(X).all(1) | is_nan)
    if len(bad):
        raise DataError(path, f"row {bad[0]} is not finite", advice=FIX)
    return X.astype(float), y


def position(label, width, names=()):
    """Index of the column of classes."""
    if width < 2:
        raise ValueError(f"path: expected at least two columns, inputs and a class, got {width}")
    if label is None:
        return width - 1
    if isinstance(label, str):
        if label not in names:
            known = ", ".join(map(str, names))
            raise ValueError(f"label: no column {label!r}, expected one of {known}")
        return names.index(label)
    if not isinstance(label, int | np.integer) or not -width <= label < width:
        raise ValueError(f"label: expected a column name or an index below {width}, got {label!r}")
    return label % width


def fields(path, header):
    """(names, columns of text, the line each row is on) of a text file; header: see from_csv."""
    rows, lines = split_rows(path)
    columns = list(zip(*rows, strict=True))
    if header is None:  # names are not numbers, and do not occur again below
        header = len(rows) > 1 and not any(is_number(c[0]) or c[0] in c[1:] for c in columns)
    if not header:
        return list(range(len(columns))), columns, lines
    if len(rows) < 2:
        raise DataError(path, "a header but no rows", lines[0], FIX)
    return rows[0], [c[1:] for c in columns], lines[1:]


def split_rows(path):
    """(rows of fields, their lines); what splits them is seen from the first line."""
    try:
        text = contents(path, (path.stem,)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(path, f"not UTF-8 text ({error})", advice=FIX) from error
    first = text.lstrip().split("\n", 1)[0]
    sep = max(",;\t", key=first.count) if re.search("[,;\t]", first) else " "
    text = re.sub(r"[ \r]+$", "", text, flags=re.MULTILINE)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    rows, lines = [], []
    try:
        for row in reader:
            if row:
                rows.append([field.strip() for field in row])
                lines.append(reader.line_num)
    except csv.Error as error:
        raise DataError(path, str(error), reader.line_num, FIX) from error
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(rows[0]):
            raise DataError(path, f"{len(row)} columns instead of {len(rows[0])}", line, FIX)
    return rows, lines


def column(path, values, name, lines):
    """(numbers, 0) or (codes, how many): text if any field is neither a number nor missing."""
    with suppress(ValueError):  # most columns hold numbers and nothing else
        x = np.array(values, float)
        if np.isfinite(x).all():
            return x, 0
    missing = np.array([value.lower() in MISSING for value in values])
    number = np.array([is_number(value) for value in values])
    if number.any() and (number | missing).all():
        x = np.where(number, values, "nan").astype(float)
        return np.where(number, x, x[number].mean()), 0
    kinds, codes = np.unique(values, return_inverse=True)
    if len(kinds) > 20 and number.mean() > 0.9:
        i = np.flatnonzero(~number & ~missing)[0]
        what = f"{values[i][:40]!r} in column {name!r} is not a number"
        raise DataError(path, what, lines[i], FIX)
    if len(kinds) > max(20, len(values) / 2):
        what = f"column {name!r} has {len(kinds)} texts in {len(values)} rows"
        raise DataError(path, f"{what}, which are no categories", lines[0], "leave the column out")
    return codes, len(kinds)
