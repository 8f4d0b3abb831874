"""Twelve bandit problems as one kind of object: ten real data sets, a text set, the wheel; and your own table.

    python datasets.py                      list every problem and where its data is (or how to get it)
    python datasets.py fetch NAME...|all    download what is missing; check re-reads all that is present
    >>> from datasets import load, from_csv
    >>> load("statlog", steps=5000, seed=1).contexts.shape
    (5000, 9)

A class label becomes a bandit by paying 1 for the arm of the right class and 0 for all others. Preprocessing follows
Riquelme et al. (2018), "Deep Bayesian Bandits Showdown", whose rows are also the ones used by Zahavy & Mannor (2019):
categories are one-hot, inputs are standardized on the rows drawn (except Mushroom, Financial and Jester).
"""
import csv
import gzip
import hashlib
import io
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BUNDLE = Path(__file__).resolve().parent / "data"
GOOGLE = "https://storage.googleapis.com/bandits_datasets/"
UCI = "https://archive.ics.uci.edu/static/public/"
AGAIN = "delete the file and get it again (`python datasets.py` says how)"


class DataError(ValueError):
    """A data file that cannot be used: names the file and line, and says what to do."""

    def __init__(self, path, what, line=None, advice=AGAIN):
        super().__init__(f"{path}{f', line {line}' if line else ''}: {what}; {advice}")


class MissingData(DataError):
    """The data set is neither bundled nor in any of the folders searched."""


@dataclass(frozen=True)
class Problem:
    """A bandit problem with all its outcomes laid out; an agent may look only at the rewards of arms it plays."""
    name: str
    contexts: np.ndarray           # (T, dim); of the text set: integer ids, 0 is padding
    rewards: np.ndarray            # (T, n_arms): what each arm would have paid
    optimal: np.ndarray            # (T,): expected reward of the best arm
    vocabulary: int | None = None  # text only: ids are below this

    @property
    def n_arms(self):
        return self.rewards.shape[1]

    @property
    def dim(self):
        return self.contexts.shape[1]

    def __len__(self):
        return len(self.contexts)


@dataclass(frozen=True)
class Table:
    """A whole file: features, class 0..n_arms-1 of each row, and the number of categories of a column (0: a number)."""
    X: np.ndarray
    y: np.ndarray
    levels: np.ndarray


# --- reading: bytes to arrays -------------------------------------------------------------------------------------

def contents(path, names, data=None):
    """Bytes of the first of `names` in `path`: the file itself, its .gz, or a member of a .zip, also one zip deeper."""
    data = Path(path).read_bytes() if data is None else data
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        elif data[:4] == b"PK\x03\x04":
            return from_zip(path, names, data)
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(path, f"broken archive ({error})") from error
    if not data.strip():
        raise DataError(path, "the file is empty", 1)
    if data[:200].lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(path, "a web page, not data", 1)
    return data


