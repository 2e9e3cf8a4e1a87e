import numpy as np
import pytest
from scipy import stats

from bellief.plots.density import bandwidth, common_window, density, is_point, outline, window


def test_density_matches_scipy_with_the_same_bandwidth():
    samples = np.random.default_rng(1).gamma(2.0, size=800)
    grid = np.linspace(-1, 8, 50)
    oracle = stats.gaussian_kde(samples, bandwidth(samples) / samples.std(ddof=1))
    np.testing.assert_allclose(density(samples, grid), oracle(grid), rtol=1e-10, atol=1e-14)


def test_many_draws_are_thinned_without_harm():
    samples = stats.norm.ppf((np.arange(50_000) + 0.5) / 50_000)
    grid = np.linspace(-3, 3, 41)
    np.testing.assert_allclose(
        density(samples, grid), stats.norm(scale=np.hypot(1, bandwidth(samples))).pdf(grid), atol=1e-3
    )


def test_window_leaves_out_far_tails_and_shows_the_middle():
    samples = np.random.default_rng(2).standard_t(1, 5000)
    low, high = window(samples)
    assert samples.min() < low < np.quantile(samples, 0.05)
    assert np.quantile(samples, 0.95) < high < samples.max()
    assert high - low < 30


def test_a_tail_does_not_blur_the_hill():
    samples = np.concatenate([np.random.default_rng(3).normal(size=1000), [1e6]])
    assert bandwidth(samples) < 0.5


@pytest.mark.parametrize(("samples", "expected"), [([1.0], True), ([2.0] * 5, True), ([0.0, 1e-3], False)])
def test_points_are_recognised(samples, expected):
    assert is_point(np.array(samples)) == expected


@pytest.mark.parametrize("groups", [[], [np.array([3.0])], [np.zeros(4)], [np.array([1e9]), np.array([1e9])]])
def test_a_common_window_has_width(groups):
    low, high = common_window(groups)
    assert low < high


def test_a_narrow_hill_in_a_wide_picture_is_drawn_finely():
    samples = np.random.default_rng(4).normal(0, 0.01, 1000)
    grid, height = outline(samples, (-1000.0, 1000.0))
    assert height.max() == 1
    assert (height > 0.1).sum() > 50
    assert grid[0] == -1000
    assert grid[-1] == 1000
