"""Real Gymnasium environments: a scripted one whose every step is known, and some of Gymnasium's own."""

import importlib
import time
from typing import ClassVar

import gymnasium
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from gymnasium import spaces

import bellief
from bellief import UserError
from bellief.agents import psrl_paper
from bellief.agents.schedule import update_steps
from bellief.experiments import event_loop, gymnasium_agents, gymnasium_loop, task
from bellief.processors import cores
from bellief.types import Spaces, Transition

pytestmark = pytest.mark.long

run_module = importlib.import_module("bellief.experiments.run")

SCRIPT = "BelliefTestScript-v0"
LANES = 10
# Opened to ask for its spaces: once to choose the loop, once by the loop.
ASKED = 2


class Script(gymnasium.Env):
    """Walks through positions 0, 1, 2, 3, paying 1, 2, 3.

    Every other episode ends at 3; those in between are cut short at 2. Observations count from 10, actions from 5, and
    action 6 pays 100 more.
    """

    opened: ClassVar[list] = []
    closed: ClassVar[list] = []
    seeds: ClassVar[list] = []
    fails_after: ClassVar[int | None] = None
    expected: ClassVar[int] = 0

    def __init__(self):
        self.observation_space = spaces.Discrete(4, start=10)
        self.action_space = spaces.Discrete(2, start=5)
        self.episode, self.taken, self.position = -1, 0, 0
        self.opened.append(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.seeds.append(seed)
        self.episode, self.position = self.episode + 1, 0
        return 10, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken += 1
        if self.fails_after == self.taken:
            self.wait_for_others()
            raise RuntimeError("out of order")
        self.position += 1
        cut = self.episode % 2 == 1 and self.position == 2
        return 10 + self.position, self.position + 100.0 * (action == 6), self.position == 3, cut, {}

    def wait_for_others(self):
        """Fail only when as many are open as the test expects: one batch may be here before another has begun."""
        deadline = time.monotonic() + 60
        while len(self.opened) < self.expected and time.monotonic() < deadline:
            time.sleep(0.01)

    def close(self):
        self.closed.append(self)


@pytest.fixture
def script():
    """The scripted environment, known to Gymnasium, with its records empty."""
    gymnasium.register(id=SCRIPT, entry_point=Script, order_enforce=False, disable_env_checker=True)
    Script.fails_after = None
    for record in (Script.opened, Script.closed, Script.seeds):
        record.clear()
    yield Script
    del gymnasium.registry[SCRIPT]


def events_of(agent, config, steps, half_life=10.0, readings=None):
    """All events of a chunk in the scripted environment."""
    real = task.open_task(SCRIPT, {})
    assert real.spaces == Spaces(4, 2, True, None, None)
    schedule = (0, update_steps(steps), readings or [steps], half_life)
    case = task.Case(real, "any", agent, config, *schedule, real.places("auto", LANES, agent))
    return list(case.events(range(LANES)))


class Constant:
    """Always the first action; notes what it is told to plan with, and its last transition."""

    told: ClassVar[list] = []

    @staticmethod
    def init(key, config, spaces):
        del key, config, spaces
        nothing = jnp.array(-1, jnp.int32)
        return Transition(nothing, nothing, jnp.array(0.0), nothing, jnp.array(False))

    @classmethod
    def plan(cls, key, config, spaces, state):
        del key, config
        cls.told.append(spaces.support)
        return state, ()

    @staticmethod
    def act(key, config, state, observation):
        del key, config, state
        return jnp.zeros_like(observation)

    @staticmethod
    def update(config, state, transition):
        del config, state
        return transition


@pytest.mark.parametrize(
    ("steps", "state", "next_state", "terminated", "observation", "length"),
    [
        (1, 0, 1, False, 1, 1),
        (2, 1, 2, False, 2, 2),
        (3, 2, 3, True, 0, 0),
        (4, 0, 1, False, 1, 1),
        (5, 1, 2, False, 0, 0),
        (6, 0, 1, False, 1, 1),
        (8, 2, 3, True, 0, 0),
    ],
)
@pytest.mark.usefixtures("script")
def test_the_last_transition_and_what_comes_after_it(steps, state, next_state, terminated, observation, length):
    """A cut changes the next observation, never the transition."""
    last = events_of(Constant, None, steps)[-1]
    expected = {"state": state, "action": 0, "reward": next_state, "next_state": next_state, "terminated": terminated}
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(last.agent, name), value)
    np.testing.assert_array_equal(last.observation, observation)
    np.testing.assert_array_equal(last.age, length)