def from_zip(path, names, data):
    """Read in memory, so nothing is ever extracted; a name that points outside the archive means it is not the host's."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            if member.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", member) or member[1:2] == ":":
                raise DataError(path, f"unsafe name {member!r} in the archive")
        wanted = {os.path.basename(n) + end for n in names for end in ("", ".gz")}
        for member in archive.namelist():
            if os.path.basename(member) in wanted:
                return contents(f"{path}:{member}", names, archive.read(member))
        for member in archive.namelist():
            if member.endswith(".zip"):
                return contents(f"{path}:{member}", names, archive.read(member))
    raise DataError(path, f"no {' or '.join(sorted(wanted))} in the archive")


INTEGER = re.compile(rb"-?\d{1,9}")
REAL = re.compile(rb"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


def blame(path, data, columns, line, sep, number):
    """Find the line at fault. Slow, but only ever run on a file that is already known to be bad."""
    for i, row in enumerate(data.split(b"\n"), line):
        fields = row.split(sep)
        if len(fields) != columns:
            raise DataError(path, f"{len(fields)} columns instead of {columns}", i)
        for field in fields:
            if not number.fullmatch(field):
                raise DataError(path, f"{field.decode('latin-1')[:40]!r} is not {'an integer' if number is INTEGER else 'a number'}", i)
    raise DataError(path, "not a table of numbers", line)


def integers(path, data, columns, line=1, sep=b",", block=1 << 22):
    """Integer table from text, a block of whole lines at a time and without a loop over rows.

    A field's value is the sum of its digits times powers of ten, and fields longer than k digits are few for large k.
    """
    data = data.replace(b"\r\n", b"\n").rstrip() + b"\n"
    buffer, tables, start = np.frombuffer(data, np.uint8), [], 0
    while start < len(data):
        stop = data.rfind(b"\n", start, start + block) + 1 or data.find(b"\n", start + block) + 1
        text = buffer[start:stop]
        newline = text == 10
        end = np.flatnonzero(newline | (text == ord(sep)))       # where each field ends
        digit = text - np.uint8(48)                              # anything else wraps to more than 9
        begin = np.concatenate([[0], end[:-1] + 1])
        negative = text[begin] == ord("-")
        size = end - begin - negative
        whole = len(end) % columns == 0 and newline[end[columns - 1::columns]].all() and newline.sum() * columns == len(end)
        if not whole or size.min() < 1 or size.max() > 9 or (digit < 10).sum() != size.sum():
            blame(path, data[:-1], columns, line, sep, INTEGER)
        value = digit[end - 1].astype(np.int32)
        for k in range(1, size.max()):
            long = np.flatnonzero(size > k)
            value[long] += digit[end[long] - 1 - k] * np.int32(10 ** k)
        value[negative] *= -1
        tables.append(value.reshape(-1, columns))
        start = stop
    return np.concatenate(tables)


def reals(path, data, columns, line=1, sep=None):
    """Table of finite numbers from text; `sep=None` is any white space."""
    data = data.replace(b"\r\n", b"\n").rstrip()
    try:
        table = np.loadtxt(io.StringIO(data.decode("latin-1")), delimiter=sep and sep.decode(), ndmin=2, comments=None)
    except ValueError:
        blame(path, data, columns, line, sep, REAL)
    if table.shape[1] != columns or not np.isfinite(table).all():
        blame(path, data, columns, line, sep, REAL)
    return table


def classes(path, y, n_arms, line, first=0):
    """Labels first..first+n_arms-1 as arms 0..n_arms-1."""
    bad = np.flatnonzero((y < first) | (y >= first + n_arms) | (y % 1 != 0))
    if len(bad):
        raise DataError(path, f"unknown class {y[bad[0]]:g}, expected {first} to {first + n_arms - 1}", line + bad[0])
    return (y - first).astype(np.int8)


def numbers(X, y):
    """Table of numeric columns in the smallest type that holds them exactly."""
    if X.dtype.kind == "i":
        low, high = X.min(), X.max()
        X = X.astype(next(t for t in (np.int8, np.int16, np.int32) if np.iinfo(t).min <= low and high <= np.iinfo(t).max))
    return Table(X, y, np.zeros(X.shape[1], np.int64))


def header(path, data, start):
    """Cut a header line that must start so: (its fields, the rest)."""
    head, _, rest = data.partition(b"\n")
    if not head.startswith(start):
        raise DataError(path, f"the header does not start with {start.decode()!r}", 1)
    if not rest.strip():
        raise DataError(path, "a header but no rows", 2)
    return [h.strip().strip('"') for h in head.decode("latin-1").split(",")], rest


# --- one reader a format: paths and bytes to a Table --------------------------------------------------------------

def bundled(name):
    """Columns of data/NAME.npz, text ones as (codes, values)."""
    with np.load(BUNDLE / f"{name}.npz", allow_pickle=False) as z:
        return [(z[c], z[f"{c}_values"]) if f"{c}_values" in z else z[c] for c in z.files if "_" not in c]


def statlog():
    *X, y = bundled("statlog")
    trn = slice(43_500)  # the file shuttle.trn, as in the paper's code; shuttle.tst is the rest of the bundled rows
    return numbers(np.column_stack(X)[trn].astype(np.int32), classes("statlog", y[trn], 7, 1, first=1))


def mushroom():
    (y, _), *X = bundled("mushroom")  # edible 0, poisonous 1
    return Table(np.column_stack([codes for codes, _ in X]), y, np.array([len(values) for _, values in X]))


def adult():
    """Without rows that miss a value, and without occupation, as in the paper's code."""
    columns = bundled("adult")
    keep = np.all([c[0] != list(c[1]).index("?") for c in columns if type(c) is tuple and "?" in c[1]], axis=0)
    X, levels = [], []
    for column in columns[:6] + columns[7:14]:
        if type(column) is tuple:
            values, column = np.unique(column[0][keep], return_inverse=True)
            levels.append(len(values))
        else:
            column = column[keep]
            levels.append(0)
        X.append(column.astype(np.int32))
    return Table(np.column_stack(X), columns[14][0][keep].astype(np.int8), np.array(levels))


