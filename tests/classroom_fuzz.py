"""Odd submissions for the tests of the classroom, drawn by a seed.

    python tests/classroom_fuzz.py FOLDER     read, start and grade a class: a line of JSON
"""
import io
import json
import os
import random
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = [".", "..", "/", "nlts.py", "NLTS.PY", "=1+1.py", "<b>x</b>.py", "x" * 250 + ".py",
         "a\\b.py", "\N{RIGHT-TO-LEFT OVERRIDE}yp.stln", "caf\u00e9.py", "a;b.py", "-rf", "CON.py",
         "1_2_3_nlts.py", "Ann Lee_1_assignsubmission_file_", "y" * 64_000, "solutions/nlts.py",
         "nlts (1).py"]
TEXTS = [b"", b"x = 1\n", "x = 1\n".encode("utf-16"), bytes(range(256)), b"def f(:\n",
         b"x = " + b"-" * 50_000 + b"1\n", b"(" * 5000, b"# coding: rot13\nx = 1\n", b"\0" * 1000,
         b"x = 1\n" * 40_000, b"while True: pass\n", b"raise SystemExit\n", b"\r\rx = 1\r",
         b"import os\nos._exit(1)\n", b"x = '" + b"a" * 200_000 + b"'\n",
         "# caf\u00e9\nx = 1\n".encode("latin-1")]


def zipped(files, method=zipfile.ZIP_DEFLATED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name or "x"), content, method)
    return data.getvalue()


def some_zip(rng, depth=0):
    """A zip of odd names and texts, perhaps with others in it, whole, cut or changed."""
    files = {rng.choice(NAMES): rng.choice(TEXTS) for _ in range(rng.randrange(6))}
    if depth < 4 and rng.random() < 0.4:
        files["inner.zip"] = some_zip(rng, depth + 1)
    data = bytearray(zipped(files, rng.choice([0, 8, 12, 14])))
    what = rng.random()
    if what < 0.3:
        del data[rng.randrange(len(data)):]
    elif what < 0.6:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def some_json(rng, depth=0):
    kind = rng.randrange(7 if depth < 3 else 4)
    if kind < 4:
        return [None, rng.random(), "x = 1\ny(", "def add(self):\n    pass"][kind]
    if kind == 4:
        return [some_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    keys = ["cells", "cell_type", "source", "x"]
    return {rng.choice(keys): some_json(rng, depth + 1) for _ in range(4)}


def notebook(rng):
    cells = [{"cell_type": "code", "source": some_json(rng)} for _ in range(rng.randrange(5))]
    book = rng.choice([{"cells": cells}, some_json(rng), {"cells": "[" * 90_000}])
    return json.dumps(book).encode() if rng.random() < 0.9 else b"[" * 100_000


def deep(folder, rng):
    """Folders in each other, as deep as the disk allows."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(rng.choice([30, 300, 1100])):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def folder_of(folder, rng):
    """A folder with files of odd names, links, a pipe, and a sparse file."""
    folder.mkdir()
    for _ in range(rng.randrange(5)):
        name = rng.choice(NAMES).replace("/", "_").replace("\\", "_")[:250].strip(".") or "n"
        if not (folder / name).exists():
            (folder / name).write_bytes(rng.choice(TEXTS))
    kinds = rng.sample(["link.py", "loop", "null.py", "pipe.py", "sparse.py", "deep", "many"], 2)
    for name, target in (("link.py", ROOT / "nlts.py"), ("loop", folder), ("null.py", "/dev/zero")):
        if name in kinds:
            (folder / name).symlink_to(target)
    if "pipe.py" in kinds:
        os.mkfifo(folder / "pipe.py")
    if "sparse.py" in kinds:
        (folder / "sparse.py").touch()
        os.truncate(folder / "sparse.py", 2 ** 40)
    if "deep" in kinds:
        deep(folder, rng)
    for i in range(rng.choice([10, 900]) if "many" in kinds else 0):
        (folder / f"many{i}.py").write_bytes(b"x = 1\n")


def bomb(rng):
    size = rng.choice([2 ** 20, 2 ** 26])
    return rng.choice([
        lambda: zipped({f"{i}.py": bytes(size) for i in range(4)}),
        lambda: zipped({f"{i:03}{'n' * 64_000}.py": b"x" for i in range(140)}),
        lambda: zipped({f"{i}": b"" for i in range(30_000)}),
        lambda: zipped({"a.zip": zipped({"b.zip": zipped({"c.bin": bytes(size)})})})])()


def make_class(folder, number, seed):
    """A class of so many odd submissions."""
    rng = random.Random(seed)
    folder.mkdir()
    for i in range(number):
        place = folder / f"odd{i:03}"
        kind = rng.randrange(10)
        if kind < 4:
            folder_of(place, rng)
        elif kind < 7:
            place.with_suffix(".zip").write_bytes(some_zip(rng))
        elif kind == 7:
            place.with_suffix(".zip").write_bytes(bomb(rng))
        elif kind == 8:
            place.with_suffix(".ipynb").write_bytes(notebook(rng))
        else:
            place.with_suffix(".py").write_bytes(rng.choice(TEXTS))


def seconds_to_start(worker, tries=3):
    """Of a start that is slow another is tried: others use the machine, too."""
    from classroom.sandbox import Broken
    began = time.perf_counter()
    try:
        with worker:
            pass
    except Broken as error:
        assert "exited" in str(error)
    seconds = time.perf_counter() - began
    return seconds if seconds < 2 or tries == 1 else seconds_to_start(worker, tries - 1)


def main(folder):
    """Read, start and grade: rows, points of `honest`, memory of the grader in GB, slowest start.
    """
    import resource

    from classroom import reports
    from classroom.grading import Grader
    from classroom.sandbox import bubblewrap_works
    from classroom.submissions import manifest_of, read_all
    grader = Grader("buffer", 5, "bwrap" if bubblewrap_works() else "none")
    grader.seconds = 1.0
    found = read_all(manifest_of(folder), [part.function for part in grader.parts])
    starts = [seconds_to_start(grader.worker(one)) for one in found
              if not one.problem and b"while" not in one.files[one.main]]
    reports.write_all(Path(folder).with_name("out"), grader, grader.grade_all(found), 5)
    (honest,) = [one for one in found if one.id == "honest"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2 ** 20
    print(json.dumps({"rows": len(found), "honest": honest.points, "memory": memory,
                      "start": max(starts), "started": len(starts)}))


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]
    main(sys.argv[1])
