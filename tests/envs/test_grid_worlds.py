"""LavaLake and Maze against a walk written afresh, and against published values."""

from collections import Counter

import numpy as np
import pytest

from bellief import UserError
from bellief.envs.lava_lake import lava_lake, lava_lake_10
from bellief.envs.maze import maze

LAVA_MAP = ["A.LLL.G", ".......", ".......", ".......", "..LLL.."]
MAZE_MAP = ["S#F.#.G", ".#..#..", ".......", "##...##", "......F", "F.....#"]

STEP = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
ASIDE = {"up": ("left", "right"), "down": ("left", "right"), "left": ("up", "down"), "right": ("up", "down")}


def ways(direction, slip):
    """Each direction the agent may really go, with its probability."""
    return [(direction, 1 - slip), *((aside, slip / 2) for aside in ASIDE[direction])]


def walk(place, direction, open_places):
    """Where a step leads on a dictionary of open places."""
    there = (place[0] + STEP[direction][0], place[1] + STEP[direction][1])
    return there if there in open_places else place


def places_of(rows):
    return {(row, column): mark for row, line in enumerate(rows) for column, mark in enumerate(line) if mark != "#"}


def distribution(environment, state, action):
    """The table's outcomes of a pair as a counter over (next state, reward)."""
    outcomes = environment.outcomes
    found = Counter()
    for probability, next_state, reward in zip(
        outcomes.probability[state, action],
        outcomes.next_state[state, action],
        outcomes.reward[state, action],
        strict=True,
    ):
        found[int(next_state), float(reward)] += float(probability)
    return found


def assert_same(found, expected, where):
    assert found.keys() == expected.keys(), where
    for outcome, probability in expected.items():
        assert found[outcome] == pytest.approx(probability), where


@pytest.mark.parametrize("slip", [0.2, 0.5])
@pytest.mark.parametrize("build", [lava_lake, lava_lake_10])
def test_lava_lake_cell_by_cell(build, slip):
    environment = build(slip=slip)
    rows = environment.parameters["layout"]
    places = places_of(rows)
    width = len(rows[0])
    home = next(place for place, mark in places.items() if mark == "A")
    assert environment.states == len(rows) * width
    for place, mark in places.items():
        stands = home if mark in "LG" else place
        for action, direction in enumerate(environment.action_names):
            expected = Counter()
            for way, probability in ways(direction, slip):
                there = walk(stands, way, places)
                pay = {"G": 50.0, "L": -50.0}.get(places[there], -1.0)
                there = home if pay != -1.0 else there
                expected[there[0] * width + there[1], pay] += probability
            found = distribution(environment, place[0] * width + place[1], action)
            assert_same(found, expected, (place, direction))
    assert environment.outcomes.start[home[0] * width + home[1]] == 1
    assert not environment.outcomes.terminated.any()
    assert environment.outcomes.probability.shape[-1] == 3


def test_lava_lake_map():
    assert lava_lake().parameters["layout"] == tuple(LAVA_MAP)
    assert lava_lake().states == 35
    assert lava_lake_10().states == 100


def test_maze_cell_by_cell():
    environment = maze()
    places = places_of(MAZE_MAP)
    order = sorted(places)
    flags = [place for place in order if places[place] == "F"]
    home = order.index((0, 0)) * 8
    assert environment.parameters["layout"] == tuple(MAZE_MAP)
    assert (len(order), environment.states) == (33, 264)
    for state in range(264):
        cell, bits = divmod(state, 8)
        place, bag = order[cell], {flag for number, flag in enumerate(flags) if bits & 2**number}
        if places[place] == "G":
            place, bag = (0, 0), set()
        for action, direction in enumerate(environment.action_names):
            expected = Counter()
            for way, probability in ways(direction, 0.1):
                there = walk(place, way, places)
                if places[there] == "G":
                    expected[home, float(len(bag))] += probability
                else:
                    then = bag | ({there} if places[there] == "F" else set())
                    code = sum(2 ** flags.index(flag) for flag in then)
                    expected[order.index(there) * 8 + code, 0.0] += probability
            assert_same(distribution(environment, state, action), expected, (state, direction))
    assert environment.outcomes.start[home] == 1
    assert not environment.outcomes.terminated.any()


def test_maze_reaches_244_states():
    environment = maze()
    linked = environment.mdp().transition.sum(1) > 0
    reached, frontier = set(), {int(np.argmax(environment.outcomes.start))}
    while frontier:
        reached |= frontier
        frontier = {int(there) for state in frontier for there in np.flatnonzero(linked[state])} - reached
    assert len(reached) == 244


def test_maze_values(exact):
    mdp = maze().mdp(discount=0.99)
    assert exact.optimal_gain(mdp)[0] == pytest.approx(0.0942, abs=5e-5)
    assert exact.optimal_values(mdp)[np.argmax(mdp.start)] == pytest.approx(8.05, abs=0.005)


def test_lava_lake_values(exact):
    mdp = lava_lake().mdp()
    assert exact.optimal_gain(mdp)[0] == pytest.approx(2.677, abs=5e-4)
    assert exact.average_of(mdp, np.full((35, 4), 0.25)) == pytest.approx(-3.63, abs=0.005)


