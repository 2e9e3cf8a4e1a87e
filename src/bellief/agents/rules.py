"""Action rules: how a distribution over Q values becomes an action.

The paper acts on the mean. The spread that inferential induction computes can also be used to explore (`thompson`,
`optimistic`) or to stay safe (`cautious`).
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.draws import uniform as draw_uniform
from bellief.values import weighted

RULES = ("mean", "thompson", "optimistic", "cautious")


def mean(q_samples: Float[Array, "n S A"], mass: Float[Array, "n"]) -> Float[Array, "S A"]:
    """Mean Q value under the samples' mass."""
    return jnp.einsum("n,nsa->sa", mass, q_samples)


def one_draw(key: Key[Array, ""], q_samples: Float[Array, "n S A"], mass: Float[Array, "n"]) -> Float[Array, "S A"]:
    """One sample, drawn by mass: Thompson sampling on the value distribution."""
    return q_samples[jax.random.categorical(key, jnp.log(mass))]


def optimistic(
    q_samples: Float[Array, "n S A"], mass: Float[Array, "n"], optimism: float, level: float | None
) -> Float[Array, "S A"]:
    """Mean plus `optimism` standard deviations, or the quantile at `level` where that is given."""
    if level is not None:
        return _over_samples(lambda samples: weighted.quantile(samples, mass, level), q_samples)
    centre = mean(q_samples, mass)
    variance = jnp.einsum("n,nsa->sa", mass, (q_samples - centre) ** 2)
    return centre + optimism * jnp.sqrt(variance)


def cautious(q_samples: Float[Array, "n S A"], mass: Float[Array, "n"], tail: float) -> Float[Array, "S A"]:
    """Mean of the worst `tail` of the distribution (conditional value at risk)."""
    return _over_samples(lambda samples: weighted.lower_tail_mean(samples, mass, tail), q_samples)


def _over_samples(function, q_samples):
    return jax.vmap(jax.vmap(function, in_axes=-1), in_axes=-1, out_axes=-1)(q_samples)


def argmax(key: Key[Array, ""], scores: Float[Array, "S A"]) -> Int[Array, "S"]:
    """Best action of each state; ties are broken at random, so that an untrained agent does not sit on action 0."""
    return argmax_with(draw_uniform(key, scores.shape, scores.dtype), scores)


def lots(keys: Key[Array, "H"], shape: tuple[int, ...], dtype: jnp.dtype) -> Float[Array, "H S*A"]:
    """The random numbers of one `argmax` for each key, all at once; each row gets its shape where it is used, because
    vector instructions work along the last axis.
    """
    return jax.vmap(lambda key: draw_uniform(key, (math.prod(shape),), dtype))(keys)


def argmax_with(lots: Float[Array, "S*A"], scores: Float[Array, "S A"]) -> Int[Array, "S"]:
    """Best action of each state; of several the one with the largest lot."""
    best = scores == jnp.max(scores, axis=-1, keepdims=True)
    return jnp.argmax(jnp.where(best, lots.reshape(scores.shape), -1), axis=-1).astype(jnp.int32)
