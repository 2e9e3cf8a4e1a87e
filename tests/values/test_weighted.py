import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.values import weighted

# Masses are sums of powers of two, so that cumulative masses are exact; in order: 1 (1/8), 2 (1/2), 3 (1/8), 7 (1/4).
SAMPLES = jnp.asarray([3.0, 1.0, 7.0, 2.0])
MASS = jnp.asarray([0.125, 0.125, 0.25, 0.5])


@pytest.mark.parametrize(
    ("level", "expected"), [(0.01, 1), (0.125, 1), (0.126, 2), (0.625, 2), (0.63, 3), (0.75, 3), (0.751, 7), (1.0, 7)]
)
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_quantile_by_hand(level, expected, scale):
    assert weighted.quantile(SAMPLES, scale * MASS, level) == expected


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0.125, 1.0),
        (0.0625, 1.0),
        (0.25, (0.125 * 1 + 0.125 * 2) / 0.25),
        (0.75, (0.125 * 1 + 0.5 * 2 + 0.125 * 3) / 0.75),
        (1.0, 0.125 * 1 + 0.5 * 2 + 0.125 * 3 + 0.25 * 7),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_lower_tail_mean_by_hand(level, expected, scale):
    assert weighted.lower_tail_mean(SAMPLES, scale * MASS, level) == pytest.approx(expected, rel=1e-6)


def test_samples_without_mass_do_not_count():
    samples, mass = jnp.asarray([-100.0, *SAMPLES, 100.0]), jnp.asarray([0.0, *MASS, 0.0])
    assert weighted.quantile(samples, mass, 0.01) == 1
    assert weighted.quantile(samples, mass, 1.0) == 7
    assert weighted.lower_tail_mean(samples, mass, 0.125) == 1


@pytest.mark.parametrize("count", [1, 2, 9, 10])
@pytest.mark.parametrize("level", [0.0, 0.05, 0.1, 0.5, 0.66, 0.9, 0.95, 1.0])
def test_order_quantile_is_weibulls(count, level):
    samples = np.random.default_rng(count).normal(size=(count, 2, 3)).astype(np.float32)
    expected = np.quantile(samples.astype(np.float64), level, axis=0, method="weibull")
    np.testing.assert_allclose(weighted.order_quantile(jnp.asarray(samples), level), expected, rtol=1e-4, atol=1e-5)


def test_order_quantile_covers_a_further_draw(key, check):
    draws = np.asarray(jax.random.normal(key, (10, 20_000)))
    # Nine draws make an interval, the tenth falls below its quantile with probability exactly `level`.
    for level in (0.1, 0.5, 0.9):
        bound = weighted.order_quantile(jnp.asarray(draws[:9]), level)
        check.mean((draws[9] < np.asarray(bound))[:, None], [level])