@pytest.mark.parametrize(("build", "steps"), [(lava_lake, 8), (lava_lake_10, 9)])
def test_the_shortest_way_without_slip(build, steps):
    environment = build(slip=0.0)
    mdp = environment.mdp()
    best = np.where(mdp.start == 1, 0.0, -np.inf)
    taken, rewards = 1, best[:, None] + mdp.reward
    while not (rewards > 0).any():
        best = np.array([rewards[mdp.transition[..., there] > 0].max(initial=-np.inf) for there in range(len(best))])
        taken, rewards = taken + 1, best[:, None] + mdp.reward
        assert taken <= steps
    assert taken == steps
    assert rewards.max() == 50 - (steps - 1)


def test_lava_lake_without_slip(exact):
    mdp = lava_lake(slip=0.001).mdp()
    without = lava_lake(slip=0.0).mdp()
    # With no slip at all some policies never return to the start, so the policy comes from a slip that is very small.
    policy = np.eye(4)[exact.optimal_gain(mdp)[1]]
    assert exact.average_of(without, policy) == pytest.approx(5.375, abs=1e-9)


def test_lava_lake_10_has_a_risky_short_way_and_a_safe_long_way(exact):
    environment = lava_lake_10()
    mdp = environment.mdp()
    gain, actions = exact.optimal_gain(mdp)
    assert gain == pytest.approx(1.3880, abs=5e-5)

    rows = list(environment.parameters["layout"])
    for strait in (4, 5):
        assert rows[3][strait] + rows[5][strait] == "LL"
    shut = [*["#" * 10] * 2, *rows[2:9], "#" * 10]
    risky_gain, _ = exact.optimal_gain(lava_lake_10(layout=shut).mdp())
    # Worth something, and clearly less than going around.
    assert 0 < risky_gain < 0.25 * gain

    chance, route = mdp.start, mdp.transition[np.arange(100), actions]
    visits = np.zeros(100)
    for _ in range(10_000):
        chance = chance @ route
        visits += chance
    assert visits[[44, 45]].sum() < 1e-3 * visits[:10].sum()
    lava_per_step = (environment.outcomes.probability * (environment.outcomes.reward == -50)).sum(-1)
    assert visits @ lava_per_step[np.arange(100), actions] < 1e-3 * visits.sum()


def test_custom_layouts():
    small = lava_lake(layout="A#\n.G\n", slip=0.0)
    assert small.states == 3
    assert small.outcomes.next_state[:, :, 0].tolist() == [[0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 1, 0]]
    flat = maze(layout=["SFG"], slip=0.0)
    # Right twice brings the one flag home: cell 1 with the flag is state 3.
    assert flat.outcomes.next_state[0, 1, 0] == 3
    assert (flat.outcomes.next_state[3, 1, 0], flat.outcomes.reward[3, 1, 0]) == (0, 1)


def test_texts():
    lake, flags = lava_lake(), maze()
    assert lake.render_text(8).splitlines()[:2] == [" A  .  L  L  L  .  G ", " . [.] .  .  .  .  . "]
    assert lake.describe(0) == "row 1, column 1 (start)"
    assert lake.describe(2) == "row 1, column 3 (lava)"
    state = 5 * 8 + 0b101
    assert flags.describe(state) == "row 2, column 1, flags 1 and 3"
    assert flags.render_text(state).splitlines() == [
        " S  #  .  .  #  .  G ",
        "[.] #  .  .  #  .  . ",
        " .  .  .  .  .  .  . ",
        " #  #  .  .  .  #  # ",
        " .  .  .  .  .  .  F ",
        " .  .  .  .  .  .  # ",
        "holding flags 1 and 3",
    ]
    assert flags.describe(7).endswith("flags 1, 2 and 3")
    assert flags.describe(2).endswith(", flag 2")
    assert flags.describe(0).endswith("(start), no flags")


def test_pictures_differ_between_states():
    lake, flags = lava_lake(), maze()
    for environment, rows, columns in ((lake, 5, 7), (flags, 6, 7)):
        pictures = [environment.render_image(state) for state in range(environment.states)]
        height, width, channels = pictures[0].shape
        assert channels == 3
        assert height - width == (rows - columns) * 56
        assert all(picture.dtype == np.uint8 for picture in pictures)
        assert len({picture.tobytes() for picture in pictures}) == environment.states


def test_a_picture_belongs_to_the_caller():
    first = lava_lake().render_image(0)
    first[:] = 0
    assert lava_lake().render_image(0).any()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: lava_lake(slip=2), "'slip' is 2"),
        (lambda: maze(slip=-1), "'slip' is -1"),
        (lambda: lava_lake(goal_reward="much"), "'goal_reward' is 'much'"),
        (lambda: lava_lake(layout="A.\n.G."), "Row 2 .* 3 characters and row 1 has 2"),
        (lambda: lava_lake(layout="A?G"), r"Row 1 of the layout holds '\?'"),
        (lambda: lava_lake(layout="AFG"), "holds 'F'"),
        (lambda: maze(layout="SLFG"), "holds 'L'"),
        (lambda: lava_lake(layout="..G"), "has 0 starts: mark exactly one cell with 'A'"),
        (lambda: maze(layout="SFSG"), "has 2 starts"),
        (lambda: lava_lake(layout="A.."), "no goal"),
        (lambda: lava_lake(layout="ALG"), "No goal .* can be reached"),
        (lambda: maze(layout="SF#G"), "No goal .* can be reached"),
        (lambda: maze(layout="S.G"), "no flags"),
        (lambda: maze(layout="SFFFFFFFFFG"), "has 9 flags"),
        (lambda: lava_lake(layout=""), "no map"),
        (lambda: lava_lake(layout=7), "no map"),
    ],
)
def test_wrong_parameters(build, message):
    with pytest.raises(UserError, match=message):
        build()
