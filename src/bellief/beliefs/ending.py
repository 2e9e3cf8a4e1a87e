"""When episodes end, learned from data: logistic regression on the state and its squares.

Ends are rare, so the last ones seen are kept and compared with a sample of states that were not ends. Squares let one
model tell "too far to either side" from "in the middle".

>>> import jax.numpy as jnp
>>> from bellief.beliefs import ending
>>> ends = ending.init(size=4, dimension=1)
>>> for state in (0.9, -0.9, 1.0):
...     ends = ending.update(ends, jnp.array([state]), jnp.array(True))
>>> isinstance(ends, ending.Ends), ends.count.item()
(True, 3)
>>> box = jnp.array([[-1.0], [1.0]])
>>> boundary = ending.fit(ends, jnp.array([[0.0], [0.1], [-0.1]]), jnp.array(3), box)
>>> isinstance(boundary, ending.Boundary), ending.describe(box, jnp.array([0.5])).tolist()
(True, [1.0, 0.5, 0.25])
>>> bool(ending.probability(boundary, jnp.array([1.0])) > ending.probability(boundary, jnp.array([0.0])))
True
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bellief.features import to_unit

NEWTON_STEPS = 15
# Variance of the weights under the prior; ends that a straight cut separates would otherwise push them to infinity.
PRIOR_VARIANCE = 100.0


class Ends(NamedTuple):
    """The last states that episodes ended in (a ring), and how many there were in all."""

    states: Float[Array, "E D"]
    count: Int[Array, ""]  # type: ignore[assignment]  # a tuple has a method of that name


class Boundary(NamedTuple):
    """A fitted model: weights of the features, and the bounds that states are measured against."""

    weights: Float[Array, "2*D+1"]
    bounds: Float[Array, "2 D"]


def init(size: int, dimension: int) -> Ends:
    """None seen."""
    return Ends(jnp.zeros((size, dimension), float), jnp.array(0, jnp.int32))


def update(ends: Ends, state: Float[Array, "D"], ended: Array) -> Ends:
    """Keep the state if it is an end."""
    place = ends.count % ends.states.shape[0]
    kept = ends.states.at[place].set(jnp.where(ended, state, ends.states[place]))
    return Ends(kept, ends.count + ended.astype(jnp.int32))


def describe(bounds: Float[Array, "2 D"], state: Float[Array, "D"]) -> Float[Array, "2*D+1"]:
    """One, the state and its squares."""
    unit = to_unit(state, bounds)
    return jnp.concatenate([jnp.ones(1, unit.dtype), unit, unit**2])


def fit(ends: Ends, others: Float[Array, "M D"], known: Int[Array, ""], bounds: Float[Array, "2 D"]) -> Boundary:
    """The most probable weights, by Newton's method; `known` says how many of `others` are real.

    Without a single end nothing is taken for one.
    """
    states = jnp.concatenate([ends.states, others])
    end_rows, other_rows = jnp.arange(ends.states.shape[0]), jnp.arange(others.shape[0])
    mass = jnp.concatenate([end_rows < ends.count, other_rows < known]).astype(states.dtype)
    label = jnp.concatenate([jnp.ones(len(end_rows)), jnp.zeros(len(other_rows))]).astype(states.dtype)
    design = jax.vmap(lambda state: describe(bounds, state))(states)
    # The first weight, the constant, is left free.
    ridge = jnp.diag(jnp.full(design.shape[1], 1 / PRIOR_VARIANCE, states.dtype).at[0].set(1e-4))

    def newton(_, weights):
        chance = jax.nn.sigmoid(design @ weights)
        gradient = design.T @ (mass * (chance - label)) + ridge @ weights
        curvature = (design * (mass * chance * (1 - chance))[:, None]).T @ design + ridge
        step = jax.scipy.linalg.solve(curvature, gradient, assume_a="pos")
        # Far from the solution a whole step may overshoot.
        return weights - step * jnp.minimum(1.0, 10.0 / (1e-6 + jnp.linalg.norm(step)))

    weights = jax.lax.fori_loop(0, NEWTON_STEPS, newton, jnp.zeros(design.shape[1], states.dtype))
    never = jnp.zeros_like(weights).at[0].set(-30.0)
    return Boundary(jnp.where(ends.count > 0, weights, never), bounds)


def probability(boundary: Boundary, state: Float[Array, "D"]) -> Float[Array, ""]:
    """Probability that a state ends the episode."""
    return jax.nn.sigmoid(describe(boundary.bounds, state) @ boundary.weights)
