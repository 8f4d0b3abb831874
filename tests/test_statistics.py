"""Statistics against direct formulas, other programs, and what is put in."""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lab import paper, report, statistics

CHANCES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_results_are_grouped_by_their_fields():
    results = [{"dataset": d, "algorithm": a, "run": r, "reward": 100 * r + len(a)}
               for d, a, r in itertools.product("xy", ("one", "three"), range(2))]
    results.append({"dataset": "x", "algorithm": "one", "variant": "v", "reward": 7})
    rewards = statistics.grouped(results, "dataset", "algorithm", "variant")
    assert list(rewards) == ["x", "y"] and list(rewards["x"]["one"]) == ["", "v"]
    np.testing.assert_array_equal(rewards["y"]["three"][""], [5, 105])
    np.testing.assert_array_equal(rewards["x"]["one"]["v"], [7])


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


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_growth_finds_the_power_and_its_error(power):
    rng, x = np.random.default_rng(0), np.geomspace(1, 1000, 200)
    assert statistics.growth(x, 3 * x ** power) == pytest.approx((power, 0), abs=1e-9)
    p, e = statistics.growth(x, 3 * x ** power * np.exp(0.1 * rng.normal(size=200)))
    assert abs(p - power) < 4 * e
    assert e == pytest.approx(0.1 / np.sqrt(200) / np.log(x).std(), rel=0.3)
    kink = np.where(x < 30, 30.0, x) ** power
    assert statistics.growth(x, kink, least=30)[0] == pytest.approx(power)


# Verdicts -----------------------------------------------------------------------------------------

@given(CHANCES)
def test_holm_is_its_formula(p):
    """Adjusted p of the i-th smallest: the largest of (m - j + 1) p_j over all j up to i."""
    order = sorted(range(len(p)), key=p.__getitem__)
    expected = [0.0] * len(p)
    for i, at in enumerate(order):
        expected[at] = min(1.0, max((len(p) - j) * p[order[j]] for j in range(i + 1)))
    np.testing.assert_allclose(statistics.holm(p), expected)


def test_a_family_without_effects_is_rarely_called_certain():
    """Of 300 families of 20 claims about nothing at most 5 % have a verdict: within 4 sigma, 31;
    without a correction it would be about 190."""
    rng, alarms, uncorrected = np.random.default_rng(0), 0, 0
    for _ in range(300):
        family = dict(enumerate(rng.normal(size=(20, 8))))
        alarms += any(one.sign for one in statistics.judged(family).values())
        uncorrected += any(statistics.p_value(x) <= 0.05 for x in family.values())
    assert alarms < 31 < 150 < uncorrected


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


def test_cells_near_the_paper():
    """z has both standard errors: 10 ± 3 of 50 runs there, 11 ± 2 of 4 runs here."""
    x = np.array([9.0, 10.0, 12.0, 13.0])
    error = np.sqrt(x.var(ddof=1) / 4 + 9 / 50)
    assert statistics.z_score(x, 10, 3, 50) == pytest.approx(1 / error)
    ratios = {("adult", "linear"): np.full(5, 1.02),                 # |z| is far above 2 in both
              ("adult", "neural-linear"): np.full(5, 1.04),
              ("jester", "linear"): np.array([0.5, 1.5])}            # no comparable data set; z = 0
    cells = {cell: paper.number(*cell)[0] * x for cell, x in ratios.items()}
    cells["wheel-0.5", "carried"] = np.ones(2)                       # the paper has no number
    assert report.near_paper(cells) == ["0 of 2", "1 of 2", "1 of 3", "2 of 3"]


# Summaries ----------------------------------------------------------------------------------------

def test_the_probability_of_improvement_counts_pairs():
    x = [np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0])]
    y = [np.array([0.0, 2.0, 4.0, 3.0]), np.array([4.0])]
    assert statistics.probability_of_improvement(x, y) == pytest.approx((2.5 / 4 + 1) / 2)
    assert statistics.mean_over_sets(x) == pytest.approx((2.5 + 5) / 2)


def test_a_bootstrap_interval_covers_what_it_should():
    """95 % of the intervals for a mean, of 200 samples of 30 runs, hold it: 4 sigma is 6 %."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        sample = [rng.normal(3, 1, 15), rng.normal(5, 1, 15)]
        low, high = statistics.bootstrap(statistics.mean_over_sets, sample, resamples=200)
        held += low <= 4 <= high
    assert 0.86 < held / 200 <= 1


def test_a_bootstrap_keeps_runs_in_pairs():
    """x beats y in every run, though each has a large spread: resampled in pairs it always does."""
    y = [100 * np.random.default_rng(0).normal(size=20)]
    x = [y[0] + 1]
    low, high = statistics.bootstrap(statistics.probability_of_improvement, x, y, resamples=50)
    assert low == high == 1
