"""What every agent for continuous states keeps to, and the runs they make."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bellief
from bellief.envs import make_any
from bellief.errors import UserError
from bellief.registry import AGENTS, CONTINUOUS
from bellief.types import Transition

pytestmark = pytest.mark.long

SMALL = {
    "bbi": {"mdps": 2, "horizon": 2, "states": 12, "value_features": "constant+raw"},
    "bbi-paper": {"mdps": 2, "horizon": 2, "states": 12, "samples": 4, "utility_samples": 2},
    "psrl": {"horizon": 2, "states": 12, "value_features": "constant+raw"},
    "vdqn": {"width": 4, "batch": 4, "buffer": 16, "warm_up": 1, "target_steps": 3},
    "gptd": {},
}
VARIANTS = {
    "bbi-optimistic": ("bbi", SMALL["bbi"] | {"rule": "optimistic", "ending": "learned", "final": "previous"}),
    "gptd-kernel": ("gptd", {"form": "kernel", "points": 6, "explore": "sample"}),
}
CASES = {name: (name, settings) for name, settings in SMALL.items()} | VARIANTS
ENVIRONMENT = make_any("pendulum")


def test_all_are_here():
    assert set(SMALL) == {name for name, entry in AGENTS.items() if CONTINUOUS in entry.kinds}


@functools.cache
def compiled(case):
    name, settings = CASES[case]
    agent = AGENTS[name].load_for(CONTINUOUS, "pendulum")
    config, spaces = agent.Config(**settings), ENVIRONMENT.spaces
    init = jax.jit(lambda key: agent.init(key, config, spaces))
    plan = jax.jit(lambda key, state: agent.plan(key, config, spaces, state))
    act = jax.jit(lambda key, state, observation: agent.act(key, config, state, observation))
    update = jax.jit(lambda state, transition: agent.update(config, state, transition))
    policy = jax.jit(lambda state, observation: agent.policy(config, state, observation))
    return init, plan, act, update, policy


def walk(case, state, steps, first=0, reward=0.0):
    """Steps of a fixed tour with falls, planning before every other one; returns the state and the actions."""
    _, plan, act, update, _ = compiled(case)
    actions = []
    for step in range(first, first + steps):
        if step % 2 == 0:
            state, _ = plan(jax.random.key(step), state)
        here, there = (jnp.array([0.3 * np.sin(at), 0.5 * np.cos(at)], jnp.float32) for at in (step, step + 1))
        action = act(jax.random.key(100 + step), state, here)
        actions.append(int(action))
        seen = (here, action.astype(jnp.int32), jnp.float32(reward), there, jnp.array(step % 4 == 3))
        state = update(state, Transition(*seen))
    return state, actions


# These compile to much the same programs as others, or take long to compile.
ALIKE = ("psrl", "bbi-optimistic", "bbi-paper")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in ALIKE else case for case in CASES]
)
def test_agent_keeps_the_contract(case):
    init, plan, act, _, policy = compiled(case)
    start = init(jax.random.key(0))
    state, actions = walk(case, start, 6)
    # The form of the state stays, every number in it is finite or a bound, and actions are actions.
    form = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), start)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state) == form
    assert not any(np.isnan(np.asarray(leaf, np.float64)).any() for leaf in jax.tree.leaves(state))
    assert all(0 <= action < 3 for action in actions)
    # The same keys make the same run; a run that is interrupted goes on where it was.
    again, same = walk(case, start, 6)
    assert same == actions
    half, before = walk(case, start, 3)
    resumed, after = walk(case, half, 3, first=3)
    assert before + after == actions
    for one, two, three in zip(*(jax.tree.leaves(tree) for tree in (state, again, resumed)), strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)
    chances = np.asarray(policy(state, jnp.array([0.1, 0.2])))
    assert chances.shape == (3,)
    np.testing.assert_allclose(chances.sum(), 1, rtol=1e-5)
    # What is paid must not end in NaN, however much it is.
    rich, _ = walk(case, start, 4, reward=1e4)
    rich, info = plan(jax.random.key(9), rich)
    assert not any(np.isnan(np.asarray(leaf, np.float64)).any() for leaf in jax.tree.leaves((rich, info)))
    assert 0 <= int(act(jax.random.key(1), rich, jnp.array([0.1, 0.2]))) < 3


@pytest.mark.parametrize("observations", [1, 40])
def test_a_state_that_never_changes_is_no_trouble(observations):
    init, plan, act, update, _ = compiled("bbi")
    state, still = init(jax.random.key(0)), jnp.zeros(2)
    for number in range(observations):
        seen = (still, jnp.int32(number % 3), jnp.float32(0.0), still, jnp.array(False))
        state = update(state, Transition(*seen))
    state, info = plan(jax.random.key(1), state)
    assert all(np.isfinite(leaf).all() for leaf in (*info, state.weights))
    assert 0 <= int(act(jax.random.key(2), state, still)) < 3


def run(env="pendulum", agent="gptd", steps=60, runs=2, **options):
    return bellief.run(env, agent, steps, runs, **options)


def test_a_run_counts_its_episodes():
    result = run(steps=200, runs=2, readings=(100,))
    assert result.over.shape == result.total.shape
    # Every fall costs one and nothing else is paid.
    np.testing.assert_allclose(result.falls, -result.total)
    assert (result.over[:, -1] == result.falls[:, -1]).all()
    assert (np.diff(result.length) >= 0).all()
    assert (result.length[:, -1] <= 200).all()
    mean = result.length[:, -1] / result.over[:, -1]
    np.testing.assert_allclose(result.steps_survived(0, 200), mean)
    assert result.to_dict()["episodes"]["falls"]["most"] == result.falls[:, -1].max()
    with pytest.raises(UserError, match="no reading at step 101"):
        result.steps_survived(0, 101)


def test_a_run_does_not_depend_on_the_others():
    few, many = run(runs=1), run(runs=3)
    np.testing.assert_array_equal(few.total[0], many.total[0])
    np.testing.assert_array_equal(few.survived[0], many.survived[0])


def test_a_time_limit_is_not_a_fall(monkeypatch):
    import dataclasses

    short = dataclasses.replace(ENVIRONMENT, time_limit=3)
    result = run(env=short, steps=30, runs=1)
    assert result.over[0, -1] == 10
    assert result.falls[0, -1] == 0
    assert result.length[0, -1] == 30


def test_a_run_is_saved_whole(tmp_path):
    run(steps=30, runs=1).save(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["curves.csv", "plans.csv", "result.json"]
    with pytest.raises(UserError, match="exists already"):
        run(steps=30, runs=1).save(tmp_path / "out")


def test_gymnasium_boxes_run_and_their_episodes_are_kept():
    result = run(env="CartPole-v1", steps=80, runs=2)
    assert len(result.episodes) == result.over[:, -1].sum()
    assert (result.episodes.groupby("run")["length"].sum().to_numpy() == result.length[:, -1]).all()
    assert result.to_dict()["episodes"]["count"] == len(result.episodes) > 2
    np.testing.assert_array_equal(result.episodes["reward"], result.episodes["length"])


@pytest.mark.parametrize(
    ("env", "agent", "options", "words"),
    [
        (
            "pendulum",
            "mmbi",
            {},
            "'mmbi' is for discrete states and those of 'pendulum' are continuous: choose one",
        ),
        ("nchain", "gptd", {}, "'gptd' is for continuous states and those of 'nchain' are discrete"),
        ("CartPole-v1", "q-learning", {}, "cut the states into bins"),
        ("pendulum", "bbi", {"settings": {"mode": "mine"}}, "there is no mode 'mine'; choose one of own, paper"),
        ("pendulum", "bbi", {"settings": {"value_features": "rbf"}}, "'rbf' is no feature map"),
        ("pendulum", "bbi", {"settings": {"rule": "thompson", "mode": "paper"}}, "needs values=joint"),
        ("pendulum", "bbi", {"settings": {"prior": "sparse"}}, "no prior 'sparse' for continuous states"),
        ("pendulum", "gptd", {"settings": {"form": "x"}}, "gptd has no form 'x'"),
        ("Pendulum-v1", "bbi", {}, "The actions of Pendulum-v1 are a Box"),
        ("CartPole-v1", "bbi", {"env_settings": {"termination": "no.such:thing"}}, "cannot be imported"),
    ],
)
def test_mistakes_are_told(env, agent, options, words):
    with pytest.raises(UserError, match=words):
        run(env, agent, 5, 1, **options)


def tilted(state):
    """A termination function that a user might give."""
    return jnp.abs(state[2]) > 0.2095


@pytest.mark.slow
def test_a_termination_function_can_be_given():
    small = SMALL["bbi"] | {"ending": "known", "states": 8}
    result = run("CartPole-v1", "bbi", 4, 1, settings=small, env_settings={"termination": tilted})
    assert result.total.shape[0] == 1
    with pytest.raises(UserError, match="ending=known needs an environment that tells"):
        run("CartPole-v1", "bbi", 4, 1, settings=small)
