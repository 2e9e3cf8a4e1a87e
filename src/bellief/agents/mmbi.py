"""Multi-MDP backwards induction (Dimitrakakis 2011): one policy for several sampled MDPs at once.

Every step back chooses the action that is best on average over the MDPs, and backs each MDP's own values up under it.

>>> import jax
>>> from bellief.agents import mmbi
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = mmbi.Config(horizon=5, mdps=3)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = mmbi.init(key, config, spaces)
>>> state = mmbi.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = mmbi.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_sd.shape
('State', 'Info', (5,))
>>> mmbi.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> mmbi.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief import draws
from bellief.agents import rules
from bellief.beliefs import tabular
from bellief.errors import UserError
from bellief.mdp import bellman
from bellief.types import Spaces, Transition

# Acting looks something up and learning counts: runs step faster one after the other than side by side.
LIGHT_STEPS = True
# Plans for so many states are done on a processor before a GPU has begun.
LIGHT_PLANS = 12


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings: as many MDPs and steps ahead as BBI has, since the paper does not say."""

    horizon: int = 100
    discount: float = 0.99
    mdps: int = 10
    prior: tabular.Prior = tabular.PAPER_PRIOR

    def __post_init__(self):
        if not 0 < self.discount <= 1:
            raise UserError(f"discount must lie in (0, 1], not {self.discount}.")
        if self.horizon < 1 or self.mdps < 1:
            raise UserError(f"horizon and mdps must be at least 1, not {self.horizon} and {self.mdps}.")


class State(NamedTuple):
    """What has been learned and the action chosen for each state."""

    belief: tabular.TabularBelief
    actions: Int[Array, "S"]


class Info(NamedTuple):
    """Mean and spread over the MDPs of the values that the policy has in them."""

    value_mean: Float[Array, "S"]
    value_sd: Float[Array, "S"]


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """Nothing learned; actions at random until the first plan."""
    del config
    belief = tabular.init(spaces.states, spaces.actions, spaces.terminates)
    return State(belief, jax.random.randint(key, (spaces.states,), 0, spaces.actions))


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Q_j = R_j + discount P_j V_j; a(s) maximises the mean of Q_j over j; V_j(s) = Q_j(s, a(s))."""
    mdp_key, tie_key = draws.split(key)

    def draw(one):
        return tabular.sample(one, config.prior, state.belief, config.discount, support=spaces.support)

    mdps = jax.vmap(draw)(draws.split(mdp_key, config.mdps))

    nothing, action_values, axis = bellman.several_action_values(mdps, config.discount)
    states = jnp.arange(spaces.states)

    def step(carry, lots):
        values, _ = carry
        q_values = action_values(values)
        actions = rules.argmax_with(lots, jnp.sum(q_values, axis=axis) / config.mdps)
        return (q_values[states, actions] if axis == -1 else q_values[:, states, actions], actions), None

    lots = rules.lots(draws.split(tie_key, config.horizon), mdps.reward.shape[1:], mdps.reward.dtype)
    (values, actions), _ = jax.lax.scan(step, (nothing, jnp.zeros(spaces.states, jnp.int32)), lots)
    values = jax.lax.slice_in_dim(values, 0, config.mdps, axis=axis)
    return State(state.belief, actions), Info(jnp.mean(values, axis=axis), jnp.std(values, axis=axis))


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """The planned action."""
    del key, config
    return state.actions[observation]


def update(config: Config, state: State, transition: Transition) -> State:
    """Account for one transition."""
    del config
    return state._replace(belief=tabular.update(state.belief, transition))


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """The stationary policy that the agent follows now."""
    del config
    return jax.nn.one_hot(state.actions, state.belief.counts.shape[1], dtype=state.belief.rewards.mean.dtype)
