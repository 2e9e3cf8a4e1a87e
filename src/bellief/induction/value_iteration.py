"""Value iteration for an MDP drawn by its atoms (`beliefs.learned.Draw`).

>>> import jax, jax.numpy as jnp
>>> from bellief.beliefs import learned
>>> from bellief.induction import value_iteration
>>> drawn = learned.Draw(jnp.array([[[0]], [[0]]]), jnp.ones((2, 1, 1)), jnp.zeros((2, 1)), jnp.array([[1.0], [0.0]]))
>>> found = value_iteration.solve(jnp.zeros((2, 1)), drawn, jnp.zeros(0), jnp.zeros(2), 0.5, 1e-4, 100)
>>> found.values.round(2).tolist(), type(found).__name__
([2.0, 1.0], 'Solution')
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bellief.beliefs import learned


class Solution(NamedTuple):
    """Greedy actions, values, and how many steps were taken."""

    actions: Int[Array, "S"]
    values: Float[Array, "S"]
    sweeps: Int[Array, ""]


def solve(
    ties: Float[Array, "S A"],
    drawn: learned.Draw,
    ends: Float[Array, "e"],
    start: Float[Array, "S"],
    discount: float,
    tolerance: Float[Array, ""] | float,
    most: int,
) -> Solution:
    """Steps from `start` until no value moves by more than the tolerance, at most so many; of equal actions the one
    with the largest of `ties`.
    """

    def q_values(values: Float[Array, "S"]) -> Float[Array, "S A"]:
        # The end is one more outcome, worth nothing.
        table = jnp.concatenate([values, jnp.zeros(ends.shape, values.dtype)])
        following = jnp.einsum("sak,sak->sa", drawn.mass, table[drawn.outcome]) + drawn.even * jnp.sum(table)
        return drawn.reward + discount * following

    def unfinished(carry):
        return (carry[1] > tolerance) & (carry[2] < most)

    def sweep(carry):
        values, _, sweeps = carry
        new = jnp.max(q_values(values), axis=-1)
        return new, jnp.max(jnp.abs(new - values)), sweeps + 1

    first = (start, jnp.asarray(jnp.inf, start.dtype), jnp.array(0, jnp.int32))
    values, _, sweeps = jax.lax.while_loop(unfinished, sweep, first)
    scores = q_values(values)
    best = jnp.max(scores, axis=-1, keepdims=True)
    actions = jnp.argmax(jnp.where(scores == best, ties, -1), axis=-1).astype(jnp.int32)
    return Solution(actions, values, sweeps)