def financial(file):
    path, data = file
    head, _, rest = data.partition(b"\n")
    X = reals(path, rest, len(head.split(b",")), 2)
    return numbers(X, np.zeros(len(X), np.int8))


def jester(file):
    path, data = file
    try:
        X = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(path, f"not a plain .npy array ({error})") from error
    if X.ndim != 2 or X.shape[1] != 40 or X.dtype.kind != "f" or not np.isfinite(X).all():
        raise DataError(path, f"{X.dtype} of shape {X.shape} instead of finite ratings of 40 jokes")
    return numbers(X, np.zeros(len(X), np.int8))


def covertype(file):
    path, data = file
    table = integers(path, data, 55)
    return numbers(table[:, :54], classes(path, table[:, 54], 7, 1, first=1))


def census(file):
    path, data = file
    names, rest = header(path, data, b"caseid,")
    table = integers(path, rest, len(names), 2)
    if "dOccup" not in names:
        raise DataError(path, "no column dOccup", 1)
    y = names.index("dOccup")
    labels = classes(path, table[:, y], 9, 2)
    X = np.delete(table, [0, y], axis=1)
    bad = np.flatnonzero(((X < 0) | (X > 9999)).any(1))
    if len(bad):
        raise DataError(path, "a category outside 0 to 9999", 2 + bad[0])
    levels = np.zeros(X.shape[1], np.int64)
    for j in range(X.shape[1]):  # codes without gaps, over the whole file: dimensions do not depend on the rows drawn
        seen = np.bincount(X[:, j]) > 0
        X[:, j], levels[j] = (np.cumsum(seen) - 1)[X[:, j]], seen.sum()
    return Table(X.astype(np.int16), labels, levels)


def epileptic(file):
    path, data = file
    names, rest = header(path, data, b"")
    rest = re.sub(rb"^[^,\n]*,", b"", rest, flags=re.M)  # without the recording's name
    table = integers(path, rest, 179, 2)
    return numbers(table[:, :178], classes(path, table[:, 178], 5, 2, first=1))


def smartphones(*files):
    (X1, y1), (X2, y2) = [(reals(*files[i], 561), reals(*files[i + 1], 1)[:, 0]) for i in (0, 2)]
    for (path, _), X, y in ((files[0], X1, y1), (files[2], X2, y2)):
        if len(X) != len(y):
            raise DataError(path, f"{len(X)} rows, but {len(y)} labels", len(X))
    y = [classes(files[i][0], labels, 6, 1, first=1) for i, labels in ((1, y1), (3, y2))]
    return numbers(np.concatenate([X1, X2]), np.concatenate(y))


