"""Statistics against direct formulas, other programs, and what is put in."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lab import statistics


def test_results_are_grouped_by_their_fields():
    results = [{"dataset": "x", "algorithm": "one", "reward": 1},
               {"dataset": "y", "algorithm": "one", "reward": 2},
               {"dataset": "x", "algorithm": "one", "reward": 3},
               {"dataset": "x", "algorithm": "one", "variant": "v", "reward": 4}]
    rewards = statistics.grouped(results, "dataset", "algorithm", "variant")
    expected = {"x": {"one": {"": [1, 3], "v": [4]}}, "y": {"one": {"": [2]}}}
    np.testing.assert_equal(rewards, expected)


def test_paired_differences():
    difference = statistics.difference([3.0, 5.0, 10.0], [1.0, 2.0, 3.0, 99.0])
    mean, error = statistics.mean_and_error(difference)
    assert mean == 4 and error == pytest.approx(np.std([2, 3, 7], ddof=1) / np.sqrt(3))
    assert statistics.mean_and_error([2.0])[1] == np.inf


def test_the_jackknife_knows_the_spread_of_a_ratio():
    """Its error, averaged over 300 samples of 20 runs, is the spread within 15 % (4 sigma)."""
    rng, values, errors = np.random.default_rng(0), [], []
    for _ in range(300):
        whole = 10 + rng.normal(size=20)
        value, error = statistics.ratio_of_means(0.8 * whole + rng.normal(size=20), whole)
        values.append(value)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
    assert np.mean(values) == pytest.approx(0.8, abs=0.01)
    assert np.isnan(statistics.ratio_of_means(np.ones(3), np.zeros(3))).all()
    assert statistics.ratio_of_means([1.0], [4.0])[0] == 0.25


# Verdicts -----------------------------------------------------------------------------------------

@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_its_formula(p):
    """Adjusted p of the i-th smallest: the largest of (m - j + 1) p_j over all j up to i."""
    order = sorted(range(len(p)), key=p.__getitem__)
    expected = [0.0] * len(p)
    for i, at in enumerate(order):
        expected[at] = min(1.0, max((len(p) - j) * p[order[j]] for j in range(i + 1)))
    np.testing.assert_allclose(statistics.holm(p), expected)


def test_a_family_without_effects_is_rarely_called_certain():
    """Of 100 families of 20 claims about nothing at most 5 % have a verdict: within 4 sigma, 14;
    without a correction about 64 have one."""
    rng, alarms, uncorrected = np.random.default_rng(0), 0, 0
    for _ in range(100):
        family = rng.normal(size=(20, 8))
        alarms += any(one.sign for one in statistics.judged(dict(enumerate(family))).values())
        uncorrected += (stats.ttest_1samp(family, 0, axis=1).pvalue <= 0.05).any()
    assert alarms < 14 < 45 < uncorrected


def test_judged():
    x = np.array([1.0, 1.1, 0.9, 1.0, 1.05])
    found = statistics.judged({"up": x, "down": -x, "nothing": x - x.mean(), "one run": x[:1]})
    assert [one.sign for one in found.values()] == [1, -1, 0, 0]
    assert found["up"][:2] == pytest.approx((x.mean(), x.std(ddof=1) / np.sqrt(5)))
    assert found["one run"].runs == 1 and found["one run"].error == np.inf
    assert statistics.p_value(np.full(3, 5.0)) == 0 and statistics.p_value(np.zeros(3)) == 1
    between = x * [1, 5, 1, 1, 5] - 0.8               # alone it would do, among twenty it does not
    assert 0.0025 < stats.ttest_1samp(between, 0).pvalue == statistics.p_value(between)
    family = {"it": between} | {i: np.array([1.0, -1.0]) for i in range(19)}
    assert statistics.judged(family)["it"].sign == 0


def test_a_detectable_difference_is_found_as_often_as_it_says():
    """400 samples with a true difference of that size: 80 % are found, within 4 sigma."""
    rng, runs, tests = np.random.default_rng(0), 6, 10
    size = statistics.detectable(runs, tests)
    found = [statistics.p_value(size + rng.normal(size=runs)) <= 0.05 / tests for _ in range(400)]
    assert np.mean(found) == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / 400))
    assert statistics.detectable(2, 200) > 1000      # two runs find hardly anything, and say so
