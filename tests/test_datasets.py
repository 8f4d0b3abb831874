"""Tests of the problems of datasets.py: bundled data always, raw files where they are."""
import dataclasses
import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_files import lines_of, originals, stocks
from scipy import stats

import datasets
from datasets import DataError, MissingData, Problem, drift, from_csv, load
from lab import runs

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("NLTS_DATA") or ROOT.parent / "shared" / "data")
pytestmark = pytest.mark.usefixtures("no_cache")


# --- bundled data ---------------------------------------------------------------------------------

PUBLISHED = {  # sha256 of UCI's own files
    "shuttle.trn": "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a",
    "shuttle.tst": "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
    "mushroom.data": "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}


def test_bundled_data_are_the_published_files_to_the_byte_and_can_be_made_of_them(tmp_path):
    (tmp_path / "make.py").write_bytes((ROOT / "data" / "make.py").read_bytes())
    for name, data in originals().items():
        assert hashlib.sha256(data).hexdigest() == PUBLISHED[name]
        (tmp_path / name).write_bytes(data)
    subprocess.run([sys.executable, tmp_path / "make.py", tmp_path], check=True)
    for name in ("statlog", "mushroom", "adult"):
        made = (tmp_path / f"{name}.npz").read_bytes()
        assert made == (ROOT / "data" / f"{name}.npz").read_bytes()


# --- the paper's data sets ------------------------------------------------------------------------

@pytest.mark.parametrize("name, rows, dim, counts", [
    ("statlog", 43_500, 9, [34_108, 37, 132, 6_748, 2_458, 6, 11]),
    ("mushroom", 8_124, 117, [4_208, 3_916]),
    ("adult", 45_222, 90, [34_014, 11_208]),  # the paper's draws missed two rare categories: 88
    ("financial", 3_713, 21, None),
    ("jester", 19_181, 32, None),
    ("covertype", 581_012, 54, [211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510]),
    ("census", 15_317, 385, None),  # paper: 377; ours has all categories of the file
    ("epileptic", 11_500, 178, [2_300] * 5),
    ("smartphones", 10_299, 561, None),
    ("scania", 9_000, 170, None),
    ("amazon", 9_999, 60, None),
])
def test_files_give_the_paper_s_problems(monkeypatch, name, rows, dim, counts):
    """Those that are bundled, and those in the folder of raw files."""
    monkeypatch.setenv("NLTS_DATA", str(SHARED))
    try:
        datasets.available(name)
    except MissingData as error:
        pytest.skip(str(error))
    source = datasets.SOURCES[name]
    assert source.rows >= rows == datasets.fetch(source)
    classes = np.bincount(datasets.table(source).y)
    if counts:
        assert classes.tolist() == counts
    p = load(name, 2000)
    assert p.name == name
    assert p.contexts.shape == (2000, dim) and p.rewards.shape == (2000, source.arms)
    assert np.isfinite(p.contexts).all() and np.isfinite(p.rewards).all()
    if name not in ("mushroom", "financial", "jester"):
        assert (p.rewards.sum(1) == 1).all() and (classes > 0).sum() == p.n_arms
        assert (p.optimal == 1).all()
    if name == "amazon":
        assert p.contexts.max() == p.vocabulary - 1
        assert (p.contexts[:, 0] == 0).mean() < 0.01  # reviews without a token, as ":-"


# --- problems -------------------------------------------------------------------------------------

@given(st.lists(st.sampled_from([0.1, 1 / 3, 1e-9, 7.0, 12345.678]), min_size=1, max_size=4),
       st.integers(1, 50))
def test_standardize_never_divides_by_nothing(constants, rows):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full((rows, len(constants)), constants), rng.normal(5, 3, (rows, 2))])
    Z = datasets.standardize(X)
    assert (Z[:, :len(constants)] == 0).all() and np.isfinite(Z).all()
    if rows > 1:
        np.testing.assert_allclose(Z[:, len(constants):].std(0), 1)


