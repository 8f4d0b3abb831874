"""Twelve bandit problems as one kind of object: ten real data sets, a text set, the wheel; and your own table.

    python datasets.py                      list every problem and where its data is, or how to get it
    python datasets.py fetch NAME...|all    download what is missing
    python datasets.py check                re-read everything that is present
    python datasets.py benchmark            time loading against numpy.loadtxt
    >>> from datasets import load, from_csv
    >>> load("statlog", steps=5000, seed=1).contexts.shape
    (5000, 9)

A class label becomes a bandit by paying 1 for the arm of the right class and 0 for all others. Preprocessing follows
Riquelme et al. (2018), "Deep Bayesian Bandits Showdown", whose rows are also the ones used by Zahavy & Mannor (2019):
categories are one-hot, inputs are standardized on the rows drawn (except Mushroom, Financial and Jester).
"""
import argparse
import csv
import gzip
import hashlib
import http.client
import io
import os
import re
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BUNDLE = Path(__file__).resolve().parent / "data"
GOOGLE = "https://storage.googleapis.com/bandits_datasets/"
UCI = "https://archive.ics.uci.edu/static/public/"
RESTORE = "restore it: git checkout -- data"
AGAIN = "delete the file and get it again (of the paper's data, `python datasets.py` says how)"


class DataError(ValueError):
    """A data file that cannot be used: names the file and line, and says what to do."""

    def __init__(self, path, what, line=None, advice=AGAIN):
        super().__init__(f"{path}{f', line {line}' if line else ''}: {what}; {advice}")


class MissingData(DataError):
    """The data set is neither bundled nor in any of the folders searched."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A bandit problem with all its outcomes laid out; an agent may look only at the rewards of arms it plays."""
    name: str
    contexts: np.ndarray           # (T, dim); of the text set: integer ids, 0 is padding
    rewards: np.ndarray            # (T, n_arms): what each arm would have paid
    optimal: np.ndarray            # (T,): expected reward of the best arm
    vocabulary: int | None = None  # text only: ids are below this
    labels: tuple | None = None    # own tables only: the class each arm stands for

    @property
    def n_arms(self):
        return self.rewards.shape[1]

    @property
    def dim(self):
        return self.contexts.shape[1]

    def __len__(self):
        return len(self.contexts)


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a data set."""
    X: np.ndarray       # (rows, columns) inputs: numbers, or codes of categories
    y: np.ndarray       # (rows,) classes from 0
    levels: np.ndarray  # (columns,) number of categories, 0 for a number


# --- reading: a file to a table ----------------------------------------------------------------------------------

def contents(path, names, data=None):
    """Bytes of the file `path`, unpacked: a .gz, or the first of `names` in a .zip or in a .zip inside it."""
    data = Path(path).read_bytes() if data is None else data
    try:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        elif data.startswith(b"PK\x03\x04"):
            return unzipped(path, names, data)
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:  # RuntimeError: encrypted
        raise DataError(path, f"broken archive ({error})") from error
    if not data or data.isspace():
        raise DataError(path, "the file is empty", 1)
    if data[:200].lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(path, "a web page, not data", 1)
    return data


def unzipped(path, names, data):
    """Nothing is extracted to disk; a name that points outside the archive still means it is not the host's."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.namelist()
        for member in members:
            if member.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", member) or member[1:2] == ":":
                raise DataError(path, f"unsafe name {member!r} in the archive")
        wanted = {os.path.basename(name) + end for name in names for end in ("", ".gz")}
        for member in sorted(members, key=lambda m: m.endswith(".zip")):  # a zip in the zip only if nothing else fits
            if os.path.basename(member) in wanted or member.endswith(".zip"):
                return contents(f"{path}:{member}", names, archive.read(member))
    raise DataError(path, f"no {' or '.join(sorted(wanted))} in the archive")


