"""Bayesian exploration bonus (Kolter and Ng 2009): the mean MDP with a bonus of beta / (1 + visits) on every pair.

Visits include the prior's: n0 + n. The mean MDP is that of a fixed prior. For a suitable beta
all but a polynomial number of steps are near Bayes-optimal; the bonus shrinks as 1 / n, faster than deviations do.

>>> import jax
>>> from bellief.agents import beb
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = beb.Config(discount=0.9)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = beb.init(key, config, spaces)
>>> state = beb.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = beb.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_mean.shape
('State', 'Info', (5,))
>>> beb.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> beb.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
import math

from jaxtyping import Array, Key

from bellief.agents import agenda
from bellief.agents.psrl_paper import Info, State, act, follow_optimum, init, policy, update
from bellief.beliefs import tabular
from bellief.errors import UserError, require
from bellief.types import Spaces

__all__ = ["Config", "Info", "State", "act", "init", "plan", "policy", "update"]


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings. `bonus` is beta, in units of the rewards; `tolerance` as for `psrl`; `schedule`: see `agenda`."""

    discount: float = 0.99
    bonus: float = 1.0
    tolerance: float = 1e-4
    prior: tabular.Prior = tabular.SPARSE_PRIOR
    schedule: str = agenda.EPISODE

    def __post_init__(self):
        require(0 < self.discount < 1, f"discount must lie between 0 and 1, not {self.discount}.")
        if not 0 <= self.bonus < math.inf or not self.tolerance > 0:
            raise UserError(f"bonus must be from 0 and tolerance positive, not {self.bonus} and {self.tolerance}.")
        agenda.check_schedule(self.schedule)


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Solve the mean MDP with the bonus."""
    mdp = tabular.mean(config.prior, state.belief, config.discount)
    outcomes = state.belief.counts.shape[-1]
    weight = config.prior.concentration(outcomes) * outcomes
    visits = weight + state.belief.rewards.count.astype(mdp.reward.dtype)
    mdp = mdp._replace(reward=mdp.reward + config.bonus / (1 + visits))
    return follow_optimum(key, config, spaces, state, mdp)