def scania(file):
    path, data = file
    before, start, rest = data.partition(b"class,")  # UCI's file opens with 20 lines of license
    if not start:
        raise DataError(path, "no header that starts with 'class,'", 1)
    names, rest = header(path, start + rest, b"class,")
    line = before.count(b"\n") + 2
    rest = (b"\n" + rest).replace(b"\nneg,", b"\n0,").replace(b"\npos,", b"\n1,").replace(b",na", b",0")[1:]
    table = reals(path, rest, 171, line, sep=b",")  # a missing value is 0, as in the paper's code
    return numbers(table[:, 1:], classes(path, table[:, 0], 2, line))


# --- text ---------------------------------------------------------------------------------------------------------

PAD, UNKNOWN = 0, 1


def tokenize(text):
    """Lower-case words, with apostrophes; . , ! and ? are words too."""
    return re.findall(r"[a-z0-9]+(?:'[a-z]+)?|[.,!?]", text.lower())


def vocabulary(texts):
    """Id of every word, by first appearance; 0 and 1 are padding and unknown words."""
    words = dict.fromkeys(word for text in texts for word in tokenize(text))
    return {word: i for i, word in enumerate(words, UNKNOWN + 1)}


def encode(texts, ids, length=60):
    """(len(texts), length) ids: each text cut or padded at its end."""
    out = np.full((len(texts), length), PAD)
    for row, text in zip(out, texts):
        found = [ids.get(word, UNKNOWN) for word in tokenize(text)[:length]]
        row[:len(found)] = found
    return out


def amazon(file):
    """Reviews and their stars; rows without a review are left out."""
    path, data = file
    reader = csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline=""), strict=True)
    texts, stars = [], []
    try:
        head = next(reader)
        if "Rating" not in head or "Reviews" not in head:
            raise DataError(path, "the header lacks Rating or Reviews", 1)
        rating, review = head.index("Rating"), head.index("Reviews")
        for row in reader:
            if len(row) != len(head):
                raise DataError(path, f"{len(row)} columns instead of {len(head)}", reader.line_num)
            if row[rating] not in ("1", "2", "3", "4", "5"):
                raise DataError(path, f"unknown class {row[rating][:40]!r}, expected 1 to 5", reader.line_num)
            if row[review].strip():
                texts.append(row[review])
                stars.append(int(row[rating]) - 1)
    except csv.Error as error:
        raise DataError(path, str(error), reader.line_num) from error
    if not texts:
        raise DataError(path, "a header but no reviews", 2)
    return Table(np.array(texts, object), np.array(stars, np.int8), np.zeros(0, np.int64))


# --- the problems -------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Source:
    """What is known of a data set. `files`: for each file needed, the names it goes by; `url` a file or a zip."""
    name: str
    read: Callable
    arms: int
    dim: int
    rows: int
    files: tuple = ()
    archives: tuple = ()
    url: str = ""
    sha256: str = ""
    page: str = ""
    scale: bool = True


HAR = tuple((f"UCI HAR Dataset/{part}/{x}_{part}.txt", f"{part}/{x}_{part}.txt", f"{x}_{part}.txt")
            for part in ("train", "test") for x in "Xy")