def is_number(field, integer=False):
    """Neither nan nor 1_000, which float() accepts, nor too large."""
    if integer:
        return bool(re.fullmatch(r"-?\d{1,9}", field, re.ASCII))
    return bool(re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", field, re.ASCII)) and np.isfinite(float(field))


def blame(path, data, columns, line, sep, integer=False):
    """Raise at the first bad line. Slow, but only run on a file that is already known to be bad."""
    for i, row in enumerate(data.decode("latin-1").split("\n"), line):
        fields = row.split(sep)
        if len(fields) != columns:
            raise DataError(path, f"{len(fields)} columns instead of {columns}", i)
        for field in fields:
            if not is_number(field, integer):
                raise DataError(path, f"{field[:40]!r} is not a number, or too large", i)
    raise DataError(path, "not a table of numbers")


def integers(path, data, columns, line=1, sep=",", block=1 << 18):
    """Integer table from text without a loop over rows: blocks of whole lines that fit the processor's cache.

    A field's value is the sum of its digits times powers of ten; the more digits, the fewer fields have them.
    """
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if not data.endswith(b"\n") or data[-2:].isspace():
        data = data.rstrip() + b"\n"
    buffer, start, row = np.frombuffer(data, np.uint8), 0, 0
    table = np.empty((data.count(b"\n"), columns), np.int32)
    while start < len(data):
        stop = data.rfind(b"\n", start, start + block) + 1 or data.find(b"\n", start) + 1
        text = buffer[start:stop]
        newline = text == ord("\n")
        end = np.flatnonzero(newline | (text == ord(sep)))  # where each field ends
        begin = np.concatenate([[0], end[:-1] + 1])
        negative = text[begin] == ord("-")
        digits = end - begin - negative                     # how many each field has
        digit = text - np.uint8(ord("0"))                   # anything but a digit wraps to 10 or more
        if not (newline.sum() * columns == len(end) and newline[end[columns - 1::columns]].all()
                and digits.min() > 0 and digits.max() < 10 and (digit < 10).sum() == digits.sum()):
            blame(path, data[:-1], columns, line, sep, integer=True)
        value = digit[end - 1].astype(np.int32)
        for k in range(1, digits.max()):
            longer = np.flatnonzero(digits > k)
            value[longer] += digit[end[longer] - 1 - k] * np.int32(10 ** k)
        value[negative] *= -1
        rows = len(end) // columns
        table[row:row + rows] = value.reshape(rows, columns)
        start, row = stop, row + rows
    return table


def reals(path, data, columns, line=1, sep=None):
    """Table of finite numbers from text; `sep=None` is any white space."""
    data = data.replace(b"\r\n", b"\n").rstrip()
    try:
        X = np.loadtxt(io.StringIO(data.decode("latin-1")), delimiter=sep, ndmin=2, comments=None)
    except ValueError:
        X = np.empty((0, 0))
    if X.shape != (data.count(b"\n") + 1, columns) or not np.isfinite(X).all():
        blame(path, data, columns, line, sep)
    return X


def header(path, data, columns, start=b"", line=1):
    """Cut the header off: (its names, the rest)."""
    head, _, rest = data.partition(b"\n")
    names = [name.strip().strip('"') for name in head.decode("latin-1").split(",")]
    if len(names) != columns or not head.startswith(start):
        raise DataError(path, f"expected a header of {columns} names that starts with {start.decode()!r}", line)
    if not rest or rest.isspace():
        raise DataError(path, "a header but no rows", line + 1)
    return names, rest


def classes(path, y, n_arms, line=1, first=1):
    """Labels first..first+n_arms-1 as arms 0..n_arms-1."""
    bad = np.flatnonzero((y < first) | (y >= first + n_arms) | (y % 1 != 0))
    if len(bad):
        raise DataError(path, f"unknown class {y[bad[0]]:g}, expected {first} to {first + n_arms - 1}", line + bad[0])
    return (y - first).astype(np.int8)


def numeric(X, y=None):
    """Table of numbers, integers in the smallest type that holds them."""
    most = max(X.max(), -X.min())
    fits = [t for t in (np.int8, np.int16) if X.dtype.kind == "i" and most <= np.iinfo(t).max]
    y = np.zeros(len(X), np.int8) if y is None else y
    return Table(X.astype(fits[0]) if fits else X, y, np.zeros(X.shape[1], int))


def categorical(X):
    """Codes without gaps, in place, and how many each column has: over all rows, so they do not depend on a draw."""
    seen, column = np.zeros((X.shape[1], X.max() + 1), bool), np.arange(X.shape[1])
    blocks = [X[i:i + 8192] for i in range(0, len(X), 8192)]  # views that fit the processor's cache
    for block in blocks:
        seen[column, block] = True
    codes = np.cumsum(seen, axis=1, dtype=X.dtype) - 1
    for block in blocks:
        block[:] = codes[column, block]
    return X, seen.sum(1)


def bundled(name):
    """Columns of data/NAME.npz; of text, codes and their values."""
    path = BUNDLE / f"{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as z:
            return [(z[c], list(z[f"{c}_values"])) if f"{c}_values" in z else z[c] for c in z.files if "_" not in c]
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(path, f"damaged ({error})", advice=RESTORE) from error


def statlog():
    """The rows of shuttle.trn, as in the paper's code; the other 14,500 bundled rows are shuttle.tst."""
    *X, y = (column[:43_500] for column in bundled("statlog"))
    return numeric(np.column_stack(X), classes("statlog", y, 7))


def mushroom():
    (y, _), *X = bundled("mushroom")  # edible 0, poisonous 1
    return Table(np.column_stack([codes for codes, _ in X]), y, np.array([len(values) for _, values in X]))


def adult():
    """As the paper's code: without rows that miss a value, and without the column occupation."""
    columns = bundled("adult")
    text = {i: column for i, column in enumerate(columns) if type(column) is tuple}
    keep = np.all([codes != values.index("?") for codes, values in text.values() if "?" in values], axis=0)
    occupation, income = 6, 14
    codes = np.column_stack([text[i][0][keep] for i in text if i not in (occupation, income)])
    codes, levels = categorical(codes)
    numbers = np.column_stack([column[keep] for i, column in enumerate(columns) if i not in text])
    levels = np.concatenate([np.zeros(numbers.shape[1], int), levels])
    return Table(np.hstack([numbers, codes]), text[income][0][keep].astype(np.int8), levels)


def financial(file):
    path, data = file
    return numeric(reals(path, header(path, data, 21)[1], 21, 2))


def jester(file):
    path, data = file
    try:
        X = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(path, f"not a plain .npy array ({error})") from error
    if X.ndim != 2 or X.shape[1] != 40 or X.dtype.kind != "f" or not np.isfinite(X).all():
        raise DataError(path, f"{X.dtype} of shape {X.shape} instead of finite ratings of 40 jokes")
    return numeric(X)


def covertype(file):
    path, data = file
    table = integers(path, data, 55)
    return numeric(table[:, :54], classes(path, table[:, 54], 7))


def census(file):
    """All columns are categories."""
    path, data = file
    names, rest = header(path, data, 69, b"caseid,")
    table = integers(path, rest, 69, 2)
    if "dOccup" not in names:
        raise DataError(path, "no column dOccup", 1)
    occupation = names.index("dOccup")
    y, X = classes(path, table[:, occupation], 9, 2, first=0), table[:, 1:]
    if X.min() < 0 or X.max() > 999:
        line = 2 + np.flatnonzero(((X < 0) | (X > 999)).any(1))[0]
        raise DataError(path, "a category outside 0 to 999", line)
    X = np.concatenate([table[:, 1:occupation], table[:, occupation + 1:]], 1, dtype=np.int16, casting="unsafe")
    X, levels = categorical(X)
    return Table(X, y, levels)


def epileptic(file):
    path, data = file
    _, rest = header(path, data, 180)
    table = integers(path, re.sub(rb"^[^,\n]*,", b"0,", rest, flags=re.MULTILINE), 180, 2)  # the recording's name is not used
    return numeric(table[:, 1:179], classes(path, table[:, 179], 5, 2))


def smartphones(*files):
    X, y = [reals(*file, 561) for file in files[::2]], [reals(*file, 1)[:, 0] for file in files[1::2]]
    for (path, _), X_part, y_part in zip(files[1::2], X, y):
        if len(X_part) != len(y_part):
            raise DataError(path, f"{len(y_part)} labels for {len(X_part)} rows of inputs", len(y_part))
    y = [classes(path, labels, 6) for (path, _), labels in zip(files[1::2], y)]
    return numeric(np.concatenate(X), np.concatenate(y))


def scania(file):
    """UCI's file opens with 20 lines on its license; a missing value becomes 0, as in the paper's code."""
    path, data = file
    start = re.search(rb"^class,|\Z", data, re.MULTILINE).start()
    line = data.count(b"\n", 0, start) + 1
    _, rest = header(path, data[start:], 171, b"class,", line)
    if unknown := re.search(rb"^(?!neg,|pos,)[^,\s]+", rest, re.MULTILINE):
        at = rest.count(b"\n", 0, unknown.start()) + line + 1
        raise DataError(path, f"unknown class {unknown[0].decode('latin-1')[:40]!r}, expected neg or pos", at)
    rest = re.sub(rb"^neg,", b"0,", rest, flags=re.MULTILINE)
    rest = re.sub(rb"^pos,", b"1,", rest, flags=re.MULTILINE).replace(b",na", b",0")
    table = reals(path, rest, 171, line + 1, sep=",")
    return numeric(table[:, 1:], table[:, 0].astype(np.int8))


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
    reader = csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline=""))
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
    return Table(np.array(texts, object)[:, None], np.array(stars, np.int8), np.zeros(1, int))


