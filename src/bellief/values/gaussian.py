"""The paper's value belief for discrete MDPs: one Gaussian over the whole value function.

The covariance is kept as a factor F with F^T F = covariance, of R rows. With few states R = S (a triangular root); with
more states than weighted samples, the centred samples themselves are the factor and nothing needs to be decomposed.

>>> import jax, jax.numpy as jnp
>>> from bellief.values import gaussian
>>> samples = jnp.array([[[0.0, 0.0]], [[2.0, 4.0]]])  # one value sample in each of two MDPs
>>> belief = gaussian.fit(samples, jnp.array([[0.5], [0.5]]))
>>> type(belief).__name__, gaussian.mean(belief).tolist(), gaussian.sd(belief).round(3).tolist()
('Gaussian', [1.0, 2.0], [1.0, 2.0])
>>> print(gaussian.quantile(belief, 0.9).round(2))
[2.28 4.56]
>>> draws = gaussian.sample(jax.random.key(0), belief, count=3)
>>> bool(jnp.allclose(draws, gaussian.sample_with(gaussian.luck(jax.random.key(0), belief, 3), belief)))
True
>>> bool(jnp.allclose(draws[:, 1], 2 * draws[:, 0], atol=1e-3))  # the states hang together as in the samples
True
>>> gaussian.sd(gaussian.point(jnp.ones(2), rows=gaussian.rank(mdps=10, samples=50, states=2))).tolist()
[0.0, 0.0]
>>> gaussian.semidefinite_root(jnp.array([[4.0, 0], [0, 0]])).tolist()
[[2.0, 0.0], [0.0, 0.0]]
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Key

from bellief.compiler import with_kernel
from bellief.draws import normal as draw_normal
from bellief.products import product

# Unrolling a short elimination is faster than a loop; a long one would only lengthen compilation.
UNROLLED_STATES = 12
# Up to so many states a GPU eliminates in one kernel.
LARGEST_IN_KERNEL = 128


class Gaussian(NamedTuple):
    """N(mean, factor^T factor)."""

    mean: Float[Array, "S"]
    factor: Float[Array, "R S"]


def rank(mdps: int, samples: int, states: int) -> int:
    """Rows of the factor: the cheaper of a triangular root and the samples themselves."""
    return mdps * samples if mdps * samples <= 2 * states else states


def point(values: Float[Array, "S"], rows: int) -> Gaussian:
    """All mass on one value function."""
    return Gaussian(values, jnp.zeros((rows, values.shape[0]), values.dtype))


def fit(samples: Float[Array, "J K S"], weights: Float[Array, "J K"]) -> Gaussian:
    """Weighted mean and covariance of the samples (the paper's update of m_i and Sigma_i).

    Deviation: `weights` sum to one over j for each k, so a sample's mass is w_jk / K. The printed 1 / (N_V N_mu) would
    shrink values N_mu-fold at every step.
    """
    mdps, count, states = samples.shape
    mass = (weights / count).reshape(-1)
    flat = samples.reshape(-1, states)
    mean_values = mass @ flat
    centred = jnp.sqrt(mass)[:, None] * (flat - mean_values)
    if rank(mdps, count, states) == mdps * count:
        return Gaussian(mean_values, centred)
    return Gaussian(mean_values, semidefinite_root(centred.T @ centred))


def luck(key: Key[Array, ""], belief: Gaussian, count: int) -> Float[Array, "K*R"]:
    """The random numbers of `sample`; they depend on the belief's shape only, so many can be drawn beforehand."""
    return draw_normal(key, (count * belief.factor.shape[0],), belief.mean.dtype)


def sample_with(normals: Float[Array, "K*R"], belief: Gaussian) -> Float[Array, "K S"]:
    """Independent value functions from their random numbers."""
    return belief.mean + product(normals.reshape(-1, belief.factor.shape[0]), belief.factor)


def sample(key: Key[Array, ""], belief: Gaussian, count: int) -> Float[Array, "K S"]:
    """Independent value functions."""
    return sample_with(luck(key, belief, count), belief)


def mean(belief: Gaussian) -> Float[Array, "S"]:
    """Mean of each state's value."""
    return belief.mean


def sd(belief: Gaussian) -> Float[Array, "S"]:
    """Standard deviation of each state's value."""
    return jnp.sqrt(jnp.sum(belief.factor**2, axis=0))


def quantile(belief: Gaussian, level: float) -> Float[Array, "S"]:
    """Quantile of each state's value."""
    return belief.mean + ndtri(jnp.asarray(level, belief.mean.dtype)) * sd(belief)


def semidefinite_root(covariance: Float[Array, "S S"]) -> Float[Array, "S S"]:
    """Upper triangular R with R^T R = covariance, where the covariance may be singular or zero.

    Cholesky elimination in which a direction without variance left gets a zero row instead of a division by zero.
    """
    states = covariance.shape[0]
    if states <= UNROLLED_STATES:
        return _eliminate_all(covariance, unroll=True)
    if states > LARGEST_IN_KERNEL or covariance.dtype != jnp.float32:
        return _eliminate_all(covariance)

    def in_one_kernel(covariance):
        from bellief.values import root_kernel

        return root_kernel.root(covariance)

    return with_kernel(_eliminate_all, in_one_kernel, covariance)


def _eliminate_all(covariance: Float[Array, "S S"], unroll: bool = False) -> Float[Array, "S S"]:
    states = covariance.shape[0]
    floor = 8 * states * jnp.finfo(covariance.dtype).eps * jnp.diagonal(covariance)

    def eliminate(index, carry):
        rest, root = carry
        pivot = rest[index, index]
        has_variance = pivot > floor[index]
        row = jnp.where(has_variance, rest[index] / jnp.sqrt(jnp.where(has_variance, pivot, 1)), 0)
        row = jnp.where(jnp.arange(states) < index, 0, row)
        return rest - jnp.outer(row, row), root.at[index].set(row)

    carry = (covariance, jnp.zeros_like(covariance))
    if unroll:
        for index in range(states):
            carry = eliminate(index, carry)
        return carry[1]
    return jax.lax.fori_loop(0, states, eliminate, carry)[1]
