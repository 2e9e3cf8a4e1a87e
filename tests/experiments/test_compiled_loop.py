"""The compiled loop, followed step by step by an agent that writes everything down."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bellief
from bellief.envs import make
from bellief.envs.discrete import read_table
from bellief.experiments import compiled_environments, compiled_loop, compiled_steps, event_loop
from bellief.experiments.compiled_environments import step_environment
from bellief.mdp.tabular_mdp import make_outcomes
from bellief.types import Spaces, Transition

pytestmark = pytest.mark.long

LANES, STEPS = 10, 3000
SPACES = Spaces(3, 2, terminates=True, reward_low=0.0, reward_high=1.0)


class Log(NamedTuple):
    transitions: Transition
    count: jax.Array


class Recorder:
    """Keeps every transition it is shown; acts at random, or always the same."""

    @dataclasses.dataclass(frozen=True)
    class Config:
        action: int | None = None
        length: int = STEPS

    @staticmethod
    def init(key, config, spaces):
        del key, spaces
        empty = jnp.zeros(config.length, jnp.int32)
        return Log(Transition(empty, empty, empty.astype(jnp.float32), empty, empty.astype(bool)), jnp.array(0))

    @staticmethod
    def plan(key, config, spaces, state):
        del key, config, spaces
        return state, ()

    @staticmethod
    def act(key, config, state, observation):
        del state, observation
        return jax.random.randint(key, (), 0, 2) if config.action is None else jnp.array(config.action, jnp.int32)

    @staticmethod
    def update(config, state, transition):
        del config
        return Log(jax.tree.map(lambda log, one: log.at[state.count].set(one), state[0], transition), state.count + 1)


@pytest.fixture(scope="module")
def outcomes():
    """Three states, two actions, three outcomes of which some are impossible; every outcome has a reward of its own."""
    generator = np.random.default_rng(0)
    probability = generator.dirichlet(np.ones(3), (3, 2))
    probability[0, 1] = [0.4, 0.0, 0.6]
    probability[2, 0] = [0.7, 0.3, 0.0]
    terminated = np.zeros((3, 2, 3), bool)
    terminated[..., 2] = True
    reward = np.arange(18.0).reshape(3, 2, 3) / 10
    return make_outcomes(probability, generator.integers(0, 3, (3, 2, 3)), reward, [0.2, 0.0, 0.8], terminated)


def drive(outcomes, *, seed=0, agent="recorder", action=None, plans=(1, 3, 6), readings=(STEPS,), **options):
    """Readings, and the transitions of every lane."""
    keys = jax.vmap(lambda number: compiled_steps.run_keys(seed, "test", agent, number))(np.arange(LANES))
    tables = compiled_environments.make_tables(outcomes, options.pop("time_limit", None))
    config = Recorder.Config(action, max(readings))
    *events, last = compiled_loop.run_batch(
        keys, tables, Recorder, config, SPACES, list(plans), list(readings), options.pop("half_life", 20.0)
    )
    assert not options
    log = jax.tree.map(np.asarray, last.agent)
    np.testing.assert_array_equal(log.count, max(readings))
    return [event for event in events if isinstance(event, event_loop.Reading)], log.transitions, last


@pytest.fixture(scope="module")
def driver(request):
    return request.config.getoption("--statistics-seed")


@pytest.fixture(scope="module")
def driven(outcomes, driver):
    return drive(outcomes, seed=driver, readings=(1, 2, 10, 255, 256, 257, 1000, STEPS))


def which_outcome(log):
    """Numbers of the outcomes, from the rewards that tell them apart."""
    return np.round(10 * log.reward).astype(int) - 6 * log.state - 3 * log.action


def test_steps_follow_the_table(outcomes, driven, check):
    _, log, _ = driven
    outcome = which_outcome(log)
    np.testing.assert_array_equal(log.next_state, outcomes.next_state[log.state, log.action, outcome])
    np.testing.assert_array_equal(log.terminated, outcome == 2)
    for state, action in np.ndindex(3, 2):
        here = (log.state == state) & (log.action == action)
        check.frequencies(np.bincount(outcome[here], minlength=3), outcomes.probability[state, action])


def test_episodes_begin_at_the_start_and_go_on_where_they_were(outcomes, driven, check):
    _, log, _ = driven
    after = log.state[:, 1:]
    going = ~log.terminated[:, :-1]
    np.testing.assert_array_equal(after[going], log.next_state[:, :-1][going])
    check.frequencies(np.bincount(after[~going], minlength=3), outcomes.start)


def test_first_states(outcomes, check, driver):
    keys = jax.vmap(lambda number: compiled_steps.run_keys(driver, "test", "", number))(np.arange(3000))
    tables = compiled_environments.make_tables(outcomes)
    first = compiled_steps.begin(
        keys, tables, program=compiled_steps.program(Recorder, Recorder.Config(None, 1), SPACES)
    )
    check.frequencies(np.bincount(first.observation, minlength=3), outcomes.start)


def test_one_step_does_not_tell_the_next(outcomes, driven, check):
    """Outcomes of one pair, apart by what happened just before."""
    _, log, _ = driven
    outcome = which_outcome(log)
    here = (log.state[:, 1:] == 2) & (log.action[:, 1:] == 1)
    before = outcome[:, :-1][here]
    now = outcome[:, 1:][here]
    for kind in (0, 2):
        part = now[before == kind]
        assert len(part) > 500
        check.frequencies(np.bincount(part, minlength=3), outcomes.probability[2, 1])


def test_totals_and_smoothing_against_a_recursion(driven):
    readings, log, _ = driven
    rewards = log.reward.astype(np.float64)
    decay, numerator, weight = 0.5 ** (1 / 20.0), np.zeros(LANES), 0.0
    smoothed = {}
    for step in range(STEPS):
        numerator = decay * numerator + (1 - decay) * rewards[:, step]
        weight = decay * weight + (1 - decay)
        smoothed[step + 1] = numerator / weight
    assert [reading.step for reading in readings] == [1, 2, 10, 255, 256, 257, 1000, STEPS]
    for reading in readings:
        np.testing.assert_allclose(reading.total, rewards[:, : reading.step].sum(1), rtol=5e-6)
        np.testing.assert_allclose(reading.smoothed, smoothed[reading.step], rtol=1e-5, atol=1e-6)


def test_segments_do_not_matter(outcomes, driven, driver):
    _, log, last = driven
    readings, again, last_again = drive(outcomes, seed=driver, plans=range(1, 900, 70), readings=(700, STEPS))
    for first, second in zip(log, again, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(last.recent, last_again.recent)
    np.testing.assert_array_equal(readings[1].smoothed, driven[0][-1].smoothed)
    np.testing.assert_allclose(readings[1].total, driven[0][-1].total, rtol=5e-6)


def test_lanes_and_seeds_differ(outcomes, driven, driver):
    _, log, _ = driven
    assert len({lane.tobytes() for lane in log.reward}) == LANES
    _, other, _ = drive(outcomes, seed=driver + 1)
    assert (other.reward != log.reward).any(1).all()


def test_all_agents_meet_the_same_random_numbers(outcomes):
    """Two agents that do the same see the same; what they draw for themselves differs."""
    short = {"readings": (600,)}
    _, first, _ = drive(outcomes, agent="one", action=1, **short)
    _, second, _ = drive(outcomes, agent="two", action=1, **short)
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)
    _, first, _ = drive(outcomes, agent="one", **short)
    _, second, _ = drive(outcomes, agent="two", **short)
    assert (first.action != second.action).any(1).all()


def test_two_agents_with_one_policy_earn_the_same():
    """Without exploration and learning Q-learning is a fixed policy; so is the oracle."""
    environment = make("nchain", small_reward=0.0, large_reward=0.0)
    flat = dataclasses.replace(
        environment, outcomes=environment.outcomes._replace(reward=0.1 + environment.outcomes.next_state / 2)
    )
    oracle = bellief.run(flat, "oracle", 500, 3)
    # All actions alike: whatever an agent chooses, its reward depends on chance alone.
    same = flat.outcomes._replace(
        probability=flat.outcomes.probability[:, [1, 1]],
        next_state=flat.outcomes.next_state[:, [1, 1]],
        reward=flat.outcomes.reward[:, [1, 1]],
    )
    learner = bellief.run(dataclasses.replace(flat, outcomes=same), "q-learning", 500, 3, settings={"epsilon": 1.0})
    np.testing.assert_array_equal(oracle.policies.argmax(-1), 1)
    np.testing.assert_array_equal(oracle.total, learner.total)
    np.testing.assert_array_equal(oracle.smoothed, learner.smoothed)


def constant(reward):
    return make_outcomes(np.ones((3, 2, 1)), np.zeros((3, 2, 1), int), np.full((3, 2, 1), reward), [1, 0, 0])


@pytest.mark.parametrize("half_life", [0.01, 1.0, 1000.0, 1e6, 1e9])
def test_smoothing_a_constant_changes_nothing(half_life):
    readings, _, _ = drive(constant(3.0), half_life=half_life, readings=(1, 5, 400))
    for reading in readings:
        np.testing.assert_allclose(reading.smoothed, 3.0, rtol=1e-5)


def test_totals_are_kept_in_double_precision():
    result = bellief.run(
        dataclasses.replace(make("nchain"), outcomes=constant(0.1)), "oracle", 100_000, 2, half_life=10.0
    )
    assert result.total.dtype == np.float64
    # Float32 would be wrong in the third digit by then.
    np.testing.assert_allclose(result.total, np.tile(0.1 * result.step, (2, 1)), rtol=2e-6)


def by_hand(time_limit):
    """Action 0 walks 0, 1, 2, 2, ...; action 1 ends the episode. New ones begin in state 1."""
    next_state = np.array([[1, 0], [2, 1], [2, 2]])[..., None]
    terminated = np.broadcast_to(np.array([False, True])[:, None], (3, 2, 1))
    outcomes = make_outcomes(np.ones((3, 2, 1)), next_state, np.ones((3, 2, 1)), [0, 1, 0], terminated)
    return compiled_environments.make_tables(outcomes, time_limit)


@pytest.mark.parametrize(
    ("time_limit", "state", "age", "action", "expected"),
    [
        # Expected: next state, terminated; state to go on from, age.
        (None, 0, 0, 0, (1, False, 1, 1)),
        (None, 2, 10**6, 0, (2, False, 2, 10**6 + 1)),
        (None, 2, 5, 1, (2, True, 1, 0)),
        (3, 2, 1, 0, (2, False, 2, 2)),
        (3, 2, 2, 0, (2, False, 1, 0)),
        (3, 2, 2, 1, (2, True, 1, 0)),
        (1, 0, 0, 0, (1, False, 1, 0)),
    ],
)
def test_one_step_by_hand(time_limit, state, age, action, expected):
    numbers = (jnp.asarray(number, jnp.int32) for number in (state, age, action))
    transition, observation, new_age = step_environment(by_hand(time_limit), *numbers, jnp.array([0.3, 0.6]))
    found = (transition.next_state, transition.terminated, observation, new_age)
    assert tuple(np.asarray(one).item() for one in found) == expected
    assert (int(transition.state), int(transition.action), float(transition.reward)) == (state, action, 1.0)


@pytest.mark.parametrize(
    ("uniform", "outcome"), [(0.0, 0), (0.2499, 0), (0.25, 2), (0.4999, 2), (0.5, 3), (1 - 2**-24, 3)]
)
def test_uniforms_become_outcomes(uniform, outcome):
    outcomes = make_outcomes([[[0.25, 0.0, 0.25, 0.5, 0.0]]], [[[0] * 5]], [[[0.0, 1, 2, 3, 4]]], [1.0])
    zero = jnp.array(0, jnp.int32)
    transition, _, _ = step_environment(
        compiled_environments.make_tables(outcomes), zero, zero, zero, jnp.array([uniform, 0.5])
    )
    assert int(transition.reward) == outcome


def test_what_rounding_leaves_goes_to_no_impossible_outcome():
    """Probabilities that people typed in sum to almost one."""
    outcomes = make_outcomes(
        np.tile([0.333333, 0.333333, 0.333333, 0.0], (3, 1, 1)), np.zeros((3, 1, 4), int), 1.0, [0.5, 0.4999999, 0]
    )
    tables = compiled_environments.make_tables(outcomes)
    almost = jnp.array([1 - 2**-24] * 2)
    state = jnp.array(0, jnp.int32)
    assert int(jnp.sum(almost[0] >= tables.cumulative[0, 0])) == 2
    _, observation, _ = step_environment(
        compiled_environments.make_tables(outcomes, time_limit=1), state, state, state, almost
    )
    assert int(observation) == 1


@pytest.mark.parametrize(
    ("action", "states", "ended"),
    [
        # Right along the upper edge until the time limit; down into a hole.
        (2, [0, 1, 2, 3, 3] * 4, [False] * 20),
        (1, [0, 4, 8] * 7, [False, False, True] * 7),
    ],
)
def test_frozen_lake_from_its_table(action, states, ended):
    lake = read_table("FrozenLake-v1", is_slippery=False, max_episode_steps=5)
    keys = jax.vmap(lambda number: compiled_steps.run_keys(0, "lake", "", number))(np.arange(LANES))
    *_, last = compiled_loop.run_batch(
        keys,
        compiled_environments.make_tables(lake.outcomes, lake.time_limit),
        Recorder,
        Recorder.Config(action, 20),
        lake.spaces(),
        [1],
        [20],
        10.0,
    )
    for lane in range(LANES):
        assert last.agent.transitions.state[lane].tolist() == states[:20]
        assert last.agent.transitions.terminated[lane].tolist() == ended[:20]


def test_keys_depend_on_every_name():
    names = [(0, "a", "b", 0), (1, "a", "b", 0), (0, "c", "b", 0), (0, "a", "d", 0), (0, "a", "b", 1)]
    keys = [compiled_steps.run_keys(*name) for name in names]
    agents = {jax.random.key_data(key.agent).tobytes() for key in keys}
    assert len(agents) == 5
    environments = [jax.random.key_data(key.environment).tolist() for key in keys]
    assert environments[0] == environments[3]
    assert len({str(key) for key in environments}) == 4
    assert agents.isdisjoint(jax.random.key_data(key.environment).tobytes() for key in keys)