# --- drawing: a table to a problem --------------------------------------------------------------------------------

def one_hot(X, levels):
    """(T, dim) float64: numbers as they are, a category as one column a value."""
    if not levels.any():
        return X.astype(np.float64)
    columns = [x[:, None] == np.arange(n) if n else x[:, None] for x, n in zip(X.T, levels)]
    return np.concatenate(columns, axis=1, dtype=np.float64)


def standardize(X):
    """Zero mean and unit variance a column, in place; a constant column becomes exactly 0."""
    X -= X[0].copy()  # else rounding could leave a constant column a spread of 1e-17, to be blown up to 1
    X -= X.mean(0)
    sd = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X /= np.where(sd > 0, sd, 1)
    return X


def draw(what, rows, steps, rng, replace=False):
    """Indices of `steps` rows in random order."""
    steps = rows if steps is None else whole("steps", steps, 1)
    if steps > rows and not replace:
        raise ValueError(f"steps: {steps} asked for, but {what} has only {rows}")
    return rng.integers(rows, size=steps) if replace else rng.permutation(rows)[:steps]


def whole(name, value, least):
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def classify(name, X, y, n_arms, rng=None, **more):
    """Arm i pays 1 if the class is i, else 0."""
    return Problem(name, X, np.eye(n_arms)[y], np.ones(len(y)), **more)


