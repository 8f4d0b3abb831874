"""Make the bundled tables from copies of the raw files.

    python data/make.py Shuttle.rda mushroom.data adult.data adult.test

Shuttle.rda is in the R package mlbench (read with the Python package rdata); the three text files
are UCI's own. Each .npz holds one array a column, in file order: numbers as small integers, text as
codes into `NAME_values`.
"""
import sys
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def small(x):
    """The same integers in the smallest signed type."""
    most = abs(np.int64(x)).max()
    fits = [t for t in (np.int8, np.int16, np.int32) if most <= np.iinfo(t).max]
    return x.astype(fits[0])


def save(name, columns):
    """One array a column; text columns become codes and their sorted values."""
    arrays = {}
    for i, column in enumerate(columns):
        try:
            arrays[f"c{i:02}"] = small(np.array([int(v) for v in column]))
        except ValueError:
            values, codes = np.unique(column, return_inverse=True)
            arrays[f"c{i:02}"] = codes.astype(np.uint8)
            arrays[f"c{i:02}_values"] = values
    np.savez_compressed(HERE / f"{name}.npz", **arrays)


def rows(path, sep):
    """Fields of every line of data; adult.test opens with a remark, its lines end in a stop."""
    lines = Path(path).read_text().splitlines()
    return [line.rstrip(".").split(sep) for line in lines if line and not line.startswith("|")]


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    import rdata  # needed only here
    warnings.simplefilter("ignore", UserWarning)  # rdata assumes ASCII, which it is
    shuttle = rdata.read_rda(sys.argv[1])["Shuttle"]
    save("statlog", [*shuttle.iloc[:, :9].to_numpy().T, shuttle["Class"].cat.codes.to_numpy() + 1])
    save("mushroom", np.array(rows(sys.argv[2], ",")).T)
    save("adult", np.array(rows(sys.argv[3], ", ") + rows(sys.argv[4], ", ")).T)
