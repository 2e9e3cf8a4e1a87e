"""Gymnasium environments seen as states and actions with numbers."""

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from bellief import UserError
from bellief.envs import discrete
from bellief.envs.discrete import DiscretiseObservation, Index

NESTED = spaces.Dict(
    {
        "place": spaces.Tuple((spaces.Discrete(3, start=-1), spaces.MultiBinary(2))),
        "cards": spaces.MultiDiscrete([2, 3], start=[1, 0]),
    }
)
# Each space, its size, its first and last element in the order of the numbers.
SPACES = {
    "discrete": (spaces.Discrete(4), 4, 0, 3),
    "offset": (spaces.Discrete(4, start=-2), 4, -2, 1),
    "multi": (spaces.MultiDiscrete([2, 3, 4]), 24, [0, 0, 0], [1, 2, 3]),
    "multi-offset": (spaces.MultiDiscrete([2, 3], start=[5, -1]), 6, [5, -1], [6, 1]),
    "multi-square": (spaces.MultiDiscrete([[2, 3], [1, 2]]), 12, [[0, 0], [0, 0]], [[1, 2], [0, 1]]),
    "binary": (spaces.MultiBinary(3), 8, [0, 0, 0], [1, 1, 1]),
    "binary-square": (spaces.MultiBinary([2, 2]), 16, [[0, 0], [0, 0]], [[1, 1], [1, 1]]),
    "tuple": (spaces.Tuple((spaces.Discrete(3), spaces.Discrete(2, start=7))), 6, (0, 7), (2, 8)),
    "dict": (spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Discrete(3)}), 6, {"a": 0, "b": 0}, {"a": 2, "b": 1}),
    "nested": (
        NESTED,
        72,
        {"cards": [1, 0], "place": (-1, [0, 0])},
        {"cards": [2, 2], "place": (1, [1, 1])},
    ),
}


def plain(element):
    """An element without arrays, so that it can be compared."""
    if isinstance(element, dict):
        return {name: plain(part) for name, part in sorted(element.items())}
    if isinstance(element, tuple):
        return tuple(plain(part) for part in element)
    return np.asarray(element).tolist()


@pytest.mark.parametrize("name", SPACES)
def test_every_element_has_one_number(name):
    space, size, first, last = SPACES[name]
    index = Index.of(space, "They")
    assert index.size == size
    elements = [index.decode(number) for number in range(size)]
    assert [index.encode(element) for element in elements] == list(range(size))
    assert len({str(plain(element)) for element in elements}) == size
    assert plain(elements[0]) == plain(first)
    assert plain(elements[-1]) == plain(last)
    space.seed(0)
    for element in elements:
        assert isinstance(element, dict | tuple) or element in space
    for _ in range(50):
        drawn = space.sample()
        assert plain(index.decode(index.encode(drawn))) == plain(drawn)


def test_numbers_against_nested_loops():
    index = Index.of(NESTED, "They")
    digits = itertools.product((1, 2), (0, 1, 2), (-1, 0, 1), (0, 1), (0, 1))
    for number, (first, second, place, left, right) in enumerate(digits):
        element = {"place": (place, np.array([left, right])), "cards": np.array([first, second])}
        assert index.encode(element) == number


@pytest.mark.parametrize("space", [spaces.MultiBinary(64), spaces.MultiDiscrete([10] * 25)])
def test_sizes_beyond_any_integer_type(space):
    assert Index.of(space, "They").size == {64: 2**64, 25: 10**25}[space.shape[0]]


class Stub(gymnasium.Env):
    """Never steps; only its spaces matter."""

    def __init__(self, observation_space, action_space=None):
        self.observation_space = observation_space
        self.action_space = spaces.Discrete(2) if action_space is None else action_space


@pytest.mark.parametrize(
    ("observation", "action", "fragments"),
    [
        (spaces.Box(0, 1), None, ["observations of stub are a Box", "DiscretiseObservation", "--bins"]),
        (spaces.Discrete(2), spaces.Box(0, 1), ["actions of stub are a Box", "cannot be counted"]),
        (spaces.Text(3), None, ["observations of stub are a Text", "cannot be counted"]),
        (spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1))), None, ["observations of stub are a Box"]),
        (spaces.Discrete(20_001), None, ["20,001 different observations", "at most 20,000"]),
        (spaces.MultiBinary(64), None, ["different observations"]),
    ],
)
def test_spaces_that_no_table_holds(observation, action, fragments):
    with pytest.raises(UserError) as mistake:
        discrete.indices(Stub(observation, action), "stub")
    for fragment in fragments:
        assert fragment in str(mistake.value)
    # Cutting observations into bins does not help with anything but Box observations.
    assert ("--bins" in str(mistake.value)) == isinstance(observation, spaces.Box)


def test_spaces_that_a_table_just_holds():
    observation, action = discrete.indices(Stub(spaces.Discrete(20_000)), "stub")
    assert (observation.size, action.size) == (20_000, 2)


def test_what_an_agent_may_know():
    known = discrete.gymnasium_spaces(Stub(spaces.Discrete(7), spaces.MultiBinary(2)), "stub")
    assert known == (7, 4, True, None, None, None)


def wrapped(lowest, highest, bins=4, **options):
    box = spaces.Box(np.array(lowest, np.float64), np.array(highest, np.float64), dtype=np.float64)
    return DiscretiseObservation(Stub(box), bins, **options)