def eat(name, X, y, n_arms, rng):
    """Arm 0 leaves the mushroom, arm 1 eats it: 5 if edible, else 5 or -35 with equal chances, so -15 on average."""
    pay = np.where(y == 0, 5, rng.choice([5, -35], len(y)))
    return Problem(name, X, np.column_stack([np.zeros(len(y)), pay]), np.where(y == 0, 5.0, 0.0))


def invest(name, X, y, n_arms, rng):
    """Each arm is a portfolio of the stocks, each noisier than the one before."""
    beta = rng.uniform(-1, 1, (X.shape[1], n_arms))
    mean = X @ (beta / np.linalg.norm(beta, axis=0))
    return Problem(name, X, rng.normal(mean, 0.01 * np.arange(1, n_arms + 1)), mean.max(1))


def joke(name, X, y, n_arms, rng):
    """A user's ratings: of 8 jokes the rewards, of the other 32 the context."""
    X = X[:, rng.permutation(X.shape[1])]
    return Problem(name, X[:, n_arms:], X[:, :n_arms], X[:, :n_arms].max(1))


def review(name, X, y, n_arms, rng):
    """Reviews as word ids; the vocabulary is that of the reviews drawn."""
    ids = vocabulary(X[:, 0])
    return classify(name, encode(X[:, 0], ids), y, n_arms, vocabulary=len(ids) + UNKNOWN + 1)


@dataclass(frozen=True)
class Source:
    """All that is known of a data set; every command below goes by these."""
    name: str
    read: Callable         # files -> Table
    rows: int              # of the complete data set
    dim: int               # as in the paper's table of results
    arms: int
    files: tuple = ()      # for each file, the names it goes by; none: bundled
    archives: tuple = ()   # zips that hold the files
    url: str = ""          # the file, or one of the archives; none: `page` is where a person gets it
    page: str = ""
    sha256: str = ""       # of the first file, unpacked, or of the bundled .npz
    pay: Callable = classify
    scale: bool = True     # standardize the inputs


HAR = tuple((f"UCI HAR Dataset/{part}/{x}_{part}.txt", f"{part}/{x}_{part}.txt", f"{x}_{part}.txt")
            for part in ("train", "test") for x in "Xy")
SOURCES = {source.name: source for source in (
    Source("mushroom", mushroom, 8124, 117, 2, pay=eat, scale=False,
           sha256="254831b313f79a33e559162017b2d6dc9bf98284c2d871c951011055d5aab500"),
    Source("financial", financial, 3713, 21, 8, (("raw_stock_contexts",),), pay=invest, scale=False,
           url=GOOGLE + "raw_stock_contexts",
           sha256="cf468e5aae150dfd5c6b096464cd11e85f8b01198f8e49bedb941948850a6315"),
    Source("jester", jester, 19_181, 32, 8, (("jester_data_40jokes_19181users.npy",),), pay=joke, scale=False,
           url=GOOGLE + "jester_data_40jokes_19181users.npy"),
    Source("adult", adult, 45_222, 88, 2,  # 90 here: the paper's draws missed two rare categories
           sha256="a8332a4939d677799baf19bcad24ab373d57f98fcf3deda70331681b965fd734"),
    Source("covertype", covertype, 581_012, 54, 7, (("covtype.data",),), ("covertype.zip",), GOOGLE + "covtype.data",
           sha256="0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"),
    Source("census", census, 2_458_285, 377, 9,  # more here: all categories of the file, drawn or not
           (("USCensus1990.data.txt",),), ("us+census+data+1990.zip",), GOOGLE + "USCensus1990.data.txt",
           sha256="38e99f50855ddc03167b715b36519ef40b77295ae4e85dfef0c6429ac79ed799"),
    Source("statlog", statlog, 43_500, 9, 7,
           sha256="105506f527adb09a2d82098e55cc02a16dfbc149d55ebb6cfe156bc805bb949f"),
    Source("epileptic", epileptic, 11_500, 178, 5, (("data.csv", "Epileptic Seizure Recognition.csv"),),
           ("epileptic-seizure-recognition.zip",),
           page="https://www.kaggle.com/datasets/harunshimanto/epileptic-seizure-recognition",
           sha256="4b3f6024ea24a864c0de51b2ba477bf8b9e4974e8cc01a00dcf45bfc59d48deb"),
    Source("smartphones", smartphones, 10_299, 561, 6, HAR,
           ("UCI HAR Dataset.zip", "human+activity+recognition+using+smartphones.zip"),
           UCI + "240/human+activity+recognition+using+smartphones.zip"),
    Source("scania", scania, 60_000, 170, 2, (("aps_failure_training_set.csv",),),
           ("aps+failure+at+scania+trucks.zip",), UCI + "421/aps+failure+at+scania+trucks.zip",
           sha256="bb484302e3a3a1c8ef5e1f0129c4dc7cbd58f350867f95b575461ca21ab6b9da"),
    Source("amazon", amazon, 413_840, 60, 5, (("Amazon_Unlocked_Mobile.csv",),),
           ("amazon-reviews-unlocked-mobile-phones.zip",), pay=review, scale=False,
           page="https://www.kaggle.com/datasets/PromptCloudHQ/amazon-reviews-unlocked-mobile-phones",
           sha256="097abeefe303816e0f5e9c9ff380adb25910cf46307d2c104911eae8d0304e76"),
)}
NAMES = (*SOURCES, "wheel")