@pytest.mark.usefixtures("script")
def test_a_cut_is_no_end_for_the_belief():
    last = events_of(psrl_paper, psrl_paper.Config(), 10)[-1]
    counts = np.asarray(last.agent.belief.counts).sum(2)
    expected = np.zeros((LANES, 4, 5))
    expected[:, 0, 1], expected[:, 1, 2], expected[:, 2, 4] = 4, 4, 2
    # Summed over actions: rows 0 and 1 lead on, also where the episode was cut; row 2 ends.
    np.testing.assert_array_equal(np.asarray(last.agent.belief.counts).sum(2), expected)
    assert counts.sum() == 10 * LANES


@pytest.mark.usefixtures("script")
def test_episodes_totals_and_smoothing():
    events = events_of(Constant, None, 12, readings=list(range(1, 13)))
    rewards = np.array([1, 2, 3, 1, 2, 1, 2, 3, 1, 2, 1, 2], float)
    readings = [event for event in events if isinstance(event, event_loop.Reading)]
    numerator, weight, decay = 0.0, 0.0, 0.5**0.1
    for reading, reward, total in zip(readings, rewards, rewards.cumsum(), strict=True):
        numerator, weight = decay * numerator + (1 - decay) * reward, decay * weight + 1 - decay
        np.testing.assert_array_equal(reading.total, np.full(LANES, total))
        np.testing.assert_allclose(reading.smoothed, numerator / weight, rtol=1e-12)
    episodes = [event for event in events if isinstance(event, gymnasium_loop.Episode)]
    expected = [(3, 3, 6.0, True), (5, 2, 3.0, False), (8, 3, 6.0, True), (10, 2, 3.0, False)]
    for lane in range(LANES):
        assert [tuple(episode[1:]) for episode in episodes if episode.lane == lane] == expected
    assert [event.step for event in events if isinstance(event, event_loop.Plan)] == [1, 3, 6, 10]


def test_episodes_of_a_run(script):
    result = bellief.run(SCRIPT, "q-learning", 43, 3, settings={"epsilon": 1.0})
    table = result.episodes
    assert table.columns.tolist() == ["run", "step", "length", "reward", "terminated"]
    for run in range(3):
        mine = table[table["run"] == run]
        assert mine["step"].tolist() == [step for step in range(1, 44) if step % 5 in (0, 3)]
        assert mine["terminated"].tolist() == (mine["length"] == 3).tolist()
        # The last episode was over at step 43, so episodes hold every reward.
        assert mine["reward"].sum() == result.total[run, -1]
        actions_paid = result.total[run, -1] // 100
        assert 5 < actions_paid < 38, "both actions were tried"
    late = table[table["step"] > 39].groupby("run")
    summary = result.episode_summary()
    assert summary["count"] == 3 * 17
    assert summary["final_return"]["mean"] == pytest.approx(late["reward"].mean().mean())
    assert summary["final_length"]["mean"] == pytest.approx(2.5)
    assert np.isnan(result.gain).all()
    assert result.to_dict()["final_policy_gain"] is None
    assert len(script.opened) == LANES + ASKED


def test_environments_are_closed(script):
    bellief.run(SCRIPT, "q-learning", 5, 2)
    assert len(script.opened) == LANES + ASKED
    assert {id(env) for env in script.closed} == {id(env) for env in script.opened}


def test_environments_are_closed_where_one_fails(script):
    script.fails_after = 4
    script.expected = min(2, cores()) * LANES + ASKED
    with pytest.raises(RuntimeError, match="out of order"):
        bellief.run(SCRIPT, "q-learning", 5, 12)
    assert len(script.opened) == script.expected
    assert {id(env) for env in script.closed} == {id(env) for env in script.opened}


def test_every_agent_gets_the_same_seeds(script):
    bellief.run(SCRIPT, "q-learning", 5, 2, seed=3)
    first = list(script.seeds)
    script.seeds.clear()
    bellief.run(SCRIPT, "psrl-paper", 5, 2, seed=3)
    assert script.seeds == first == [gymnasium_loop.environment_seed(3, SCRIPT, run) for run in range(LANES)]
    assert len(set(first)) == LANES
    assert gymnasium_loop.environment_seed(4, SCRIPT, 0) not in first
    assert gymnasium_loop.environment_seed(3, "Other-v0", 0) not in first


@pytest.mark.usefixtures("script")
def test_planning_is_told_how_many_outcomes_were_seen():
    Constant.told.clear()
    # A setting of its own, so that planning is traced anew.
    events_of(Constant, "told", 30)
    # One outcome of each pair, hence the smallest bound there is.
    assert set(Constant.told) == {2}