def test_rows_are_drawn_without_replacement_and_only_as_many_as_there_are(folder):
    """Of a made-up Covertype, whose first input and class are the number of the row."""
    rows = [[i] + [0] * 53 + [1 + i % 7] for i in range(40)]
    (folder / "covtype.data").write_text(lines_of(rows))
    p = load("covertype", 40, 5)
    assert len(np.unique(p.contexts[:, 0].round(9))) == 40 and (p.contexts[:, 1:] == 0).all()
    np.testing.assert_allclose([p.contexts[:, 0].mean(), p.contexts[:, 0].std()], [0, 1], atol=1e-9)
    classes = p.rewards[np.argsort(p.contexts[:, 0])].argmax(1)
    np.testing.assert_array_equal(classes, np.arange(40) % 7)  # labels stay with their rows
    with pytest.raises(ValueError, match="steps: 41 asked for, but covertype has only 40"):
        load("covertype", 41, 5)
    for name in ("mushroom", "wheel-0.3"):               # these never run out of rows
        assert datasets.rows(name) == math.inf and len(load(name, 20_000)) == 20_000


@pytest.mark.parametrize("arguments, message", [
    (("wheel-0.5", 2.5), "steps: expected a whole number"),
    (("statlog", True), "steps: expected a whole number"),
    (("statlog", 5, -1), "seed: expected a whole number of at least 0"),
])
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        load(*arguments)


@pytest.mark.parametrize("function", [load, datasets.rows, datasets.available])
def test_unknown_names(function):
    with pytest.raises(ValueError, match="name: unknown problem 'iris', .* one of mushroom, "):
        function("iris")
    with pytest.raises(ValueError, match="'wheel-2', expected wheel-<delta>, delta from 0 to 1"):
        function("wheel-2")


def test_mushroom_rewards():
    """Rows are known again by their inputs. The optimum is the expected reward of the best arm, not
    the best reward: eating a poisonous mushroom pays -15 on average, and sometimes 5."""
    table = datasets.table(datasets.SOURCES["mushroom"])
    X = datasets.one_hot(table.X, table.levels)
    is_edible = {x.tobytes(): y == 0 for x, y in zip(X, table.y, strict=True)}
    p = load("mushroom", 50_000, 2)
    edible = np.array([is_edible[x.tobytes()] for x in p.contexts])
    eat = p.rewards[:, 1]
    np.testing.assert_array_equal(p.optimal, np.where(edible, 5, 0))
    assert (p.rewards[:, 0] == 0).all() and (eat[edible] == 5).all()
    assert set(eat[~edible]) == {5.0, -35.0}
    assert stats.binomtest(int((eat[~edible] == 5).sum()), int((~edible).sum())).pvalue > 1e-4
    assert abs(edible.mean() - 4208 / 8124) < 0.02


def test_financial_rewards_are_noisy_unit_portfolios(folder):
    """The portfolios of made-up prices by least squares; the best reward is not the optimum."""
    X = np.random.default_rng(0).normal(size=(3000, 21))
    (folder / "raw_stock_contexts").write_bytes(stocks(X))
    p = load("financial", seed=4)
    np.testing.assert_array_equal(np.sort(p.contexts, 0), np.sort(X, 0))  # raw, not standardized
    beta = np.linalg.lstsq(p.contexts, p.rewards)[0]
    np.testing.assert_allclose(p.optimal, (p.contexts @ beta).max(1), atol=0.04)
    assert abs(p.rewards.max(1) - p.optimal).max() > 0.15
    np.testing.assert_allclose(np.linalg.norm(beta, axis=0), 1, atol=0.02)
    noise = (p.rewards - p.contexts @ beta).std(0)
    np.testing.assert_allclose(noise, 0.01 * np.arange(1, 9), rtol=0.1)


