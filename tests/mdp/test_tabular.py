import numpy as np
import pytest

from bellief import UserError
from bellief.mdp.tabular_mdp import make_outcomes, to_mdp

GOOD = {
    "probability": [[[0.5, 0.25, 0.25]], [[1.0, 0.0, 0.0]]],
    "next_state": [[[0, 1, 1]], [[0, 1, 1]]],
    "reward": [[[1.0, 4.0, -2.0]], [[3.0, 99.0, 99.0]]],
    "start": [0.75, 0.25],
    "terminated": [[[False, False, True]], [[False, True, True]]],
}


def test_condensing_by_hand():
    mdp = to_mdp(make_outcomes(**GOOD), discount=0.8)
    np.testing.assert_allclose(mdp.transition, [[[0.5, 0.25]], [[1.0, 0.0]]])
    np.testing.assert_allclose(mdp.termination, [[0.25], [0.0]])
    # 0.5 * 1 + 0.25 * 4 - 0.25 * 2 = 1; squares 0.5 * 1 + 0.25 * 16 + 0.25 * 4 = 5.5; variance 5.5 - 1.
    np.testing.assert_allclose(mdp.reward, [[1.0], [3.0]])
    np.testing.assert_allclose(mdp.reward_sd, [[np.sqrt(4.5)], [0.0]])
    np.testing.assert_allclose(mdp.start, [0.75, 0.25])
    assert mdp.discount == 0.8


def test_outcomes_with_the_same_next_state_add_up():
    outcomes = make_outcomes([[[0.25, 0.75]]], [[[0, 0]]], [[[2.0, 6.0]]], [1.0])
    mdp = to_mdp(outcomes)
    np.testing.assert_allclose(mdp.transition, [[[1.0]]])
    np.testing.assert_allclose(mdp.reward, [[5.0]])
    np.testing.assert_allclose(mdp.reward_sd, [[np.sqrt(0.25 * 9 + 0.75 * 1)]])
    assert mdp.discount == 0.99
    assert not outcomes.terminated.any()


def test_one_reward_for_all_outcomes():
    outcomes = make_outcomes(GOOD["probability"], GOOD["next_state"], 2.0, GOOD["start"])
    np.testing.assert_allclose(to_mdp(outcomes).reward, [[2.0], [2.0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": [[[0.5, 0.25, 0.2]], [[1.0, 0.0, 0.0]]]}, "state 0, action 0"),
        ({"probability": [[[0.5, 0.25, 0.25]], [[1.5, -0.5, 0.0]]]}, "state 1, action 0"),
        ({"next_state": [[[0, 1, 2]], [[0, 1, 1]]]}, r"outside 0\.\.1"),
        ({"next_state": [[[0, 1, -1]], [[0, 1, 1]]]}, r"outside 0\.\.1"),
        ({"next_state": [[[0, 1]], [[0, 1]]]}, "one shape"),
        ({"terminated": [[[False, True]], [[False, True]]]}, "one shape"),
        ({"start": [0.5, 0.4]}, "start distribution"),
        ({"start": [1.5, -0.5]}, "start distribution"),
        ({"start": [1.0]}, "start distribution"),
    ],
)
def test_a_wrong_table_is_named(change, message):
    with pytest.raises(UserError, match=message):
        make_outcomes(**{**GOOD, **change})
