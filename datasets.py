"""Twelve bandit problems of one kind: ten data sets, a text set, the wheel; and your own table.

    python datasets.py                      list every problem and where its data is
    python datasets.py fetch NAME...|all    download what is missing
    python datasets.py check                re-read everything that is present

A class label becomes a bandit by paying 1 for the arm of the right class and 0 for all others.
Preprocessing follows Riquelme et al. (2018), "Deep Bayesian Bandits Showdown", whose rows are also
the ones used by Zahavy & Mannor (2019): categories are one-hot, inputs are standardized on the rows
drawn (except Mushroom, Financial and Jester). What is known of each data set is in
data/sources.toml, reading files in lab/files.py, the commands in lab/fetch.py.
"""
import os
import re
import sys
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lab import files
from lab.files import DataError, MissingData, contents

BUNDLE = Path(__file__).resolve().parent / "data"
MISSING = {"", "?", "na", "n/a", "nan", "null", "none"}  # in a table of your own


@dataclass(frozen=True, eq=False)
class Problem:
    """A bandit with all its outcomes; an agent may look only at the rewards of arms it plays."""
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


class Table(NamedTuple):
    """All rows of a data set."""
    X: np.ndarray       # (rows, columns) inputs: numbers, or codes of categories
    y: np.ndarray       # (rows,) classes from 0
    levels: np.ndarray  # (columns,) number of categories, 0 for a number


@dataclass(frozen=True)
class Source:
    """All that is known of a data set."""
    name: str
    rows: int          # of the complete data set
    dim: int           # as in the paper's table of results
    arms: int
    files: tuple = ()  # for each file, the names that it or its archive goes by; none: bundled
    url: str = ""      # of one of them
    page: str = ""     # if there is no url: where a person gets the file
    sha256: str = ""   # of the first file, unpacked
    format: dict = field(default_factory=dict)  # arguments of the reader, `bundled` or `numbers`


known = tomllib.loads((BUNDLE / "sources.toml").read_text(encoding="utf-8"))
SOURCES = {name: Source(name, **fields) for name, fields in known.items()}
NAMES = (*SOURCES, "wheel")


# --- reading: each data set's files to its table --------------------------------------------------

def coded(X, y, categories=()):
    """Table whose columns `categories` become codes without gaps, over all rows of the file."""
    levels = np.zeros(X.shape[1], int)
    for i in categories:
        values, X[:, i] = np.unique(X[:, i], return_inverse=True)
        levels[i] = len(values)
    return Table(X, y, levels)


def numbers(source, path, data, label=None, first=1, skip=(), categories=False, **layout):
    """A table of numbers, of which one column may be the class.

    label: the column of classes, which count from `first`. skip: columns not used. categories:
    whether the others are codes. layout: see files.read_numbers.
    """
    X, line = files.read_numbers(path, data, **layout)
    if label is None:
        return coded(X, np.zeros(len(X), np.int8))
    y = X[:, label] - first
    bad = np.flatnonzero((y < 0) | (y >= source.arms) | (y % 1 != 0))
    if len(bad):
        what = f"unknown class {X[bad[0], label]:g}, expected {first} to {first + source.arms - 1}"
        raise DataError(path, what, line + bad[0])
    X, y = np.delete(X, [label, *skip], axis=1), y.astype(np.int8)
    if not categories:
        return coded(X, y)
    strange = np.flatnonzero((X < 0).any(1) | (X > 999).any(1))
    if len(strange):
        raise DataError(path, "a code that is not one of 0 to 999", line + strange[0])
    return coded(X.astype(np.int16), y, range(X.shape[1]))


def bundled(source, columns, label, first=0, complete=()):
    """Columns of data/NAME.npz, of the first rows where none of the columns `complete` is "?"."""
    found = files.arrays(BUNDLE / f"{source.name}.npz", advice="restore it: git checkout -- data")
    y = found[label] - first
    keep = np.ones(len(y), bool)
    for c in complete:
        keep &= found[f"{c}_values"][found[c]] != "?"
    rows = np.flatnonzero(keep)[:source.rows]
    X = np.column_stack([found[c][rows] for c in columns])
    texts = [i for i, c in enumerate(columns) if f"{c}_values" in found]
    return coded(X, y[rows], texts)


