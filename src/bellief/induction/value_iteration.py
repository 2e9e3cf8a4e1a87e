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

# Steps with the same actions between two choices of actions (modified policy iteration).
EVALUATIONS = 20


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
    states = jnp.arange(start.shape[0])

    def following(values: Float[Array, "S"], outcome: Array, mass: Array, even: Array) -> Array:
        # The end is one more outcome, worth nothing.
        table = jnp.concatenate([values, jnp.zeros(ends.shape, values.dtype)])
        return jnp.sum(mass * table[outcome], axis=-1) + even * jnp.sum(table)

    def q_values(values: Float[Array, "S"]) -> Float[Array, "S A"]:
        return drawn.reward + discount * following(values, drawn.outcome, drawn.mass, drawn.even)

    def unfinished(carry):
        return (carry[1] > tolerance) & (carry[2] < most)

    def evaluate(values: Float[Array, "S"], actions: Int[Array, "S"]) -> Float[Array, "S"]:
        chosen = [leaf[states, actions] for leaf in (drawn.outcome, drawn.mass, drawn.even)]
        reward = drawn.reward[states, actions]
        return jax.lax.fori_loop(
            0, EVALUATIONS, lambda _, values: reward + discount * following(values, *chosen), values
        )

    def improve(carry):
        values, _, sweeps = carry
        scores = q_values(values)
        new, actions = jnp.max(scores, axis=-1), jnp.argmax(scores, axis=-1)
        moved = jnp.max(jnp.abs(new - values))
        new = jax.lax.cond(moved > tolerance, lambda: evaluate(new, actions), lambda: new)
        return new, moved, sweeps + 1 + EVALUATIONS

    first = (start, jnp.asarray(jnp.inf, start.dtype), jnp.array(0, jnp.int32))
    values, _, sweeps = jax.lax.while_loop(unfinished, improve, first)
    scores = q_values(values)
    best = jnp.max(scores, axis=-1, keepdims=True)
    actions = jnp.argmax(jnp.where(scores == best, ties, -1), axis=-1).astype(jnp.int32)
    return Solution(actions, values, sweeps)
