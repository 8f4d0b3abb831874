"""Statistics against direct formulas, other programs, and what is put in."""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lab import statistics

CHANCES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_lines_are_grouped_by_their_fields():
    lines = [{"dataset": d, "algorithm": a, "run": r, "reward": 100 * r + len(a)}
             for d, a, r in itertools.product("xy", ("one", "three"), range(2))]
    lines.append({"dataset": "x", "algorithm": "one", "variant": "v", "reward": 7})
    rewards = statistics.grouped(lines, "dataset", "algorithm", "variant")
    assert list(rewards) == ["x", "y"] and list(rewards["x"]["one"]) == ["", "v"]
    np.testing.assert_array_equal(rewards["y"]["three"][""], [5, 105])
    np.testing.assert_array_equal(rewards["x"]["one"]["v"], [7])


def test_paired_differences():
    x, y = np.array([3.0, 5.0, 10.0]), np.array([1.0, 2.0, 3.0])
    mean, error = statistics.paired(x, y)
    assert mean == 4 and error == pytest.approx(np.std([2, 3, 7], ddof=1) / np.sqrt(3))
    assert statistics.paired([2.0])[1] == np.inf


def test_the_jackknife_knows_the_spread_of_a_share():
    """Its error, averaged over 300 samples of 20 runs, is the spread within 15 % (4 sigma)."""
    rng, values, errors = np.random.default_rng(0), [], []
    for _ in range(300):
        whole = 10 + rng.normal(size=20)
        value, error = statistics.share(0.8 * whole + rng.normal(size=20), whole)
        values.append(value)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
    assert np.mean(values) == pytest.approx(0.8, abs=0.01)
    assert np.isnan(statistics.share(np.ones(3), np.zeros(3))).all()
    assert statistics.share([1.0], [4.0])[0] == 0.25


# Verdicts -----------------------------------------------------------------------------------------

def test_p_values_are_those_of_a_t_test():
    x = np.random.default_rng(0).normal(0.3, 1, 12)
    assert statistics.p_value(*statistics.paired(x), 12) == pytest.approx(
        stats.ttest_1samp(x, 0).pvalue)
    assert statistics.p_value(5.0, np.inf, 1) == 1
    assert statistics.p_value(5.0, 0.0, 3) == 0 and statistics.p_value(0.0, 0.0, 3) == 1


@given(CHANCES)
def test_holm_is_its_formula(p):
    """Adjusted p of the i-th smallest: the largest of (m - j + 1) p_j over all j up to i."""
    order = sorted(range(len(p)), key=p.__getitem__)
    expected = [0.0] * len(p)
    for i, at in enumerate(order):
        expected[at] = min(1.0, max((len(p) - j) * p[order[j]] for j in range(i + 1)))
    np.testing.assert_allclose(statistics.holm(p), expected)


@given(CHANCES, st.randoms())
def test_holm_does_not_depend_on_the_order(p, random):
    order = random.sample(range(len(p)), len(p))
    shuffled = statistics.holm([p[i] for i in order])
    np.testing.assert_allclose(shuffled, statistics.holm(p)[order])


def test_a_family_without_effects_is_rarely_called_significant():
    """Of 1,000 families of 20 claims about nothing at most 5 % have a verdict: within 4 sigma, 78;
    without a correction it would be about 640."""
    rng, alarms, uncorrected = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        family = rng.normal(size=(20, 8))
        p = np.array([statistics.p_value(*statistics.paired(x), 8) for x in family])
        alarms += (statistics.holm(p) <= 0.05).any()
        uncorrected += (p <= 0.05).any()
    assert alarms < 78 < 500 < uncorrected


def test_verdicts():
    x = np.array([1.0, 1.1, 0.9, 1.0, 1.05])
    assert statistics.verdicts([x, -x, x - x.mean()]) == ["supported", "not supported", "unclear"]
    assert statistics.verdicts([np.array([1.0])]) == ["unclear"]
    slight = np.array([0.1, 1.0, 1.9, 0.4])           # p = 0.09 x 1, so never in a family
    assert statistics.verdicts([slight]) == ["unclear"]
    between = x * [1, 5, 1, 1, 5] - 0.8               # alone it would do, among ten it does not
    assert 0.005 < statistics.p_value(*statistics.paired(between), 5) < 0.2
    assert statistics.verdicts([between] + [slight] * 9)[0] == "unclear"


# Summaries ----------------------------------------------------------------------------------------

@given(st.integers(1, 20), st.integers(0, 100))
def test_the_interquartile_mean_is_that_of_the_middle_half(n, seed):
    scores = np.random.default_rng(seed).normal(size=(2, 2 * n))
    middle = np.sort(scores.ravel())[n:3 * n]
    assert statistics.interquartile_mean(list(scores)) == pytest.approx(middle.mean())


def test_the_interquartile_mean_ignores_a_wild_run():
    scores = [np.full(8, 0.5), np.full(8, 0.7)]
    wild = [scores[0], np.append(scores[1][:-1], -1000.0)]
    assert statistics.interquartile_mean(wild) == pytest.approx(0.6, abs=0.04)


def test_the_probability_of_improvement_counts_pairs():
    x = [np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0])]
    y = [np.array([0.0, 2.0, 4.0, 3.0]), np.array([4.0])]
    assert statistics.probability_of_improvement(x, y) == pytest.approx((2.5 / 4 + 1) / 2)
    assert statistics.probability_of_improvement(x, x) == 0.5


def test_a_bootstrap_interval_covers_what_it_should():
    """95 % of the intervals for a mean, of 200 samples of 30 runs, hold it: 4 sigma is 6 %."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        sample = [rng.normal(3, 1, 15), rng.normal(5, 1, 15)]
        low, high = statistics.bootstrap(lambda s: np.mean([x.mean() for x in s]), sample,
                                         resamples=200)
        held += low <= 4 <= high
    assert 0.86 < held / 200 <= 1


def test_a_bootstrap_keeps_runs_in_pairs():
    """x beats y in every run, though each has a large spread: resampled in pairs it always does."""
    y = [100 * np.random.default_rng(0).normal(size=20)]
    x = [y[0] + 1]
    low, high = statistics.bootstrap(statistics.probability_of_improvement, x, y, resamples=50)
    assert low == high == 1


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_growth_finds_the_power_and_its_error(power):
    rng, x = np.random.default_rng(0), np.geomspace(1, 1000, 200)
    assert statistics.growth(x, 3 * x ** power) == pytest.approx((power, 0), abs=1e-9)
    p, e = statistics.growth(x, 3 * x ** power * np.exp(0.1 * rng.normal(size=200)))
    assert abs(p - power) < 4 * e
    assert e == pytest.approx(0.1 / np.sqrt(200) / np.log(x).std(), rel=0.3)
    kink = np.where(x < 30, 30.0, x) ** power
    assert statistics.growth(x, kink, least=30)[0] == pytest.approx(power)
    assert statistics.growth(x, kink, most=29)[0] == pytest.approx(0, abs=1e-9)
