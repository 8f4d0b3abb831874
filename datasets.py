"""Twelve bandit problems of one kind: ten data sets, a text set, the wheel; and your own table.

    python datasets.py                      list every problem and where its data is
    python datasets.py fetch NAME...|all    download what is missing
    python datasets.py check                re-read everything that is present
    python datasets.py benchmark            time loading against numpy.loadtxt
    >>> from datasets import load, from_csv
    >>> load("statlog", steps=5000, seed=1).contexts.shape
    (5000, 9)

A class label becomes a bandit by paying 1 for the arm of the right class and 0 for all others.
Preprocessing follows Riquelme et al. (2018), "Deep Bayesian Bandits Showdown", whose rows are also
the ones used by Zahavy & Mannor (2019): categories are one-hot, inputs are standardized on the rows
drawn (except Mushroom, Financial and Jester). Reading files is in lab/files.py, the commands are in
lab/fetch.py.
"""
import csv
import io
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lab import files
from lab.files import DataError, MissingData, contents, cut_header, read_numbers

BUNDLE = Path(__file__).resolve().parent / "data"
RESTORE = "restore it: git checkout -- data"


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


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a data set."""
    X: np.ndarray       # (rows, columns) inputs: numbers, or codes of categories
    y: np.ndarray       # (rows,) classes from 0
    levels: np.ndarray  # (columns,) number of categories, 0 for a number


# --- reading: each data set's files to its table --------------------------------------------------

def classes(path, y, n_arms, line=1, first=1):
    """Labels first..first+n_arms-1 as arms 0..n_arms-1."""
    bad = np.flatnonzero((y < first) | (y >= first + n_arms) | (y % 1 != 0))
    if len(bad):
        what = f"unknown class {y[bad[0]]:g}, expected {first} to {first + n_arms - 1}"
        raise DataError(path, what, line + bad[0])
    return (y - first).astype(np.int8)


def numeric(X, y=None):
    """Table of numbers, integers in the smallest type that holds them."""
    if X.dtype.kind == "i":
        most = max(X.max(), -X.min())
        X = X.astype(np.min_scalar_type(-1 - most))
    if y is None:
        y = np.zeros(len(X), np.int8)
    return Table(X, y, np.zeros(X.shape[1], int))


def categorical(X):
    """Codes without gaps, in place, and how many each column has, over all rows of the file."""
    levels = []
    for column in X.T:
        seen = np.zeros(column.max() + 1, bool)
        seen[column] = True
        code = np.cumsum(seen) - 1
        column[:] = code[column]
        levels.append(seen.sum())
    return X, np.array(levels)


def bundled(name):
    """Columns of data/NAME.npz; of text, codes and their values."""
    path = BUNDLE / f"{name}.npz"
    columns = []
    try:
        with np.load(path, allow_pickle=False) as z:
            for c in z.files:
                if f"{c}_values" in z:
                    columns.append((z[c], list(z[f"{c}_values"])))
                elif not c.endswith("_values"):
                    columns.append(z[c])
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(path, f"damaged ({error})", advice=RESTORE) from error
    return columns


def statlog():
    """The rows of shuttle.trn, as in the paper's code; the bundle also has shuttle.tst."""
    *X, y = (column[:43_500] for column in bundled("statlog"))
    return numeric(np.column_stack(X), classes("statlog", y, 7))


def mushroom():
    """Class 0 is edible, 1 poisonous; all columns are categories."""
    (y, _), *columns = bundled("mushroom")
    X = np.column_stack([codes for codes, _ in columns])
    return Table(X, y, np.array([len(values) for _, values in columns]))


def adult():
    """As the paper's code: without rows that miss a value, and without the column occupation."""
    occupation, income = 6, 14
    columns = bundled("adult")
    numbers = [column for column in columns if type(column) is not tuple]
    text = {i: column for i, column in enumerate(columns) if type(column) is tuple}
    known = [codes != values.index("?") for codes, values in text.values() if "?" in values]
    keep = np.all(known, axis=0)
    y = text.pop(income)[0][keep]
    text.pop(occupation)
    numbers = np.column_stack(numbers)[keep]
    codes, levels = categorical(np.column_stack([codes for codes, _ in text.values()])[keep])
    levels = np.concatenate([np.zeros(numbers.shape[1], int), levels])
    return Table(np.hstack([numbers, codes]), y.astype(np.int8), levels)


