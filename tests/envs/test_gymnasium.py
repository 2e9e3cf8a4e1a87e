"""The environments as Gymnasium sees them."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

import bellief
from bellief import UserError
from bellief.envs.base import Environment, make, single_start
from bellief.envs.gymnasium import TabularGymnasiumEnv
from bellief.envs.nchain import ChainView
from bellief.mdp.tabular_mdp import make_outcomes
from bellief.registry import GYMNASIUM_IDS, register_with_gymnasium

GRIDS = ("LavaLake-v0", "LavaLake10-v0", "Maze-v0")


def modes(identifier):
    return (None, "ansi", "rgb_array") if identifier in GRIDS else (None, "ansi")


@pytest.mark.parametrize(
    ("identifier", "render_mode"), [(identifier, mode) for identifier in GYMNASIUM_IDS for mode in modes(identifier)]
)
def test_gymnasium_finds_no_fault(identifier, render_mode):
    env = gymnasium.make(f"bellief:{identifier}", render_mode=render_mode)
    check_env(env.unwrapped)
    assert tuple(env.metadata["render_modes"]) == modes(identifier)[1:]


def test_registering_again_is_silent_and_changes_nothing():
    before = {identifier: gymnasium.registry[identifier] for identifier in GYMNASIUM_IDS}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_with_gymnasium()
    assert all(gymnasium.registry[identifier] is spec for identifier, spec in before.items())


def test_parameters_reach_the_environment():
    assert bellief.make is make
    env = gymnasium.make("bellief:NChain-v0", slip=0.1, size=7)
    assert env.observation_space == gymnasium.spaces.Discrete(7)
    assert env.unwrapped.environment.parameters["slip"] == 0.1
    assert gymnasium.make("bellief:LavaLake10-v0").unwrapped.environment.name == "lavalake10"
    with pytest.raises(UserError, match="no parameter 'slips'"):
        gymnasium.make("bellief:NChain-v0", slips=0.1)


@pytest.mark.parametrize("identifier", GYMNASIUM_IDS)
def test_frequencies_agree_with_the_table(identifier):
    """Chi-square at a false-failure rate of 1e-5, over the pairs seen often enough; the seed is fixed."""
    env = gymnasium.make(f"bellief:{identifier}").unwrapped
    outcomes = env.environment.outcomes
    chooser = np.random.default_rng(11)
    seen: dict[tuple[int, int], dict[tuple[int, float], int]] = {}
    state, _ = env.reset(seed=4)
    for _ in range(20_000):
        action = int(chooser.integers(env.action_space.n))
        next_state, reward, terminated, truncated, info = env.step(action)
        assert not terminated
        assert not truncated
        assert info["prob"] in outcomes.probability[state, action]
        pair = seen.setdefault((state, action), {})
        pair[next_state, reward] = pair.get((next_state, reward), 0) + 1
        state = next_state

    statistic, freedom = 0.0, 0
    for (state, action), found in seen.items():
        expected: dict[tuple[int, float], float] = {}
        for probability, there, reward in zip(*(table[state, action] for table in outcomes[:3]), strict=True):
            if probability > 0:
                key = int(there), float(reward)
                expected[key] = expected.get(key, 0.0) + probability
        assert found.keys() <= expected.keys()
        visits = sum(found.values())
        if min(expected.values()) * visits >= 5:
            terms = [(found.get(key, 0) - visits * chance) ** 2 / (visits * chance) for key, chance in expected.items()]
            statistic, freedom = statistic + sum(terms), freedom + len(expected) - 1
    if identifier == "DoubleLoop-v0":
        assert freedom == 0
    else:
        assert freedom >= 10
        assert stats.chi2.sf(statistic, freedom) > 1e-5


@pytest.mark.parametrize("identifier", GYMNASIUM_IDS)
def test_the_seed_fixes_the_run(identifier):
    def run(seed):
        env = gymnasium.make(f"bellief:{identifier}")
        env.reset(seed=seed)
        env.action_space.seed(5)
        return [env.step(env.action_space.sample())[:2] for _ in range(300)]

    assert run(1) == run(1)
    if identifier != "DoubleLoop-v0":
        assert run(1) != run(2)


def test_rendering():
    env = gymnasium.make("bellief:LavaLake-v0", render_mode="rgb_array")
    env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), make("lavalake").render_image(0))
    text = gymnasium.make("bellief:NChain-v0", render_mode="ansi")
    text.reset(seed=0)
    assert text.render() == make("nchain").render_text(0)
    with pytest.raises(UserError, match="no render_mode 'rgb_array': use one of ansi"):
        gymnasium.make("bellief:NChain-v0", render_mode="rgb_array")


def two_step_environment():
    """State 0 leads to state 1; there the episode ends."""
    outcomes = make_outcomes(
        probability=np.ones((2, 1, 1)),
        next_state=[[[1]], [[1]]],
        reward=[[[0.0]], [[3.0]]],
        start=single_start(2, 0),
        terminated=[[[False]], [[True]]],
    )
    return Environment("two", outcomes, ("on",), {}, ChainView(2))


def test_an_end_asks_for_a_reset_but_can_still_be_shown():
    env = TabularGymnasiumEnv(two_step_environment(), render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    assert env.step(0) == (1, 0.0, False, False, {"prob": 1.0})
    assert env.step(0) == (1, 3.0, True, False, {"prob": 1.0})
    assert "[1]" in env.render()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    assert env.reset()[0] == 0


def test_misuse():
    env = TabularGymnasiumEnv(name="nchain")
    env.reset(seed=0)
    with pytest.raises(gymnasium.error.InvalidAction):
        env.step(2)
    with pytest.raises(UserError, match="either an environment or the name"):
        TabularGymnasiumEnv()
    with pytest.raises(UserError, match="takes no parameters"):
        TabularGymnasiumEnv(two_step_environment(), slip=0.1)


@pytest.mark.parametrize(
    "code",
    [
        "import bellief, sys; assert 'gymnasium' not in sys.modules; import gymnasium; gymnasium.make('NChain-v0')",
        "import bellief, gymnasium; gymnasium.make('bellief:NChain-v0')",
        "import gymnasium; gymnasium.make('bellief:NChain-v0')",
        "import gymnasium, bellief; gymnasium.make('NChain-v0')",
    ],
)
def test_names_are_known_whichever_is_imported_first(code):
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