def jester(source, path, data):
    """Ratings of 40 jokes."""
    X = files.arrays(path, data)
    if X.ndim != 2 or X.shape[1] != 40 or X.dtype.kind != "f" or not np.isfinite(X).all():
        raise DataError(path, f"{X.dtype} of shape {X.shape}, not finite ratings of 40 jokes")
    return coded(X, np.zeros(len(X), np.int8))


def smartphones(source, *parts):
    """Inputs and labels of the training part, then of the test part."""
    tables = []
    for inputs_path, inputs, labels_path, labels in (parts[:4], parts[4:]):
        X = numbers(source, inputs_path, inputs, columns=561, dtype="float").X
        y = numbers(source, labels_path, labels, label=0, columns=1).y
        if len(y) != len(X):
            raise DataError(labels_path, f"{len(y)} labels for {len(X)} rows of inputs", len(y))
        tables.append((X, y))
    return coded(*map(np.concatenate, zip(*tables, strict=True)))


def amazon(source, path, data):
    """Reviews and their stars; rows without a review are left out."""
    lines, columns = files.csv_columns(path, data)
    if not {"Rating", "Reviews"} <= set(columns):
        raise DataError(path, "expected a header with Rating and Reviews, then rows", 1)
    for line, stars in zip(lines, columns["Rating"], strict=True):
        if stars not in ("1", "2", "3", "4", "5"):
            raise DataError(path, f"unknown class {stars[:40]!r}, expected 1 to 5", line)
    texts = np.array(columns["Reviews"], object)
    y = np.array(columns["Rating"], np.int8) - 1
    return coded(texts[texts != "", None], y[texts != ""])


READERS = {"statlog": bundled, "mushroom": bundled, "adult": bundled, "jester": jester,
           "smartphones": smartphones, "amazon": amazon}  # else: numbers


# --- paying: inputs and classes to a problem ------------------------------------------------------

def classify(name, X, y, n_arms, rng):
    """Arm i pays 1 if the class is i, else 0; inputs are standardized."""
    return Problem(name, standardize(X), np.eye(n_arms)[y], np.ones(len(y)))


def eat(name, X, y, n_arms, rng):
    """Arm 0 leaves the mushroom, arm 1 eats it: 5 if edible, else 5 or -35 with equal chances."""
    pay = np.where(y == 0, 5, rng.choice([5, -35], len(y)))
    rewards = np.column_stack([np.zeros(len(y)), pay])
    return Problem(name, X, rewards, np.where(y == 0, 5.0, 0.0))


def invest(name, X, y, n_arms, rng):
    """Each arm is a portfolio of the stocks, each noisier than the one before."""
    beta = rng.uniform(-1, 1, (X.shape[1], n_arms))
    mean = X @ (beta / np.linalg.norm(beta, axis=0))
    noise = 0.01 * np.arange(1, n_arms + 1)
    return Problem(name, X, rng.normal(mean, noise), mean.max(1))


def joke(name, X, y, n_arms, rng):
    """A user's ratings: of 8 jokes the rewards, of the other 32 the context."""
    X = X[:, rng.permutation(X.shape[1])]
    return Problem(name, X[:, n_arms:], X[:, :n_arms], X[:, :n_arms].max(1))


def review(name, X, y, n_arms, rng, length=60):
    """Reviews as ids of words, from 2 by first appearance, cut or padded with 0 at the end."""
    word = r"[a-z0-9]+(?:'[a-z]+)?|[.,!?]"  # . , ! and ? are words too
    ids = {}
    contexts = np.zeros((len(X), length), int)
    for row, text in zip(contexts, X[:, 0], strict=True):
        found = [ids.setdefault(w, len(ids) + 2) for w in re.findall(word, text.lower())]
        row[:len(found)] = found[:length]
    return Problem(name, contexts, np.eye(n_arms)[y], np.ones(len(y)), vocabulary=len(ids) + 2)


PAY = {"mushroom": eat, "financial": invest, "jester": joke, "amazon": review}  # else: classify