def financial(file):
    """Stock prices: a header of names with commas, rows with spaces."""
    path, data = file
    _, rest = cut_header(path, data, 21)
    return numeric(read_numbers(path, rest, 21, 2))


def jester(file):
    """Ratings of 40 jokes."""
    path, data = file
    try:
        X = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(path, f"not a plain .npy array ({error})") from error
    if X.ndim != 2 or X.shape[1] != 40 or X.dtype.kind != "f" or not np.isfinite(X).all():
        raise DataError(path, f"{X.dtype} of shape {X.shape}, not finite ratings of 40 jokes")
    return numeric(X)


def covertype(file):
    path, data = file
    X = read_numbers(path, data, 55, sep=",", dtype=np.int32)
    return numeric(X[:, :54], classes(path, X[:, 54], 7))


def census(file):
    """All columns are categories; caseid is not used, dOccup is the class."""
    path, data = file
    names, rest = cut_header(path, data, 69, b"caseid,")
    X = read_numbers(path, rest, 69, 2, sep=",", dtype=np.int32)
    if "dOccup" not in names:
        raise DataError(path, "no column dOccup", 1)
    occupation = names.index("dOccup")
    y = classes(path, X[:, occupation], 9, 2, first=0)
    X = np.delete(X, [0, occupation], axis=1)
    bad = np.flatnonzero(((X < 0) | (X > 999)).any(1))
    if len(bad):
        raise DataError(path, "a category outside 0 to 999", 2 + bad[0])
    X, levels = categorical(X.astype(np.int16))
    return Table(X, y, levels)


def epileptic(file):
    """The first field of a row, the recording's name, is not used."""
    path, data = file
    _, rest = cut_header(path, data, 180)
    rest = re.sub(rb"^[^,\n]*,", b"0,", rest, flags=re.MULTILINE)
    X = read_numbers(path, rest, 180, 2, sep=",", dtype=np.int32)
    return numeric(X[:, 1:179], classes(path, X[:, 179], 5, 2))


def smartphones(*files):
    """Inputs and labels of the training part, then of the test part."""
    X, y = [], []
    for inputs, labels in (files[:2], files[2:]):
        X.append(read_numbers(*inputs, 561))
        found = read_numbers(*labels, 1)[:, 0]
        if len(found) != len(X[-1]):
            what = f"{len(found)} labels for {len(X[-1])} rows of inputs"
            raise DataError(labels[0], what, len(found))
        y.append(classes(labels[0], found, 6))
    return numeric(np.concatenate(X), np.concatenate(y))


def scania(file):
    """The host's file opens with 20 lines on its license; a missing value is 0, as in the paper."""
    path, data = file
    start = re.search(rb"^class,|\Z", data, re.MULTILINE).start()
    line = data.count(b"\n", 0, start) + 1
    _, rest = cut_header(path, data[start:], 171, b"class,", line)
    if unknown := re.search(rb"^(?!neg,|pos,)[^,\s]+", rest, re.MULTILINE):
        what = f"unknown class {unknown[0].decode('latin-1')[:40]!r}, expected neg or pos"
        raise DataError(path, what, line + 1 + rest.count(b"\n", 0, unknown.start()))
    rest = re.sub(rb"^neg,", b"0,", rest, flags=re.MULTILINE)
    rest = re.sub(rb"^pos,", b"1,", rest, flags=re.MULTILINE)
    X = read_numbers(path, rest.replace(b",na", b",0"), 171, line + 1, sep=",")
    return numeric(X[:, 1:], X[:, 0].astype(np.int8))