def test_jester_splits_a_user_s_ratings(folder):
    X = np.random.default_rng(0).uniform(-10, 10, (50, 40))
    np.save(folder / "jester_data_40jokes_19181users.npy", X)
    p, q = load("jester"), load("jester", seed=1)
    assert p.dim == 32 and p.n_arms == 8
    np.testing.assert_array_equal(p.optimal, p.rewards.max(1))
    joined = np.sort(np.sort(np.hstack([p.contexts, p.rewards]), 1), 0)
    np.testing.assert_array_equal(joined, np.sort(np.sort(X, 1), 0))
    assert set(p.rewards.ravel()) != set(q.rewards.ravel())  # other jokes are the arms


def test_features_may_outnumber_the_numbers_of_a_context():
    """Sec. 3 has g < d. On Statlog and on the wheel it is not so, and nothing is amiss."""
    for problem in (load("statlog", steps=12), load("wheel-0.5", steps=12)):
        recipe = runs.Recipe(memory=2, settings={"L": 6, "P": 2, "initial_pulls": 1})
        agent = runs.make_agent(recipe, problem, seed=0)
        assert len(agent.arms[0].mu0) == 50 > problem.dim
        for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
            arm = agent.act(context)
            agent.update(context, arm, rewards[arm])


@pytest.mark.parametrize("delta, optimum", [(0.5, 1000), (0.3, 872), (0.1, 808)])
def test_wheel_is_the_appendix_s(delta, optimum):
    p = load(f"wheel-{delta}", steps=40_000, seed=7)
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
    assert p.name in datasets.NAMES


# --- texts ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, expected", [
    ("Great phone. It's BIG... 4G!", "great phone it 's big 4g !"),
    ("I don't, we've, you're, he'd, I'll", "i do n't , we 've , you 're , he 'd , i 'll"),
    ("Why?(no reason)", "why ? ( no reason )"),
    ("5* #1 a-b_c; caf\u00e9 \U0001f642\nend", "5 1 a b c caf end"),
    ("DON'T", "don't"),        # endings are split off before letters become small
    ("can't've 'sd", "ca n't 've 'sd"),
    (":-. \t", ""),
])
def test_tokens_as_the_linked_program_splits_them(text, expected):
    assert datasets.tokens(text) == expected.split()


@given(st.lists(st.lists(st.sampled_from("abcdefgh!"), max_size=12), min_size=1, max_size=6),
       st.integers(1, 8))
def test_reviews_number_tokens_by_first_appearance_cut_and_pad(texts, length):
    seen = list(dict.fromkeys(token for text in texts for token in text))
    X = np.array([" ".join(text).upper() for text in texts], object)[:, None]
    p = datasets.review("amazon", X, np.zeros(len(texts), int), 5, None, length)
    assert p.vocabulary == len(seen) + 2
    for row, text in zip(p.contexts.tolist(), texts, strict=True):
        ids = [seen.index(token) + 2 for token in text[:length]]
        assert row == ids + [0] * (length - len(ids))


# --- drifting problems ----------------------------------------------------------------------------

def backwards(p):
    """How far a row is behind one before it on the first component, from an SVD: at most, in
    standard deviations."""
    score = np.linalg.svd(p.contexts, full_matrices=False)[0][:, 0]
    score *= np.sign(stats.spearmanr(score, np.arange(len(score))).statistic) / score.std()
    return (np.maximum.accumulate(score) - score).max()


@pytest.mark.parametrize("name", ["statlog", "adult"])
def test_drift_sorts_rows_along_the_first_component_up_to_the_jitter(name):
    """Rows with all their outcomes. Of 150,000 normals one is beyond 4.5."""
    p = load(name, 2000, 3)
    drifted, again, other = drift(p, 5), drift(p, 5), drift(p, 1)
    before, after = (np.column_stack([q.contexts, q.rewards, q.optimal])
                     for q in (load(name, 2000, 3), drifted))
    np.testing.assert_array_equal(after[np.lexsort(after.T)], before[np.lexsort(before.T)])
    most = 2 * 4.5 * 0.25
    assert 0 < backwards(drifted) < most < backwards(p)      # rows as drawn are in no order
    np.testing.assert_array_equal(drifted.contexts, again.contexts)
    assert (drifted.contexts != other.contexts).any()        # another seed, another jitter