def load(name, steps=None, seed=0, data_dir=None):
    """A problem of the paper by its name. Each seed draws its own rows, their order, and random rewards.

    steps: how many rows, without replacement except for Mushroom, as in the paper. By default all there are; of the
    complete Census that is 8 GB. data_dir: looked in before $NLTS_DATA and the per-user cache. See also `wheel`.
    """
    key = str(name).lower()
    if key not in NAMES:
        raise ValueError(f"name: unknown problem {name!r}, expected one of {', '.join(NAMES)}")
    if key == "wheel":
        return wheel(steps=4000 if steps is None else steps, seed=seed)
    source, rng = SOURCES[key], np.random.default_rng(whole("seed", seed, 0))
    whole_file = table(source, data_dir)
    rows = draw(key, len(whole_file.y), steps, rng, replace=key == "mushroom")
    X = whole_file.X[rows]
    if X.dtype != object:
        X = one_hot(X, whole_file.levels)
    return source.pay(key, standardize(X) if source.scale else X, whole_file.y[rows], source.arms, rng)


def wheel(delta=0.5, steps=4000, seed=0, mu=0.1, mu5=0.2, mudot=0.4, sigma=0.1):
    """Arm 5 pays mu5 on average; arms 1 to 4 pay mu, but mudot in their own quadrant of the disc |x| <= delta."""
    if not 0 <= delta <= 1:
        raise ValueError(f"delta: expected a radius between 0 and 1, got {delta!r}")
    if not sigma >= 0:
        raise ValueError(f"sigma: expected a standard deviation of at least 0, got {sigma!r}")
    steps, rng = whole("steps", steps, 1), np.random.default_rng(whole("seed", seed, 0))
    radius, angle = np.sqrt(rng.uniform(size=steps)), rng.uniform(0, 2 * np.pi, steps)  # sqrt: uniform in area
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    mean = np.full((steps, 5), float(mu))
    mean[:, 4] = mu5
    inside = np.flatnonzero(radius <= delta)
    mean[inside, (angle[inside] // (np.pi / 2)).astype(int) % 4] = mudot  # quadrant 1 (x1, x2 > 0) is arm 1's
    return Problem("wheel", X, rng.normal(mean, sigma), mean.max(1))


# --- your own table -----------------------------------------------------------------------------------------------

FIX = "correct the file"
MISSING = ("", "?", "na", "n/a", "nan", "null", "none")


def from_csv(path, label=None, steps=None, seed=0, header=None):
    """Any classification table as a bandit: arm i pays 1 if the row's class is the i-th (see `labels`), else 0.

    path: text with one row a line, split by comma, semicolon, tab or spaces; or .npz with X and y; or a 2-d .npy.
    label: name or index of the column of classes, by default the last. header: whether the first line has names, by
    default guessed. Numbers are standardized, a missing one counts as average; text becomes one-hot.
    """
    path, rng = Path(path), np.random.default_rng(whole("seed", seed, 0))
    if path.suffix in (".npy", ".npz"):
        X, y = arrays(path, label)
        levels = np.zeros(X.shape[1], int)
    else:
        names, columns, lines = fields(path, header)
        at = position(label, len(columns), names)
        inputs = [column(path, values, names[j], lines) for j, values in enumerate(columns) if j != at]
        X, levels = np.column_stack([x for x, _ in inputs]), np.array([n for _, n in inputs])
        y = np.array(columns[at])
        for line, value in zip(lines, columns[at]):
            if value.lower() in MISSING:
                raise DataError(path, f"{value!r} is not a class", line, FIX)
        try:
            y = y.astype(float)  # so that class 10 comes after class 9
        except ValueError:
            pass
    labels, y = np.unique(y, return_inverse=True)
    if not 2 <= len(labels) <= max(2, len(y) / 2):
        raise DataError(path, f"{len(labels)} labels in {len(y)} rows are not classes", advice="choose another label")
    rows = draw(path.name, len(y), steps, rng)
    X, numbers = one_hot(X[rows], levels), np.repeat(levels == 0, np.maximum(levels, 1))
    X[:, numbers] = standardize(X[:, numbers])
    return classify(path.stem, X, y[rows], len(labels), labels=tuple(labels.tolist()))


def position(label, width, names=()):
    """Index of the column of classes."""
    if width < 2:
        raise ValueError(f"path: expected at least two columns, inputs and a class, got {width}")
    if label is None:
        return width - 1
    if isinstance(label, str):
        if label not in names:
            raise ValueError(f"label: no column {label!r}, expected one of {', '.join(map(str, names))}")
        return names.index(label)
    if not isinstance(label, (int, np.integer)) or not -width <= label < width:
        raise ValueError(f"label: expected a column name or an index below {width}, got {label!r}")
    return label % width


def arrays(path, label):
    """X and y of an .npz, or of a 2-d .npy with a column of classes."""
    try:
        with open(path, "rb") as f:
            z = np.load(f, allow_pickle=False)
            X, y = (z["X"], z["y"]) if path.suffix == ".npz" else (z, None)
    except (ValueError, EOFError, KeyError, IndexError, zlib.error, zipfile.BadZipFile) as error:
        advice = "save plain arrays: numpy.savez(path, X=X, y=y)"
        raise DataError(path, f"cannot be read ({error})", advice=advice) from error
    if X.ndim != 2 or X.dtype.kind not in "biuf" or (y is not None and y.shape != X.shape[:1]) or not X.size:
        raise DataError(path, f"expected numbers X (rows, columns) and y (rows,), got shape {X.shape}", advice=FIX)
    if y is None:
        at = position(label, X.shape[1])
        X, y = np.delete(X, at, axis=1), X[:, at]
    elif label is not None:
        raise ValueError(f"label: the classes of an .npz are its y, got {label!r}")
    bad = np.flatnonzero(~np.isfinite(X).all(1) | (y != y))  # y != y: a class that is nan
    if len(bad):
        raise DataError(path, f"row {bad[0]} is not finite", advice=FIX)
    return X.astype(float), y


def fields(path, header):
    """Names, columns of text, and the line each row is on."""
    try:
        text = contents(path, (path.stem,)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(path, f"not UTF-8 text ({error})", advice=FIX) from error
    first = text.lstrip().split("\n", 1)[0]
    sep = max(",;\t", key=first.count) if re.search("[,;\t]", first) else " "
    text = re.sub(r"[ \r]+$", "", text, flags=re.MULTILINE)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    try:
        rows = [(reader.line_num, [field.strip() for field in row]) for row in reader if row]
    except csv.Error as error:
        raise DataError(path, str(error), reader.line_num, FIX) from error
    lines, rows = zip(*rows)
    for line, row in zip(lines, rows):
        if len(row) != len(rows[0]):
            raise DataError(path, f"{len(row)} columns instead of {len(rows[0])}", line, FIX)
    columns = list(zip(*rows))
    if header is None:  # names are not numbers, and do not occur again below
        header = len(rows) > 1 and not any(is_number(c[0]) or c[0] in c[1:] for c in columns)
    if header and len(rows) < 2:
        raise DataError(path, "a header but no rows", lines[0], FIX)
    names = list(rows[0]) if header else list(range(len(columns)))
    return names, [c[header:] for c in columns], lines[header:]


def column(path, values, name, lines):
    """(numbers, 0) or (codes, how many): text if any field is neither a number nor missing."""
    try:
        x = np.array(values, float)
        if np.isfinite(x).all():
            return x, 0
    except ValueError:
        pass  # not all numbers: look at each
    missing = np.array([v.lower() in MISSING for v in values])
    number = np.array([is_number(v) for v in values])
    if number.any() and (number | missing).all():
        x = np.where(number, values, "nan").astype(float)
        return np.where(number, x, x[number].mean()), 0
    kinds, codes = np.unique(values, return_inverse=True)
    if len(kinds) > 20 and number.mean() > 0.9:
        i = np.flatnonzero(~number & ~missing)[0]
        raise DataError(path, f"{values[i][:40]!r} in column {name!r} is not a number", lines[i], FIX)
    if len(kinds) > max(20, len(values) / 2):
        what = f"column {name!r} has {len(kinds)} texts in {len(values)} rows, which are no categories"
        raise DataError(path, what, lines[0], "leave the column out")
    return codes, len(kinds)


# --- files: where they are, and how they get there ----------------------------------------------------------------

def cache_dir():
    """Per-user folder for downloads and parsed tables."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlts"


def folders(data_dir=None):
    """Where files are looked for, in this order; downloads go to the first."""
    return [Path(d).expanduser() for d in (data_dir, os.environ.get("NLTS_DATA"), cache_dir()) if d]


def locate(source, data_dir=None):
    """Path of each of the source's files (an archive may hold several), or None if one is nowhere."""
    for folder in folders(data_dir):
        archives = [folder / archive for archive in source.archives]
        found = [next((p for p in [folder / (n + end) for n in names for end in ("", ".gz", ".zip")] + archives
                       if p.is_file()), None) for names in source.files]
        if all(found):
            return found
    return None


def how_to_get(source, data_dir=None):
    if source.url:
        return f"run: python datasets.py fetch {source.name}{f' --data-dir {data_dir}' if data_dir else ''}"
    return f"download {' or '.join(source.files[0])} from {source.page} into {folders(data_dir)[0]}"


def table(source, data_dir=None):
    """The whole data set. What is parsed once is kept in the per-user cache, as plain arrays."""
    if not source.files:
        return source.read()
    paths = locate(source, data_dir)
    if paths is None:
        what = f"{source.files[0][0]} is not in {', '.join(map(str, folders(data_dir)))}"
        raise MissingData(source.name, what, advice=how_to_get(source, data_dir))
    stats = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    code = Path(__file__).read_bytes()  # a table made by an older reader is not used
    key = hashlib.sha256(repr(stats).encode() + code).hexdigest()[:16]
    cached = cache_dir() / "parsed" / f"{source.name}-{key}.npy"
    try:
        with open(cached, "rb") as f:
            return Table(*(np.load(f, allow_pickle=False) for _ in range(3)))
    except (OSError, ValueError, EOFError):  # not parsed before, or damaged
        result = source.read(*((path, contents(path, names)) for path, names in zip(paths, source.files)))
    if result.X.dtype != object:
        try:
            for old in cached.parent.glob(f"{source.name}-*.npy"):
                old.unlink(missing_ok=True)
            with replacing(cached) as f:
                for array in (result.X, result.y, result.levels):
                    np.save(f, array, allow_pickle=False)
        except OSError:
            pass  # without a cache the next time is slower, nothing else
    return result


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


def download(url, f, timeout=30.0, tries=3):
    """Write `url` to the empty file `f`, at 1 kB/s at least; a broken connection is taken up where it broke."""
    problem, shown = "", 0.0
    for _ in range(tries):
        done = f.tell()
        request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                if done and response.status != 206:  # this server cannot resume: start again
                    done = f.seek(0)
                    f.truncate()
                total = None if response.length is None else done + response.length
                since, before = time.monotonic(), done
                while chunk := response.read1(1 << 16):
                    f.write(chunk)
                    now = time.monotonic()
                    if now - since > timeout:
                        if f.tell() - before < 1000 * timeout:
                            raise TimeoutError(f"under 1 kB/s for {timeout:g} s")
                        since, before = now, f.tell()
                    if now - shown > 0.2 and sys.stderr.isatty():
                        shown = now
                        of = f" of {total / 1e6:.1f}" if total else ""
                        print(f"\r{url}: {f.tell() / 1e6:.1f}{of} MB ", end="", file=sys.stderr, flush=True)
            if total in (None, f.tell()):
                print(f"\r{url}: {f.tell() / 1e6:.1f} MB      ", file=sys.stderr)
                return
            problem = f"cut off after {f.tell()} of {total} bytes"
        except urllib.error.HTTPError as error:
            advice = "try later, or look for the file's new address"
            raise DataError(url, f"HTTP {error.code} {error.reason}", advice=advice) from error
        except (OSError, http.client.HTTPException) as error:
            problem = f"{getattr(error, 'reason', error)}" or type(error).__name__
    raise DataError(url, problem, advice="check the connection and run the same command again")


def inspect(source, paths, data=None):
    """Read a data set afresh: (its table, whether it is complete)."""
    files = [(path, contents(path, names, data)) for path, names in zip(paths, source.files)]
    result = source.read(*files)
    found = hashlib.sha256(files[0][1] if files else (BUNDLE / f"{source.name}.npz").read_bytes()).hexdigest()
    complete = found == source.sha256 or len(result.y) == source.rows
    if complete and source.sha256 not in ("", found) and not source.page:  # people post a table in more than one form
        what = f"has all rows, but sha256 {found} instead of {source.sha256}"
        raise DataError(paths[0], what) if files else DataError(source.name, what, advice=RESTORE)
    return result, complete


def fetch(source, data_dir=None, timeout=30.0):
    """Download a data set; the file is in place only once it has been read from end to end."""
    if not source.url:
        raise MissingData(source.name, "its host wants a person to log in", advice=how_to_get(source, data_dir))
    target = folders(data_dir)[0] / source.url.rsplit("/", 1)[1]
    with replacing(target) as f:
        download(source.url, f, timeout)
        f.seek(0)
        result, complete = inspect(source, [target] * len(source.files), f.read())
        if not complete:
            raise DataError(target, f"{len(result.y)} rows instead of {source.rows}", advice="try again later")
    return target


# --- commands -----------------------------------------------------------------------------------------------------

def where(source, data_dir):
    if not source.files:
        return "synthetic, any number of steps" if source.read is wheel else "bundled"
    paths = locate(source, data_dir)
    return str(paths[0]) if paths else f"missing; {how_to_get(source, data_dir)}"


def show(data_dir):
    """One line a problem; best arm: what playing the best single arm throughout earns, as a share of the optimum."""
    print(f"{'problem':12}{'steps':>10}{'dim':>5}{'arms':>6}{'best arm':>10}  data")
    for name in NAMES:
        source = SOURCES.get(name, Source("wheel", wheel, 4000, 2, 5, pay=wheel))
        steps, dim, share, place = source.rows, source.dim, "-", where(source, data_dir)
        try:
            if source.pay is classify:  # do not lay out all contexts: Census would need 8 GB
                t = table(source, data_dir)
                steps, dim, share = len(t.y), np.maximum(t.levels, 1).sum(), np.bincount(t.y).max() / len(t.y)
            else:
                p = load(name, data_dir=data_dir)
                steps, dim, share = len(p), p.dim, p.rewards.mean(0).max() / p.optimal.mean()
        except MissingData:
            pass
        except DataError as error:
            place = f"bad: {error}"
        print(f"{name:12}{steps:10,}{dim:5}{source.arms:6}{share if share == '-' else f'{share:.1%}':>10}  {place}")


def check(data_dir):
    """Re-read all that is present; the number of bad data sets."""
    bad = 0
    for source in SOURCES.values():
        paths = locate(source, data_dir) if source.files else []
        try:
            if paths is None:
                print(f"{source.name:12}{where(source, data_dir)}")
                continue
            result, complete = inspect(source, paths)
            size = "complete" if complete else f"a part of the complete {source.rows:,}"
            print(f"{source.name:12}ok: {len(result.y):,} rows, {size}; {where(source, data_dir)}")
        except DataError as error:
            bad += 1
            print(f"{source.name:12}BAD: {error}")
    return bad


def fastest(function, *args, repeat=3, **kwargs):
    """Seconds of the fastest of some calls."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function(*args, **kwargs)
        times.append(time.perf_counter() - start)
    return min(times)


def benchmark(data_dir):
    """Seconds to load, beside numpy.loadtxt in the same run; returns how many are over their limit."""
    from unittest.mock import patch  # here, because it takes longer to import than all the rest
    source, rows = SOURCES["covertype"], []  # rows: what, seconds, those of loadtxt, limit as a part of these
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, XDG_CACHE_HOME=folder):  # an empty cache
        text = Path(folder) / "shuttle.trn"
        np.savetxt(text, np.column_stack(bundled("statlog"))[:43_500], fmt="%d")
        base = fastest(np.loadtxt, text)
        rows += [("statlog, numpy.loadtxt of shuttle.trn", base, base, 1)]
        rows += [("statlog, bundled", fastest(load, "statlog"), base, 3)]
        if paths := locate(source, data_dir):
            base = fastest(np.loadtxt, paths[0], delimiter=",", repeat=1)
            rows += [(f"covertype, numpy.loadtxt of {paths[0].name}", base, base, 1)]
            for what, steps, repeat, limit in (("5,000 steps, first time", 5000, 1, 3),
                                               ("5,000 steps, cached", 5000, 3, 20),
                                               ("all steps, cached", None, 3, 20)):
                seconds = fastest(load, "covertype", steps, 0, paths[0].parent, repeat=repeat)
                rows += [(f"covertype, {what}", seconds, base, limit)]
    for what, seconds, base, limit in rows:
        print(f"{what:45}{seconds:9.3f} s   1/{base / seconds:<6.1f} limit 1/{limit}")
    if not paths:
        print(f"covertype: {where(source, data_dir)}")
    return sum(seconds > base / limit for _, seconds, base, limit in rows)


def main(argv=None):
    parser = argparse.ArgumentParser(description="List, download, check and time the data sets.")
    parser.add_argument("command", nargs="?", default="list", choices=("list", "fetch", "check", "benchmark"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"for fetch: all, or some of {', '.join(SOURCES)}")
    parser.add_argument("--data-dir", help="look here first, and download to here")
    args = parser.parse_args(argv)
    if args.command != "fetch":
        if args.names:
            parser.error(f"{args.command} takes no names")
        return min(1, {"list": show, "check": check, "benchmark": benchmark}[args.command](args.data_dir) or 0)
    names = list(SOURCES) if args.names == ["all"] else [name.lower() for name in args.names]
    if not names or set(names) - set(SOURCES):
        parser.error(f"fetch: expected all, or some of {', '.join(SOURCES)}")
    failed = 0
    for source in map(SOURCES.get, names):
        try:
            there = not source.files or locate(source, args.data_dir)
            print(f"{source.name}: {where(source, args.data_dir) if there else fetch(source, args.data_dir)}")
        except (DataError, OSError) as error:  # OSError: the folder cannot be written
            failed = 1
            print(f"{source.name}: {error}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
