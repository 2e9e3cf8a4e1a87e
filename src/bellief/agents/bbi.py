"""Bayesian backwards induction with a learned prior: optimism carried back through means and variances of values.

The belief learns how deterministic transitions are and how noisy rewards are (`beliefs.learned`); the induction carries
mean and variance of every value back and acts on mean + `optimism` standard deviations (`induction.moments`). Values of
the last plan are where the next one starts, so a plan costs as many steps back as something has changed.

>>> import jax
>>> from bellief.agents import bbi
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = bbi.Config(discount=0.9)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = bbi.init(key, config, spaces)
>>> state = bbi.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = bbi.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_sd.shape
('State', 'Info', (5,))
>>> bbi.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> bbi.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.agents import agenda
from bellief.agents.tabular_agent import act
from bellief.beliefs import learned
from bellief.errors import UserError, require
from bellief.induction import moments, value_iteration
from bellief.types import Spaces, Transition

__all__ = ["Config", "Info", "State", "act", "init", "plan", "policy", "update"]

RULES = ("optimistic", "mean", "thompson")


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings.

    Args:
        rule: `optimistic`; `mean`, which is the same without optimism; or `thompson`: every plan follows one draw from
            the posterior.
        optimism: actions maximise mean + optimism * sd of their value.
        tolerance: a plan ends when no value moves by more than this times the largest reward.
        most_sweeps: the most steps back of one plan; the next one goes on from there.
        draws: plans number 4, 9, 16, 25, ... follow one draw from the posterior instead. Where a pair is met again and
            again its uncertainty adds up faster than variances do, and an agent that goes by these alone may settle
            for too little; a draw errs in the same way at every visit of a pair, and ever rarer draws cost little.
        schedule: when to plan, see `bellief.agents.agenda`.
    """

    rule: str = "optimistic"
    discount: float = 0.99
    optimism: float = 1.0
    tolerance: float = 1e-4
    most_sweeps: int = 100
    draws: bool = True
    schedule: str = agenda.EAGER

    def __post_init__(self):
        if self.rule not in RULES:
            raise UserError(
                f"bbi has no action rule '{self.rule}'; choose one of {', '.join(RULES)} (bbi-paper has other rules)."
            )
        require(0 < self.discount < 1, f"discount must lie between 0 and 1, not {self.discount}.")
        require(0 <= self.optimism < math.inf, f"optimism must be a finite number from 0, not {self.optimism}.")
        if not self.tolerance > 0 or self.most_sweeps < 1:
            raise UserError(
                f"tolerance must be positive and most_sweeps at least 1, not {self.tolerance} and {self.most_sweeps}."
            )
        agenda.check_schedule(self.schedule)


class State(NamedTuple):
    """What has been learned, the chosen actions, the values of the last plan that was no draw, and plans so far."""

    belief: learned.Belief
    actions: Int[Array, "S"]
    values: moments.Values
    plans: Int[Array, ""]


class Info(NamedTuple):
    """Steps back that the plan took, and mean and spread of the values of its policy."""

    sweeps: Int[Array, ""]
    value_mean: Float[Array, "S"]
    value_sd: Float[Array, "S"]


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """Nothing learned; actions at random until the first plan."""
    del config
    actions = jax.random.randint(key, (spaces.states,), 0, spaces.actions)
    nothing = jnp.zeros(spaces.states, float)
    return State(learned.init(spaces), actions, moments.Values(nothing, nothing), jnp.array(0, jnp.int32))


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Steps back from the last plan's values until they settle, or now and then the solution of a drawn MDP."""
    draw_key, tie_key = jax.random.split(key)
    belief = state.belief
    ties = jax.random.uniform(tie_key, (spaces.states, spaces.actions), state.values.mean.dtype)
    tolerance = config.tolerance * belief.rewards.largest

    def by_rule(slots: int) -> moments.Solution:
        problem = moments.prepare(belief, slots, config.discount)
        optimism = 0.0 if config.rule == "mean" else config.optimism
        return moments.solve(ties, problem, state.values, config.discount, optimism, tolerance, config.most_sweeps)

    def by_draw(slots: int) -> moments.Solution:
        drawn = learned.sample(draw_key, belief, slots)
        found = value_iteration.solve(
            ties, drawn, belief.ends, state.values.mean, config.discount, tolerance, config.most_sweeps
        )
        return moments.Solution(found.actions, state.values, found.sweeps)

    if config.rule == "thompson":
        solution = moments.by_size(belief, by_draw)
    elif config.draws and config.rule == "optimistic":
        follow_draw = _is_draw(state.plans + 1)
        solution = jax.lax.cond(
            follow_draw, lambda: moments.by_size(belief, by_draw), lambda: moments.by_size(belief, by_rule)
        )
    else:
        solution = moments.by_size(belief, by_rule)
    info = Info(solution.sweeps, solution.values.mean, jnp.sqrt(solution.values.variance))
    return State(belief, solution.actions, solution.values, state.plans + 1), info


def _is_draw(number: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether it is a square, except for one: the first plan has nothing to draw from."""
    root = jnp.round(jnp.sqrt(number.astype(jnp.float32))).astype(jnp.int32)
    return (root * root == number) & (number > 1)


def update(config: Config, state: State, transition: Transition) -> State:
    """Account for one transition; the plan stays as it is until the next one."""
    del config
    return state._replace(belief=learned.update(state.belief, transition))


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """The stationary policy that the agent follows now."""
    del config
    actions = state.belief.rows.visits.shape[1]
    return jax.nn.one_hot(state.actions, actions, dtype=state.values.mean.dtype)
