"""Files in the formats of their hosts, made up for the tests."""
import functools
import gzip
import io
import zipfile

import numpy as np

import datasets


def lines_of(rows, sep=",", end="\n"):
    """A table as text."""
    return end.join(sep.join(map(str, row)) for row in rows)


def zipped(files):
    """A zip of {name: bytes}."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


def npy(array):
    """The bytes of an .npy file."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


# --- UCI's own files, from the bundled columns ----------------------------------------------------

def bundled(name):
    """Columns c00, c01, ... of data/NAME.npz; of text, codes of the texts in c01_values."""
    with np.load(datasets.BUNDLE / f"{name}.npz") as found:
        return dict(found)


def text_of(found, sep, rows=slice(None), end=""):
    """The original lines, from bundled columns."""
    texts = []
    for name, column in found.items():
        if f"{name}_values" in found:
            texts.append(found[f"{name}_values"][column[rows]])
        elif not name.endswith("_values"):
            texts.append(column[rows].astype(str))
    lines = (sep.join(row) + end + "\n" for row in zip(*texts, strict=True))
    return "".join(lines).encode()


@functools.cache
def originals():
    statlog, mushroom, adult = map(bundled, ("statlog", "mushroom", "adult"))
    return {
        "shuttle.trn": text_of(statlog, " ", slice(43_500)),
        "shuttle.tst": text_of(statlog, " ", slice(43_500, None)),
        "mushroom.data": text_of(mushroom, ","),
        "adult.data": text_of(adult, ", ", slice(32_561)) + b"\n",
        "adult.test": (b"|1x3 Cross validator\n"
                       + text_of(adult, ", ", slice(32_561, None), ".") + b"\n"),
    }


# --- the other hosts' files -----------------------------------------------------------------------

def har(rows=30):
    """The four files of UCI HAR, in its number format."""
    rng = np.random.default_rng(0)
    files = {}
    for part, n in (("train", rows), ("test", rows // 2)):
        X = rng.uniform(-1, 1, (n, 561))
        text = "".join("".join(f" {v: .7e}" for v in row) + "\n" for row in X)
        text = text.replace("e-0", "e-00").replace("e+0", "e+00")  # its exponents have three digits
        files[f"UCI HAR Dataset/{part}/X_{part}.txt"] = text.encode()
        labels = "".join(f"{1 + i % 6}\n" for i in range(n))
        files[f"UCI HAR Dataset/{part}/y_{part}.txt"] = labels.encode()
    return files


def aps(preamble=20, end="\n"):
    """Scania's training file as UCI has it: lines on the license, header, `na` if missing."""
    lines = ["This file is part of APS Failure and Operational Data for Scania Trucks.", ""]
    lines = (lines + ["You should have received a copy of the license."] * 18)[:preamble]
    lines.append(",".join(["class", *(f"aa_{i:03}" for i in range(170))]))
    for i in range(8):
        fields = [f"{i * 1000 + j}" if j % 2 else f"{2130706438 + i + j / 100:.2f}"
                  for j in range(170)]
        for j in range(-i % 5, 170, 5):
            fields[j] = "na"
        lines.append(",".join(["pos" if i % 3 == 0 else "neg", *fields]))
    return (end.join(lines) + end).encode()


def census_text():
    """Census as its host has it; dOccup is column 35."""
    names = ["caseid", *(f"iVar{i}" for i in range(34)), "dOccup"]
    names += [f"iVar{i}" for i in range(34, 67)]
    body = []
    for i in range(30):
        codes = [(i * j) % (2 + j % 3) * 50 for j in range(67)]
        body.append([10_000 + i, *codes[:34], i % 9, *codes[34:]])
    return (",".join(names) + "\n" + lines_of(body)).encode()


def eeg(quote='"'):
    """Epileptic: the recording's name, 178 numbers, the class."""
    names = [quote * 2, *(f"{quote}X{i}{quote}" for i in range(1, 179)), f"{quote}y{quote}"]
    body = []
    for i in range(10):
        wave = [(-1) ** i * (i + j) for j in range(178)]
        body.append([f"{quote}X{i}.V1.{i}{quote}", *wave, 1 + i % 5])
    return (",".join(names) + "\n" + lines_of(body) + "\n").encode()


def covertype(rows=9, elevation=None):
    """Covertype: 54 numbers, the class."""
    numbers = range(rows) if elevation is None else [elevation] * rows
    return lines_of([[x] * 54 + [1 + i % 7] for i, x in enumerate(numbers)]).encode() + b"\n"


def write_covertype(folder, elevation, name="covtype.data"):
    folder.mkdir(parents=True, exist_ok=True)
    data = covertype(3, elevation)
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def stocks(X):
    """Financial: names of stocks, then rows."""
    return (",".join(f"S{i}" for i in range(21)) + "\n" + lines_of(X.tolist(), " ")).encode()


REVIEWS = ('Product Name,Brand Name,Price,Rating,Reviews,Review Votes\n'
           '"a ""phone"", new",B,1.0,5,"Great phone,\nI don\'t regret it!",0\n'
           'b,,2.0,1,Bad. Bad.,1\n'
           'c,C,,3,,0\n')
IRIS = ("length,colour,species\n5.1,red,setosa\n4.9,blue,virginica\n6.0,red,setosa\n"
        "5.5,green,versicolor\n5.3,blue,versicolor\n5.0,red,virginica\n")
HTML = b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"
