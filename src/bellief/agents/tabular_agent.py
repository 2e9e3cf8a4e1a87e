"""What agents for tables have in common: a belief about the MDP, and one planned action for each state.

Such an agent imports `init`, `act`, `update`, `policy` and `State` from here and adds its `Config`, `Info` and `plan`.

>>> import jax
>>> from bellief.agents import tabular_agent
>>> from bellief.beliefs.tabular import PAPER_PRIOR
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = tabular_agent.init(key, None, spaces)
>>> state = tabular_agent.update(None, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> type(state).__name__, state.belief.counts[0, 1].tolist()
('State', [0, 1, 0, 0, 0])
>>> tabular_agent.act(key, None, state, jax.numpy.array(1)).item() == state.actions[1].item()
True
>>> tabular_agent.policy(None, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
>>> mdps = tabular_agent.sample_mdps(jax.random.split(key, 3), PAPER_PRIOR, state.belief, spaces, discount=0.9)
>>> mdps.reward.shape, tabular_agent.zeros(mdps).shape
((3, 5, 2), (3, 5))
>>> from bellief.agents import bbi_paper
>>> span = tabular_agent.value_span(bbi_paper.Config(discount=0.9), spaces, state.belief)
>>> round(span.item(), 3)  # NChain pays 0 to 10
100.0
"""

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.beliefs import tabular
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.types import Spaces, Transition


class State(NamedTuple):
    """The belief about the MDP and the action chosen for each state (of each step, where a plan is not stationary)."""

    belief: tabular.TabularBelief
    actions: Int[Array, "*T S"]


# `State`, or a NamedTuple that has its two fields and others.
AnyState = TypeVar("AnyState", bound=Any)


def init(key: Key[Array, ""], config: Any, spaces: Spaces) -> State:
    """No data; actions at random until the first plan."""
    del config
    belief = tabular.init(spaces.states, spaces.actions, spaces.terminates)
    return State(belief, jax.random.randint(key, (spaces.states,), 0, spaces.actions))


def act(key: Key[Array, ""], config: Any, state: AnyState, observation: Int[Array, ""]) -> Int[Array, ""]:
    """The planned action."""
    del key, config
    return state.actions[observation]


def update(config: Any, state: AnyState, transition: Transition) -> AnyState:
    """Add one transition to the belief; the actions stay as they are until the next plan."""
    del config
    return state._replace(belief=tabular.update(state.belief, transition))


def policy(config: Any, state: AnyState) -> Float[Array, "S A"]:
    """The stationary policy that the agent follows now."""
    del config
    return jax.nn.one_hot(state.actions, state.belief.counts.shape[1], dtype=state.belief.rewards.mean.dtype)


def sample_mdps(
    keys: Key[Array, "J"],
    prior: tabular.Prior,
    belief: tabular.TabularBelief,
    spaces: Spaces,
    discount: float,
) -> TabularMDP:
    """One MDP from the posterior for each key, along a leading axis J."""
    return jax.vmap(lambda key: tabular.sample(key, prior, belief, discount, support=spaces.support))(keys)


def zeros(mdps: TabularMDP) -> Float[Array, "J S"]:
    """A value of zero in every state of every MDP."""
    return jnp.zeros(mdps.reward.shape[:2], mdps.reward.dtype)


def value_span(config: Any, spaces: Spaces, belief: tabular.TabularBelief) -> Float[Array, ""]:
    """Span of possible values if every reward were the largest or the smallest (the paper's V_span)."""
    steps = config.horizon if config.discount == 1 else 1 / (1 - config.discount)
    return tabular.reward_span(config.prior, belief, spaces) * steps