# --- tables: found in a folder, parsed once -------------------------------------------------------

def folders(data_dir=None):
    """Where files are looked for, in this order; downloads go to the first, a cache is the last."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "nlts"
    places = (data_dir, os.environ.get("NLTS_DATA"), cache)
    return [Path(place).expanduser() for place in places if place]


def locate(source, data_dir=None):
    """Path of each of the source's files, or of its archive; None if one is nowhere."""
    for folder in folders(data_dir):
        found = []
        for names in source.files:
            paths = [folder / (name + end) for name in names for end in ("", ".gz", ".zip")]
            found += [path for path in paths if path.is_file()][:1]
        if len(found) == len(source.files):
            return found
    return None


def parse(source, paths, data=None):
    """The table in the files at `paths`; data: their bytes, if they are not there yet."""
    parts = []
    for path, names in zip(paths, source.files, strict=True):
        parts += [path, contents(path, names, data)]
    read = READERS.get(source.name, numbers)
    return read(source, *parts, **source.format)


def table(source, data_dir=None):
    """The whole data set. What is parsed once is kept in the per-user cache, as plain arrays."""
    paths = locate(source, data_dir)
    if paths is None:
        places = folders(data_dir)
        what = f"{source.files[0][0]} is not in {', '.join(map(str, places))}"
        advice = f"run: python datasets.py fetch {source.name}"
        if source.page:
            advice = f"download {source.files[0][0]} from {source.page} into {places[0]}"
        raise MissingData(source.name, what, advice=advice)
    if not paths:
        return parse(source, paths)
    state = [(path.resolve(), path.stat().st_size, path.stat().st_mtime_ns)
             for path in (*paths, Path(__file__), Path(files.__file__))]
    key = np.array(repr((source, state)))
    cached = folders()[-1] / "parsed" / f"{source.name}.npy"
    with suppress(OSError, ValueError, EOFError), open(cached, "rb") as f:  # absent, or damaged
        if np.load(f) == key:
            return Table(*(np.load(f) for _ in range(3)))
    found = parse(source, paths)
    with suppress(OSError, ValueError), files.replacing(cached) as f:  # a full disk, or texts
        for array in (key, *found):
            np.save(f, array, allow_pickle=False)
    return found


# --- problems -------------------------------------------------------------------------------------

