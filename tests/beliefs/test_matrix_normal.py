"""The regression belief against numerical integration, SciPy's densities, itself in other forms, and hard data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from bellief.beliefs import matrix_normal

FEATURES, OUTPUTS = 3, 2


def observations(seed, count, features=FEATURES, outputs=OUTPUTS):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, features))
    return x, x @ generator.normal(size=(features, outputs)) + 0.3 * generator.normal(size=(count, outputs))


def textbook(x, y, precision, scale, degrees):
    """Minka's formulas, with the subtraction that the root form avoids."""
    strength = precision * np.eye(x.shape[1]) + x.T @ x
    mean = np.linalg.solve(strength, x.T @ y)
    return strength, mean, scale * np.eye(y.shape[1]) + y.T @ y - mean.T @ strength @ mean, degrees + len(x)


def prior(double_precision=True, features=FEATURES, outputs=OUTPUTS, degrees=2.0):
    dtype = jnp.float64 if double_precision else jnp.float32
    return matrix_normal.init(features, outputs, 0.1, 0.5, degrees, dtype)


def test_posterior_is_the_textbooks(double):
    x, y = observations(0, 20)
    belief = matrix_normal.update_batch(prior(), x, y)
    given = matrix_normal.moments(belief, FEATURES)
    strength, mean, scale, degrees = textbook(x, y, 0.1, 0.5, 2.0)
    np.testing.assert_allclose(given.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(given.precision_root.T @ given.precision_root, strength, rtol=1e-9)
    np.testing.assert_allclose(given.scale_root.T @ given.scale_root, scale, rtol=1e-8)
    assert float(given.degrees) == degrees


def test_one_at_a_time_is_all_at_once(double):
    x, y = observations(1, 30)
    step = jax.jit(matrix_normal.update)
    belief = prior()
    for row, output in zip(x, y, strict=True):
        belief = step(belief, row, output)
    at_once = matrix_normal.update_batch(prior(), x, y)
    np.testing.assert_allclose(belief.root, at_once.root, rtol=1e-9, atol=1e-12)
    assert float(belief.degrees) == float(at_once.degrees)


def test_densities_are_scipys(double):
    x, y = observations(2, 8)
    belief = matrix_normal.update_batch(prior(), x, y)
    strength, mean, scale, degrees = textbook(x, y, 0.1, 0.5, 2.0)
    covariance = np.array([[0.3, 0.1], [0.1, 0.2]])
    weights = mean + 0.1
    expected = stats.invwishart.logpdf(covariance, degrees, scale) + stats.matrix_normal.logpdf(
        weights, mean, np.linalg.inv(strength), covariance
    )
    np.testing.assert_allclose(matrix_normal.log_density(belief, weights, covariance), expected, rtol=1e-9)
    at, output = np.array([0.5, -1.0, 0.2]), np.array([0.3, 0.9])
    freedom = degrees - OUTPUTS + 1
    shape = scale * (1 + at @ np.linalg.solve(strength, at)) / freedom
    expected = stats.multivariate_t.logpdf(output, mean.T @ at, shape, freedom)
    np.testing.assert_allclose(matrix_normal.log_predictive(belief, at, output), expected, rtol=1e-9)


def test_one_dimension_by_brute_force(double):
    """Normal-inverse-gamma: posterior mean, noise and predictive density by integrating prior times likelihood."""
    precision, rate, shape = 0.5, 0.7, 1.5
    x, y = np.array([0.5, 1.0, -0.3]), np.array([0.4, 1.3, -0.1])
    belief = matrix_normal.init(1, 1, precision, 2 * rate, 2 * shape, jnp.float64)
    belief = matrix_normal.update_batch(belief, x[:, None], y[:, None])

    def joint(weight, variance, extra=()):
        outputs = [*zip(x, y, strict=True), *extra]
        likelihood = np.prod([stats.norm.pdf(one, weight * at, np.sqrt(variance)) for at, one in outputs], axis=0)
        return (
            stats.invgamma.pdf(variance, shape, scale=rate)
            * stats.norm.pdf(weight, 0, np.sqrt(variance / precision))
            * likelihood
        )

    def integral(function):
        weight, log_variance = np.linspace(-12, 12, 3001), np.linspace(-6, 4.5, 801)
        grid = function(weight[:, None], np.exp(log_variance)) * np.exp(log_variance)
        return integrate.simpson(integrate.simpson(grid, x=weight, axis=0), x=log_variance)

    evidence = integral(joint)
    given = matrix_normal.moments(belief, 1)
    np.testing.assert_allclose(given.mean[0, 0], integral(lambda w, v: w * joint(w, v)) / evidence, rtol=1e-4)
    expected = np.log(integral(lambda w, v: joint(w, v, extra=[(0.8, 0.2)])) / evidence)
    found = matrix_normal.log_predictive(belief, jnp.array([0.8]), jnp.array([0.2]))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_draws_have_the_posteriors_moments(key):
    x, y = observations(3, 40)
    belief = matrix_normal.update_batch(prior(False), jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    count = 4000
    draws = jax.jit(jax.vmap(lambda one: matrix_normal.sample(one, belief, FEATURES)))(jax.random.split(key, count))
    strength, mean, scale, degrees = textbook(x, y, 0.1, 0.5, 2.0)
    noise = np.einsum("nij,nik->njk", draws.noise_root, draws.noise_root)
    error = noise.std(0) / np.sqrt(count)
    assert (np.abs(noise.mean(0) - scale / (degrees - OUTPUTS - 1)) < 5 * error).all()
    error = np.asarray(draws.weights).std(0) / np.sqrt(count)
    assert (np.abs(np.asarray(draws.weights).mean(0) - mean) < 5 * error).all()
    spread = np.diagonal(np.linalg.inv(strength))[:, None] * np.diagonal(scale) / (degrees - OUTPUTS - 1)
    np.testing.assert_allclose(np.asarray(draws.weights).var(0), spread, rtol=0.2)


@pytest.mark.slow
def test_calibration_by_simulation(key):
    """Ranks of true weights and true noise among posterior draws are uniform (chi-squared, failing 1 in 10^5)."""
    problems, draws, bins = 2000, 63, 8
    # Enough degrees of freedom that the prior's own draws are tame.
    start = matrix_normal.init(2, 2, 1.0, 1.0, 6.0)

    def one(one_key):
        truth_key, x_key, noise_key, draw_key = jax.random.split(one_key, 4)
        truth = matrix_normal.sample(truth_key, start, 2)
        x = jax.random.normal(x_key, (10, 2))
        y = x @ truth.weights + jax.random.normal(noise_key, (10, 2)) @ truth.noise_root
        belief = matrix_normal.update_batch(start, x, y)
        drawn = jax.vmap(lambda own: matrix_normal.sample(own, belief, 2))(jax.random.split(draw_key, draws))
        variance = jnp.sum(drawn.noise_root[:, :, 0] ** 2, axis=1)
        own_variance = jnp.sum(truth.noise_root[:, 0] ** 2)
        return jnp.stack(
            [
                jnp.sum(drawn.weights[:, 0, 1] < truth.weights[0, 1]),
                jnp.sum(drawn.weights[:, 1, 0] < truth.weights[1, 0]),
                jnp.sum(variance < own_variance),
            ]
        )

    ranks = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(key, problems)))
    for rank in ranks.T:
        counts = np.bincount(rank * bins // (draws + 1), minlength=bins)
        assert stats.chisquare(counts).pvalue > 1e-5 / 3


HARD = {
    "constant": lambda generator, count: np.ones((count, 3)) * [1.0, 2.0, 3.0],
    "collinear": lambda generator, count: np.repeat(1 + generator.normal(size=(count, 1)), 3, axis=1),
    "large": lambda generator, count: 1e3 + generator.normal(size=(count, 3)),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("count", [1, 100_000])
def test_single_precision_survives(kind, count):
    """Noise-free outputs of hard inputs, where YtY - MKM would be negative: the scale stays positive, draws finite."""
    x = HARD[kind](np.random.default_rng(0), count).astype(np.float32)
    y = (x @ np.array([[1.0, 0.5], [-0.5, 2.0], [0.25, 1.0]], np.float32)).astype(np.float32)
    belief = matrix_normal.init(3, 2, 0.001, 0.001, 2.0)

    @jax.jit
    def learn(belief, x, y):
        return jax.lax.scan(lambda now, row: (matrix_normal.update(now, *row), None), belief, (x, y))[0]

    belief = learn(belief, x, y)
    given = matrix_normal.moments(belief, 3)
    assert (np.diagonal(given.scale_root) >= np.float32(np.sqrt(0.001)) * 0.999).all()
    draws = jax.jit(jax.vmap(lambda one: matrix_normal.sample(one, belief, 3)))(jax.random.split(jax.random.key(0), 50))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(draws))
    np.testing.assert_allclose(x[:1] @ given.mean, y[:1], rtol=2e-2)
