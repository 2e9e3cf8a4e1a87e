"""Algorithm 3 with all that it returns: pi_i and psi_i of every step; and the policy that follows them one by one.

Where a problem ends after T steps the paper sets the look-ahead to H = T - t and the plan is not stationary: with n
steps to go the agent takes the actions of row n - 1. Backups from the end do not depend on t, so a plan makes
all T of them, and those of steps that are past are not used.

>>> import jax, jax.numpy as jnp
>>> from bellief.agents import bbi_every_step, bbi_paper
>>> from bellief.envs import make
>>> from bellief.induction import method1
>>> worlds = [make("nchain", slip=slip).mdp(discount=0.9) for slip in (0.1, 0.3)]
>>> mdps = jax.tree.map(lambda *leaves: jnp.float32(leaves), *worlds)
>>> settings, final = method1.Settings(samples=8, utility_samples=2), jnp.zeros((2, 5))
>>> given = (jax.random.key(0), settings, 3, mdps, final, jnp.array(10.0), bbi_paper.mean_q)
>>> found = bbi_every_step.induce(*given)
>>> found.actions.shape, found.beliefs.mean.shape  # a row for each step, the furthest ahead first
((3, 5), (3, 5))
>>> bool((found.actions[-1] == bbi_paper.induce(*given)[0]).all())
True
>>> bbi_every_step.row_for(lifetime=3, passed=jnp.array(0)).item()
2
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import bbi_paper
from bellief.induction import method1
from bellief.mdp.tabular_mdp import TabularMDP


class EveryStep(NamedTuple):
    """pi_i and psi_i with a leading axis for the steps, the furthest ahead first: row n has n + 1 steps to go."""

    actions: Int[Array, "H S"]
    beliefs: Any
    info: bbi_paper.Info


def induce(
    key: Key[Array, ""],
    settings: method1.Settings,
    horizon: int,
    mdps: TabularMDP,
    final: Float[Array, "J S"],
    sigma: Float[Array, ""],
    score: bbi_paper.Score,
) -> EveryStep:
    """`bbi_paper.induce`, from the same random numbers, with every step kept."""
    step = bbi_paper.step_back(settings, mdps, score)

    def kept(carry, step_key):
        carry, seen = step(carry, step_key)
        return carry, (carry[1], carry[0].belief, seen)

    first = (method1.start(settings, final, sigma), jnp.zeros(final.shape[1], jnp.int32))
    (progress, _), (actions, beliefs, seen) = jax.lax.scan(kept, first, jax.random.split(key, horizon))
    return EveryStep(actions, beliefs, bbi_paper.summed_up(settings, progress, seen))


def row_for(lifetime: int, passed: Int[Array, ""]) -> Int[Array, ""]:
    """The row to act on once so many steps are past; after the end the last step's actions are kept."""
    return jnp.clip(lifetime - 1 - passed, 0, lifetime - 1)
