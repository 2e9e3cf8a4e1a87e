"""The paper's first and second utility formula for continuous states: rollouts of the sampled models.

    u_i(s) = r(s, a) + discount u_{i+1}(s'),            s' drawn from the model    (`sampled`, the first)
    u_i(s) = r(s, a) + discount E[u_{i+1}(s') | s, a]                              (`expected`, the second)

In a table u_{i+1} is at hand for every s'. Here s' is a new state every time, so the first formula is unrolled: each
model is followed from s under pi_i, pi_{i+1}, ... to the end. The second is the mean of the first, and is estimated by
the average of the rollouts, which is unbiased. Both cost O(H^2) steps of the models a plan, where the third costs none.

>>> import jax, jax.numpy as jnp
>>> from bellief.features import parse
>>> from bellief.induction import continuous_rollouts as rollouts
>>> from bellief.mdp.linear_mdp import Form, LinearGaussianMDP
>>> line, box = parse("constant+raw", 1), jnp.array([[-9.0], [9.0]])
>>> moves, pay = jnp.array([[[1.0], [0.0]]]), jnp.array([[0.0, 1.0]])  # one action goes right by 1; a step pays s
>>> model = LinearGaussianMDP(moves, jnp.zeros((1, 1, 1)), pay, jnp.array(0.0), box)
>>> world = rollouts.World(Form("difference", line, line), lambda state: jnp.array(0.0), line, box, 0.5, False, None)
>>> models, plans = jax.tree.map(lambda leaf: leaf[None], model), jnp.zeros((3, 1, 2))
>>> roll = rollouts.utilities("sampled", world, models, states=jnp.array([[0.0], [2.0]]), count=1)
>>> roll(jax.random.key(0), plans, jnp.array(2)).round(3).tolist()  # 0 + 1/2 + 2/4 and 2 + 3/2 + 4/4
[[[1.0, 4.5]]]
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.features import Features
from bellief.induction.continuous import RewardRange
from bellief.mdp import linear_mdp
from bellief.mdp.linear_mdp import Form, LinearGaussianMDP

# Utilities for V_i from a key, the weights of Q of all steps so far (row n has n + 1 steps to go) and the row of V_i.
Utilities = Callable[[Key[Array, ""], Float[Array, "H A F"], Int[Array, ""]], Float[Array, "J L M"]]


class World(NamedTuple):
    """What all models share: how they see states, when episodes end, how values see states, and what rewards may be.

    Without `split_rewards` a step pays its reward whether it ends the episode or not.
    """

    form: Form
    end_probability: Callable[[Float[Array, "D"]], Float[Array, ""]]
    features: Features
    bounds: Float[Array, "2 D"]
    discount: float
    split_rewards: bool
    limits: RewardRange | None


def utilities(
    formula: str, world: World, models: LinearGaussianMDP, states: Float[Array, "M D"], count: int
) -> Utilities:
    """`count` utilities of every state in every model by the formula; those of the second are alike: one is kept."""

    def by_rollouts(key, plans, row):
        keys = jax.random.split(key, (models.reward.shape[0], count, states.shape[0]))
        over_states = jax.vmap(lambda own, model, state: _roll_out(own, world, model, plans, row, state), (0, None, 0))
        over_rollouts = jax.vmap(over_states, (0, None, None))
        found = jax.vmap(over_rollouts, (0, 0, None))(keys, models, states)
        return jnp.mean(found, axis=1, keepdims=True) if formula == "expected" else found

    return by_rollouts


def _roll_out(key, world: World, model: LinearGaussianMDP, plans, row, state: Float[Array, "D"]) -> Float[Array, ""]:
    """The return of one rollout; the chance to have ended enters as an expectation."""

    def step(number, carry):
        now, alive, total = carry
        action = jnp.argmax(plans[row - number] @ world.features(now, world.bounds))
        normals = jax.random.normal(jax.random.fold_in(key, number), now.shape, now.dtype)
        following = linear_mdp.next_state(world.form, model, now, action, normals)
        end = world.end_probability(following)
        paid = _paid(world, linear_mdp.mean_reward(world.form, model, now, action), model.end_reward, end)
        # Once ended, what happens to the state no longer matters; it must only stay finite.
        return jnp.where(end < 1, following, now), alive * (1 - end) * world.discount, total + alive * paid

    zero = jnp.zeros((), state.dtype)
    return jax.lax.fori_loop(0, row + 1, step, (state, zero + 1, zero))[2]


def _paid(world: World, reward, end_reward, end):
    if world.limits is not None and world.split_rewards:
        reward, end_reward = jnp.clip(reward, *world.limits.step), jnp.clip(end_reward, *world.limits.end)
    elif world.limits is not None:
        low = jnp.minimum(world.limits.step[0], world.limits.end[0])
        reward = jnp.clip(reward, low, jnp.maximum(world.limits.step[1], world.limits.end[1]))
    return (1 - end) * reward + end * end_reward if world.split_rewards else reward