@pytest.mark.parametrize(
    ("value", "place"),
    [(0.0, 0), (0.49, 0), (0.5, 1), (0.99, 1), (1.0, 2), (1.99, 3), (2.0, 3), (-0.1, 0), (7.0, 3), (-1e300, 0)],
)
def test_bins_of_a_bounded_dimension(value, place):
    env = wrapped([0.0], [2.0])
    assert env.observation(np.array([value])).tolist() == [place]
    assert env.observation(np.array([value])) in env.observation_space


def test_bins_of_unbounded_dimensions():
    largest = np.finfo(np.float64).max
    env = wrapped([-np.inf, 0.0, -largest, -1.0], [np.inf, np.inf, largest, 1.0], low=-2.0, high=2.0)
    assert env.observation_space.nvec.tolist() == [4] * 4
    assert env.observation(np.array([-1.5, -1.5, 1.5, -0.3])).tolist() == [0, 0, 3, 1]
    assert env.observation(np.array([0.5, 1e30, -1e300, 0.3])).tolist() == [2, 3, 0, 2]
    assert env.observation(np.array([np.inf, -np.inf, 1e300, 1.0])).tolist() == [3, 0, 3, 3]


def test_bins_with_bounds_for_each_dimension():
    env = wrapped([-np.inf, -np.inf], [np.inf, np.inf], bins=2, low=[0.0, 10.0], high=[1.0, 20.0])
    assert env.observation(np.array([0.6, 14.0])).tolist() == [1, 0]


def test_a_real_environment_in_bins():
    env = discrete.make_gymnasium("CartPole-v1", bins=3)
    observation, action = discrete.indices(env, "CartPole-v1")
    assert (observation.size, action.size) == (81, 2)
    first, _ = env.reset(seed=0)
    assert observation.encode(first) == 40, "all four dimensions begin in their middle bins"
    env.close()


def test_wrong_bins():
    with pytest.raises(UserError, match="bins must be at least 2, not 1"):
        wrapped([0.0], [1.0], bins=1)
    with pytest.raises(UserError, match="Only Box observations"):
        DiscretiseObservation(Stub(spaces.Discrete(3)))


@pytest.mark.parametrize(
    ("name", "parameters", "fragment"),
    [
        ("FrozenLak-v1", {}, "Did you mean: `FrozenLake`."),
        ("FrozenLake-v77", {}, "v77"),
        ("nowhere:Thing-v0", {}, "No module named 'nowhere'"),
        ("FrozenLake-v1", {"slope": 1}, "'slope'"),
        ("FrozenLake-v1", {"map_name": "9x9"}, "there is no '9x9'."),
        ("FrozenLake-v1", {"max_episode_steps": -3}, "-3"),
    ],
)
def test_what_gymnasium_cannot_make(name, parameters, fragment):
    with pytest.raises(UserError) as mistake:
        discrete.make_gymnasium(name, **parameters)
    sentence = str(mistake.value)
    assert sentence.startswith(f"Gymnasium cannot make '{name}': ")
    assert fragment in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert not sentence.endswith("..")


def test_our_own_sentence_is_not_wrapped_in_another():
    with pytest.raises(UserError, match=r"^Environment 'nchain' has no parameter 'slope'"):
        discrete.make_gymnasium("bellief:NChain-v0", slope=1)


@pytest.mark.parametrize(
    ("name", "parameters", "limit"),
    [
        ("FrozenLake-v1", {}, 100),
        ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": False}, 100),
        ("FrozenLake-v1", {"max_episode_steps": 7}, 7),
        ("CliffWalking-v1", {}, None),
        ("Taxi-v4", {}, 200),
    ],
)
def test_tables_against_the_environments_own(name, parameters, limit):
    environment = discrete.read_table(name, **parameters)
    env = gymnasium.make(name, **parameters)
    table, mdp = env.unwrapped.P, environment.mdp()
    assert environment.time_limit == limit
    assert (environment.states, environment.actions) == (env.observation_space.n, env.action_space.n)
    for state, action in np.ndindex(environment.states, environment.actions):
        transition, reward, ends = np.zeros(environment.states), 0.0, 0.0
        for chance, following, paid, terminated in table[state][action]:
            reward += chance * paid
            if terminated:
                ends += chance
            else:
                transition[following] += chance
        np.testing.assert_allclose(mdp.transition[state, action], transition, atol=1e-12)
        assert mdp.termination[state, action] == pytest.approx(ends, abs=1e-12)
        assert mdp.reward[state, action] == pytest.approx(reward, abs=1e-12)
    starts = {env.reset(seed=seed)[0] for seed in range(30)}
    assert starts <= set(np.flatnonzero(mdp.start))
    np.testing.assert_allclose(mdp.start, env.unwrapped.initial_state_distrib)
    assert environment.describe(3) == "state 3"
    env.close()


def test_no_table_to_read():
    with pytest.raises(UserError, match="Blackjack-v1 offers no transition table"):
        discrete.read_table("Blackjack-v1")


def test_a_table_has_no_picture():
    environment = discrete.read_table("FrozenLake-v1")
    assert environment.render_text(4) == "[4]"
    with pytest.raises(UserError, match="no grid"):
        environment.render_image(4)