def amazon(file):
    """Reviews and their stars; rows without a review are left out."""
    path, data = file
    reader = csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline=""))
    texts, stars = [], []
    try:
        head = next(reader)
        if "Rating" not in head or "Reviews" not in head:
            raise DataError(path, "the header lacks Rating or Reviews", 1)
        for row in reader:
            if len(row) != len(head):
                what = f"{len(row)} columns instead of {len(head)}"
                raise DataError(path, what, reader.line_num)
            rating = row[head.index("Rating")]
            text = row[head.index("Reviews")]
            if rating not in ("1", "2", "3", "4", "5"):
                what = f"unknown class {rating[:40]!r}, expected 1 to 5"
                raise DataError(path, what, reader.line_num)
            if text.strip():
                texts.append(text)
                stars.append(int(rating) - 1)
    except csv.Error as error:
        raise DataError(path, str(error), reader.line_num) from error
    if not texts:
        raise DataError(path, "a header but no reviews", 2)
    return Table(np.array(texts, object)[:, None], np.array(stars, np.int8), np.zeros(1, int))


# --- text -----------------------------------------------------------------------------------------

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
    for row, text in zip(out, texts, strict=True):
        found = [ids.get(word, UNKNOWN) for word in tokenize(text)[:length]]
        row[:len(found)] = found
    return out


# --- paying: inputs and classes to a problem ------------------------------------------------------

def classify(name, X, y, n_arms, rng=None, **more):
    """Arm i pays 1 if the class is i, else 0."""
    return Problem(name, X, np.eye(n_arms)[y], np.ones(len(y)), **more)


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


def review(name, X, y, n_arms, rng):
    """Reviews as word ids; the vocabulary is that of the reviews drawn."""
    ids = vocabulary(X[:, 0])
    return classify(name, encode(X[:, 0], ids), y, n_arms, vocabulary=len(ids) + UNKNOWN + 1)


# --- sources --------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Source:
    """All that is known of a data set."""
    name: str
    read: Callable         # files -> Table
    rows: int              # of the complete data set
    dim: int               # as in the paper's table of results
    arms: int
    files: tuple = ()      # for each file, the names it goes by; none: bundled
    archives: tuple = ()   # zips that hold the files
    url: str = ""          # the file, or one of the archives
    page: str = ""         # if there is no url: where a person gets the file
    sha256: str = ""       # of the first file, unpacked, or of the bundled .npz
    pay: Callable = classify
    scale: bool = True     # standardize the inputs


GOOGLE = "https://storage.googleapis.com/bandits_datasets/"
UCI = "https://archive.ics.uci.edu/static/public/"
KAGGLE = "https://www.kaggle.com/datasets/"
HAR = tuple((f"UCI HAR Dataset/{part}/{x}_{part}.txt", f"{part}/{x}_{part}.txt", f"{x}_{part}.txt")
            for part in ("train", "test") for x in "Xy")
SOURCES = {source.name: source for source in (
    Source("mushroom", mushroom, 8124, 117, 2, pay=eat, scale=False,
           sha256="254831b313f79a33e559162017b2d6dc9bf98284c2d871c951011055d5aab500"),
    Source("financial", financial, 3713, 21, 8, pay=invest, scale=False,
           files=(("raw_stock_contexts",),), url=GOOGLE + "raw_stock_contexts",
           sha256="cf468e5aae150dfd5c6b096464cd11e85f8b01198f8e49bedb941948850a6315"),
    Source("jester", jester, 19_181, 32, 8, pay=joke, scale=False,
           files=(("jester_data_40jokes_19181users.npy",),),
           url=GOOGLE + "jester_data_40jokes_19181users.npy"),
    Source("adult", adult, 45_222, 88, 2,  # 90 here: the paper's draws missed two rare categories
           sha256="a8332a4939d677799baf19bcad24ab373d57f98fcf3deda70331681b965fd734"),
    Source("covertype", covertype, 581_012, 54, 7,
           files=(("covtype.data",),), archives=("covertype.zip",), url=GOOGLE + "covtype.data",
           sha256="0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"),
    Source("census", census, 2_458_285, 377, 9,  # more here: all categories of the file
           files=(("USCensus1990.data.txt",),), archives=("us+census+data+1990.zip",),
           url=GOOGLE + "USCensus1990.data.txt",
           sha256="38e99f50855ddc03167b715b36519ef40b77295ae4e85dfef0c6429ac79ed799"),
    Source("statlog", statlog, 43_500, 9, 7,
           sha256="105506f527adb09a2d82098e55cc02a16dfbc149d55ebb6cfe156bc805bb949f"),
    Source("epileptic", epileptic, 11_500, 178, 5,
           files=(("data.csv", "Epileptic Seizure Recognition.csv"),),
           archives=("epileptic-seizure-recognition.zip",),
           page=KAGGLE + "harunshimanto/epileptic-seizure-recognition",
           sha256="4b3f6024ea24a864c0de51b2ba477bf8b9e4974e8cc01a00dcf45bfc59d48deb"),
    Source("smartphones", smartphones, 10_299, 561, 6, files=HAR,
           archives=("UCI HAR Dataset.zip", "human+activity+recognition+using+smartphones.zip"),
           url=UCI + "240/human+activity+recognition+using+smartphones.zip"),
    Source("scania", scania, 60_000, 170, 2,
           files=(("aps_failure_training_set.csv",),),
           archives=("aps+failure+at+scania+trucks.zip",),
           url=UCI + "421/aps+failure+at+scania+trucks.zip",
           sha256="bb484302e3a3a1c8ef5e1f0129c4dc7cbd58f350867f95b575461ca21ab6b9da"),
    Source("amazon", amazon, 413_840, 60, 5, pay=review, scale=False,
           files=(("Amazon_Unlocked_Mobile.csv",),),
           archives=("amazon-reviews-unlocked-mobile-phones.zip",),
           page=KAGGLE + "PromptCloudHQ/amazon-reviews-unlocked-mobile-phones",
           sha256="097abeefe303816e0f5e9c9ff380adb25910cf46307d2c104911eae8d0304e76"),
)}
NAMES = (*SOURCES, "wheel")


