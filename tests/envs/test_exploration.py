"""The environments of the exploration literature against walks written afresh and values known by hand."""

import numpy as np
import pytest

from bellief import UserError
from bellief.envs import make


def finite_optimum(environment, steps):
    """Optimal expected sum of rewards of so many steps from the start, by dynamic programming."""
    mdp = environment.mdp(discount=1.0)
    values = np.zeros(environment.states)
    for _ in range(steps):
        values = (np.asarray(mdp.reward) + np.asarray(mdp.transition) @ values).max(1)
    return environment.outcomes.start @ values


def walk(environment, state, actions):
    """Return and last state of a deterministic environment."""
    total = 0.0
    for action in actions:
        total += environment.outcomes.reward[state, action, 0]
        if environment.outcomes.terminated[state, action, 0]:
            return total, state, True
        state = environment.outcomes.next_state[state, action, 0]
    return total, state, False


@pytest.mark.parametrize("size", [3, 10, 20])
def test_deep_sea_optimum_is_099_and_only_one_way_pays(size):
    sea = make("deep-sea", size=size)
    assert finite_optimum(sea, size) == pytest.approx(0.99)
    assert walk(sea, 0, [1] * size)[0] == pytest.approx(0.99)
    assert walk(sea, 0, [1] * (size - 1) + [0])[0] == pytest.approx(-0.01 * (size - 1) / size)
    total, _, ended = walk(sea, 0, [0] * size)
    assert total == 0
    assert ended
    if size == 3:  # every way but the right one
        returns = [walk(sea, 0, [way >> bit & 1 for bit in range(3)])[0] for way in range(7)]
        assert max(returns) == 0


def test_deep_sea_steps_go_down_and_stop_at_the_edges():
    sea = make("deep-sea", size=4)
    assert walk(sea, 0, [0])[1] == 4
    assert walk(sea, 0, [1])[1] == 5
    assert walk(sea, 7, [1])[1] == 11  # the right-most cell of the second row
    assert sea.outcomes.terminated[12:].all()
    assert not sea.outcomes.terminated[:12].any()


def test_stochastic_deep_sea_has_slips_and_noise_of_variance_one():
    size = 5
    sea = make("deep-sea", size=size, stochastic=True)
    mdp = sea.mdp(discount=1.0)
    assert mdp.transition[0, 1, size + 1] == pytest.approx(1 - 1 / size)
    assert mdp.transition[0, 1, size] == pytest.approx(1 / size)
    assert mdp.transition[1, 0, size] == 1
    last = size * size - 1
    assert mdp.reward[last, 1] == pytest.approx(1 - 0.01 / size)
    assert mdp.reward_sd[last, 1] == pytest.approx(1)
    assert mdp.reward_sd[last - size + 1, 0] == pytest.approx(1)
    assert mdp.reward_sd[last - 1, 0] == 0
    # Always right arrives with the product of its chances, at full cost; stopping after a slip saves some of the cost.
    always_right = (1 - 1 / size) ** (size - 1) - 0.01
    assert always_right < finite_optimum(sea, size) < always_right + 0.01


def test_deep_sea_directions_can_be_drawn_by_cell():
    plain, drawn = make("deep-sea", size=6), make("deep-sea", size=6, mapping_seed=1)
    assert finite_optimum(drawn, 6) == pytest.approx(0.99)
    turned = (plain.outcomes.next_state != drawn.outcomes.next_state).any((1, 2))
    assert 0 < turned.sum() < 36
    np.testing.assert_array_equal(plain.outcomes.next_state[turned], drawn.outcomes.next_state[turned][:, ::-1])


