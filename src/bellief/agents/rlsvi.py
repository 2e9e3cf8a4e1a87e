"""Randomised least-squares value iteration (Osband et al. 2016) for tables: value iteration with noise added.

With a feature for every pair, Bayesian linear regression of r + discount * max Q(s') on the pair's feature, with noise
of variance noise^2 and prior N(0, prior_sd^2), has for a pair with n observations the posterior

    mean n / (n + l) * average target,   variance noise^2 / (n + l),   l = noise^2 / prior_sd^2,

from which one value is drawn for every pair; the targets of the step before are averages over the observed successors.
Deviation: theirs draws anew for each step of a fixed horizon and acts by the step within an episode; here one draw
serves all `horizon` steps back, and the agent acts by the last one in every step, as the other agents do.

>>> import jax
>>> from bellief.agents import rlsvi
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = rlsvi.Config(horizon=5)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = rlsvi.init(key, config, spaces)
>>> state = rlsvi.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = rlsvi.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_mean.shape
('State', 'Info', (5,))
>>> rlsvi.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> rlsvi.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.agents import agenda, rules
from bellief.agents.tabular_agent import State, act, init, policy, update
from bellief.errors import UserError, require
from bellief.types import Spaces

__all__ = ["Config", "Info", "State", "act", "init", "plan", "policy", "update"]


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings: spread of the targets and of a value before data, steps back, and when to plan."""

    discount: float = 0.99
    noise: float = 0.1
    prior_sd: float = 1.0
    horizon: int = 100
    schedule: str = agenda.EPISODE

    def __post_init__(self):
        require(0 < self.discount <= 1, f"discount must lie in (0, 1], not {self.discount}.")
        if not (self.noise > 0 and self.prior_sd > 0):
            raise UserError(f"noise and prior_sd must be positive, not {self.noise} and {self.prior_sd}.")
        require(self.horizon >= 1, f"horizon must be at least 1, not {self.horizon}.")
        agenda.check_schedule(self.schedule)


class Info(NamedTuple):
    """Drawn values of the chosen actions."""

    value_mean: Float[Array, "S"]


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """`horizon` steps back on drawn values."""
    noise_key, tie_key = jax.random.split(key)
    belief = state.belief
    dtype = belief.rewards.mean.dtype
    count = belief.rewards.count.astype(dtype)
    ridge = (config.noise / config.prior_sd) ** 2
    draw = config.noise * jax.random.normal(noise_key, count.shape, dtype) / jnp.sqrt(count + ridge)
    frequency = belief.counts[..., : spaces.states] / jnp.maximum(count, 1)[..., None]
    shrink = count / (count + ridge)

    def step(_, q_values):
        target = belief.rewards.mean + config.discount * frequency @ jnp.max(q_values, axis=-1)
        return shrink * target + draw

    q_values = jax.lax.fori_loop(0, config.horizon, step, jnp.zeros_like(count))
    actions = rules.argmax(tie_key, q_values)
    return State(belief, actions), Info(jnp.max(q_values, axis=-1))
