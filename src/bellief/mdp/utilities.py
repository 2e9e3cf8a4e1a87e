"""The paper's utility samples (its appendix "Computational Details of Rollouts"), for one MDP and one step back.

With `later` the utilities of step t + 1, `sampled` is the paper's first formula and `expected` its second; with
`later` value samples V ~ psi_{t+1} instead, `expected` is its third, the one behind all its results.

Deviation: the printed second and third formulas have r(s, a) inside the sum over s', which would count the reward
once per next state; here it is outside the sum.

>>> import jax, numpy as np
>>> from bellief.envs import make
>>> from bellief.mdp import bellman, utilities
>>> mdp, policy, later = make("nchain").mdp(), np.full((5, 2), 0.5), np.zeros((3, 5), np.float32)
>>> transition, reward = bellman.under_policy(mdp, policy)
>>> utilities.expected(transition, reward, mdp.discount, later)[0].tolist() == reward.tolist()
True
>>> utilities.sampled(jax.random.key(0), mdp, policy, later).shape
(3, 5)
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.mdp.tabular_mdp import TabularMDP
from bellief.replaceable import replaceable


@replaceable
def expected(
    transition: Float[Array, "S S"], reward: Float[Array, "S"], discount: Float[Array, ""], later: Float[Array, "L S"]
) -> Float[Array, "L S"]:
    """u(s) = r(s) + discount * sum_s' P(s' | s) later(s'), for each of the L samples."""
    # With the large factor first, a CPU need not transpose it.
    return reward + (transition @ (discount * later).T).T


def sampled(
    key: Key[Array, ""], mdp: TabularMDP, policy: Float[Array, "S A"], later: Float[Array, "L S"]
) -> Float[Array, "L S"]:
    """u(s) = r(s, a) + discount * later(s') with a drawn from the policy and s' from the MDP, anew for each sample."""
    samples, states = later.shape
    action_key, next_key = jax.random.split(key)
    state = jnp.arange(states)
    action = jax.random.categorical(action_key, jnp.log(policy), shape=(samples, states))
    rows = mdp.transition[state, action]
    uniform = jax.random.uniform(next_key, (samples, states, 1), later.dtype)
    cumulative = jnp.cumsum(rows, axis=-1)
    # A row sums to one minus the probability of an end; a uniform number beyond that sum means the episode ended.
    next_state = jnp.sum(uniform >= cumulative, axis=-1)
    ends = mdp.termination[state, action] > 0
    goes_on = (next_state < states) | ~ends
    tail = jnp.take_along_axis(later, jnp.minimum(next_state, states - 1), axis=-1)
    return mdp.reward[state, action] + mdp.discount * jnp.where(goes_on, tail, 0)
