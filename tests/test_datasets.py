"""Tests of the problems of datasets.py: bundled data always, raw files where they are."""
import collections
import csv
import dataclasses
import gzip
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_files import HTML, REVIEWS, bundled, lines_of, originals, text_of
from scipy import stats

import datasets
import nlts
from datasets import DataError, Problem, drift, from_csv, load, wheel
from lab import fetch

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
shared = pytest.mark.skipif(not SHARED.is_dir(),
                            reason="the folder of raw files ../shared/data is absent")
property_test = settings(deadline=None, max_examples=40)
pytestmark = pytest.mark.usefixtures("no_cache")


# --- bundled data ---------------------------------------------------------------------------------

PUBLISHED = {  # sha256 of UCI's own files
    "shuttle.trn": "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a",
    "shuttle.tst": "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
    "mushroom.data": "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}


def test_bundled_data_are_the_published_files_to_the_byte():
    files = originals()
    assert {name: hashlib.sha256(data).hexdigest() for name, data in files.items()} == PUBLISHED
    statlog = bundled("statlog")
    statlog["c03"][17] += 1  # planted: one value of 580,000 is off
    wrong = hashlib.sha256(text_of(statlog, " ", slice(43_500))).hexdigest()
    assert wrong != PUBLISHED["shuttle.trn"]


@shared
@pytest.mark.parametrize("name", PUBLISHED)
def test_bundled_data_equal_the_raw_files(name):
    assert originals()[name] == (SHARED / name).read_bytes()


def test_bundle_is_small_plain_and_documented():
    files = sorted(p for p in (ROOT / "data").iterdir() if p.is_file())
    assert sum(p.stat().st_size for p in files) < 1.5e6
    names = [p.name for p in files]
    npz = ["adult.npz", "mushroom.npz", "statlog.npz"]
    assert names == sorted(["README.md", "make.py", "sources.toml", *npz])
    for path in files:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as z:
                assert all(z[k].dtype != object for k in z.files)
    assert "CC BY 4.0" in (ROOT / "data" / "README.md").read_text()


def test_maker_reproduces_the_bundle(tmp_path):
    (tmp_path / "make.py").write_bytes((ROOT / "data" / "make.py").read_bytes())
    for name, data in originals().items():
        (tmp_path / name).write_bytes(data)
    subprocess.run([sys.executable, tmp_path / "make.py", tmp_path], check=True)
    for name in ("statlog", "mushroom", "adult"):
        made = (tmp_path / f"{name}.npz").read_bytes()
        assert made == (ROOT / "data" / f"{name}.npz").read_bytes()
    usage = subprocess.run([sys.executable, tmp_path / "make.py"], capture_output=True, text=True)
    assert usage.returncode == 1 and "python data/make.py FOLDER" in usage.stderr


@pytest.mark.parametrize("name, dim, counts", [
    ("statlog", 9, [34_108, 37, 132, 6_748, 2_458, 6, 11]),
    ("mushroom", 117, [4_208, 3_916]),
    ("adult", 90, [34_014, 11_208]),  # the paper's draws missed two rare categories: 88
])
def test_bundled_rows_dimensions_and_class_counts(name, dim, counts):
    table = datasets.table(datasets.SOURCES[name])
    assert np.bincount(table.y).tolist() == counts
    problem = load(name)
    assert problem.contexts.shape == (sum(counts), dim)
    assert problem.n_arms == datasets.SOURCES[name].arms
    if name != "mushroom":
        assert problem.rewards.sum(0).tolist() == counts


def test_adult_categories_do_not_depend_on_the_rows_drawn():
    assert {load("adult", 50, seed).dim for seed in range(5)} == {90}


# --- shared raw files -----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@shared
@pytest.mark.parametrize("name, rows, dim, counts", [
    ("financial", 3_713, 21, None),
    ("jester", 19_181, 32, None),
    ("covertype", 581_012, 54, [211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510]),
    ("census", 15_317, 385, None),  # paper: 377; ours has all categories of the file
    ("epileptic", 11_500, 178, [2_300] * 5),
    ("scania", 9_000, 170, None),
    ("amazon", 9_999, 60, None),
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
@pytest.mark.parametrize("name, label", [
    ("USCensus1990.data.txt", "dOccup"), ("aps_failure_training_set.csv", "class"),
    ("Amazon_Unlocked_Mobile.csv", "Rating"),
])
def test_class_counts_of_samples_against_the_csv_module(name, label, shared_cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", shared_cache)
    with open(SHARED / name, newline="", encoding="utf-8") as f:
        rows = [row for row in csv.DictReader(f) if row.get("Reviews") != ""]  # one is empty
    expected = collections.Counter(row[label] for row in rows)
    source = next(s for s in datasets.SOURCES.values() if s.files and s.files[0][0] == name)
    counts = np.bincount(datasets.table(source, SHARED).y)
    assert counts.tolist() == [n for _, n in sorted(expected.items())]


@shared
@pytest.mark.parametrize("name", ["scania", "amazon", "epileptic", "census", "covertype"])
def test_large_enough_for_the_paper_s_5000_steps(name, shared_cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", shared_cache)
    p = load(name, 5000, 1, SHARED)
    assert len(p) == 5000 and np.isfinite(p.contexts).all()
    assert (p.rewards.sum(1) == 1).all() and (p.rewards.sum(0) > 0).all()  # each arm pays
    if name == "amazon":
        assert p.contexts.max() == p.vocabulary - 1
        assert (p.contexts[:, 0] == 0).mean() < 0.01  # reviews without a word, as ":)"


@shared
def test_covertype_values_against_the_csv_module(shared_cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", shared_cache)
    source = datasets.SOURCES["covertype"]
    text = gzip.decompress((SHARED / "covtype.data.gz").read_bytes())
    assert hashlib.sha256(text).hexdigest() == source.sha256
    lines = text[:1_000_000].decode().split("\n")[:3_000]
    rows = np.array(list(csv.reader(lines)), int)
    table = datasets.table(source, SHARED)
    np.testing.assert_array_equal(table.X[:3_000], rows[:, :-1])
    np.testing.assert_array_equal(table.y[:3_000], rows[:, -1] - 1)


@shared
def test_checksums_and_check(capsys, tmp_path, shared_cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", shared_cache)
    for line in (SHARED / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split(maxsplit=1)
        if name == "raw_stock_contexts":
            assert digest in {s.sha256 for s in datasets.SOURCES.values()}
    for path in SHARED.iterdir():
        if path.name != "covtype.data.gz":  # slow; the test above knows its checksum
            (tmp_path / path.name).symlink_to(path)
    assert fetch.main(["check", "--data-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    good = [line.split()[0] for line in lines if line.endswith("rows are good")]
    archive = SHARED / "UCI HAR Dataset.zip"          # which the folder need not have
    absent = {"covertype"} if archive.exists() else {"covertype", "smartphones"}
    assert set(good) == set(datasets.SOURCES) - absent
    assert "11,500 of 11,500 rows" in next(line for line in lines if "epileptic" in line)
    assert "9,000 of 60,000 rows" in next(line for line in lines if "scania" in line)


# --- problems -------------------------------------------------------------------------------------

@property_test
@given(st.sampled_from(["statlog", "mushroom", "adult", "wheel"]), st.integers(1, 300),
       st.integers(0, 2**32))
def test_a_problem_is_well_formed_and_reproducible(name, steps, seed):
    p, again = load(name, steps, seed), load(name.title(), steps, seed)
    assert p.name == name and len(p) == steps and p.vocabulary is None
    assert p.contexts.shape == (steps, p.dim) and p.contexts.dtype == np.float64
    assert p.rewards.shape == (steps, p.n_arms) and p.optimal.shape == (steps,)
    for part in ("contexts", "rewards", "optimal"):
        np.testing.assert_array_equal(getattr(p, part), getattr(again, part))
        assert np.isfinite(getattr(p, part)).all()
    if name in ("statlog", "adult"):
        assert (np.sort(p.rewards, 1)[:, :-1] == 0).all() and (p.rewards.max(1) == 1).all()
        assert (p.optimal == 1).all()
        spread = p.contexts.std(0)
        np.testing.assert_allclose(p.contexts.mean(0), 0, atol=1e-9)
        assert np.all((abs(spread - 1) < 1e-9) | (p.contexts == 0).all(0))


def test_each_seed_draws_its_own_rows_and_order():
    a, b = load("statlog", 1000, 0), load("statlog", 1000, 1)
    assert (a.rewards != b.rewards).any() and (a.contexts != b.contexts).any()
    ends = [load("mushroom", 4000, seed).rewards[:, 1] for seed in (0, 1)]
    assert (ends[0] != ends[1]).any()


@property_test
@given(st.lists(st.sampled_from([0.1, 1 / 3, 1e-9, 7.0, 12345.678]), min_size=1, max_size=4),
       st.integers(1, 50), st.integers(0, 1000))
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
    classes = p.rewards[order].argmax(1)
    np.testing.assert_array_equal(classes, np.arange(40) % 7)  # labels stay with their rows
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
    message = "name: unknown problem 'iris', expected one of mushroom, .*, wheel"
    with pytest.raises(ValueError, match=message):
        load("iris")


def test_mushroom_rewards():
    p = load("mushroom", 50_000, 2)
    eat = p.rewards[:, 1]
    edible = p.optimal == 5
    assert (p.rewards[:, 0] == 0).all() and (eat[edible] == 5).all()
    assert (p.optimal[~edible] == 0).all()
    assert set(eat[~edible]) == {5.0, -35.0}
    assert stats.binomtest(int((eat[~edible] == 5).sum()), int((~edible).sum())).pvalue > 1e-4
    assert abs(edible.mean() - 4208 / 8124) < 0.02 and set(np.unique(p.contexts)) == {0.0, 1.0}
    assert (p.contexts.sum(1) == 22).all()  # one value in each of the 22 columns


def test_financial_rewards_are_noisy_unit_portfolios(folder):
    X = np.random.default_rng(0).normal(size=(3000, 21))
    tickers = ",".join(f"S{i}" for i in range(21))
    np.savetxt(folder / "raw_stock_contexts", X, header=tickers, comments="")
    p = load("financial", seed=4, data_dir=folder)
    beta, *_ = np.linalg.lstsq(p.contexts, p.rewards)
    np.testing.assert_allclose(np.linalg.norm(beta, axis=0), 1, atol=0.02)
    noise = (p.rewards - p.contexts @ beta).std(0)
    np.testing.assert_allclose(noise, 0.01 * np.arange(1, 9), rtol=0.1)
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


def test_features_may_outnumber_the_numbers_of_a_context():
    """Sec. 3 has g < d. On Statlog and on the wheel it is not so, and nothing is amiss."""
    for problem in (load("statlog", steps=12), wheel(steps=12)):
        network = nlts.MLP(problem.dim, problem.n_arms)
        agent = nlts.NeuralLinearTS(network, problem.n_arms, memory=8, L=6, P=2, initial_pulls=1)
        assert len(agent.arms[0].mu0) == 50 > problem.dim
        for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
            arm = agent.act(context)
            agent.update(context, arm, rewards[arm])
        assert agent.t == 12


@pytest.mark.parametrize("delta, optimum", [(0.5, 1000), (0.3, 872), (0.1, 808)])
def test_wheel_is_the_appendix_s(delta, optimum):
    p = wheel(delta, steps=40_000, seed=7)
    x, y = p.contexts.T
    inside = x**2 + y**2 <= delta**2
    mean = np.full((len(p), 5), 0.1)
    mean[:, 4] = 0.2
    quadrants = [(x > 0) & (y > 0), (x < 0) & (y > 0), (x < 0) & (y < 0), (x > 0) & (y < 0)]
    for arm, quadrant in enumerate(quadrants):
        mean[inside & quadrant, arm] = 0.4
    np.testing.assert_allclose(p.optimal, mean.max(1))
    assert stats.kstest((p.rewards - mean).ravel() / 0.1, "norm").pvalue > 1e-4
    assert stats.kstest(x**2 + y**2, "uniform").pvalue > 1e-4  # uniform in area, not in the radius
    assert stats.kstest(np.sqrt(x**2 + y**2), "uniform").pvalue < 1e-4  # so the test can tell
    assert abs(p.optimal.sum() / 10 - optimum) < 10
    assert (p.dim, p.n_arms, p.name) == (2, 5, "wheel")


def test_wheel_parameters_are_arguments():
    p = wheel(1, 500, 0, mu=1, mu5=2, mudot=3, sigma=0)
    assert (p.rewards.max(1) == 3).all() and (p.rewards[:, 4] == 2).all()
    assert (p.rewards.min(1) == 1).all()
    assert (wheel(0, 100).optimal == 0.2).all() and len(load("wheel")) == 4000
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="delta"):
            wheel(bad)
    with pytest.raises(ValueError):
        wheel(sigma=-1)


# --- drifting problems ----------------------------------------------------------------------------

def first_component(X):
    """Score of each row along the first principal component, by an SVD; its sign is arbitrary."""
    spread = X.std(0)
    Z = (X - X.mean(0)) / np.where(spread > 1e-12, spread, 1)
    U, S, _ = np.linalg.svd(Z, full_matrices=False)
    return U[:, 0] * S[0]


def rows_of(p):
    """Each row with all its outcomes, in an order of their own."""
    rows = np.column_stack([p.contexts, p.rewards, p.optimal])
    return rows[np.lexsort(rows.T)]


@property_test
@given(st.sampled_from(["statlog", "mushroom", "adult", "wheel"]), st.integers(1, 300),
       st.integers(0, 2**32), st.sampled_from([0, 0.1, 0.25, 3.0]))
def test_drift_is_a_permutation_and_deterministic(name, steps, seed, jitter):
    p = load(name, steps, 1)
    q, again = (drift(p, seed, jitter) for _ in range(2))
    np.testing.assert_array_equal(rows_of(q), rows_of(p))
    np.testing.assert_array_equal(q.contexts, again.contexts)
    np.testing.assert_array_equal(q.rewards, again.rewards)
    assert (q.name, q.n_arms, q.labels) == (p.name, p.n_arms, p.labels)


@pytest.mark.parametrize("name", ["statlog", "adult"])
def test_drift_sorts_along_the_first_component_up_to_the_jitter(name):
    p = load(name, 2000, 3)
    q = drift(p, 5, jitter=0)
    score = first_component(q.contexts)
    score *= np.sign(score[-1] - score[0])
    assert (np.diff(score) > -1e-9).all()
    order = {}
    for jitter in (0.1, 0.25, 1.0):
        score = first_component(drift(p, 5, jitter).contexts)
        rank = stats.spearmanr(score, np.arange(2000)).statistic
        score *= np.sign(rank)
        order[jitter] = abs(rank)
        back = np.maximum.accumulate(score) - score  # how far a row is behind one before it
        most = 2 * 4.5 * jitter * score.std()  # 1 in 150,000 normals is beyond 4.5
        assert 0 < back.max() <= most
    assert 1 > order[0.1] > order[0.25] > order[1.0] > 0.3
    planted = first_component(p.contexts)  # rows as drawn are not in this order
    assert (np.maximum.accumulate(planted) - planted).max() > 2 * 4.5 * 0.1 * planted.std()


@pytest.mark.parametrize("jitter", [0.1, 0.25, 1.0])
def test_drift_has_the_jitter_it_was_asked_for(jitter):
    """Normal scores with normal jitter: the rank correlation has a closed form."""
    X = np.random.default_rng(0).normal(3, 7, (20_000, 1))
    q = drift(Problem("normal", X, np.zeros((20_000, 2)), X[:, 0]), 1, jitter)
    rank = abs(stats.spearmanr(q.optimal, np.arange(20_000)).statistic)
    r = 1 / np.sqrt(1 + jitter**2)
    assert abs(rank - 6 / np.pi * np.arcsin(r / 2)) < 5 * (1 - r**2) / np.sqrt(20_000)  # 5 sigma


def test_drift_does_not_depend_on_units():
    p = load("statlog", 1000, 2)
    scale, shift = np.geomspace(0.01, 100, p.dim), np.arange(p.dim)
    other = drift(dataclasses.replace(p, contexts=p.contexts * scale + shift), 4)
    np.testing.assert_allclose((other.contexts - shift) / scale, drift(p, 4).contexts, atol=1e-9)


def test_drift_moves_the_contexts_and_leaves_the_problem_alone():
    p = load("statlog", 2000, 3)
    before = p.contexts.copy()
    q = drift(p, 0)
    score = first_component(q.contexts)
    first, last = score[:500], score[-500:]
    assert max(first.mean(), last.mean()) > 0 > min(first.mean(), last.mean())
    assert stats.ks_2samp(first, last).statistic > 0.9
    assert stats.ks_2samp(*np.split(first_component(p.contexts), 2)).statistic < 0.1  # as drawn
    np.testing.assert_array_equal(p.contexts, before)
    assert (drift(p, 1).contexts != q.contexts).any()  # another seed, another jitter


def test_drift_of_text_and_of_own_tables(folder):
    (folder / "Amazon_Unlocked_Mobile.csv").write_text(REVIEWS)
    p = load("amazon", data_dir=folder)
    q = drift(p)
    assert q.contexts.dtype == p.contexts.dtype and q.vocabulary == p.vocabulary
    (folder / "iris.csv").write_text(IRIS)
    own = from_csv(folder / "iris.csv")
    assert drift(own).labels == own.labels
    np.testing.assert_array_equal(rows_of(drift(own)), rows_of(own))


def test_drift_bad_arguments():
    p = wheel(steps=10)
    for jitter in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="jitter: expected a finite number of at least 0"):
            drift(p, 0, jitter)
    with pytest.raises(ValueError, match="seed: expected a whole number of at least 0"):
        drift(p, -1)


# --- own tables -----------------------------------------------------------------------------------

IRIS = ("length,colour,species\n5.1,red,setosa\n4.9,blue,virginica\n6.0,red,setosa\n"
        "5.5,green,versicolor\n5.3,blue,versicolor\n5.0,red,virginica\n")


def test_from_csv_with_numbers_and_text(folder):
    (folder / "iris.csv").write_text(IRIS)
    p = from_csv(folder / "iris.csv")
    assert (p.name, len(p), p.dim, p.n_arms) == ("iris", 6, 4, 3)
    assert p.labels == ("setosa", "versicolor", "virginica")
    length = p.contexts[:, 0]
    np.testing.assert_allclose([length.mean(), length.std()], [0, 1], atol=1e-12)
    assert (p.contexts[:, 1:].sum(1) == 1).all() and set(p.contexts[:, 1:].ravel()) == {0, 1}
    green = p.contexts[:, 2] == 1
    assert green.sum() == 1 and p.rewards[green].argmax() == 1
    expected = (5.5 - 5.3) / np.std([5.1, 4.9, 6.0, 5.5, 5.3, 5.0])
    np.testing.assert_allclose(p.contexts[green, 0], expected)
    assert from_csv(folder / "iris.csv", label="colour", steps=4, seed=1).contexts.shape == (4, 4)
    assert from_csv(folder / "iris.csv", label="colour").labels == ("blue", "green", "red")
    assert (from_csv(folder / "iris.csv", seed=1).contexts != p.contexts).any()


@property_test
@given(st.integers(1, 5), st.integers(8, 30), st.integers(0, 99),
       st.sampled_from([",", ";", "\t", ", "]), st.booleans())
def test_from_csv_of_any_numbers(tmp_path_factory, width, rows, seed, sep, crlf):
    folder, rng = tmp_path_factory.mktemp("own"), np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    y = np.arange(rows) % 3 + 9  # classes 9, 10, 11: as text, 10 sorts before 9
    names = [f"name{i}" for i in range(width + 1)]
    text = lines_of([names, *np.column_stack([X, y]).tolist()], sep)
    (folder / "t.csv").write_text(text.replace("\n", "\r\n" if crlf else "\n"), newline="")
    p = from_csv(folder / "t.csv", seed=seed)
    assert p.labels == (9, 10, 11)
    order = np.argsort(p.contexts[:, 0])
    expected = np.argsort(X[:, 0])
    np.testing.assert_array_equal(p.rewards[order].argmax(1), expected % 3)
    standard = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(p.contexts[order], standard[expected], atol=1e-12)


def test_from_csv_reads_a_table_of_text_only_packed(folder):
    names = ",".join(f"name{i}" for i in range(23)).encode() + b"\n"
    mushroom = names + originals()["mushroom.data"].replace(b"?", b"x")
    (folder / "mushroom.csv.gz").write_bytes(gzip.compress(mushroom, 1))
    p = from_csv(folder / "mushroom.csv.gz", label="name0")
    assert (p.dim, p.n_arms, len(p), p.labels) == (117, 2, 8124, ("e", "p"))


OWN = [
    ("t.csv", b"a,b,c\n1,2,x\n3,4\n", "line 3: 2 columns instead of 3"),
    ("t.csv", b"", "line 1: the file is empty"),
    ("t.csv", HTML, "line 1: a web page"),
    ("t.csv", b"a,b\n", "line 1: expected a header .* then rows"),
    ("t.csv", b"1,2,3\n4,5,6\n", "line 1: expected a header"),
    ("t.csv", b"a,b,a\n4,5,6\n", "line 1: expected a header of two or more different names"),
    ("t.csv", b"1\n2\n", "line 1: expected a header of two or more"),
    ("t.csv", b"a,b\n1,x\n2,\n3,x\n4,y\n", "line 3: '' is a missing value"),
    ("t.csv", b"a,b\n1,x\n2,x\n\nNaN,y\n4,y\n", "line 5: 'nan' is a missing value"),
    ("t.csv", b"a,b\n1,x\n2,x\n", "1 labels in 2 rows are not classes"),
    ("t.csv", b"a,b\n" + b"".join(b"1,%d.5\n" % i for i in range(50)),
     "50 labels in 50 rows are not classes"),
    ("t.csv", b"a,b\n" + b"".join(b"%d.5,%d\n" % (i, i % 2) for i in range(50)) + b"1o.5,1\n",
     "line 52: '1o.5' in column 'a' is neither a number nor a category"),
    ("t.csv", b"a,b\n" + b"".join(b"%d,%d\n" % (i % 30, i % 2) for i in range(90)) + b"inf,1\n",
     "line 92: 'inf' in column 'a' is neither a number nor a category"),
    ("t.csv", b"a,b\n" + b"".join(b"id%d,%d\n" % (i, i % 2) for i in range(50)),
     "line 2: 'id0' in column 'a' is neither"),
    ("t.csv.gz", gzip.compress(b"a,b\n1,2\n")[:-9], "broken archive"),
]


@pytest.mark.parametrize("file, data, message", OWN, ids=range(len(OWN)))
def test_from_csv_names_what_is_wrong(folder, file, data, message):
    (folder / file).write_bytes(data)
    with pytest.raises(DataError, match=f"{file}.*({message})"):
        from_csv(folder / file)


def test_from_csv_bad_arguments(folder):
    (folder / "iris.csv").write_text(IRIS)
    for label in ("size", 1, 1.5):
        with pytest.raises(ValueError, match="label: .*"):
            from_csv(folder / "iris.csv", label)
    with pytest.raises(ValueError, match="steps: 7 asked for, but iris.csv has only 6"):
        from_csv(folder / "iris.csv", steps=7)


def test_import_is_light():
    heavy = "('torch', 'scipy', 'matplotlib')"
    code = f"import datasets, sys; sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
