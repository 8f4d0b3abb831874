"""Files in the formats of their hosts, made up for the tests."""
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


# --- UCI's own files, from the bundled columns ----------------------------------------------------

def original_lines(name, sep, end=""):
    """The lines of UCI's file, from the columns of data/NAME.npz."""
    columns = []
    with np.load(datasets.BUNDLE / f"{name}.npz") as found:
        for c in found:
            if f"{c}_values" in found:
                columns.append(found[f"{c}_values"][found[c]])
            elif not c.endswith("_values"):
                columns.append(found[c].astype(str))
    return [sep.join(row) + end + "\n" for row in zip(*columns, strict=True)]


def originals():
    """{name: bytes} of UCI's files."""
    statlog, adult = original_lines("statlog", " "), original_lines("adult", ", ")
    test = original_lines("adult", ", ", end=".")[32_561:]
    texts = {
        "shuttle.trn": statlog[:43_500],
        "shuttle.tst": statlog[43_500:],
        "mushroom.data": original_lines("mushroom", ","),
        "adult.data": [*adult[:32_561], "\n"],
        "adult.test": ["|1x3 Cross validator\n", *test, "\n"],
    }
    return {name: "".join(lines).encode() for name, lines in texts.items()}


# --- the other hosts' files -----------------------------------------------------------------------

def har(rows=30):
    """The four files of UCI HAR: 561 numbers per line, and classes."""
    files = {}
    for part, n in (("train", rows), ("test", rows // 2)):
        X = np.random.default_rng(n).uniform(-1, 1, (n, 561)).round(7)
        files[f"X_{part}.txt"] = lines_of(X.tolist(), "  ").encode()
        files[f"y_{part}.txt"] = "".join(f"{1 + i % 6}\n" for i in range(n)).encode()
    return files


def aps(rows=8):
    """Scania's training file as UCI has it: lines on the license, header, `na` if missing."""
    lines = [["This file is part of APS Failure and Operational Data for Scania Trucks."], [],
             ["class", *(f"aa_{i:03}" for i in range(170))]]
    for i in range(rows):
        fields = [f"{2130706438 + 1000 * i + j / 100:.2f}" for j in range(170)]
        fields[i] = "na"
        lines.append(["pos" if i % 3 == 0 else "neg", *fields])
    return lines_of(lines, end="\r\n").encode()


def census_text():
    """Census as its host has it; dOccup is column 35."""
    names = ["caseid", *(f"iVar{i}" for i in range(34)), "dOccup"]
    names += [f"iVar{i}" for i in range(34, 67)]
    body = []
    for i in range(30):
        codes = [(i * j) % (2 + j % 3) * 50 for j in range(67)]
        body.append([10_000 + i, *codes[:34], i % 9, *codes[34:]])
    return lines_of([names, *body]).encode()


def eeg(quote='"'):
    """Epileptic: the recording's name, 178 numbers, the class."""
    rows = [[quote * 2, *(f"{quote}X{i}{quote}" for i in range(1, 179)), f"{quote}y{quote}"]]
    for i in range(10):
        wave = [(-1) ** i * (i + j) for j in range(178)]
        rows.append([f"{quote}X{i}.V1.{i}{quote}", *wave, 1 + i % 5])
    return lines_of(rows).encode()


def covertype(rows=9):
    """Covertype: 54 numbers, the class."""
    return lines_of([i] * 54 + [1 + i % 7] for i in range(rows)).encode() + b"\n"


def stocks(X):
    """Financial: names of stocks, then rows."""
    return (",".join(f"S{i}" for i in range(21)) + "\n" + lines_of(X.tolist(), " ")).encode()


def jokes(X):
    """Jester: an .npy."""
    out = io.BytesIO()
    np.save(out, X)
    return out.getvalue()


REVIEWS = ('Product Name,Brand Name,Price,Rating,Reviews,Review Votes\n'
           '"a ""phone"", new",B,1.0,5,"Great phone,\nI don\'t regret it!",0\n'
           'b,,2.0,1,Bad. Bad.,1\n'
           'c,C,,3,,0\n')