def test_bound_on_the_number_of_outcomes():
    generator = np.random.default_rng(0)
    successors, seen = gymnasium_agents._Successors(Spaces(30, 2, True, None, None)), {}
    assert successors.bound() == 2
    bounds = []
    for _ in range(400):
        state, action = generator.integers(0, 3, LANES), generator.integers(0, 2, LANES)
        after, ended = generator.integers(0, 30, LANES), generator.random(LANES) < 0.1
        successors.add(Transition(state, action, np.zeros(LANES), after, ended))
        for lane in range(LANES):
            outcome = "end" if ended[lane] else after[lane]
            seen.setdefault((lane, state[lane], action[lane]), set()).add(outcome)
        largest = max(len(outcomes) for outcomes in seen.values())
        bound = successors.bound()
        powers = [power for power in (2, 4, 8, 16) if power >= largest]
        assert bound == (powers[0] if powers else None)
        bounds.append(bound)
    assert {2, 4, 8, 16, None} == set(bounds)


@pytest.fixture(scope="module")
def frozen():
    return {runs: bellief.run("FrozenLake-v1", "psrl-paper", 60, runs, seed=5) for runs in (2, 3)}


def assert_same_run(first, second, number):
    for name in ("total", "smoothed", "policies"):
        np.testing.assert_array_equal(getattr(first, name)[number], getattr(second, name)[number])
    for name in ("episodes", "info"):
        frames = (getattr(result, name) for result in (first, second))
        parts = [frame[frame["run"] == number].reset_index(drop=True) for frame in frames]
        assert len(parts[0])
        pd.testing.assert_frame_equal(*parts, check_exact=True)


def test_a_run_does_not_depend_on_how_many_there_are(frozen):
    for number in (0, 1):
        assert_same_run(frozen[2], frozen[3], number)
    assert (
        not frozen[3]
        .episodes["step"][frozen[3].episodes["run"] == 0]
        .equals(frozen[3].episodes["step"][frozen[3].episodes["run"] == 1])
    )


def test_same_seed_same_result(frozen):
    again = bellief.run("FrozenLake-v1", "psrl-paper", 60, 2, seed=5)
    for number in (0, 1):
        assert_same_run(frozen[2], again, number)
    other = bellief.run("FrozenLake-v1", "psrl-paper", 60, 2, seed=6)
    assert other.episodes["step"].tolist() != frozen[2].episodes["step"].tolist()


def test_blackjack():
    result = bellief.run("Blackjack-v1", "q-learning", 200, 2)
    assert result.policies.shape == (2, 32 * 11 * 2, 2)
    assert set(result.episodes["reward"]) <= {-1.0, 0.0, 1.0}
    assert result.episodes["terminated"].all()
    last = result.episodes.groupby("run")["reward"].sum()
    np.testing.assert_array_equal(result.total[:, -1], last)


def test_box_observations_in_bins():
    result = bellief.run("CartPole-v1", "q-learning", 60, 2, bins=3)
    assert result.policies.shape == (2, 81, 2)
    np.testing.assert_array_equal(result.total[:, -1], 60)
    with pytest.raises(UserError, match="--bins"):
        bellief.run("CartPole-v1", "q-learning", 60, 2)


def test_a_table_runs_compiled():
    """Walking down a lake without slips ends in a hole at every third step; a limit of two steps prevents it."""
    settings = {"env_settings": {"is_slippery": False, "max_episode_steps": 2}, "table": True}
    result = bellief.run("FrozenLake-v1", "oracle", 100, 2, **settings)
    assert result.episodes is None
    np.testing.assert_array_equal(result.total, 0)
    settings["env_settings"]["max_episode_steps"] = 6
    result = bellief.run("FrozenLake-v1", "oracle", 100, 2, **settings)
    # The shortest way to the goal takes six steps.
    np.testing.assert_array_equal(result.total[:, -1], 16)
    # With a limit the process depends on more than the state, and the exact long-run reward is not claimed.
    assert np.isnan(result.gain).all()


@pytest.mark.slow
def test_table_and_real_environment_pay_alike(check):
    """Random walks in FrozenLake: returns of the real episodes against rewards from the table."""
    settings = {"settings": {"epsilon": 1.0}}
    real = bellief.run("FrozenLake-v1", "q-learning", 3000, 20, **settings).total[:, -1]
    table = bellief.run("FrozenLake-v1", "q-learning", 3000, 20, table=True, **settings).total[:, -1]
    check.mean(real - table, 0.0)
    assert real.mean() > 1
