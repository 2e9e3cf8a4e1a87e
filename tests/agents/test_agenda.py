"""When plans are due, step by step."""

import jax.numpy as jnp
import pytest

from bellief import UserError
from bellief.agents import agenda, bbi, psrl_paper
from bellief.types import Spaces, Transition

SPACES = Spaces(3, 1, True, None, None)


def plan_steps(schedule, path):
    """Steps before which a plan is made on a path of (state, next state, ended); the path has the starts as well."""
    now, made = agenda.init(SPACES), []
    for number, (state, following, ended) in enumerate(path, start=1):
        observation = jnp.array(state)
        if bool(agenda.due(schedule, now, observation)):
            made.append(number)
            now = agenda.planned(now, observation)
        now = agenda.observe(now, Transition(*map(jnp.asarray, (state, 0, 0.0, following, ended))))
    assert int(now.plans) == len(made)
    return made


STAY = [(0, 0, False)] * 40


def test_doubling_in_one_pair():
    # Spans grow by one at most: 1, 2, 3, ..., unless visits more than double first (1 > 0, 3 > 2).
    assert plan_steps("doubling", STAY)[:5] == [1, 2, 4, 7, 11]
    # Visits at those plans: 0, 1, 3, 6, 10; it is the spans that ask from the third on.
    assert plan_steps("episode", STAY)[:5] == [1, 2, 4, 7, 11]


def test_a_new_pair_asks_at_once():
    path = [*STAY[:22], (0, 1, False), (1, 2, False), (2, 0, False)]
    made = plan_steps("doubling", path)
    assert made[-1] == 25  # before it, state 1 was visited for the first time
    assert plan_steps("episode", path)[-1] == 22


@pytest.mark.parametrize("schedule", ["episode", "eager"])
def test_episodes_ask_after_an_end_and_after_a_cut(schedule):
    # Long known pairs, so that neither spans nor visits ask.
    known = [(0, 1, False), (1, 0, False)] * 65
    ended = [*known, (0, 1, True), (0, 1, False)]
    cut = [*known, (0, 1, False), (0, 1, False)]  # the last step led to 1, this one begins in 0
    for path in (ended, cut):
        assert plan_steps(schedule, path)[-1] == len(path)
        assert plan_steps("doubling", path)[-1] < len(path) - 1


def test_schedules_have_names():
    assert agenda.schedule_of(psrl_paper.Config()) == "triangular"
    assert agenda.schedule_of(bbi.Config()) == "eager"
    with pytest.raises(UserError, match="There is no schedule 'daily'"):
        bbi.Config(schedule="daily")