def whole(name, value, least):
    """The argument `name` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def draw(what, rows, steps, rng, replace=False):
    """Indices of `steps` rows in random order."""
    steps = rows if steps is None else whole("steps", steps, 1)
    if replace:
        return rng.integers(rows, size=steps)
    if steps > rows:
        raise ValueError(f"steps: {steps} asked for, but {what} has only {rows}")
    return rng.permutation(rows)[:steps]


def one_hot(X, levels):
    """(T, dim) float64: numbers as they are, a category as one column per value."""
    columns = [x[:, None] == np.arange(n) if n else x[:, None]
               for x, n in zip(X.T, levels, strict=True)]
    return np.concatenate(columns, axis=1, dtype=np.float64)


def standardize(X):
    """Zero mean and unit variance in each column, in place; a constant column becomes exactly 0."""
    X -= X[0].copy()  # else rounding could leave a constant column a spread, to be blown up to 1
    X -= X.mean(0)
    sd = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X /= np.where(sd > 0, sd, 1)
    return X


def load(name, steps=None, seed=0, data_dir=None):
    """A problem of the paper by name. A seed draws its own rows, their order, and random rewards.

    steps: how many rows, by default all (of Census that is 8 GB); without replacement except for
    Mushroom, as in the paper. data_dir: looked in before $NLTS_DATA and the per-user cache.
    """
    key = str(name).lower()
    if key not in NAMES:
        raise ValueError(f"name: unknown problem {name!r}, expected one of {', '.join(NAMES)}")
    if key == "wheel":
        return wheel(steps=4000 if steps is None else steps, seed=seed)
    source = SOURCES[key]
    rng = np.random.default_rng(whole("seed", seed, 0))
    everything = table(source, data_dir)
    rows = draw(key, len(everything.y), steps, rng, replace=key == "mushroom")
    X = everything.X[rows]
    if X.dtype != object:
        X = one_hot(X, everything.levels)
    pay = PAY.get(key, classify)
    return pay(key, X, everything.y[rows], source.arms, rng)


def wheel(delta=0.5, steps=4000, seed=0, mu=0.1, mu5=0.2, mudot=0.4, sigma=0.1):
    """Arm 5 pays mu5; arms 1 to 4 pay mu, but mudot in their quadrant of the disc |x| <= delta."""
    if not 0 <= delta <= 1:
        raise ValueError(f"delta: expected a radius between 0 and 1, got {delta!r}")
    if not sigma >= 0:
        raise ValueError(f"sigma: expected a standard deviation >= 0, got {sigma!r}")
    steps = whole("steps", steps, 1)
    rng = np.random.default_rng(whole("seed", seed, 0))
    radius = np.sqrt(rng.uniform(size=steps))  # sqrt: uniform in area
    angle = rng.uniform(0, 2 * np.pi, steps)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    mean = np.full((steps, 5), [mu, mu, mu, mu, mu5], float)
    inside = np.flatnonzero(radius <= delta)
    quadrant = (angle[inside] // (np.pi / 2)).astype(int) % 4
    mean[inside, quadrant] = mudot  # quadrant 1 (x1, x2 > 0) is arm 1's
    return Problem("wheel", X, rng.normal(mean, sigma), mean.max(1))


def drift(problem, seed=0, jitter=0.25):
    """The same rows in the order of their first principal component, so that contexts drift.

    jitter: standard deviation of the noise on a row's score, as a part of the scores' own.
    """
    if not 0 <= jitter < np.inf:
        raise ValueError(f"jitter: expected a finite number of at least 0, got {jitter!r}")
    rng = np.random.default_rng(whole("seed", seed, 0))
    X = standardize(problem.contexts.astype(np.float64))
    direction = np.linalg.eigh(X.T @ X).eigenvectors[:, -1]
    direction *= np.sign(direction[np.abs(direction).argmax()])  # either sign is an eigenvector
    score = X @ direction
    order = np.argsort(score + jitter * score.std() * rng.normal(size=len(X)), kind="stable")
    return replace(problem, contexts=problem.contexts[order], rewards=problem.rewards[order],
                   optimal=problem.optimal[order])


def from_csv(path, label=None, steps=None, seed=0):
    """Any classification table as a bandit: arm i pays 1 if the row's class is the i-th, else 0.

    path: text with a header of names, split by comma, semicolon or tab. label: the name of the
    column of classes, by default the last; these are the problem's `labels`. Numbers are
    standardized, text becomes one-hot, a missing value is an error.
    """
    path = Path(path)
    rng = np.random.default_rng(whole("seed", seed, 0))
    lines, columns = files.csv_columns(path, contents(path, (path.stem,)))
    if label not in (None, *columns):
        raise ValueError(f"label: no column {label!r}, expected one of {', '.join(columns)}")
    for line, *row in zip(lines, *columns.values(), strict=True):
        if missing := MISSING.intersection(value.lower() for value in row):
            raise DataError(path, f"{missing.pop()!r} is a missing value", line)
    y = columns.pop(list(columns)[-1] if label is None else label)
    with suppress(ValueError):
        y = np.array(y, float)  # so that class 10 comes after class 9
    labels, y = np.unique(y, return_inverse=True)
    if not 2 <= len(labels) <= max(2, len(y) / 2):
        what = f"{len(labels)} labels in {len(y)} rows are not classes"
        raise DataError(path, what, advice="choose another label")
    inputs = [files.own_column(path, name, values, lines) for name, values in columns.items()]
    X, levels = map(np.array, zip(*inputs, strict=True))
    rows = draw(path.name, len(y), steps, rng)
    X = one_hot(X.T[rows], levels)
    is_number = np.repeat(levels == 0, np.maximum(levels, 1))
    X[:, is_number] = standardize(X[:, is_number])
    rewards = np.eye(len(labels))[y[rows]]
    return Problem(path.stem, X, rewards, np.ones(len(X)), labels=tuple(labels.tolist()))


if __name__ == "__main__":
    from lab.fetch import main
    sys.exit(main())