# --- tables: found in a folder, parsed once -------------------------------------------------------

def folders(data_dir=None):
    """Where files are looked for, in this order; downloads go to the first."""
    places = (data_dir, os.environ.get("NLTS_DATA"), files.cache_dir())
    return [Path(place).expanduser() for place in places if place]


def locate(source, data_dir=None):
    """Path of each of the source's files, which an archive may hold; None if one is nowhere."""
    for folder in folders(data_dir):
        found = []
        for names in source.files:
            plain = [name + end for name in names for end in ("", ".gz", ".zip")]
            present = (folder / n for n in (*plain, *source.archives) if (folder / n).is_file())
            found.append(next(present, None))
        if all(found):
            return found
    return None


def how_to_get(source, data_dir=None):
    """What a person must do to have the data."""
    if source.url:
        option = f" --data-dir {data_dir}" if data_dir else ""
        return f"run: python datasets.py fetch {source.name}{option}"
    names = " or ".join(source.files[0])
    return f"download {names} from {source.page} into {folders(data_dir)[0]}"


def table(source, data_dir=None):
    """The whole data set. What is parsed once is kept in the per-user cache, as plain arrays."""
    if not source.files:
        return source.read()
    paths = locate(source, data_dir)
    if paths is None:
        what = f"{source.files[0][0]} is not in {', '.join(map(str, folders(data_dir)))}"
        raise MissingData(source.name, what, advice=how_to_get(source, data_dir))

    def parse():
        pairs = zip(paths, source.files, strict=True)
        result = source.read(*((path, contents(path, names)) for path, names in pairs))
        return result.X, result.y, result.levels

    return Table(*files.parsed_once(source.name, paths, parse, code=__file__))


# --- problems -------------------------------------------------------------------------------------

def whole(name, value, least):
    """The argument `name` as an int of at least `least`."""
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not integer or value < least:
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
    """(T, dim) float64: numbers as they are, a category as one column a value."""
    if not levels.any():
        return X.astype(np.float64)
    columns = [x[:, None] == np.arange(n) if n else x[:, None]
               for x, n in zip(X.T, levels, strict=True)]
    return np.concatenate(columns, axis=1, dtype=np.float64)


def standardize(X):
    """Zero mean and unit variance a column, in place; a constant column becomes exactly 0."""
    X -= X[0].copy()  # else rounding could leave a constant column a spread, to be blown up to 1
    X -= X.mean(0)
    sd = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X /= np.where(sd > 0, sd, 1)
    return X


