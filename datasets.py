"""Bandit problems: ten data sets, a set of texts, the wheel; and your own table.

    python datasets.py                      list every problem and where its data is
    python datasets.py fetch NAME...|all    download what is missing, and check it

A class label becomes a bandit by paying 1 for the arm of the right class and 0 for all others.
Preprocessing follows Riquelme et al. (2018), "Deep Bayesian Bandits Showdown", whose rows are also
the ones used by Zahavy & Mannor (2019): categories are one-hot, inputs are standardized on the rows
drawn (except Mushroom, Financial and Jester). data/sources.toml describes each data set and says
how to add one; lab/files.py finds, downloads and reads files.
"""
import argparse
import functools
import hashlib
import io
import math
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
JITTER = 0.25  # of a drifting problem: noise on a row's score, in standard deviations of scores


@dataclass(frozen=True, eq=False)
class Problem:
    """A bandit with all its outcomes; an agent may look only at the rewards of arms it plays."""
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


class Table(NamedTuple):
    """All rows of a data set."""
    X: np.ndarray       # (rows, columns) inputs: numbers, or codes of categories
    y: np.ndarray       # (rows,) classes from 0
    levels: np.ndarray  # (columns,) number of categories, 0 for a number


@dataclass(frozen=True, eq=False)
class Source:
    """A data set's entry in data/sources.toml, which says what the fields are."""
    name: str
    rows: int
    dim: int
    arms: int
    files: tuple = ()
    url: str = ""
    page: str = ""
    sha256: str = ""
    format: dict = field(default_factory=dict)


entries = tomllib.loads((BUNDLE / "sources.toml").read_text(encoding="utf-8"))
SOURCES = {name: Source(name, **fields) for name, fields in entries.items()}
NAMES = (*SOURCES, "wheel-0.5", "wheel-0.3", "wheel-0.1")  # any wheel-<delta> is a problem


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
    X = np.delete(X, [label, *skip], axis=1)
    return coded(X, y.astype(np.int8), range(X.shape[1]) if categories else ())


def bundled(source, columns, label, first=0, complete=()):
    """Columns of data/NAME.npz, of the first rows where none of the columns `complete` is "?"."""
    with np.load(BUNDLE / f"{source.name}.npz") as arrays:
        found = dict(arrays)
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
    try:
        X = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(path, f"not an array of numpy ({error})") from error
    if X.shape[1:] != (40,) or not np.isfinite(X).all():
        raise DataError(path, f"shape {X.shape}, not finite ratings of 40 jokes")
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


@functools.lru_cache(maxsize=1)  # many runs draw from one table
def parse(source, paths):
    """The table in the files at `paths`."""
    parts = []
    for path, names in zip(paths, source.files, strict=True):
        parts += [path, contents(path, names)]
    read = READERS.get(source.name, numbers)
    return read(source, *parts, **source.format)


def table(source):
    """The whole data set."""
    return parse(source, files.locate(source))


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


def tokens(text):
    """Words and marks in lower case, as the program that Sec. 4.3 links to splits a text.

    It knows n't, 's and the other endings in lower case only: "DON'T" is one token.
    """
    text = re.sub(r"[^A-Za-z0-9(),!?'`]", " ", text)
    for ending in ("'s", "'ve", "n't", "'re", "'d", "'ll"):
        text = text.replace(ending, " " + ending)
    text = re.sub(r"([,!()?])", r" \1 ", text)
    return text.lower().split()


def review(name, X, y, n_arms, rng, length=60):
    """Reviews as ids of tokens, from 2 by first appearance, cut or padded with 0 at the end."""
    ids = {}
    contexts = np.zeros((len(X), length), int)
    for row, text in zip(contexts, X[:, 0], strict=True):
        found = [ids.setdefault(token, len(ids) + 2) for token in tokens(text)]
        row[:len(found)] = found[:length]
    return Problem(name, contexts, np.eye(n_arms)[y], np.ones(len(y)), vocabulary=len(ids) + 2)