SOURCES = {s.name: s for s in (
    Source("mushroom", mushroom, 2, 117, 8124, scale=False),
    Source("financial", financial, 8, 21, 3713, (("raw_stock_contexts",),), (), GOOGLE + "raw_stock_contexts",
           "cf468e5aae150dfd5c6b096464cd11e85f8b01198f8e49bedb941948850a6315", scale=False),
    Source("jester", jester, 8, 32, 19_181, (("jester_data_40jokes_19181users.npy",),), (),
           GOOGLE + "jester_data_40jokes_19181users.npy", scale=False),
    Source("adult", adult, 2, 90, 45_222),
    Source("covertype", covertype, 7, 54, 581_012, (("covtype.data",),), ("covertype.zip",), GOOGLE + "covtype.data",
           "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"),
    Source("census", census, 9, 389, 2_458_285, (("USCensus1990.data.txt",),), ("us+census+data+1990.zip",),
           GOOGLE + "USCensus1990.data.txt", "38e99f50855ddc03167b715b36519ef40b77295ae4e85dfef0c6429ac79ed799"),
    Source("statlog", statlog, 7, 9, 43_500),
    Source("epileptic", epileptic, 5, 178, 11_500, (("data.csv", "Epileptic Seizure Recognition.csv"),), ("archive.zip",),
           page="https://www.kaggle.com/datasets/harunshimanto/epileptic-seizure-recognition"),
    Source("smartphones", smartphones, 6, 561, 10_299, HAR,
           ("UCI HAR Dataset.zip", "human+activity+recognition+using+smartphones.zip"),
           UCI + "240/human+activity+recognition+using+smartphones.zip"),
    Source("scania", scania, 2, 170, 60_000, (("aps_failure_training_set.csv",),), ("aps+failure+at+scania+trucks.zip",),
           UCI + "421/aps+failure+at+scania+trucks.zip"),
    Source("amazon", amazon, 5, 60, 413_840, (("Amazon_Unlocked_Mobile.csv",),), ("archive.zip",),
           page="https://www.kaggle.com/datasets/PromptCloudHQ/amazon-reviews-unlocked-mobile-phones"),
)}
NAMES = (*SOURCES, "wheel")


def cache_dir():
    """Per-user folder for downloads and parsed tables."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlts"


def folders(data_dir=None):
    """Where data is looked for, in this order."""
    return [Path(d).expanduser() for d in (data_dir, os.environ.get("NLTS_DATA"), cache_dir()) if d]


def locate(source, data_dir=None):
    """Path of each of the source's files (the same archive may hold several), or None if one is nowhere."""
    for folder in folders(data_dir):
        archives = [folder / a for a in source.archives]
        found = [next((p for p in [folder / (n + end) for end in ("", ".gz", ".zip") for n in names] + archives
                       if p.is_file()), None) for names in source.files]
        if all(found):
            return found
    return None


def table(source, data_dir=None):
    """The whole data set; text is parsed once and kept as binary in the per-user cache."""
    if not source.files:
        return source.read()
    paths = locate(source, data_dir)
    if paths is None:
        raise MissingData(" or ".join(source.files[0]), f"not in {', '.join(map(str, folders(data_dir)))}", advice=how_to_get(source))
    files = [(path, names) for path, names in zip(paths, source.files)]
    stats = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    key = hashlib.sha256(repr(stats).encode()).hexdigest()[:16]
    cached = cache_dir() / "parsed" / f"{source.name}-{key}.npy"
    try:
        with open(cached, "rb") as f:
            return Table(*(np.load(f, allow_pickle=False) for _ in range(3)))
    except (OSError, ValueError, EOFError):
        pass  # not parsed before, or the cache was damaged
    result = source.read(*((path, contents(path, names)) for path, names in files))
    if result.X.dtype != object:
        keep(cached, result)
    return result


def keep(cached, table):
    """Write whole or not at all; a cache that cannot be written costs time, nothing else."""
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cached.parent, delete=False) as f:
            for array in (table.X, table.y, table.levels):
                np.save(f, array, allow_pickle=False)
        os.replace(f.name, cached)
    except OSError:
        pass


def how_to_get(source):
    return f"run: python datasets.py fetch {source.name}" if source.url else f"download it from {source.page} into {folders()[0]}"


def one_hot(X, levels):
    """(T, dim) float64: numbers as they are, a category as one column a value."""
    if not levels.any():
        return X.astype(np.float64)
    columns = [x[:, None] == np.arange(n) if n else x[:, None] for x, n in zip(X.T, levels)]
    return np.concatenate(columns, axis=1, dtype=np.float64)


def standardize(X):
    """Zero mean and unit variance a column, in place; a constant column becomes 0."""
    X -= X.mean(0)
    sd = X.std(0)
    X /= np.where(sd > 0, sd, 1)
    return X