def load(name, steps=None, seed=0, data_dir=None):
    """A problem of the paper by name. A seed draws its own rows, their order, and random rewards.

    steps: how many rows, without replacement except for Mushroom, as in the paper. By default all
    there are; of the complete Census that is 8 GB. data_dir: looked in before $NLTS_DATA and the
    per-user cache. See also `wheel`.
    """
    key = str(name).lower()
    if key not in NAMES:
        known = ", ".join(NAMES)
        raise ValueError(f"name: unknown problem {name!r}, expected one of {known}")
    if key == "wheel":
        return wheel(steps=4000 if steps is None else steps, seed=seed)
    source = SOURCES[key]
    rng = np.random.default_rng(whole("seed", seed, 0))
    everything = table(source, data_dir)
    rows = draw(key, len(everything.y), steps, rng, replace=key == "mushroom")
    X = everything.X[rows]
    if X.dtype != object:
        X = one_hot(X, everything.levels)
    if source.scale:
        X = standardize(X)
    return source.pay(key, X, everything.y[rows], source.arms, rng)


def wheel(delta=0.5, steps=4000, seed=0, mu=0.1, mu5=0.2, mudot=0.4, sigma=0.1):
    """Arm 5 pays mu5; arms 1 to 4 pay mu, but mudot in their quadrant of the disc |x| <= delta."""
    if not 0 <= delta <= 1:
        raise ValueError(f"delta: expected a radius between 0 and 1, got {delta!r}")
    if not sigma >= 0:
        raise ValueError(f"sigma: expected a standard deviation of at least 0, got {sigma!r}")
    steps = whole("steps", steps, 1)
    rng = np.random.default_rng(whole("seed", seed, 0))
    radius = np.sqrt(rng.uniform(size=steps))  # sqrt: uniform in area
    angle = rng.uniform(0, 2 * np.pi, steps)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    mean = np.full((steps, 5), float(mu))
    mean[:, 4] = mu5
    inside = np.flatnonzero(radius <= delta)
    quadrant = (angle[inside] // (np.pi / 2)).astype(int) % 4
    mean[inside, quadrant] = mudot  # quadrant 1 (x1, x2 > 0) is arm 1's
    return Problem("wheel", X, rng.normal(mean, sigma), mean.max(1))


def drift(problem, seed=0, jitter=0.25):
    """The same rows in the order of their first principal component, so that contexts drift.

    jitter: standard deviation of the noise added to a row's score before sorting, as a part of the
    scores' own. Of text the contexts are word ids, whose first component is mostly the length.
    """
    if not 0 <= jitter < np.inf:
        raise ValueError(f"jitter: expected a finite number of at least 0, got {jitter!r}")
    rng = np.random.default_rng(whole("seed", seed, 0))
    X = standardize(problem.contexts.astype(np.float64))
    _, vectors = np.linalg.eigh(X.T @ X)
    direction = vectors[:, -1]
    direction *= np.sign(direction[np.abs(direction).argmax()])  # either sign is an eigenvector
    score = X @ direction
    order = np.argsort(score + jitter * score.std() * rng.normal(size=len(X)), kind="stable")
    return replace(problem, contexts=problem.contexts[order], rewards=problem.rewards[order],
                   optimal=problem.optimal[order])


def from_csv(path, label=None, steps=None, seed=0, header=None):
    """Any classification table as a bandit: arm i pays 1 if the row's class is the i-th, else 0.

    path: text with one row a line, split by comma, semicolon, tab or spaces; or .npz with X and y;
    or a 2-d .npy. label: name or index of the column of classes, by default the last. header:
    whether the first line has names, by default guessed. Numbers are standardized, a missing one
    counts as average; text becomes one-hot. The problem's `labels` are the classes.
    """
    path = Path(path)
    rng = np.random.default_rng(whole("seed", seed, 0))
    X, levels, y = files.own_table(path, label, header)
    labels, y = np.unique(y, return_inverse=True)
    if not 2 <= len(labels) <= max(2, len(y) / 2):
        what = f"{len(labels)} labels in {len(y)} rows are not classes"
        raise DataError(path, what, advice="choose another label")
    rows = draw(path.name, len(y), steps, rng)
    X = one_hot(X[rows], levels)
    is_number = np.repeat(levels == 0, np.maximum(levels, 1))
    X[:, is_number] = standardize(X[:, is_number])
    return classify(path.stem, X, y[rows], len(labels), labels=tuple(labels.tolist()))


if __name__ == "__main__":
    from lab.fetch import main
    sys.exit(main())
