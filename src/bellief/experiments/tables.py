"""An environment's outcome table as the stepper needs it, and one step in it."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bellief.mdp.tabular import Outcomes
from bellief.types import Transition, default_precision


class Tables(NamedTuple):
    """An outcome table with cumulative probabilities."""

    cumulative: Float[Array, "S A O"]
    next_state: Int[Array, "S A O"]
    reward: Float[Array, "S A O"]
    terminated: Array
    start: Float[Array, "S"]
    time_limit: Int[Array, ""]


def make_tables(outcomes: Outcomes, time_limit: int | None = None) -> Tables:
    """The outcome table of an environment in JAX's precision, in ordinary memory until someone steps.

    The last possible outcome's cumulative probability is lifted above any uniform, so that what rounding leaves of one
    cannot fall to an outcome that never happens.
    """
    dtype = default_precision()

    def array(numbers, kind=None) -> Any:
        return np.asarray(numbers, kind)

    def lifted(probability):
        cumulative = np.cumsum(probability, axis=-1)
        return np.where(cumulative >= cumulative[..., -1:], 2.0, cumulative)

    return Tables(
        array(lifted(outcomes.probability), dtype),
        array(outcomes.next_state, np.int32),
        array(outcomes.reward, dtype),
        array(outcomes.terminated),
        array(lifted(outcomes.start), dtype),
        array(np.iinfo(np.int32).max if time_limit is None else time_limit, np.int32),
    )


def step_environment(
    tables: Tables, state: Int[Array, ""], age: Int[Array, ""], action: Int[Array, ""], uniform: Float[Array, "2"]
) -> tuple[Transition, Int[Array, ""], Int[Array, ""]]:
    """One step: the transition, the state to go on from (a fresh start after an end or a cut), the episode's age."""
    outcome = jnp.sum(uniform[0] >= tables.cumulative[state, action])
    ends = tables.terminated[state, action, outcome]
    next_state = tables.next_state[state, action, outcome]
    transition = Transition(state, action, tables.reward[state, action, outcome], next_state, ends)
    fresh = jnp.sum(uniform[1] >= tables.start).astype(jnp.int32)
    over = ends | (age + 1 >= tables.time_limit)
    return transition, jnp.where(over, fresh, next_state), jnp.where(over, 0, age + 1)