PAY = {"mushroom": eat, "financial": invest, "jester": joke, "amazon": review}  # else: classify


# --- problems -------------------------------------------------------------------------------------

def check_int(name, value, least):
    """The argument `name` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def draw(what, n_rows, steps, rng, replace=False):
    """Indices of `steps` rows in random order."""
    steps = n_rows if steps is None else check_int("steps", steps, 1)
    if replace:
        return rng.integers(n_rows, size=steps)
    if steps > n_rows:
        raise ValueError(f"steps: {steps} asked for, but {what} has only {n_rows}")
    return rng.permutation(n_rows)[:steps]


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


def check_name(name):
    """The name, if a problem has it."""
    if name in SOURCES or re.fullmatch(r"wheel-(0(\.\d+)?|1)", name):
        return name
    raise ValueError(f"name: unknown problem {name!r}, expected wheel-<delta>, delta from 0 to 1, "
                     f"or one of {', '.join(SOURCES)}")


def delta_of(name):
    """Radius of the wheel of this name, such as wheel-0.5."""
    return float(name.removeprefix("wheel-"))


def available(name):
    """True; or MissingData, which says how to get the files."""
    if not name.endswith(".csv") and check_name(name) in SOURCES:
        files.locate(SOURCES[check_name(name)])
    return True


def rows(name):
    """Most steps a problem can have; inf if its rows are drawn anew or with replacement."""
    if name.endswith(".csv"):
        return len(from_csv(name))
    name = check_name(name)
    if name == "mushroom" or name not in SOURCES:
        return math.inf
    return SOURCES[name].rows


def load(name, steps=None, seed=0):
    """A problem of NAMES. A seed draws its own rows, their order, and random rewards.

    steps: how many rows, by default all (of Census that is 8 GB), of a wheel 4000; without
    replacement except for Mushroom, as in the paper.
    """
    name = check_name(name)
    if name not in SOURCES:
        return wheel(delta_of(name), 4000 if steps is None else steps, seed)
    rng = np.random.default_rng(check_int("seed", seed, 0))
    everything = table(SOURCES[name])
    drawn = draw(name, len(everything.y), steps, rng, replace=name == "mushroom")
    X = everything.X[drawn]
    if X.dtype != object:
        X = one_hot(X, everything.levels)
    pay = PAY.get(name, classify)
    return pay(name, X, everything.y[drawn], SOURCES[name].arms, rng)


def wheel(delta, steps, seed=0):
    """Arm 5 pays 0.2; arms 1 to 4 pay 0.1, but 0.4 in their quadrant of the disc |x| <= delta."""
    steps = check_int("steps", steps, 1)
    rng = np.random.default_rng(check_int("seed", seed, 0))
    radius = np.sqrt(rng.uniform(size=steps))  # sqrt: uniform in area
    angle = rng.uniform(0, 2 * np.pi, steps)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    mean = np.full((steps, 5), [0.1, 0.1, 0.1, 0.1, 0.2])
    inside = np.flatnonzero(radius <= delta)
    quadrant = (angle[inside] // (np.pi / 2)).astype(int) % 4
    mean[inside, quadrant] = 0.4  # quadrant 1 (x1, x2 > 0) is arm 1's
    return Problem(f"wheel-{delta:g}", X, rng.normal(mean, 0.1), mean.max(1))


def drift(problem, seed=0):
    """The same rows in the order of their first principal component, so that contexts drift."""
    rng = np.random.default_rng(check_int("seed", seed, 0))
    X = standardize(problem.contexts.astype(np.float64))
    direction = np.linalg.eigh(X.T @ X).eigenvectors[:, -1]
    direction *= np.sign(direction[np.abs(direction).argmax()])  # either sign is an eigenvector
    score = X @ direction
    order = np.argsort(score + JITTER * score.std() * rng.normal(size=len(X)), kind="stable")
    return replace(problem, contexts=problem.contexts[order], rewards=problem.rewards[order],
                   optimal=problem.optimal[order])


def from_csv(path, steps=None, seed=0):
    """Any classification table as a bandit: arm i pays 1 if the row's class is the i-th, else 0.

    path: text with a header of names, split by comma, semicolon or tab; the last column has the
    classes. Numbers are standardized, text becomes one-hot, a missing value is an error.
    """
    path = Path(path)
    rng = np.random.default_rng(check_int("seed", seed, 0))
    lines, columns = files.csv_columns(path, contents(path, [path.name]))
    for line, *row in zip(lines, *columns.values(), strict=True):
        if missing := MISSING.intersection(value.lower() for value in row):
            raise DataError(path, f"{missing.pop()!r} is a missing value", line)
    *inputs, (labels, _) = map(numbers_or_codes, columns.values())
    classes, y = np.unique(labels, return_inverse=True)
    if not 2 <= len(classes) <= max(2, len(y) / 2):
        what = f"{len(classes)} labels in {len(y)} rows are not classes"
        raise DataError(path, what, advice="put the column of classes last")
    X, levels = map(np.array, zip(*inputs, strict=True))
    if levels.max() > max(20, len(y) / 2):
        what = f"column {list(columns)[levels.argmax()]!r} is neither numbers nor categories"
        raise DataError(path, what)
    drawn = draw(path.name, len(y), steps, rng)
    X = one_hot(X.T[drawn], levels)
    is_number = np.repeat(levels == 0, np.maximum(levels, 1))
    X[:, is_number] = standardize(X[:, is_number])
    return Problem(path.stem, X, np.eye(len(classes))[y[drawn]], np.ones(len(X)))


def numbers_or_codes(values):
    """(numbers, 0) if all values are finite numbers, else (codes of texts, how many)."""
    with suppress(ValueError):
        x = np.array(values, float)
        if np.isfinite(x).all():
            return x, 0
    texts, codes = np.unique(values, return_inverse=True)
    return codes, len(texts)


# --- commands -------------------------------------------------------------------------------------

def fetch(source):
    """Download a data set if it is missing, and read it: the number of its rows. If these are all,
    the checksum must fit."""
    try:
        files.locate(source)
    except MissingData:
        if not source.url:
            raise
        print(f"{source.name}: downloading {source.url}", file=sys.stderr)
        files.download(source.url)
    count = len(table(source).y)
    if source.sha256 and count == source.rows:
        path = files.locate(source)[0]
        found = hashlib.sha256(contents(path, source.files[0])).hexdigest()
        if found != source.sha256:
            raise DataError(path, f"sha256 {found} instead of {source.sha256}")
    return count


def show():
    """Print one line per problem."""
    line = "{:12}{:>10}{:>5}{:>6}  {}"
    print(line.format("problem", "steps", "dim", "arms", "data"))
    for name, source in SOURCES.items():
        try:
            place = (*files.locate(source), "bundled")[0]
        except MissingData as error:
            place = f"missing; {error.advice}"
        print(line.format(name, f"{source.rows:,}", source.dim, source.arms, str(place)))
    for name in NAMES[len(SOURCES):]:
        print(line.format(name, "any", 2, 5, "synthetic"))


def main(argv=None):
    """List, or fetch; 0 if all went well, else 1."""
    parser = argparse.ArgumentParser(prog="datasets.py", description="The data sets.")
    command = parser.add_subparsers().add_parser("fetch", help="download what is missing")
    command.add_argument("names", nargs="+", metavar="NAME", choices=["all", *SOURCES])
    names = getattr(parser.parse_args(argv), "names", [])
    if not names:
        show()
    failed = 0
    for source in SOURCES.values():
        if source.name in names or "all" in names:
            try:
                print(f"{source.name}: {fetch(source):,} of {source.rows:,} rows are there")
            except DataError as error:
                failed = 1
                print(error, file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
