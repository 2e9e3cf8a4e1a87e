"""The oracle: it knows the MDP and follows its optimal policy, the ceiling of every comparison.

>>> import jax
>>> from bellief.agents import oracle
>>> from bellief.envs import make
>>> key, chain = jax.random.key(0), make("nchain")
>>> config = oracle.informed(oracle.Config(), chain.mdp())
>>> state = oracle.init(key, config, chain.spaces())
>>> state, info = oracle.plan(key, config, chain.spaces(), state)
>>> isinstance(state, oracle.State), isinstance(info, oracle.Info)
(True, True)
>>> oracle.update(config, state, None) is state, oracle.act(key, config, state, 3).item()
(True, 1)
>>> oracle.policy(config, state)[0].tolist()
[0.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from bellief.errors import require
from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.types import Spaces, Transition

# There is nothing to plan, with however many states.
LIGHT_PLANS = 2**31


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings. `actions` are filled in by `informed`.

    The discount is so high that the average reward is maximised; where episodes end, it is the return of an episode,
    which is not always the average over many short ones.
    """

    discount: float = 0.99999
    actions: tuple[int, ...] = ()

    def __post_init__(self):
        require(0 < self.discount < 1, f"discount must lie between 0 and 1, not {self.discount}.")


class State(NamedTuple):
    """The optimal action of each state; `choices` only carries the number of actions in its shape."""

    actions: Int[Array, "S"]
    choices: Int[Array, "A"]


class Info(NamedTuple):
    """Nothing to report."""


def informed(config: Config, mdp: TabularMDP) -> Config:
    """The configuration with the optimal actions of the true model, solved in float64."""
    with jax.enable_x64(True):
        model = jax.tree.map(jnp.asarray, mdp)._replace(discount=jnp.asarray(config.discount))
        actions = np.asarray(bellman.policy_iteration(model).actions)
    return dataclasses.replace(config, actions=tuple(int(action) for action in actions))


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """Everything is known from the start."""
    del key
    require(len(config.actions) == spaces.states, "The oracle needs an environment whose model is known.")
    return State(jnp.asarray(config.actions, jnp.int32), jnp.arange(spaces.actions))


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Nothing to plan."""
    del key, config, spaces
    return state, Info()


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """The optimal action."""
    del key, config
    return state.actions[observation]


def update(config: Config, state: State, transition: Transition) -> State:
    """Nothing to learn."""
    del config, transition
    return state


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """The optimal policy."""
    del config
    return jax.nn.one_hot(state.actions, state.choices.shape[0], dtype=jnp.float32)
