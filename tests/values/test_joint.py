import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief.values import joint

MDPS, ROWS, STATES = 3, 4, 3
DISCOUNT = 0.8


def random_joint(seed=0, rows=ROWS, dtype=np.float64):
    generator = np.random.default_rng(seed)
    mean, factor = generator.normal(0, 3, (MDPS, STATES)), generator.normal(size=(MDPS, rows, STATES))
    return joint.Joint(jnp.asarray(mean, dtype), jnp.asarray(factor, dtype))


def covariance(factor):
    return np.asarray(factor).T @ np.asarray(factor)


@pytest.mark.usefixtures("double")
def test_push_forward_is_the_affine_image():
    belief, generator = random_joint(), np.random.default_rng(1)
    transition, reward = generator.dirichlet(np.ones(STATES), (MDPS, STATES)), generator.normal(size=(MDPS, STATES))
    after = joint.push_forward(belief, jnp.asarray(transition), jnp.asarray(reward), jnp.asarray(DISCOUNT))
    for j in range(MDPS):
        linear = DISCOUNT * transition[j]
        np.testing.assert_allclose(after.mean[j], reward[j] + linear @ np.asarray(belief.mean[j]), rtol=1e-12)
        expected = linear @ covariance(belief.factor[j]) @ linear.T
        np.testing.assert_allclose(covariance(after.factor[j]), expected, atol=1e-12)


@pytest.mark.usefixtures("double")
def test_mean_and_spread_of_the_mixture():
    belief = random_joint()
    within = np.array([np.diag(covariance(factor)) for factor in belief.factor])
    means = np.asarray(belief.mean)
    second = (within + means**2).mean(0)
    np.testing.assert_allclose(joint.mean(belief), means.mean(0), rtol=1e-12)
    np.testing.assert_allclose(joint.sd(belief), np.sqrt(second - means.mean(0) ** 2), rtol=1e-10)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("count", [5, 40])
def test_fit_is_each_mdps_own_weighted_mean_and_covariance(count):
    generator = np.random.default_rng(2)
    samples, weights = generator.normal(size=(MDPS, count, STATES)), generator.dirichlet(np.ones(MDPS), count).T
    belief = joint.fit(jnp.asarray(samples), jnp.asarray(weights))
    for j in range(MDPS):
        np.testing.assert_allclose(belief.mean[j], np.average(samples[j], axis=0, weights=weights[j]), rtol=1e-10)
        expected = np.cov(samples[j].T, aweights=weights[j], ddof=0)
        np.testing.assert_allclose(covariance(belief.factor[j]), expected, atol=1e-10)


@pytest.mark.usefixtures("double")
def test_responsibilities_against_scipy():
    belief, noise = random_joint(rows=2), 0.3
    values = np.random.default_rng(3).normal(0, 3, (6, STATES))
    density = np.array(
        [
            stats.multivariate_normal(mean, covariance(factor) + noise * np.eye(STATES)).pdf(values)
            for mean, factor in zip(np.asarray(belief.mean), belief.factor, strict=True)
        ]
    )
    weights = joint.responsibilities(belief, jnp.asarray(values), noise)
    np.testing.assert_allclose(weights, density / density.sum(0), rtol=1e-8)


def test_samples_are_the_mixture(key, check):
    belief = random_joint(dtype=np.float32)
    draws, owner = map(np.asarray, joint.sample_with_mdp(key, belief, 30_000))
    np.testing.assert_array_equal(np.bincount(owner), [10_000] * MDPS)
    for j in range(MDPS):
        own = draws[owner == j].astype(np.float64)
        check.mean(own, belief.mean[j], slack=1e-6)
        centred = own - np.asarray(belief.mean[j], np.float64)
        check.mean(centred[:, :, None] * centred[:, None], covariance(belief.factor[j]), slack=1e-5)
    np.testing.assert_array_equal(joint.sample(key, belief, 30_000), draws)


def test_quantile_against_monte_carlo(key, check):
    belief = random_joint(dtype=np.float32)
    draws = np.asarray(joint.sample(key, belief, 30_000))
    for level in (0.05, 0.5, 0.8):
        # The share of draws below the quantile is the level; shares over MDPs are even, which only narrows it.
        check.mean(draws < np.asarray(joint.quantile(belief, level)), np.full(STATES, level))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("level", [0.001, 0.3, 0.975])
def test_quantile_inverts_the_distribution_function(level):
    belief = random_joint()
    quantile = np.asarray(joint.quantile(belief, level))
    within = np.sqrt((np.asarray(belief.factor) ** 2).sum(1))
    np.testing.assert_allclose(stats.norm.cdf((quantile - belief.mean) / within).mean(0), level, rtol=1e-8)


def test_quantile_with_a_state_that_has_no_spread():
    belief = joint.Joint(jnp.asarray([[1.0, 4.0], [3.0, 4.0]]), jnp.asarray([[[1.0, 0.0]], [[1.0, 0.0]]]))
    quantile = np.asarray(joint.quantile(belief, 0.5))
    np.testing.assert_allclose(quantile, [2.0, 4.0], rtol=1e-5)


def test_point_masses():
    values = jnp.asarray(np.random.default_rng(4).normal(size=(9, 2)), jnp.float32)
    belief = joint.point(values)
    np.testing.assert_allclose(joint.sd(belief), np.std(values, axis=0), rtol=1e-5)
    np.testing.assert_allclose(
        joint.quantile(belief, 0.3), np.quantile(values, 0.3, axis=0, method="weibull"), rtol=1e-5
    )
    np.testing.assert_array_equal(joint.sample(jax.random.key(0), belief, 9), values)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("mdps", [3, 12])
def test_pooled_gives_every_mdp_the_same_gaussian(mdps):
    values = np.random.default_rng(5).normal(size=(mdps, STATES))
    belief = joint.pooled(jnp.asarray(values))
    for j in range(mdps):
        np.testing.assert_allclose(belief.mean[j], values.mean(0), rtol=1e-12)
        np.testing.assert_allclose(covariance(belief.factor[j]), np.cov(values.T, ddof=0), atol=1e-12)
