import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief import fast
from bellief.values import gaussian

# Few states (the factor is a root of the covariance), many states (it is the centred samples), and more states than
# are unrolled.
SIZES = [(3, 10, 4), (2, 3, 8), (4, 10, 15)]


def weighted_samples(mdps, count, states, seed=0):
    generator = np.random.default_rng(seed)
    samples = generator.normal(size=(mdps, count, states)) @ generator.normal(size=(states, states)) + 5
    return samples, generator.dirichlet(np.ones(mdps), count).T


def covariance_of(belief):
    factor = np.asarray(belief.factor)
    return factor.T @ factor


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("size", SIZES)
def test_fit_is_the_weighted_mean_and_covariance(size):
    samples, weights = weighted_samples(*size)
    belief = gaussian.fit(samples, weights)
    flat, mass = samples.reshape(-1, size[2]), weights.ravel() / size[1]
    assert mass.sum() == pytest.approx(1)
    np.testing.assert_allclose(belief.mean, np.average(flat, axis=0, weights=mass), rtol=1e-10)
    expected = np.cov(flat.T, aweights=mass, ddof=0)
    np.testing.assert_allclose(covariance_of(belief), expected, atol=1e-9 * expected.max())
    assert belief.factor.shape[0] == gaussian.rank(*size)
    np.testing.assert_allclose(gaussian.sd(belief), np.sqrt(np.diag(expected)), rtol=1e-8)


def test_both_representations_are_used():
    assert [gaussian.rank(*size) for size in SIZES] == [4, 6, 15]


@pytest.mark.parametrize("size", SIZES)
def test_equal_samples_have_no_spread(size):
    _, weights = weighted_samples(*size)
    belief = gaussian.fit(jnp.full(size, 7.25), jnp.asarray(weights, jnp.float32))
    np.testing.assert_allclose(belief.mean, 7.25, rtol=1e-6)
    assert gaussian.sd(belief).max() < 1e-4
    assert np.isfinite(belief.factor).all()


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("states", [4, 20])
def test_root_of_a_regular_matrix_is_cholesky(states):
    half = np.random.default_rng(0).normal(size=(2 * states, states))
    covariance = half.T @ half
    root = gaussian.semidefinite_root(jnp.asarray(covariance))
    np.testing.assert_allclose(root, np.linalg.cholesky(covariance).T, atol=1e-10)


@pytest.mark.parametrize("states", [6, 20])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_root_of_a_singular_matrix(states, rank):
    half = np.random.default_rng(0).normal(size=(rank, states))
    # A state without any spread, as one from which nothing can be earned.
    half[:, 2] = 0
    covariance = (half.T @ half).astype(np.float32)
    root = np.asarray(gaussian.semidefinite_root(jnp.asarray(covariance)), np.float64)
    np.testing.assert_allclose(root.T @ root, covariance, atol=1e-4)
    np.testing.assert_array_equal(root, np.triu(root))
    assert (root[:, 2] == 0).all()


@pytest.mark.parametrize("rank", [3, 20])
def test_root_in_one_kernel(rank):
    """The kernel for NVIDIA GPUs, interpreted, does the same in the same order."""
    root_kernel = pytest.importorskip("bellief.fast.root_kernel")
    half = np.random.default_rng(0).normal(size=(rank, 20))
    half[:, 2] = 0
    covariance = jnp.asarray(half.T @ half, jnp.float32)
    found = root_kernel.root(covariance, interpret=True)
    np.testing.assert_allclose(found, gaussian.semidefinite_root(covariance), atol=1e-6)


@pytest.mark.parametrize(("states", "asked"), [(12, False), (13, True), (128, True), (129, False)])
def test_root_is_a_kernel_in_programs_for_a_gpu(states, asked):
    """Lowered, not run: that needs no GPU."""
    root = jax.jit(lambda covariance: gaussian.semidefinite_root(covariance))
    with fast.enabled("gpu"):
        text = root.trace(jnp.eye(states)).lower(lowering_platforms=("cuda",)).as_text()
    assert ("triton" in text) == asked


def test_root_of_scaled_states():
    # Spreads of very different size in one matrix: the small one is not mistaken for rounding of the large one.
    covariance = jnp.diag(jnp.asarray([1e8, 1e-6, 1.0]))
    np.testing.assert_allclose(gaussian.semidefinite_root(covariance), np.diag([1e4, 1e-3, 1.0]), rtol=1e-5)


@pytest.mark.parametrize("size", [(3, 10, 4), (2, 3, 8)])
def test_sample_moments(key, check, size):
    samples, weights = weighted_samples(*size)
    belief = gaussian.fit(jnp.asarray(samples, jnp.float32), jnp.asarray(weights, jnp.float32))
    draws = np.asarray(gaussian.sample(key, belief, 20_000), np.float64)
    flat, mass = samples.reshape(-1, size[2]), weights.ravel() / size[1]
    mean, covariance = np.average(flat, axis=0, weights=mass), np.cov(flat.T, aweights=mass, ddof=0)
    check.mean(draws, mean)
    centred = draws - mean
    check.mean(centred[:, :, None] * centred[:, None, :], covariance, slack=1e-4 * covariance.max())
    check.same_law(draws[:, 1], stats.norm(mean[1], np.sqrt(covariance[1, 1])))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("level", [0.01, 0.5, 0.9])
def test_quantile(level):
    samples, weights = weighted_samples(3, 10, 4)
    belief = gaussian.fit(samples, weights)
    flat, mass = samples.reshape(-1, 4), weights.ravel() / 10
    mean = np.average(flat, axis=0, weights=mass)
    spread = np.sqrt(np.average((flat - mean) ** 2, axis=0, weights=mass))
    np.testing.assert_allclose(gaussian.quantile(belief, level), stats.norm(mean, spread).ppf(level), rtol=1e-8)


def test_point_mass():
    belief = gaussian.point(jnp.asarray([1.0, -2.0]), rows=5)
    np.testing.assert_array_equal(gaussian.mean(belief), [1.0, -2.0])
    np.testing.assert_array_equal(gaussian.sd(belief), [0.0, 0.0])
    np.testing.assert_array_equal(gaussian.sample(jax.random.key(0), belief, 3), [[1.0, -2.0]] * 3)
    np.testing.assert_array_equal(gaussian.quantile(belief, 0.9), [1.0, -2.0])
