"""When to plan again, decided by what has happened since the last plan.

`triangular` is the paper's schedule: before steps 1, 3, 6, 10, ..., whatever is observed. The others plan when more
steps have passed since the last plan than between the two plans before, so that no span is longer than the one
before it by more than one. In addition `doubling` plans when the visits of some pair have more than doubled since the
last plan (Ouyang et al. 2017), `episode` before the first step of every episode, `eager` in either case.

The loop keeps one `Agenda` for each run, beside the agent's state; the agent's functions do not see it.

>>> import jax.numpy as jnp
>>> from bellief.agents import agenda
>>> from bellief.types import Spaces, Transition
>>> seen = agenda.init(Spaces(2, 1, False, None, None))
>>> bool(agenda.due("doubling", seen, jnp.array(0)))  # nothing planned yet
True
>>> seen = agenda.planned(seen, jnp.array(0))
>>> bool(agenda.due("doubling", seen, jnp.array(0)))
False
>>> seen = agenda.observe(seen, Transition(*map(jnp.asarray, (0, 0, 1.0, 1, False))))
>>> bool(agenda.due("doubling", seen, jnp.array(1))), type(seen).__name__  # the first visit of a pair
(True, 'Agenda')
>>> from bellief.agents import psrl, psrl_paper
>>> agenda.check_schedule("eager")
>>> agenda.schedule_of(psrl_paper.Config())
'triangular'
>>> [agenda.is_self_scheduled(agent.Config()) for agent in (psrl, psrl_paper)]
[True, False]
>>> agenda.triangular_by_default().default
'triangular'
"""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from bellief.errors import require_choice
from bellief.files import OMIT_DEFAULT
from bellief.types import Spaces, Transition

TRIANGULAR, DOUBLING, EPISODE, EAGER = "triangular", "doubling", "episode", "eager"
SELF_SCHEDULED = (DOUBLING, EPISODE, EAGER)
SCHEDULES = (TRIANGULAR, *SELF_SCHEDULED)


def triangular_by_default() -> Any:
    """The field `schedule` of an agent whose default is the paper's."""
    return dataclasses.field(default=TRIANGULAR, metadata={OMIT_DEFAULT: True})


class Agenda(NamedTuple):
    """Visits of every pair now and at the last plan, steps since it, steps between the two plans before, plans so far,
    whether some pair's visits have doubled, and the state that the next step should begin in (-1 after an end).
    """

    visits: Int[Array, "S A"]
    visits_then: Int[Array, "S A"]
    span: Int[Array, ""]
    last_span: Int[Array, ""]
    plans: Int[Array, ""]
    doubled: Bool[Array, ""]
    expected: Int[Array, ""]


def check_schedule(schedule: str) -> None:
    """`UserError` unless it is one of `SCHEDULES`."""
    require_choice(schedule, SCHEDULES, "There is no schedule")


def schedule_of(config: object) -> str:
    """The schedule that an agent's settings ask for; the paper's where they do not say."""
    return getattr(config, "schedule", TRIANGULAR)


def is_self_scheduled(config: object) -> bool:
    """Whether an agent with these settings plans at steps that depend on what happens."""
    return schedule_of(config) in SELF_SCHEDULED


def init(spaces: Spaces) -> Agenda:
    """Before the first plan, which is due."""
    none = jnp.zeros((spaces.states, spaces.actions), jnp.int32)
    zero = jnp.array(0, jnp.int32)
    return Agenda(none, none, zero, zero, zero, jnp.array(False), jnp.array(-1, jnp.int32))


def observe(agenda: Agenda, transition: Transition) -> Agenda:
    """After one step."""
    pair = (transition.state, transition.action)
    visits = agenda.visits.at[pair].add(1)
    following = jnp.where(transition.terminated, -1, transition.next_state).astype(jnp.int32)
    return agenda._replace(
        visits=visits,
        span=agenda.span + 1,
        doubled=agenda.doubled | (visits[pair] > 2 * agenda.visits_then[pair]),
        expected=following,
    )


def due(schedule: str, agenda: Agenda, observation: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether to plan before acting in `observation`. A new episode is one that does not begin where the last step led,
    so one that is cut short in its own start state goes unnoticed.
    """
    asked = (agenda.span > agenda.last_span) | (agenda.plans == 0)
    if schedule in (DOUBLING, EAGER):
        asked = asked | agenda.doubled
    if schedule in (EPISODE, EAGER):
        asked = asked | (observation != agenda.expected)
    return asked


def planned(agenda: Agenda, observation: Int[Array, ""]) -> Agenda:
    """After a plan made in `observation`."""
    zero = jnp.zeros_like(agenda.span)
    return agenda._replace(
        visits_then=agenda.visits,
        span=zero,
        last_span=agenda.span,
        plans=agenda.plans + 1,
        doubled=jnp.zeros_like(agenda.doubled),
        expected=observation.astype(jnp.int32),
    )
