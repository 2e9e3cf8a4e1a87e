"""Quantiles and tail means of weighted samples."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def quantile(samples: Float[Array, "n"], mass: Float[Array, "n"], level: float) -> Float[Array, ""]:
    """Smallest sample at which the cumulative mass reaches `level`."""
    order = jnp.argsort(samples)
    cumulative = jnp.cumsum(mass[order])
    index = jnp.searchsorted(cumulative, level * cumulative[-1])
    return samples[order][jnp.minimum(index, len(samples) - 1)]


def lower_tail_mean(samples: Float[Array, "n"], mass: Float[Array, "n"], level: float) -> Float[Array, ""]:
    """Mean of the worst `level` of the mass: the conditional value at risk of a quantity one wants large."""
    order = jnp.argsort(samples)
    cumulative = jnp.cumsum(mass[order])
    cumulative = cumulative / cumulative[-1]
    before = jnp.concatenate([jnp.zeros(1, cumulative.dtype), cumulative[:-1]])
    inside = jnp.clip(level - before, 0, cumulative - before)
    return jnp.sum(inside * samples[order]) / jnp.sum(inside)


def order_quantile(samples: Float[Array, "n *rest"], level: float) -> Float[Array, "*rest"]:
    """Quantile of equally likely samples along the first axis, at position (n + 1) * level among the ordered ones.

    With this rule the quantile of n posterior draws lies above a further draw from the same posterior with probability
    exactly `level`, for any n large enough to have that position; other rules make intervals too narrow.
    """
    count = samples.shape[0]
    ordered = jnp.sort(samples, axis=0)
    position = jnp.clip((count + 1) * level - 1, 0, count - 1)
    below = jnp.floor(position).astype(int)
    above = jnp.minimum(below + 1, count - 1)
    share = jnp.asarray(position - below, ordered.dtype)
    return ordered[below] * (1 - share) + ordered[above] * share