def test_drift_has_a_jitter_of_a_quarter_of_the_scores_spread():
    """Normal scores with normal jitter: the rank correlation has a closed form."""
    X = np.random.default_rng(0).normal(3, 7, (20_000, 1))
    q = drift(Problem("normal", X, np.zeros((20_000, 2)), X[:, 0]), 1)
    rank = abs(stats.spearmanr(q.optimal, np.arange(20_000)).statistic)
    r = 1 / np.sqrt(1 + 0.25**2)
    assert abs(rank - 6 / np.pi * np.arcsin(r / 2)) < 5 * (1 - r**2) / np.sqrt(20_000)  # 5 sigma


def test_drift_does_not_depend_on_units():
    p = load("statlog", 1000, 2)
    scale, shift = np.geomspace(0.01, 100, p.dim), np.arange(p.dim)
    other = drift(dataclasses.replace(p, contexts=p.contexts * scale + shift), 4)
    np.testing.assert_allclose((other.contexts - shift) / scale, drift(p, 4).contexts, atol=1e-9)


# --- own tables -----------------------------------------------------------------------------------

IRIS = ("length,colour,species\n5.1,red,setosa\n4.9,blue,virginica\n6.0,red,setosa\n"
        "5.5,green,versicolor\n5.3,blue,versicolor\n5.0,red,virginica\n")


def test_from_csv_with_numbers_and_text(folder):
    path = folder / "iris.csv"
    path.write_text(IRIS)
    p = from_csv(path)
    assert (p.name, len(p), p.dim, p.n_arms) == ("iris", 6, 4, 3)
    assert (p.contexts[:, 1:].sum(1) == 1).all() and set(p.contexts[:, 1:].ravel()) == {0, 1}
    green = p.contexts[:, 2] == 1
    assert green.sum() == 1 and p.rewards[green].argmax() == 1  # versicolor is the second class
    assert (from_csv(path, seed=1).contexts != p.contexts).any()
    assert len(from_csv(path, steps=4)) == 4 and datasets.rows(str(path)) == 6
    with pytest.raises(ValueError, match="steps: 7 asked for, but iris.csv has only 6"):
        from_csv(path, steps=7)


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
    order = np.argsort(p.contexts[:, 0])
    expected = np.argsort(X[:, 0])
    np.testing.assert_array_equal(p.rewards[order].argmax(1), expected % 3)
    standard = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(p.contexts[order], standard[expected], atol=1e-12)


OWN = [
    (b"a,b,c\n1,2,x\n3,4\n", "line 3: 2 columns instead of 3"),
    (b"5.1,2,x\n4,5,y\n", "line 1: expected a header"),
    (b"a,b,a\n4,5,6\n", "line 1: expected a header of two or more different names"),
    (b"a,b\n1,x\n2,x\n\nNaN,y\n4,y\n", "line 5: 'nan' is a missing value"),
    (b"a,b\n1,x\n2,x\n", "1 labels in 2 rows are not classes; put the column of classes last"),
    (b"a,b\n" + b"".join(b"1,%d.5\n" % i for i in range(50)), "50 labels in 50 rows"),
    (b"c,a,b\n" + b"".join(b"1,id%d,%d\n" % (i, i % 2) for i in range(50)),
     "column 'a' is neither numbers nor categories"),
]


@pytest.mark.parametrize("data, message", OWN, ids=range(len(OWN)))
def test_from_csv_names_what_is_wrong(folder, data, message):
    (folder / "t.csv").write_bytes(data)
    with pytest.raises(DataError, match=f"t.csv.*({message})"):
        from_csv(folder / "t.csv")