def at_least_one(steps):
    if not isinstance(steps, (int, np.integer)) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"steps: expected a whole number of at least 1, got {steps!r}")


def draw(source_name, rows, steps, rng, replace=False):
    """`steps` of the rows in random order."""
    steps = rows if steps is None else steps
    at_least_one(steps)
    if steps > rows and not replace:
        raise ValueError(f"steps: {steps} asked for, but {source_name} has {rows} rows")
    return rng.integers(rows, size=steps) if replace else rng.permutation(rows)[:steps]


def classification(name, X, y, n_arms, vocabulary=None):
    """Arm i pays 1 if the class is i, else 0."""
    return Problem(name, X, np.eye(n_arms)[y], np.ones(len(y)), vocabulary)


def load(name, steps=None, seed=0, data_dir=None):
    """A problem of the paper by name. Each seed draws its own rows, order and random rewards.

    steps: rows to draw without replacement (Mushroom: with), all by default; data_dir: looked in before $NLTS_DATA
    and the per-user cache.
    """
    key = str(name).lower()
    if key not in NAMES:
        raise ValueError(f"name: unknown problem {name!r}, expected one of {', '.join(NAMES)}")
    if key == "wheel":
        return wheel(steps=4000 if steps is None else steps, seed=seed)
    source, rng = SOURCES[key], np.random.default_rng(seed)
    t = table(source, data_dir)
    rows = draw(key, len(t.y), steps, rng, replace=key == "mushroom")
    y = t.y[rows]
    if key == "amazon":
        texts = t.X[rows]
        ids = vocabulary(texts)
        return classification(key, encode(texts, ids), y, source.arms, len(ids) + UNKNOWN + 1)
    X = one_hot(t.X[rows], t.levels)
    if key == "mushroom":  # arm 0 leaves it, arm 1 eats it: a poisonous one pays 5 or -35, a loss of 15 in expectation
        eat = np.where(y == 0, 5, rng.choice([5, -35], len(y)))
        return Problem(key, X, np.column_stack([np.zeros(len(y)), eat]), np.where(y == 0, 5.0, 0.0))
    if key == "financial":  # 8 portfolios of the 21 stocks, noisier one by one
        beta = rng.uniform(-1, 1, (X.shape[1], source.arms))
        mean = X @ (beta / np.linalg.norm(beta, axis=0))
        return Problem(key, X, rng.normal(mean, 0.01 * np.arange(1, source.arms + 1)), mean.max(1))
    if key == "jester":  # ratings of 32 jokes are the context, of the other 8 the rewards
        X = X[:, rng.permutation(40)]
        return Problem(key, X[:, :32], X[:, 32:], X[:, 32:].max(1))
    return classification(key, standardize(X), y, source.arms)


def wheel(delta=0.5, steps=4000, seed=0, mu=0.1, mu5=0.2, mudot=0.4, sigma=0.1):
    """Wheel bandit: arm 5 pays mu5 on average; arms 1-4 pay mu, but mudot in their quadrant of the disc |x| <= delta."""
    if not 0 <= delta <= 1:
        raise ValueError(f"delta: expected a radius between 0 and 1, got {delta!r}")
    if not sigma >= 0:
        raise ValueError(f"sigma: expected a standard deviation of at least 0, got {sigma!r}")
    at_least_one(steps)
    rng = np.random.default_rng(seed)
    radius, angle = np.sqrt(rng.uniform(size=steps)), rng.uniform(0, 2 * np.pi, steps)  # sqrt: uniform in area
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    mean = np.full((steps, 5), float(mu))
    mean[:, 4] = mu5
    inside = np.flatnonzero(radius <= delta)
    mean[inside, (angle[inside] // (np.pi / 2)).astype(int) % 4] = mudot  # arm i has quadrant i
    return Problem("wheel", X, rng.normal(mean, sigma), mean.max(1))