def test_river_swim_probabilities_and_optimal_gain(exact):
    river = make("riverswim")
    mdp = river.mdp()
    np.testing.assert_allclose(mdp.transition[0, 1], [0.4, 0.6, 0, 0, 0, 0])
    np.testing.assert_allclose(mdp.transition[3, 1], [0, 0, 0.05, 0.6, 0.35, 0])
    np.testing.assert_allclose(mdp.transition[5, 1], [0, 0, 0, 0, 0.4, 0.6])
    np.testing.assert_allclose(mdp.transition[4, 0], [0, 0, 0, 1, 0, 0])
    assert np.count_nonzero(mdp.reward) == 2
    assert (mdp.reward[0, 0], mdp.reward[5, 1]) == (0.005, 10)
    # Always right: detailed balance gives 3601.5 of 8402.5 in the last state.
    gain, actions = exact.optimal_gain(mdp)
    assert gain == pytest.approx(10 * 3601.5 / 8402.5)
    assert (actions == 1).all()


def test_rooms_are_joined_like_a_snake_and_the_goal_holds():
    rooms = make("rooms")
    assert rooms.states == 7 * 25 + 6  # and a door between any two
    assert rooms.time_limit == 40
    assert finite_optimum(rooms, 40) == pytest.approx(20.2947, abs=1e-3)
    mdp = rooms.mdp()
    start = int(np.argmax(rooms.outcomes.start))
    ways = np.sort(mdp.transition[start, 0])[::-1][:5]
    np.testing.assert_allclose(ways, [0.95, 0.05 / 3, 0.05 / 3, 0.05 / 3, 0])
    goal = int(np.argmax(mdp.reward[:, 0]))
    np.testing.assert_allclose(mdp.transition[goal, :, goal], 1)
    corner = 0  # up and left are walls
    np.testing.assert_allclose(mdp.transition[corner, [0, 2], corner], 1)
    np.testing.assert_allclose(np.sort(mdp.transition[corner, 1])[::-1][:3], [0.95, 0.05, 0])
    np.testing.assert_allclose(np.sort(np.unique(mdp.reward.round(9))), [0, 0.01, 0.1, 1])


def test_three_rooms():
    rooms = make("rooms", rooms=3, room_size=3, success=1.0, episode=9)
    assert rooms.layout.rows == ("...#...#...", ".....S...G.", "...#...#...")
    assert finite_optimum(rooms, 9) == pytest.approx(5.01)  # four steps of nine are walked, the first one pays 0.01


@pytest.mark.parametrize(("name", "size"), [("grid5", 5), ("grid10", 10)])
def test_corner_grids(name, size, exact):
    grid = make(name)
    mdp = grid.mdp()
    assert grid.states == size * size
    np.testing.assert_allclose(mdp.transition[size * size - 1, :, 0], 1)
    assert mdp.reward.sum() == 4
    right = grid.action_names.index("right")
    np.testing.assert_allclose(mdp.transition[0, right, [0, 1, size]], [0.1, 0.8, 0.1])
    # Without slips a round takes 2 (size - 1) steps and the one in the corner.
    gain, _ = exact.optimal_gain(make(name, slip=0.0).mdp())
    assert gain == pytest.approx(1 / (2 * (size - 1) + 1))


def test_dearden_maze_takes_one_step_more_a_round_than_maze(exact):
    ours, theirs = (exact.optimal_gain(make(name, slip=0.0).mdp())[0] for name in ("maze", "dearden-maze"))
    # Both walk the same way with the same three flags: 3 / gain is the length of a round.
    assert 3 / theirs - 3 / ours == pytest.approx(1, abs=1e-6)
    assert exact.optimal_gain(make("dearden-maze").mdp())[0] == pytest.approx(0.09134, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("deep-sea", {"size": 1}),
        ("deep-sea", {"stochastic": "yes"}),
        ("deep-sea", {"mapping_seed": -1}),
        ("riverswim", {"size": 2}),
        ("rooms", {"success": 1.5}),
        ("rooms", {"rooms": 2}),
        ("grid5", {"size": 1}),
        ("dearden-maze", {"layout": ["S.", ".G"]}),
    ],
)
def test_wrong_parameters_are_told(name, parameters):
    with pytest.raises(UserError):
        make(name, **parameters)


@pytest.mark.parametrize("name", ["deep-sea", "rooms", "grid5", "dearden-maze"])
def test_pictures_show_where_the_agent_is(name):
    environment = make(name)
    first, second = environment.render_image(0), environment.render_image(1)
    assert first.ndim == 3
    assert (first != second).any()
