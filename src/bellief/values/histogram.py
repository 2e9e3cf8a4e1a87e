"""The paper's other value belief: histograms.

What is kept is *marginal*: one histogram per state, over a range that follows the samples. A joint histogram over value
functions would need bins^S cells, so how states hang together is forgotten, and `sample` has to choose a coupling:

- `independent`: every state is drawn by itself (the default);
- `comonotone`: one uniform number sets the quantile of all states, as if all values rose and fell together.

>>> import jax, jax.numpy as jnp
>>> from bellief.values import histogram
>>> samples = jnp.array([[[0.0, 0.0]], [[2.0, 4.0]]])
>>> belief = histogram.fit(samples, jnp.array([[0.5], [0.5]]), bins=4)
>>> type(belief).__name__, belief.mass[0].tolist(), histogram.mean(belief).tolist()
('Histogram', [0.5, 0.0, 0.0, 0.5], [1.0, 2.0])
>>> histogram.quantile(belief, 0.25).tolist(), bool((histogram.sd(belief) > 0).all())
([0.25, 0.5], True)
>>> draws = histogram.sample(jax.random.key(0), belief, count=3)
>>> bool(jnp.allclose(draws, histogram.sample_with(histogram.noise(jax.random.key(0), belief, 3), belief)))
True
>>> histogram.mean(histogram.point(jnp.array([1.0, 2.0]))).tolist()
[1.0, 2.0]
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.errors import UserError

BINS = 100
COUPLINGS = ("independent", "comonotone")


class Histogram(NamedTuple):
    """Mass of equally wide bins between `low` and `high`, for each state."""

    low: Float[Array, "S"]
    high: Float[Array, "S"]
    mass: Float[Array, "S B"]


def point(values: Float[Array, "S"], bins: int = BINS) -> Histogram:
    """All mass on one value function (bins of width zero)."""
    mass = jnp.full((values.shape[0], bins), 1 / bins, values.dtype)
    return Histogram(values, values, mass)


def fit(samples: Float[Array, "J K S"], weights: Float[Array, "J K"], bins: int = BINS) -> Histogram:
    """Add each sample's mass w_jk / K to the bin it falls in, state by state (the paper's belief update)."""
    _, count, states = samples.shape
    mass = (weights / count).reshape(-1)
    flat = samples.reshape(-1, states)
    low, high = jnp.min(flat, axis=0), jnp.max(flat, axis=0)
    width = jnp.where(high > low, high - low, 1)
    index = jnp.clip(((flat - low) / width * bins).astype(jnp.int32), 0, bins - 1)
    table = jnp.zeros((states, bins), samples.dtype).at[jnp.arange(states), index].add(mass[:, None])
    return Histogram(low, high, table)


def quantile(belief: Histogram, level: Float[Array, "*batch S"] | float) -> Float[Array, "*batch S"]:
    """Quantile of each state's value, with mass spread evenly inside a bin."""
    cumulative = jnp.cumsum(belief.mass, axis=-1)
    cumulative = cumulative / cumulative[:, -1:]
    bins = cumulative.shape[-1]
    level = jnp.broadcast_to(jnp.asarray(level, cumulative.dtype), (*jnp.shape(level)[:-1], cumulative.shape[0]))

    def one_state(edges, levels):
        index = jnp.minimum(jnp.searchsorted(edges, levels), bins - 1)
        before = jnp.where(index > 0, edges[jnp.maximum(index - 1, 0)], 0)
        inside = (levels - before) / jnp.maximum(edges[index] - before, jnp.finfo(edges.dtype).tiny)
        return (index + jnp.clip(inside, 0, 1)) / bins

    position = jax.vmap(one_state, in_axes=(0, -1), out_axes=-1)(cumulative, level)
    return belief.low + position * (belief.high - belief.low)


def noise(key: Key[Array, ""], belief: Histogram, count: int) -> Float[Array, "K S"]:
    """The random numbers of independent draws; they depend on the belief's shape only."""
    return jax.random.uniform(key, (count, belief.low.shape[0]), belief.low.dtype)


def sample_with(uniforms: Float[Array, "K S"], belief: Histogram) -> Float[Array, "K S"]:
    """Value functions with independent states, from their random numbers."""
    return quantile(belief, uniforms)


def sample(key: Key[Array, ""], belief: Histogram, count: int, coupling: str = "independent") -> Float[Array, "K S"]:
    """Value functions whose marginals are the histograms and whose dependence is the chosen coupling."""
    if coupling not in COUPLINGS:
        raise UserError(f"There is no coupling '{coupling}'; choose one of {', '.join(COUPLINGS)}.")
    states = belief.low.shape[0]
    columns = states if coupling == "independent" else 1
    uniform = jax.random.uniform(key, (count, columns), belief.low.dtype)
    return quantile(belief, jnp.broadcast_to(uniform, (count, states)))


def _centres(belief: Histogram) -> Float[Array, "S B"]:
    bins = belief.mass.shape[-1]
    positions = (jnp.arange(bins, dtype=belief.low.dtype) + 0.5) / bins
    return belief.low[:, None] + positions * (belief.high - belief.low)[:, None]


def mean(belief: Histogram) -> Float[Array, "S"]:
    """Mean of each state's value."""
    return jnp.sum(belief.mass * _centres(belief), axis=-1) / jnp.sum(belief.mass, axis=-1)


def sd(belief: Histogram) -> Float[Array, "S"]:
    """Standard deviation of each state's value."""
    centred = _centres(belief) - mean(belief)[:, None]
    return jnp.sqrt(jnp.sum(belief.mass * centred**2, axis=-1) / jnp.sum(belief.mass, axis=-1))
