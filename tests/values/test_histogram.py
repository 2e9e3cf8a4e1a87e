import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief.values import histogram

MDPS, COUNT, STATES, BINS = 3, 40, 2, 20


@pytest.fixture(scope="module")
def weighted_samples():
    generator = np.random.default_rng(0)
    samples = np.stack([generator.normal(5, 2, (MDPS, COUNT)), generator.gamma(2.0, 10.0, (MDPS, COUNT)) - 50], axis=-1)
    return samples, generator.dirichlet(np.ones(MDPS), COUNT).T


@pytest.fixture(scope="module")
def belief(weighted_samples):
    samples, weights = weighted_samples
    return histogram.fit(jnp.asarray(samples, jnp.float32), jnp.asarray(weights, jnp.float32), BINS)


def distribution(samples, weights, state):
    """SciPy's histogram distribution, from NumPy's histogram."""
    flat, mass = samples[..., state].ravel(), weights.ravel() / COUNT
    table, edges = np.histogram(flat, bins=BINS, range=(flat.min(), flat.max()), weights=mass)
    return stats.rv_histogram((table, edges), density=False), table, edges


@pytest.mark.parametrize("state", range(STATES))
def test_mass_against_numpy(belief, weighted_samples, state):
    _, table, edges = distribution(*weighted_samples, state)
    np.testing.assert_allclose(belief.mass[state], table, atol=1e-6)
    assert belief.mass[state].sum() == pytest.approx(1, abs=1e-5)
    assert belief.low[state] == pytest.approx(edges[0])
    assert belief.high[state] == pytest.approx(edges[-1])


@pytest.mark.parametrize("state", range(STATES))
def test_mean_and_spread(belief, weighted_samples, state):
    _, table, edges = distribution(*weighted_samples, state)
    centres, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    mean = table @ centres
    assert histogram.mean(belief)[state] == pytest.approx(mean, rel=1e-5)
    assert histogram.sd(belief)[state] == pytest.approx(np.sqrt(table @ (centres - mean) ** 2), rel=1e-4)
    # Half a bin from what the samples themselves say.
    flat, mass = weighted_samples[0][..., state].ravel(), weighted_samples[1].ravel() / COUNT
    assert histogram.mean(belief)[state] == pytest.approx(mass @ flat, abs=width / 2)


@pytest.mark.parametrize("state", range(STATES))
def test_quantile_against_scipy(belief, weighted_samples, state):
    law, _, _ = distribution(*weighted_samples, state)
    levels = np.array([0.001, 0.05, 0.31, 0.5, 0.77, 0.999])
    both = jnp.broadcast_to(jnp.asarray(levels)[:, None], (6, STATES))
    np.testing.assert_allclose(histogram.quantile(belief, both)[:, state], law.ppf(levels), rtol=1e-3)
    np.testing.assert_allclose(histogram.quantile(belief, 0.31)[state], law.ppf(0.31), rtol=1e-3)


def test_quantile_rises_from_the_lowest_to_the_highest(belief):
    levels = jnp.broadcast_to(jnp.linspace(0, 1, 1001)[:, None], (1001, STATES))
    quantiles = np.asarray(histogram.quantile(belief, levels))
    assert (np.diff(quantiles, axis=0) >= 0).all()
    np.testing.assert_allclose(quantiles[0], belief.low, rtol=1e-6)
    np.testing.assert_allclose(quantiles[-1], belief.high, rtol=1e-5)


@pytest.mark.parametrize("coupling", ["independent", "comonotone"])
def test_samples_have_the_marginals(key, check, belief, weighted_samples, coupling):
    draws = np.asarray(histogram.sample(key, belief, 20_000, coupling))
    for state in range(STATES):
        check.same_law(draws[:, state], distribution(*weighted_samples, state)[0])
    correlation = stats.spearmanr(draws).statistic
    if coupling == "comonotone":
        assert correlation == pytest.approx(1, abs=1e-6)
    else:
        assert abs(correlation) < stats.norm.isf(0.5e-5) / np.sqrt(20_000)


def test_point_mass_and_equal_samples():
    values = jnp.asarray([1.5, -20.0, 0.0])
    equal = jnp.broadcast_to(values, (MDPS, COUNT, 3))

    @jax.jit
    def summary(belief):
        draws = histogram.sample(jax.random.key(0), belief, 4)
        return histogram.mean(belief), histogram.sd(belief), histogram.quantile(belief, 0.3), draws

    for belief in (histogram.point(values), histogram.fit(equal, jnp.full((MDPS, COUNT), 1 / MDPS))):
        mean, sd, quantile, draws = summary(belief)
        np.testing.assert_allclose(mean, values, rtol=1e-6)
        np.testing.assert_allclose(sd, 0, atol=1e-5)
        np.testing.assert_array_equal(quantile, values)
        np.testing.assert_array_equal(draws, np.tile(values, (4, 1)))
