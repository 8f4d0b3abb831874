"""Tests of datasets.py: bundled data always, raw files where the shared folder is, downloads from a real server."""
import collections
import csv
import dataclasses
import functools
import gzip
import hashlib
import http.server
import importlib.util
import io
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import datasets
from datasets import DataError, MissingData, from_csv, load, wheel

ROOT = Path(__file__).resolve().parent
SHARED = ROOT.parent / "shared" / "data"
shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the folder of raw files ../shared/data is absent")
property_test = settings(deadline=None, max_examples=60)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """No test reads or writes the user's own cache."""
    monkeypatch.delenv("NLTS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def leftovers():
    """Files in the per-user cache."""
    return [p.name for p in datasets.cache_dir().rglob("*") if p.is_file()]


# --- bundled data -------------------------------------------------------------------------------------------------

PUBLISHED = {  # sha256 of UCI's own files
    "shuttle.trn": "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a",
    "shuttle.tst": "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
    "mushroom.data": "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}


def text_of(columns, sep, rows=slice(None), end=""):
    """The original lines, from bundled columns."""
    texts = [(np.array(c[1])[c[0]] if type(c) is tuple else c.astype(str))[rows] for c in columns]
    return "".join(sep.join(row) + end + "\n" for row in zip(*texts)).encode()


@functools.cache
def originals():
    statlog, mushroom, adult = map(datasets.bundled, ("statlog", "mushroom", "adult"))
    return {
        "shuttle.trn": text_of(statlog, " ", slice(43_500)),
        "shuttle.tst": text_of(statlog, " ", slice(43_500, None)),
        "mushroom.data": text_of(mushroom, ","),
        "adult.data": text_of(adult, ", ", slice(32_561)) + b"\n",
        "adult.test": b"|1x3 Cross validator\n" + text_of(adult, ", ", slice(32_561, None), ".") + b"\n",
    }


def test_bundled_data_are_the_published_files_to_the_byte():
    files = originals()
    assert {name: hashlib.sha256(data).hexdigest() for name, data in files.items()} == PUBLISHED
    statlog = datasets.bundled("statlog")
    statlog[3][17] += 1  # planted: one value of 580,000 is off
    assert hashlib.sha256(text_of(statlog, " ", slice(43_500))).hexdigest() != PUBLISHED["shuttle.trn"]


@shared
@pytest.mark.parametrize("name", PUBLISHED)
def test_bundled_data_equal_the_raw_files(name):
    assert originals()[name] == (SHARED / name).read_bytes()


def test_bundle_is_small_plain_and_documented():
    files = sorted(p for p in (ROOT / "data").iterdir() if p.is_file())
    assert sum(p.stat().st_size for p in files) < 1.5e6
    assert [p.name for p in files] == ["README.md", "adult.npz", "make.py", "mushroom.npz", "statlog.npz"]
    for path in files:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as z:
                assert all(z[k].dtype != object for k in z.files)
    assert "CC BY 4.0" in (ROOT / "data" / "README.md").read_text()


def test_maker_reproduces_the_bundle(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("make", ROOT / "data" / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    monkeypatch.setattr(make, "HERE", tmp_path)
    for name, data in originals().items():
        (tmp_path / name).write_bytes(data)
    make.save("statlog", np.loadtxt(tmp_path / "shuttle.trn", dtype=int).T)
    make.save("mushroom", np.array(make.rows(tmp_path / "mushroom.data", ",")).T)
    rows = make.rows(tmp_path / "adult.data", ", ") + make.rows(tmp_path / "adult.test", ", ")
    make.save("adult", np.array(rows).T)
    for name in ("mushroom", "adult"):
        assert (tmp_path / f"{name}.npz").read_bytes() == (ROOT / "data" / f"{name}.npz").read_bytes()
    with np.load(tmp_path / "statlog.npz") as z:
        for ours, made in zip(datasets.bundled("statlog"), (z[k] for k in z.files)):
            np.testing.assert_array_equal(ours[:43_500], made)


@pytest.mark.parametrize("name, dim, counts", [
    ("statlog", 9, [34_108, 37, 132, 6_748, 2_458, 6, 11]),
    ("mushroom", 117, [4_208, 3_916]),
    ("adult", 90, [34_014, 11_208]),  # the paper's 88 misses two rare categories that its draws did not contain
])
def test_bundled_rows_dimensions_and_class_counts(name, dim, counts):
    table = datasets.table(datasets.SOURCES[name])
    assert np.bincount(table.y).tolist() == counts
    problem = load(name)
    assert (len(problem), problem.dim, problem.n_arms) == (sum(counts), dim, datasets.SOURCES[name].arms)
    if name != "mushroom":
        assert problem.rewards.sum(0).tolist() == counts


def test_adult_categories_do_not_depend_on_the_rows_drawn():
    assert {load("adult", 50, seed).dim for seed in range(5)} == {90}


# --- shared raw files ---------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@shared
@pytest.mark.parametrize("name, rows, dim, counts", [
    ("financial", 3_713, 21, None),
    ("jester", 19_181, 32, None),
    ("covertype", 581_012, 54, [211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510]),
    ("census", 15_317, 385, None),  # paper: 377; ours has all categories of the file, whichever rows are drawn
    ("epileptic", 11_500, 178, [2_300] * 5),
    ("scania", 2_002, 170, None),
    ("amazon", 1_919, 60, None),
])
def test_raw_files_give_the_paper_s_problems(name, rows, dim, counts, shared_cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", shared_cache)
    source = datasets.SOURCES[name]
    table = datasets.table(source, SHARED)
    assert len(table.y) == rows
    assert counts is None or np.bincount(table.y).tolist() == counts
    problem = load(name.upper(), 500, 3, SHARED)
    assert problem.contexts.shape == (500, dim) and problem.rewards.shape == (500, source.arms)
    assert np.isfinite(problem.contexts).all() and np.isfinite(problem.rewards).all()
    with pytest.raises(ValueError, match=f"{name} has only {rows}"):
        load(name, rows + 1, data_dir=SHARED)


@shared
@pytest.mark.parametrize("name, classes", [
    ("USCensus1990.data.txt", lambda row: row["dOccup"]), ("aps_failure_training_set.csv", lambda row: row["class"]),
    ("Amazon_Unlocked_Mobile.csv", lambda row: row["Rating"]),
])
def test_class_counts_of_samples_against_the_csv_module(name, classes, shared_cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", shared_cache)
    with open(SHARED / name, newline="", encoding="utf-8") as f:
        expected = collections.Counter(classes(row) for row in csv.DictReader(f))
    source = next(s for s in datasets.SOURCES.values() if s.files and s.files[0][0] == name)
    counts = np.bincount(datasets.table(source, SHARED).y)
    assert counts.tolist() == [n for _, n in sorted(expected.items())]


@shared
def test_covertype_values_against_loadtxt_and_checksums(capsys):
    with gzip.open(SHARED / "covtype.data.gz") as f:
        lines = [f.readline() for _ in range(3_000)]
    ours = datasets.integers("covtype.data", b"".join(lines), 55)
    np.testing.assert_array_equal(ours, np.loadtxt(lines, delimiter=","))
    for line in (SHARED / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        if name in ("raw_stock_contexts", "data.csv"):
            assert digest in {s.sha256 for s in datasets.SOURCES.values()}
    assert datasets.main(["check", "--data-dir", str(SHARED)]) == 0
    out = capsys.readouterr().out
    assert out.count(" complete") == 10 and out.count("a part of the complete") == 3 and "BAD" not in out


# --- problems -----------------------------------------------------------------------------------------------------

@property_test
@given(st.sampled_from(["statlog", "mushroom", "adult", "wheel"]), st.integers(1, 300), st.integers(0, 2**32))
def test_a_problem_is_well_formed_and_reproducible(name, steps, seed):
    p, again = load(name, steps, seed), load(name.title(), steps, seed)
    assert p.name == name and len(p) == steps and p.vocabulary is None
    assert p.contexts.shape == (steps, p.dim) and p.contexts.dtype == np.float64
    assert p.rewards.shape == (steps, p.n_arms) and p.optimal.shape == (steps,)
    for a, b in zip((p.contexts, p.rewards, p.optimal), (again.contexts, again.rewards, again.optimal)):
        np.testing.assert_array_equal(a, b)
        assert np.isfinite(a).all()
    if name in ("statlog", "adult"):
        assert (np.sort(p.rewards, 1)[:, :-1] == 0).all() and (p.rewards.max(1) == 1).all() and (p.optimal == 1).all()
        spread = p.contexts.std(0)
        np.testing.assert_allclose(p.contexts.mean(0), 0, atol=1e-9)
        assert np.all((abs(spread - 1) < 1e-9) | (p.contexts == 0).all(0))


def test_each_seed_draws_its_own_rows_and_order():
    a, b = load("statlog", 1000, 0), load("statlog", 1000, 1)
    assert (a.rewards != b.rewards).any() and (a.contexts != b.contexts).any()
    ends = [load("mushroom", 4000, seed).rewards[:, 1] for seed in (0, 1)]
    assert (ends[0] != ends[1]).any()


@property_test
@given(st.lists(st.sampled_from([0.1, 1 / 3, 1e-9, 7.0, 12345.678]), min_size=1, max_size=4), st.integers(1, 50),
       st.integers(0, 1000))
def test_standardize_never_divides_by_nothing(constants, rows, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.full((rows, len(constants)), constants), rng.normal(5, 3, (rows, 2))])
    Z = datasets.standardize(X.copy())
    assert (Z[:, :len(constants)] == 0).all() and np.isfinite(Z).all()
    if rows > 1:
        np.testing.assert_allclose(Z[:, len(constants):].std(0), 1)


def test_planted_naive_standardization_blows_up_a_constant_column():
    X = np.full((3, 1), 0.1)  # their mean is 0.10000000000000002
    naive = (X - X.mean(0)) / X.std(0)
    assert (abs(naive) == 1).all() and (datasets.standardize(X) == 0).all()


def test_rows_are_drawn_without_replacement_and_only_as_many_as_there_are(folder):
    rows = [[i] + [0] * 53 + [1 + i % 7] for i in range(40)]
    (folder / "covtype.data").write_text("\n".join(",".join(map(str, row)) for row in rows))
    p = load("covertype", 40, 5, folder)
    assert len(np.unique(p.contexts[:, 0].round(9))) == 40 and (p.contexts[:, 1:] == 0).all()
    order = np.argsort(p.contexts[:, 0])
    np.testing.assert_array_equal(p.rewards[order].argmax(1), np.arange(40) % 7)  # labels stay with their rows
    with pytest.raises(ValueError, match="steps: 41 asked for, but covertype has only 40"):
        load("covertype", 41, 5, folder)
    assert len(load("mushroom", 20_000)) == 20_000


@pytest.mark.parametrize("steps", [0, -1, 2.5, "10", True])
def test_bad_steps(steps):
    for name in ("statlog", "mushroom", "wheel"):
        with pytest.raises(ValueError, match="steps: expected a whole number"):
            load(name, steps)


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_bad_seed(seed):
    for name in ("statlog", "wheel"):
        with pytest.raises(ValueError, match="seed: expected a whole number of at least 0"):
            load(name, 5, seed)


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="name: unknown problem 'iris', expected one of mushroom, .*, wheel"):
        load("iris")


def test_mushroom_rewards():
    p = load("mushroom", 50_000, 2)
    eat = p.rewards[:, 1]
    edible = p.optimal == 5
    assert (p.rewards[:, 0] == 0).all() and (eat[edible] == 5).all() and (p.optimal[~edible] == 0).all()
    assert set(eat[~edible]) == {5.0, -35.0}
    assert stats.binomtest(int((eat[~edible] == 5).sum()), int((~edible).sum())).pvalue > 1e-4
    assert abs(edible.mean() - 4208 / 8124) < 0.02 and set(np.unique(p.contexts)) == {0.0, 1.0}
    assert (p.contexts.sum(1) == 22).all()  # one value in each of the 22 columns


def test_financial_rewards_are_noisy_unit_portfolios(folder):
    X = np.random.default_rng(0).normal(size=(3000, 21))
    np.savetxt(folder / "raw_stock_contexts", X, header=",".join(f"S{i}" for i in range(21)), comments="")
    p = load("financial", seed=4, data_dir=folder)
    beta, *_ = np.linalg.lstsq(p.contexts, p.rewards)
    np.testing.assert_allclose(np.linalg.norm(beta, axis=0), 1, atol=0.02)
    np.testing.assert_allclose((p.rewards - p.contexts @ beta).std(0), 0.01 * np.arange(1, 9), rtol=0.1)
    np.testing.assert_allclose(p.optimal, (p.contexts @ beta).max(1), atol=0.05)
    np.testing.assert_allclose(np.sort(p.contexts, 0), np.sort(X, 0))  # raw, not standardized


def test_jester_splits_a_user_s_ratings(folder):
    X = np.random.default_rng(0).uniform(-10, 10, (50, 40))
    np.save(folder / "jester_data_40jokes_19181users.npy", X)
    p, q = load("jester", data_dir=folder), load("jester", seed=1, data_dir=folder)
    assert p.dim == 32 and p.n_arms == 8
    np.testing.assert_array_equal(p.optimal, p.rewards.max(1))
    joined = np.sort(np.sort(np.hstack([p.contexts, p.rewards]), 1), 0)
    np.testing.assert_array_equal(joined, np.sort(np.sort(X, 1), 0))
    assert set(p.rewards.ravel()) != set(q.rewards.ravel())  # other jokes are the arms


@pytest.mark.parametrize("delta, optimum", [(0.5, 1000), (0.3, 872), (0.1, 808)])
def test_wheel_is_the_appendix_s(delta, optimum):
    p = wheel(delta, steps=40_000, seed=7)
    x, y = p.contexts.T
    inside = x**2 + y**2 <= delta**2
    mean = np.full((len(p), 5), 0.1)
    mean[:, 4] = 0.2
    for arm, quadrant in enumerate([(x > 0) & (y > 0), (x < 0) & (y > 0), (x < 0) & (y < 0), (x > 0) & (y < 0)]):
        mean[inside & quadrant, arm] = 0.4
    np.testing.assert_allclose(p.optimal, mean.max(1))
    assert stats.kstest((p.rewards - mean).ravel() / 0.1, "norm").pvalue > 1e-4
    assert stats.kstest(x**2 + y**2, "uniform").pvalue > 1e-4  # uniform in the disc, not in the radius
    assert stats.kstest(np.sqrt(x**2 + y**2), "uniform").pvalue < 1e-4  # so the test can tell
    assert abs(p.optimal.sum() / 10 - optimum) < 10
    assert (p.dim, p.n_arms, p.name) == (2, 5, "wheel")


def test_wheel_parameters_are_arguments():
    p = wheel(1, 500, 0, mu=1, mu5=2, mudot=3, sigma=0)
    assert (p.rewards.max(1) == 3).all() and (p.rewards[:, 4] == 2).all() and (p.rewards.min(1) == 1).all()
    assert (wheel(0, 100).optimal == 0.2).all() and len(load("wheel")) == 4000
    for bad in ({"delta": -0.1}, {"delta": 1.1}, {"delta": float("nan")}, {"sigma": -1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            wheel(**bad)


# --- readers ------------------------------------------------------------------------------------------------------

tables = st.integers(1, 6).flatmap(lambda width: st.lists(
    st.lists(st.integers(-999_999_999, 999_999_999), min_size=width, max_size=width), min_size=1, max_size=12))


def lines_of(rows, sep=",", end="\n"):
    return end.join(sep.join(map(str, row)) for row in rows)


@property_test
@given(tables, st.sampled_from([",", " ", ";"]), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 300))
def test_integers_reads_any_table_in_any_blocks(rows, sep, end, last, block):
    data = (lines_of(rows, sep, end) + end * last).encode()
    np.testing.assert_array_equal(datasets.integers("t", data, len(rows[0]), sep=sep, block=block), rows)


@property_test
@given(tables, st.data())
def test_integers_names_the_line_of_any_bad_field(rows, data):
    i, j = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, len(rows[0]) - 1))
    rows = [list(row) for row in rows]
    rows[i][j] = data.draw(st.sampled_from(["x", "1.5", "--1", "-", "1-", "1e3", "1234567890", "1,2", "+1", "1 "]))
    if j == len(rows[0]) - 1 and rows[i][j] == "1 " and i == len(rows) - 1:
        return  # white space at the very end is not an error
    with pytest.raises(DataError, match=f"^f.txt, line {i + 5}: .*get it again"):
        datasets.integers("f.txt", lines_of(rows).encode(), len(rows[0]), line=5, block=64)


@property_test
@given(st.lists(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3), min_size=1, max_size=8), st.data())
def test_reals_reads_numbers_and_names_bad_lines(rows, data):
    np.testing.assert_array_equal(datasets.reals("t", lines_of(rows, "  ").encode(), 3), rows)
    i = data.draw(st.integers(0, len(rows) - 1))
    rows[i][1] = data.draw(st.sampled_from(["x", "nan", "inf", "1e999", "1_000", "", "1 2"]))
    with pytest.raises(DataError, match=f"line {i + 1}: "):
        datasets.reals("t", lines_of(rows, "\t" if rows[i][1] else " ").encode(), 3)


def har(rows=30, seed=0):
    """The four files of UCI HAR, in its number format."""
    rng = np.random.default_rng(seed)
    files = {}
    for part, n in (("train", rows), ("test", rows // 2)):
        X = rng.uniform(-1, 1, (n, 561))
        text = "".join("".join(f" {v: .7e}" for v in row) + "\n" for row in X)
        text = text.replace("e-0", "e-00").replace("e+0", "e+00")  # its exponents have three digits
        files[f"UCI HAR Dataset/{part}/X_{part}.txt"] = text.encode()
        files[f"UCI HAR Dataset/{part}/y_{part}.txt"] = b"".join(b"%d\n" % (1 + i % 6) for i in range(n))
    return files


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize("layout", ["tree", "flat", "gz", "zip", "zip in zip"])
def test_smartphones_in_every_layout(folder, layout):
    files = har()
    if layout == "tree":
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    elif layout in ("flat", "gz"):
        for name, data in files.items():
            name = Path(name).name
            (folder / (name if layout == "flat" else name + ".gz")).write_bytes(
                data if layout == "flat" else gzip.compress(data))
    elif layout == "zip":
        (folder / "UCI HAR Dataset.zip").write_bytes(zipped(files))
    else:
        inner = {"UCI HAR Dataset.names": b"about", "UCI HAR Dataset.zip": zipped(files)}
        (folder / "human+activity+recognition+using+smartphones.zip").write_bytes(zipped(inner))
    table = datasets.table(datasets.SOURCES["smartphones"], folder)
    expected = np.concatenate([np.loadtxt(io.BytesIO(data)) for name, data in files.items() if "X_" in name])
    np.testing.assert_array_equal(table.X, expected)
    assert table.y.tolist() == [i % 6 for i in range(30)] + [i % 6 for i in range(15)]
    p = load("smartphones", 45, data_dir=folder)
    assert (p.dim, p.n_arms) == (561, 6)


def aps(preamble=20, rows=8, end="\n"):
    """Scania's training file as UCI has it: lines on the license, header, `na` where a value is missing."""
    lines = ["This file is part of APS Failure and Operational Data for Scania Trucks.", ""]
    lines = (lines + ["You should have received a copy of the license."] * 18)[:preamble]
    lines.append(",".join(["class"] + [f"aa_{i:03}" for i in range(170)]))
    for i in range(rows):
        fields = ["na" if (i + j) % 5 == 0 else f"{i * 1000 + j}" if j % 2 else f"{2130706438 + i + j / 100:.2f}"
                  for j in range(170)]
        lines.append(",".join(["pos" if i % 3 == 0 else "neg"] + fields))
    return (end.join(lines) + end).encode()


@pytest.mark.parametrize("preamble", [0, 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_scania_with_and_without_preamble(folder, preamble, end):
    (folder / "aps_failure_training_set.csv").write_bytes(aps(preamble, end=end))
    table = datasets.table(datasets.SOURCES["scania"], folder)
    assert table.X.shape == (8, 170) and table.y.tolist() == [1, 0, 0, 1, 0, 0, 1, 0]
    assert table.X[0, 0] == 0 and table.X[0, 2] == 2130706438.02 and table.X[3, 1] == 3001 and table.X[3, 2] == 0
    assert load("scania", data_dir=folder).dim == 170


def census_text(rows=30):
    names = ["caseid"] + [f"iVar{i}" for i in range(66)] + ["dOccup", "iLast"]
    body = [[10_000 + i] + [(i * j) % (2 + j % 3) * 50 for j in range(66)] + [i % 9, 0] for i in range(rows)]
    return (",".join(names) + "\n" + lines_of(body)).encode()


def test_census_is_one_hot_over_the_whole_file(folder):
    (folder / "USCensus1990.data.txt.gz").write_bytes(gzip.compress(census_text()))
    table = datasets.table(datasets.SOURCES["census"], folder)
    body = np.array([row.split(",") for row in census_text().decode().split("\n")[1:]], int)
    columns = np.delete(body, [0, 67], axis=1)
    assert table.levels.tolist() == [len(set(c)) for c in columns.T]
    assert table.y.tolist() == [i % 9 for i in range(30)]
    X = datasets.one_hot(table.X, table.levels)
    assert (X.sum(1) == 67).all()
    recovered = np.column_stack([np.unique(c)[block.argmax(1)] for c, block in
                                 zip(columns.T, np.split(X, np.cumsum(table.levels)[:-1], axis=1))])
    np.testing.assert_array_equal(recovered, columns)
    assert {load("census", 3, seed, folder).dim for seed in range(4)} == {table.levels.sum()}


def eeg(rows=10, quote='"'):
    names = [quote * 2] + [f"{quote}X{i}{quote}" for i in range(1, 179)] + [f"{quote}y{quote}"]
    body = [[f"{quote}X{i}.V1.{i}{quote}"] + [(-1) ** i * (i + j) for j in range(178)] + [1 + i % 5]
            for i in range(rows)]
    return (",".join(names) + "\n" + lines_of(body) + "\n").encode()


@pytest.mark.parametrize("name, quote", [("data.csv", '"'), ("Epileptic Seizure Recognition.csv", "")])
def test_epileptic(folder, name, quote):
    (folder / name).write_bytes(eeg(quote=quote))
    table = datasets.table(datasets.SOURCES["epileptic"], folder)
    assert table.X[3, :3].tolist() == [-3, -4, -5] and table.X.shape == (10, 178)
    assert table.y.tolist() == [i % 5 for i in range(10)]


REVIEWS = ('Product Name,Brand Name,Price,Rating,Reviews,Review Votes\n'
           '"a ""phone"", new",B,1.0,5,"Great phone,\nI don\'t regret it!",0\n'
           'b,,2.0,1,Bad. Bad.,1\n'
           'c,C,,3,,0\n')


def test_amazon_reads_quotes_newlines_and_skips_empty_reviews(folder):
    (folder / "Amazon_Unlocked_Mobile.csv").write_text(REVIEWS)
    p = load("amazon", data_dir=folder)
    assert p.contexts.shape == (2, 60) and p.contexts.dtype.kind == "i" and p.n_arms == 5
    assert sorted(p.rewards.argmax(1)) == [0, 4] and p.vocabulary == 2 + 10 == p.contexts.max() + 1


def test_tokenize():
    assert datasets.tokenize("Great phone,\nI DON'T regret it!! 4G") == [
        "great", "phone", ",", "i", "don't", "regret", "it", "!", "!", "4g"]


@property_test
@given(st.lists(st.text(max_size=40), max_size=6), st.lists(st.text(max_size=40), max_size=3), st.integers(1, 8))
def test_encoding_cuts_pads_and_keeps_unknown_words_apart(train, test, length):
    ids = datasets.vocabulary(train)
    assert sorted(ids.values()) == list(range(2, len(ids) + 2))
    words = {i: word for word, i in ids.items()}
    X = datasets.encode(train + test, ids, length)
    assert X.shape == (len(train) + len(test), length)
    for row, text in zip(X, train + test):
        tokens = datasets.tokenize(text)[:length]
        assert (row[len(tokens):] == 0).all()
        assert [words.get(i, "?") for i in row[:len(tokens)]] == [t if t in ids else "?" for t in tokens]
    assert (X[:len(train)] != 1).all()  # no word of the training text is unknown


# --- bad files ----------------------------------------------------------------------------------------------------

COVERTYPE = lines_of([[i] * 54 + [1 + i % 7] for i in range(9)]).encode() + b"\n"
TICKERS = ",".join(f"S{i}" for i in range(21)).encode() + b"\n"
STOCKS = TICKERS + lines_of(np.ones((4, 21)), " ").encode() + b"\n"


def edit(data, line, change):
    lines = data.split(b"\n")
    lines[line - 1] = change(lines[line - 1])
    return b"\n".join(lines)


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


HTML = b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"
JESTER = "jester_data_40jokes_19181users.npy"
APS, CSV = "aps_failure_training_set.csv", "Amazon_Unlocked_Mobile.csv"
COVTYPE, CENSUS, STOCK = "covtype.data", "USCensus1990.data.txt", "raw_stock_contexts"
BAD = [  # what is wrong, problem, file, bytes, what the message must say
    ("truncated", "covertype", COVTYPE, COVERTYPE[:-60], "line 9: .* columns instead of 55"),
    ("truncated", "covertype", "covtype.data.gz", gzip.compress(COVERTYPE)[:-12], "broken archive"),
    ("truncated", "covertype", "covertype.zip", zipped({"covtype.data": COVERTYPE})[:-20], "broken archive"),
    ("truncated", "jester", JESTER, npy(np.ones((9, 40)))[:-8], "not a plain .npy array"),
    ("truncated", "financial", STOCK, STOCKS[:-40], "line 5: .* columns instead of 21"),
    ("truncated", "epileptic", "data.csv", eeg()[:-50], "line 11: .* columns instead of 180"),
    ("truncated", "census", CENSUS, census_text()[:-30], "line 31: .* columns instead of 69"),
    ("truncated", "scania", APS, aps()[:-40], "line 29: .* columns instead of 171"),
    ("truncated", "amazon", CSV, REVIEWS[:-8].encode(), "line 5: .* columns instead of 6"),
    ("columns", "covertype", COVTYPE, edit(COVERTYPE, 4, lambda r: r + b",1"), "line 4: 56 columns instead of 55"),
    ("columns", "covertype", COVTYPE, edit(edit(COVERTYPE, 4, lambda r: r + b",1"), 5, lambda r: r[2:]), "line 4:"),
    ("columns", "jester", JESTER, npy(np.ones((9, 39))), r"shape \(9, 39\)"),
    ("columns", "financial", STOCK, STOCKS[len(TICKERS):], "line 1: expected a header of 21 names"),
    ("columns", "census", CENSUS, census_text().replace(b"caseid,", b""), "line 1: expected a header"),
    ("columns", "census", CENSUS, census_text().replace(b"dOccup", b"dOther"), "line 1: no column dOccup"),
    ("text", "covertype", COVTYPE, edit(COVERTYPE, 3, lambda r: b"abc" + r[1:]), "line 3: 'abc' is not a number"),
    ("text", "financial", STOCK, edit(STOCKS, 3, lambda r: b"x" + r), "line 3: 'x1.0' is not a number"),
    ("text", "scania", APS, aps().replace(b",1001,", b",1oo1,"), "line 23: '1oo1' is not a number"),
    ("text", "census", CENSUS, census_text().replace(b"\n10001,0,50", b"\n10001,0,-5"), "line 3: a category"),
    ("text", "jester", JESTER, npy(np.full((9, 40), np.nan)), "finite ratings"),
    ("class", "covertype", COVTYPE, edit(COVERTYPE, 5, lambda r: r[:-1] + b"8"), "line 5: unknown class 8"),
    ("class", "scania", APS, aps().replace(b"\nneg,", b"\nnix,", 1), "line 23: unknown class 'nix'"),
    ("class", "epileptic", "data.csv", edit(eeg(), 6, lambda r: r[:-1] + b"0"), "line 6: unknown class 0"),
    ("class", "amazon", CSV, REVIEWS.replace(",1,", ",six,").encode(), "line 4: unknown class 'six'"),
    ("web page", "covertype", COVTYPE, HTML, "line 1: a web page, not data"),
    ("web page", "jester", JESTER, HTML, "line 1: a web page, not data"),
    ("web page", "amazon", CSV, b"\n  " + HTML, "line 1: a web page, not data"),
    ("unsafe zip", "covertype", "covertype.zip", zipped({"../x": b"1", "covtype.data": COVERTYPE}), "name '../x'"),
    ("unsafe zip", "covertype", "covertype.zip", zipped({"/etc/x": b"1", "covtype.data": COVERTYPE}), "unsafe name"),
    ("other zip", "covertype", "covertype.zip", zipped({"iris.data": b"1"}), "no covtype.data or covtype.data.gz"),
    ("pickle", "jester", JESTER, npy(np.array([{}, []], object)), "not a plain .npy array .*allow_pickle=False"),
    ("empty", "covertype", COVTYPE, b"", "line 1: the file is empty"),
    ("empty", "jester", JESTER, b"", "line 1: the file is empty"),
    ("empty", "scania", APS, b"\n\n", "line 1: the file is empty"),
    ("empty", "covertype", "covtype.data.gz", gzip.compress(b""), "line 1: the file is empty"),
    ("empty", "census", CENSUS, census_text().split(b"\n")[0], "line 2: a header but no rows"),
    ("empty", "amazon", CSV, REVIEWS.split("\n")[0].encode(), "line 2: a header but no reviews"),
    ("no header", "scania", APS, b"some\nother text", "line 2: expected a header of 171 names"),
]


@pytest.mark.parametrize("kind, name, file, data, message", BAD, ids=[f"{b[0]} {b[1]}" for b in BAD])
def test_a_bad_file_is_named_and_leaves_nothing_behind(folder, capsys, kind, name, file, data, message):
    (folder / file).write_bytes(data)
    with pytest.raises(DataError, match=f"(?s){file}.*{message}.*get it again") as caught:
        load(name, data_dir=folder)
    assert not isinstance(caught.value, MissingData) and leftovers() == []
    assert [p.name for p in folder.iterdir()] == [file]
    assert datasets.main(["check", "--data-dir", str(folder)]) == 1 and "BAD" in capsys.readouterr().out


def test_good_files_pass_the_same_way(folder):
    """The bad files above are bad for the reason given: without the fault they load."""
    good = {"covtype.data": COVERTYPE, JESTER: npy(np.ones((9, 40))), "raw_stock_contexts": STOCKS, "data.csv": eeg(),
            "USCensus1990.data.txt": census_text(), APS: aps(), CSV: REVIEWS.encode()}
    for file, data in good.items():
        (folder / file).write_bytes(data)
    for name in ("covertype", "jester", "financial", "epileptic", "census", "scania", "amazon"):
        assert len(load(name, data_dir=folder)) > 0


def test_smartphones_with_a_label_missing(folder):
    for name, data in har().items():
        (folder / Path(name).name).write_bytes(data[:-2] if "y_test" in name else data)
    with pytest.raises(DataError, match="y_test.txt, line 14: 14 labels for 15 rows"):
        load("smartphones", data_dir=folder)


def test_damaged_bundle_says_how_to_restore_it(tmp_path, monkeypatch):
    data = (ROOT / "data" / "statlog.npz").read_bytes()
    monkeypatch.setattr(datasets, "BUNDLE", tmp_path)
    for damaged in (data[:-100], data[:1000] + b"x" * 50 + data[1050:], b""):
        (tmp_path / "statlog.npz").write_bytes(damaged)
        with pytest.raises(DataError, match="statlog.npz.*git checkout -- data"):
            load("statlog")
    np.savez(tmp_path / "statlog.npz", **{f"c{i:02}": np.ones(43_500, int) for i in range(10)})  # readable, but other
    with pytest.raises(DataError, match="sha256 .* instead of .*git checkout -- data"):
        datasets.inspect(datasets.SOURCES["statlog"], [])


# --- where files are looked for, and the cache of parsed tables ---------------------------------------------------

def write_covertype(folder, elevation, name="covtype.data"):
    folder.mkdir(parents=True, exist_ok=True)
    data = lines_of([[elevation] * 54 + [1]] * 3).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def elevation(data_dir=None):
    return datasets.table(datasets.SOURCES["covertype"], data_dir).X[0, 0]


def test_folders_are_searched_in_order(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NLTS_DATA", str(tmp_path / "env"))
    with pytest.raises(MissingData, match="covtype.data is not in .*run: python datasets.py fetch covertype"):
        load("covertype", data_dir=folder)
    with pytest.raises(MissingData, match="https://www.kaggle.com/.*into"):
        load("amazon")
    write_covertype(datasets.cache_dir(), 3, "covtype.data.gz")
    assert elevation(folder) == 3
    write_covertype(tmp_path / "env", 2)
    assert elevation(folder) == 2
    write_covertype(folder, 1)
    assert elevation(folder) == 1 and elevation() == 2


def test_a_table_is_parsed_once_until_its_file_changes(folder, monkeypatch):
    write_covertype(folder, 5)
    before = load("covertype", data_dir=folder)
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "contents", lambda *_: pytest.fail("parsed again"))
        np.testing.assert_array_equal(load("covertype", data_dir=folder).contexts, before.contexts)
    write_covertype(folder, 77_777)
    assert elevation(folder) == 77_777
    cached, = (datasets.cache_dir() / "parsed").iterdir()  # and the old one is gone
    for damage in (b"", cached.read_bytes()[:-1], b"\x93NUMPY garbage", npy(np.array([{}], object))):
        cached.write_bytes(damage)
        assert elevation(folder) == 77_777
    assert leftovers() == [cached.name]


def test_a_cache_that_cannot_be_written_does_not_matter(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    write_covertype(folder, 5)
    assert elevation(folder) == 5 and elevation(folder) == 5

    def full(*_, **__):
        raise OSError("no space left on device")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "full"))
    monkeypatch.setattr(datasets.np, "save", full)
    assert elevation(folder) == 5 and leftovers() == []


# --- own tables ---------------------------------------------------------------------------------------------------

IRIS = "length,colour,species\n5.1,red,setosa\n4.9,blue,virginica\n6.0,red,setosa\n?,green,versicolor\n"


def test_from_csv_with_names_numbers_text_and_a_missing_value(folder):
    (folder / "iris.csv").write_text(IRIS + "5.3,blue,versicolor\n5.0,red,virginica\n")
    p = from_csv(folder / "iris.csv")
    assert (p.name, len(p), p.dim, p.n_arms) == ("iris", 6, 4, 3)
    assert p.labels == ("setosa", "versicolor", "virginica")
    np.testing.assert_allclose([p.contexts[:, 0].mean(), p.contexts[:, 0].std()], [0, 1], atol=1e-12)
    assert (p.contexts[:, 1:].sum(1) == 1).all() and set(p.contexts[:, 1:].ravel()) == {0, 1}
    green = p.contexts[:, 2] == 1
    assert green.sum() == 1 and abs(p.contexts[green, 0]) < 1e-12 and p.rewards[green].argmax() == 1
    assert from_csv(folder / "iris.csv", label="colour", steps=4, seed=1).contexts.shape == (4, 4)
    assert from_csv(folder / "iris.csv", label=1).labels == ("blue", "green", "red")
    assert (from_csv(folder / "iris.csv", seed=1).contexts != p.contexts).any()


@property_test
@given(st.integers(2, 5), st.integers(8, 30), st.integers(0, 99), st.sampled_from([",", ";", "\t", " ", "  "]),
       st.booleans(), st.booleans())
def test_from_csv_text_npz_and_npy_agree(tmp_path_factory, width, rows, seed, sep, header, crlf):
    folder, rng = tmp_path_factory.mktemp("own"), np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, width)), np.arange(rows) % 3 + 9  # classes 9, 10, 11: as text, 10 sorts before 9
    table = np.column_stack([X, y])
    text = lines_of(([[f"name{i}" for i in range(width + 1)]] if header else []) + table.tolist(), sep)
    (folder / "t.csv").write_text(text.replace("\n", "\r\n" if crlf else "\n"), newline="")
    np.savez(folder / "t.npz", X=X, y=y)
    np.save(folder / "t.npy", table)
    a, b, c = (from_csv(folder / f"t.{end}", seed=seed) for end in ("csv", "npz", "npy"))
    assert a.labels == b.labels == c.labels == (9, 10, 11)
    for p in (b, c):
        np.testing.assert_allclose(p.contexts, a.contexts, atol=1e-12)
        np.testing.assert_array_equal(p.rewards, a.rewards)


def test_from_csv_reads_the_raw_formats_of_uci(folder):
    (folder / "mushroom.data").write_bytes(originals()["mushroom.data"])  # no header, all text, the class first
    p = from_csv(folder / "mushroom.data", label=0)
    assert (p.dim, p.n_arms, len(p), p.labels) == (117, 2, 8124, ("e", "p"))
    (folder / "shuttle.tst.gz").write_bytes(gzip.compress(originals()["shuttle.tst"], 1))
    p = from_csv(folder / "shuttle.tst.gz", steps=100)
    assert p.contexts.shape == (100, 9) and p.labels == (1, 2, 3, 4, 5, 6, 7)


def test_from_csv_header_can_be_said(folder):
    (folder / "t.csv").write_text("1990,1991\n" + "1,a\n2,b\n" * 4)
    assert from_csv(folder / "t.csv", header=True).n_arms == 2 and from_csv(folder / "t.csv").n_arms == 3


OWN = [
    ("t.csv", b"a,b,c\n1,2,x\n3,4\n", "line 3: 2 columns instead of 3"),
    ("t.csv", b"", "line 1: the file is empty"),
    ("t.csv", HTML, "line 1: a web page"),
    ("t.csv", b"a,b\n", "not classes|no rows"),
    ("t.csv", b"a,b\n1,x\n2,\n3,x\n4,y\n", "line 3: '' is not a class"),
    ("t.csv", b"a,b\n1,x\n2,x\n", "1 labels in 2 rows are not classes"),
    ("t.csv", b"a,b\n" + b"".join(b"1,%d.5\n" % i for i in range(50)), "50 labels in 50 rows are not classes"),
    ("t.csv", b"a,b\n" + b"".join(b"%d.5,%d\n" % (i, i % 2) for i in range(50)) + b"1o.5,1\n",
     "line 52: '1o.5' in column 'a' is not a number"),
    ("t.csv", b"a,b\n" + b"".join(b"id%d,%d\n" % (i, i % 2) for i in range(50)), "column 'a' has 50 texts"),
    ("t.csv", b"a,b\n\xff\xfe,1\n", "not UTF-8"),
    ("t.npy", npy(np.array([{}, 1], object)), "allow_pickle=False"),
    ("t.npy", npy(np.ones(3)), r"shape \(3,\)"),
    ("t.npy", npy(np.array([[1, np.inf, 0], [1, 2, 1]])), "row 0 is not finite"),
    ("t.npz", zipped({"X.npy": npy(np.ones((3, 2))), "y.npy": npy(np.array([1, 2, np.nan]))}), "row 2 is not finite"),
    ("t.npz", b"PK\x03\x04 broken", "cannot be read"),
    ("t.npz", b"", "cannot be read"),
    ("t.npz", zipped({"X.npy": npy(np.ones((3, 2)))}), "cannot be read"),
    ("t.npz", zipped({"X.npy": npy(np.ones((3, 2))), "y.npy": npy(np.ones(4))}), "expected numbers X"),
]


@pytest.mark.parametrize("file, data, message", OWN, ids=range(len(OWN)))
def test_from_csv_names_what_is_wrong(folder, file, data, message):
    (folder / file).write_bytes(data)
    with pytest.raises(DataError, match=f"{file}.*({message})"):
        from_csv(folder / file)


def test_from_csv_bad_arguments(folder):
    (folder / "iris.csv").write_text(IRIS + "5.3,blue,versicolor\n5.0,red,virginica\n")
    for label in ("size", 3, -4, 1.5):
        with pytest.raises(ValueError, match="label: .*"):
            from_csv(folder / "iris.csv", label)
    with pytest.raises(ValueError, match="steps: 7 asked for, but iris.csv has only 6"):
        from_csv(folder / "iris.csv", steps=7)
    np.savez(folder / "t.npz", X=np.eye(4), y=[0, 0, 1, 1])
    with pytest.raises(ValueError, match="label: the classes of an .npz are its y"):
        from_csv(folder / "t.npz", label=0)
    (folder / "one.csv").write_text("1\n2\n")
    with pytest.raises(ValueError, match="at least two columns"):
        from_csv(folder / "one.csv")


# --- downloads ----------------------------------------------------------------------------------------------------

class Server(http.server.ThreadingHTTPServer):
    """Serves `data` on the loopback interface, well or badly."""
    daemon_threads = True

    def __init__(self, data):
        super().__init__(("127.0.0.1", 0), Handler)
        self.data, self.behaviour, self.ranges = data, "good", []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.ranges.append(wanted)
        data, start, how = server.data, 0, server.behaviour
        if how == "404":
            return self.send_error(404)
        if how == "page":
            data = HTML
        if how == "wrong bytes":
            data = data[:50] + b"7" + data[51:]
        if how.endswith("then shorter") and len(server.ranges) > 1:
            data = b"short"
        if wanted and "no ranges" not in how:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        if how == "silent":
            time.sleep(1.5)
        elif how == "trickle":
            for byte in data[:30]:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)
        elif how.startswith("cut") and (how == "cut always" or len(server.ranges) == 1):
            self.wfile.write(data[start:start + 100])  # then the connection closes
        else:
            self.wfile.write(data[start:])

    def log_message(self, *args):
        pass


BIG = lines_of([[i % 900] * 54 + [1 + i % 7] for i in range(300)]).encode() + b"\n"


@pytest.fixture
def server(monkeypatch):
    server = Server(BIG)
    source = dataclasses.replace(datasets.SOURCES["covertype"], url=server.url("covtype.data"), rows=300,
                                 sha256=hashlib.sha256(BIG).hexdigest())
    monkeypatch.setitem(datasets.SOURCES, "covertype", source)
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("behaviour, ranges", [
    ("good", [None]), ("cut once", [None, "bytes=100-"]), ("cut, no ranges", [None, "bytes=100-"])])
def test_fetch_completes(server, folder, capsys, behaviour, ranges):
    server.behaviour = behaviour
    assert datasets.main(["fetch", "Covertype", "--data-dir", str(folder)]) == 0
    assert (folder / "covtype.data").read_bytes() == BIG and server.ranges == ranges
    assert [p.name for p in folder.iterdir()] == ["covtype.data"]
    assert len(load("covertype", data_dir=folder)) == 300
    assert datasets.main(["fetch", "covertype", "--data-dir", str(folder)]) == 0 and len(server.ranges) == len(ranges)
    assert "MB" in capsys.readouterr().err


@pytest.mark.parametrize("behaviour, message", [
    ("404", "HTTP 404 Not Found; try later"), ("cut always", "cut off after 300 of .*run the same command again"),
    ("wrong bytes", "sha256 .* instead of"), ("page", "a web page, not data"), ("silent", "timed out"),
    ("trickle", "under 1 kB/s")])
def test_a_failed_download_leaves_the_old_file_and_nothing_else(server, folder, behaviour, message):
    server.behaviour = behaviour
    (folder / "covtype.data").write_text("old")
    source = datasets.SOURCES["covertype"]
    with pytest.raises(DataError, match=f"covtype.data.*{message}"):
        datasets.fetch(source, folder, timeout=0.3)
    assert [p.name for p in folder.iterdir()] == ["covtype.data"] and (folder / "covtype.data").read_text() == "old"
    assert leftovers() == []


def test_a_restart_keeps_nothing_of_the_first_try(server, folder):
    server.behaviour = "cut, no ranges, then shorter"
    with open(folder / "part", "w+b") as f:
        datasets.download(server.url("covtype.data"), f)
    assert (folder / "part").read_bytes() == b"short"


def test_fetch_refuses_a_shorter_table_of_an_unknown_checksum(server, folder):
    source = dataclasses.replace(datasets.SOURCES["covertype"], sha256="", rows=301)
    with pytest.raises(DataError, match="300 rows instead of 301"):
        datasets.fetch(source, folder)
    assert not list(folder.iterdir())


def test_fetch_an_archive(server, folder, monkeypatch):
    files = har()
    server.data = zipped({"UCI HAR Dataset.zip": zipped(files)})
    name = datasets.SOURCES["smartphones"].url.rsplit("/", 1)[1]
    source = dataclasses.replace(datasets.SOURCES["smartphones"], url=server.url(name), rows=45)
    monkeypatch.setitem(datasets.SOURCES, "smartphones", source)
    monkeypatch.setenv("NLTS_DATA", str(folder / "new"))
    assert datasets.main(["fetch", "smartphones"]) == 0 and len(load("smartphones")) == 45
    assert [p.name for p in (folder / "new").iterdir()] == [name]


def test_fetch_says_when_nobody_answers_and_what_a_person_must_do(server, folder, capsys):
    dead = dataclasses.replace(datasets.SOURCES["covertype"], url="http://127.0.0.1:9/covtype.data")
    with pytest.raises(DataError, match="127.0.0.1:9.*(?i:refused).*check the connection"):
        datasets.fetch(dead, folder)
    assert datasets.main(["fetch", "amazon", "--data-dir", str(folder)]) == 1
    assert "https://www.kaggle.com/" in capsys.readouterr().err
    assert datasets.main(["fetch", "statlog"]) == 0 and "statlog: bundled" in capsys.readouterr().out
    (folder / "file").write_text("not a folder")
    assert datasets.main(["fetch", "covertype", "--data-dir", str(folder / "file")]) == 1


# --- commands -----------------------------------------------------------------------------------------------------

def test_list_says_where_everything_is(folder, capsys):
    write_covertype(folder, 5)
    (folder / "data.csv").write_bytes(HTML)
    assert datasets.main(["--data-dir", str(folder)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == {"problem", *datasets.NAMES}
    assert lines["statlog"].split() == ["statlog", "43,500", "9", "7", "78.4%", "bundled"]
    assert lines["wheel"].split(maxsplit=5)[1:] == ["4,000", "2", "5", "78.9%", "synthetic, any number of steps"]
    assert lines["adult"].split()[1:5] == ["45,222", "90", "2", "75.2%"]
    assert lines["covertype"].split()[1:] == ["3", "54", "7", "100.0%", str(folder / "covtype.data")]
    assert "missing; run: python datasets.py fetch census" in lines["census"]
    assert "missing; download Amazon_Unlocked_Mobile.csv from https://www.kaggle.com/" in lines["amazon"]
    assert "bad: " in lines["epileptic"] and "a web page" in lines["epileptic"]


def test_check_finds_other_bytes_in_a_complete_table(server, folder, capsys):
    (folder / "covtype.data").write_bytes(BIG)
    assert datasets.main(["check", "--data-dir", str(folder)]) == 0
    assert "covertype   ok: 300 rows, complete" in capsys.readouterr().out
    (folder / "covtype.data").write_bytes(BIG.replace(b"899", b"898", 1).replace(b"7,7", b"8,7", 1))
    assert datasets.main(["check", "--data-dir", str(folder)]) == 1
    assert "BAD: " in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["fetch"], ["fetch", "iris"], ["fetch", "wheel"], ["check", "adult"], ["unknown"]])
def test_bad_commands(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        datasets.main(argv)
    assert stop.value.code == 2 and "usage" in capsys.readouterr().err


def test_benchmark_and_its_limit_on_bundled_data(capsys):
    assert datasets.main(["benchmark"]) == 0  # 1 if bundled Statlog took more than a third of numpy.loadtxt's time
    assert "1/" in (out := capsys.readouterr().out) and "covertype: missing" in out


def test_integers_is_three_times_as_fast_as_loadtxt(folder):
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.integers(0, 4000, (20_000, 10)), rng.integers(0, 2, (20_000, 45))])
    np.savetxt(folder / "t.data", rows, fmt="%d", delimiter=",")
    data = (folder / "t.data").read_bytes()
    slow = datasets.fastest(np.loadtxt, folder / "t.data", delimiter=",", repeat=2)
    assert datasets.fastest(datasets.integers, "t.data", data, 55, repeat=3) < slow / 3


def test_import_is_light():
    code = "import datasets, sys; sys.exit(any(m in sys.modules for m in ('torch', 'scipy', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
