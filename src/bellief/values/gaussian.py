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
>>> bool(jnp.allclose(draws, gaussian.sample_with(gaussian.noise(jax.random.key(0), belief, 3), belief)))
True
>>> bool(jnp.allclose(draws[:, 1], 2 * draws[:, 0], atol=1e-3))  # the states are correlated as in the samples
True
>>> gaussian.sd(gaussian.point(jnp.ones(2), rows=gaussian.rank(mdps=10, samples=50, states=2))).tolist()
[0.0, 0.0]
>>> singular = jnp.array([[4.0, 0], [0, 0]])
>>> gaussian.semidefinite_root(singular).tolist()
[[2.0, 0.0], [0.0, 0.0]]
>>> rest, root = gaussian.eliminate(singular, 0, (singular, jnp.zeros((2, 2))))
>>> rest.tolist(), root.tolist()
([[0.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 0.0]])
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Int, Key

from bellief.replaceable import replaceable


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


def noise(key: Key[Array, ""], belief: Gaussian, count: int) -> Float[Array, "K*R"]:
    """The random numbers of `sample`; they depend on the belief's shape only, so many can be drawn beforehand."""
    return jax.random.normal(key, (count * belief.factor.shape[0],), belief.mean.dtype)


@replaceable
def sample_with(normals: Float[Array, "K*R"], belief: Gaussian) -> Float[Array, "K S"]:
    """Independent value functions from their random numbers."""
    return belief.mean + normals.reshape(-1, belief.factor.shape[0]) @ belief.factor


def sample(key: Key[Array, ""], belief: Gaussian, count: int) -> Float[Array, "K S"]:
    """Independent value functions."""
    return sample_with(noise(key, belief, count), belief)


def mean(belief: Gaussian) -> Float[Array, "S"]:
    """Mean of each state's value."""
    return belief.mean


def sd(belief: Gaussian) -> Float[Array, "S"]:
    """Standard deviation of each state's value."""
    return jnp.sqrt(jnp.sum(belief.factor**2, axis=0))


def quantile(belief: Gaussian, level: float) -> Float[Array, "S"]:
    """Quantile of each state's value."""
    return belief.mean + ndtri(jnp.asarray(level, belief.mean.dtype)) * sd(belief)


@replaceable
def semidefinite_root(covariance: Float[Array, "S S"]) -> Float[Array, "S S"]:
    """Upper triangular R with R^T R = covariance, where the covariance may be singular or zero.

    Cholesky elimination in which a direction without variance left gets a zero row instead of a division by zero.
    """
    carry = (covariance, jnp.zeros_like(covariance))
    return jax.lax.fori_loop(0, len(covariance), lambda index, inner: eliminate(covariance, index, inner), carry)[1]


def eliminate(
    covariance: Float[Array, "S S"],
    index: Int[Array, ""] | int,
    carry: tuple[Float[Array, "S S"], Float[Array, "S S"]],
) -> tuple[Float[Array, "S S"], Float[Array, "S S"]]:
    """One step of `semidefinite_root`: what is left of the covariance, and the root with row `index` filled in."""
    rest, root = carry
    states = covariance.shape[0]
    floor = 8 * states * jnp.finfo(covariance.dtype).eps * jnp.diagonal(covariance)
    pivot = rest[index, index]
    has_variance = pivot > floor[index]
    row = jnp.where(has_variance, rest[index] / jnp.sqrt(jnp.where(has_variance, pivot, 1)), 0)
    row = jnp.where(jnp.arange(states) < index, 0, row)
    return rest - jnp.outer(row, row), root.at[index].set(row)
