"""Action rules: how a distribution over Q values becomes an action.

The paper acts on the mean. The spread that inferential induction computes can also be used to explore (`thompson`,
`optimistic`) or to avoid risk (`cautious`). `RULES` holds every rule under the name that settings use, as a function of
a key, samples of Q, their mass and the agent's settings that returns a score for each state and action.

>>> import jax, jax.numpy as jnp
>>> from bellief.agents import rules
>>> q_samples, mass = jnp.array([[[0.0, 1.0]], [[4.0, 1.0]]]), jnp.array([0.5, 0.5])
>>> rules.mean(q_samples, mass).tolist(), rules.optimistic(q_samples, mass, 1.0, None).tolist()
([[2.0, 1.0]], [[4.0, 1.0]])
>>> rules.cautious(q_samples, mass, tail=0.5).tolist(), rules.one_draw(jax.random.key(0), q_samples, mass).shape
([[0.0, 1.0]], (1, 2))
>>> rules.argmax(jax.random.key(0), jnp.array([[0.0, 1.0]])).tolist()
[1]
>>> rules.greedy(jnp.array([[0.0, 1.0], [2.0, 2.0]])).tolist()
[[0.0, 1.0], [0.5, 0.5]]
>>> ties = rules.tie_breakers(jax.random.split(jax.random.key(0), 3), (1, 2), jnp.float32)
>>> ties.shape, rules.argmax_with(ties[0], jnp.array([[0.0, 1.0]])).tolist()
((3, 2), [1])
>>> "optimistic" in rules.RULES
True
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.values import weighted


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


# (key, q_samples [n, S, A], mass [n], settings of the agent) -> scores [S, A]
Rule = Callable[[Key[Array, ""], Float[Array, "n S A"], Float[Array, "n"], Any], Float[Array, "S A"]]
RULES: dict[str, Rule] = {
    "mean": lambda key, q_samples, mass, config: mean(q_samples, mass),
    "thompson": lambda key, q_samples, mass, config: one_draw(key, q_samples, mass),
    "optimistic": lambda key, q_samples, mass, config: optimistic(q_samples, mass, config.optimism, config.quantile),
    "cautious": lambda key, q_samples, mass, config: cautious(q_samples, mass, config.tail),
}


def argmax(key: Key[Array, ""], scores: Float[Array, "S A"]) -> Int[Array, "S"]:
    """Best action of each state; ties are broken at random, so that an untrained agent is not biased to action 0."""
    return argmax_with(jax.random.uniform(key, scores.shape, scores.dtype), scores)


def greedy(values: Float[Array, "*batch A"]) -> Float[Array, "*batch A"]:
    """Action probabilities: all on the best action, shared evenly where several are."""
    best = values == jnp.max(values, axis=-1, keepdims=True)
    return best / jnp.sum(best, axis=-1, keepdims=True, dtype=values.dtype)


def tie_breakers(keys: Key[Array, "H"], shape: tuple[int, ...], dtype: jnp.dtype) -> Float[Array, "H S*A"]:
    """The uniform draws of one `argmax` for each key, all at once, one row each."""
    return jax.vmap(lambda key: jax.random.uniform(key, (math.prod(shape),), dtype))(keys)


def argmax_with(tie_breakers: Float[Array, "S*A"], scores: Float[Array, "S A"]) -> Int[Array, "S"]:
    """Best action of each state; ties go to the largest uniform draw."""
    best = scores == jnp.max(scores, axis=-1, keepdims=True)
    return jnp.argmax(jnp.where(best, tie_breakers.reshape(scores.shape), -1), axis=-1).astype(jnp.int32)
