"""Statistics of a comparison, against SciPy and by hand."""

import numpy as np
import pytest
from scipy import stats

from bellief.plots import statistics


@pytest.mark.parametrize("runs", [4, 8, 20])
def test_interquartile_mean_is_the_trimmed_mean(runs):
    values = np.random.default_rng(runs).normal(size=runs)
    # SciPy cuts whole runs, which is the same where a quarter of them is a whole number.
    assert statistics.interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25))


def test_interquartile_mean_counts_fractions():
    # Of five runs 1.25 are cut at each end: the middle one counts whole, its neighbours three quarters.
    assert statistics.interquartile_mean(np.array([0.0, 1.0, 2.0, 4.0, 100.0])) == pytest.approx((0.75 + 2 + 3) / 2.5)


def test_bootstrap_agrees_with_scipy():
    values = np.random.default_rng(0).exponential(size=40)
    ours = statistics.bootstrap(values)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(1)).confidence_interval
    error = values.std() / np.sqrt(40)
    assert ours.value == pytest.approx(values.mean())
    assert abs(ours.low - theirs.low) < 0.1 * error
    assert abs(ours.high - theirs.high) < 0.1 * error


def test_bootstrap_of_equal_runs_has_no_width():
    assert statistics.bootstrap(np.full(7, 2.5)) == (2.5, 2.5, 2.5)


def test_pairing_removes_what_runs_share():
    rng = np.random.default_rng(0)
    luck = rng.normal(scale=10, size=30)
    difference = statistics.paired_difference(luck + 1 + rng.normal(scale=0.1, size=30), luck)
    assert difference.low > 0.9
    assert difference.high < 1.1


def test_probability_of_improvement_by_hand():
    # Pairs: 3 beats 1 and 2, ties with 3; 0 loses to all.
    estimate = statistics.probability_of_improvement(np.array([3.0, 0.0]), np.array([1.0, 2.0, 3.0]))
    assert estimate.value == pytest.approx(2.5 / 6)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_probability_of_improvement_agrees_with_mann_whitney():
    rng = np.random.default_rng(3)
    first, second = rng.normal(0.5, size=25), rng.normal(size=30)
    expected = stats.mannwhitneyu(first, second).statistic / (25 * 30)
    assert statistics.probability_of_improvement(first, second).value == pytest.approx(expected)
