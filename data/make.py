"""Make the bundled tables from UCI's own files in a folder.

    python data/make.py FOLDER

Each .npz holds one array per column, in file order: numbers as small integers, text as codes into
`NAME_values`.
"""
import sys
from pathlib import Path

import numpy as np


def make(target, sep, *paths):
    """Columns of all lines; adult.test opens with a remark, and its lines end in a stop."""
    lines = "".join(path.read_text(encoding="utf-8") for path in paths).splitlines()
    rows = [line.rstrip(".").split(sep) for line in lines if line and not line.startswith("|")]
    arrays = {}
    for i, column in enumerate(np.array(rows).T):
        try:
            x = column.astype(int)
            arrays[f"c{i:02}"] = x.astype(np.min_scalar_type(-abs(x).max() - 1))  # signed, small
        except ValueError:
            values, codes = np.unique(column, return_inverse=True)
            arrays[f"c{i:02}"] = codes.astype(np.uint8)
            arrays[f"c{i:02}_values"] = values
    np.savez_compressed(target, **arrays)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here, folder = Path(__file__).parent, Path(sys.argv[1])
    make(here / "statlog.npz", " ", folder / "shuttle.trn", folder / "shuttle.tst")
    make(here / "mushroom.npz", ",", folder / "mushroom.data")
    make(here / "adult.npz", ", ", folder / "adult.data", folder / "adult.test")
