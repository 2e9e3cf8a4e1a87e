"""NChain and DoubleLoop against tables written out by hand and published values."""

import numpy as np
import pytest

from bellief import UserError
from bellief.envs.double_loop import double_loop
from bellief.envs.nchain import nchain

BACK, FORWARD = 0, 1

# State, action: what happens as chosen, what happens on a slip, each as (next state, reward).
NCHAIN = {
    (0, BACK): ((0, 2), (1, 0)),
    (1, BACK): ((0, 2), (2, 0)),
    (2, BACK): ((0, 2), (3, 0)),
    (3, BACK): ((0, 2), (4, 0)),
    (4, BACK): ((0, 2), (4, 10)),
    (0, FORWARD): ((1, 0), (0, 2)),
    (1, FORWARD): ((2, 0), (0, 2)),
    (2, FORWARD): ((3, 0), (0, 2)),
    (3, FORWARD): ((4, 0), (0, 2)),
    (4, FORWARD): ((4, 10), (0, 2)),
}

# State: next state by action 0, by action 1, reward.
DOUBLE_LOOP = {
    0: (1, 5, 0),
    1: (2, 2, 0),
    2: (3, 3, 0),
    3: (4, 4, 0),
    4: (0, 0, 1),
    5: (0, 6, 0),
    6: (0, 7, 0),
    7: (0, 8, 0),
    8: (0, 0, 2),
}


def test_nchain_table():
    outcomes = nchain().outcomes
    assert outcomes.probability.shape == (5, 2, 2)
    for (state, action), expected in NCHAIN.items():
        np.testing.assert_allclose(outcomes.probability[state, action], [0.8, 0.2])
        for outcome, (next_state, reward) in enumerate(expected):
            assert outcomes.next_state[state, action, outcome] == next_state
            assert outcomes.reward[state, action, outcome] == reward
    assert outcomes.start.tolist() == [1, 0, 0, 0, 0]
    assert not outcomes.terminated.any()


def test_nchain_parameters_reach_the_table():
    outcomes = nchain(size=3, slip=0.3, small_reward=-1.0, large_reward=7.0).outcomes
    np.testing.assert_allclose(outcomes.probability, np.broadcast_to([0.7, 0.3], (3, 2, 2)))
    assert outcomes.next_state[:, FORWARD, 0].tolist() == [1, 2, 2]
    assert outcomes.reward[:, FORWARD, 0].tolist() == [0, 0, 7]
    assert outcomes.reward[:, BACK, 0].tolist() == [-1, -1, -1]


def test_nchain_optimal_values(exact):
    mdp = nchain().mdp(discount=0.99)
    gain, actions = exact.optimal_gain(mdp)
    assert gain == pytest.approx(3.6768, abs=5e-5)
    assert actions.tolist() == [FORWARD] * 5
    np.testing.assert_allclose(exact.optimal_values(mdp), [354.8, 358.7, 363.8, 370.1, 378.1], atol=0.05)


@pytest.mark.parametrize(
    ("chance_of_back", "values"),
    [
        (0.8, [139.2, 139.3, 139.6, 140.7, 143.9]),
        (0.2, [203.7, 205.7, 208.8, 213.4, 220.2]),
    ],
)
def test_nchain_values_of_fixed_policies(exact, chance_of_back, values):
    policy = np.tile([chance_of_back, 1 - chance_of_back], (5, 1))
    np.testing.assert_allclose(exact.discounted_values(nchain().mdp(0.99), policy), values, atol=0.05)


def test_nchain_always_back(exact):
    policy = np.tile([1.0, 0.0], (5, 1))
    assert exact.average_of(nchain().mdp(), policy) == pytest.approx(1.6032, abs=5e-5)


def test_nchain_always_forward_for_200_steps():
    mdp = nchain().mdp()
    chance, total = mdp.start, 0.0
    for _ in range(200):
        total += chance @ mdp.reward[:, FORWARD]
        chance = chance @ mdp.transition[:, FORWARD]
    assert total == pytest.approx(722.25, abs=0.005)


def test_double_loop_table():
    outcomes = double_loop().outcomes
    assert outcomes.probability.shape == (9, 2, 1)
    assert (outcomes.probability == 1).all()
    for state, (next_0, next_1, reward) in DOUBLE_LOOP.items():
        assert outcomes.next_state[state, :, 0].tolist() == [next_0, next_1]
        assert outcomes.reward[state, :, 0].tolist() == [reward, reward]
    assert outcomes.start[0] == 1
    assert not outcomes.terminated.any()


def test_double_loop_values(exact):
    mdp = double_loop().mdp(discount=0.99)
    assert exact.optimal_gain(mdp)[0] == pytest.approx(0.4, abs=1e-9)
    assert exact.optimal_values(mdp)[0] == pytest.approx(39.20, abs=0.005)
    assert exact.average_of(mdp, np.tile([1.0, 0.0], (9, 1))) == pytest.approx(0.2, abs=1e-9)


def test_double_loop_of_other_length(exact):
    environment = double_loop(length=3, left_reward=6.0, right_reward=3.0)
    assert environment.outcomes.next_state[..., 0].tolist() == [[1, 3], [2, 2], [0, 0], [0, 4], [0, 0]]
    assert exact.optimal_gain(environment.mdp())[0] == pytest.approx(2.0)


def test_texts():
    chain, loops = nchain(), double_loop()
    assert chain.render_text(2) == " 0  -  1  - [2] -  3  -  4 "
    assert chain.describe(4) == "position 4 (far end)"
    left, right = loops.render_text(6).splitlines()
    assert left == "left   0  >  5  > [6] >  7  >  8  >  0 "
    assert right == "right  0  >  1  >  2  >  3  >  4  >  0 "
    assert loops.render_text(0).count("[0]") == 4
    assert [loops.describe(state) for state in (0, 4, 5)] == [
        "crossing (start)",
        "right loop, step 4",
        "left loop, step 1",
    ]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nchain(size=1), "'size' is 1: .* at least 2"),
        (lambda: nchain(size=2.5), "'size' is 2.5"),
        (lambda: nchain(slip=1.2), "'slip' is 1.2: .* between 0 and 1"),
        (lambda: nchain(slip=-0.1), "'slip' is -0.1"),
        (lambda: nchain(slip=float("nan")), "'slip' is nan"),
        (lambda: nchain(slip="0.2"), "'slip' is '0.2'"),
        (lambda: nchain(large_reward=float("inf")), "'large_reward' is inf: .* finite"),
        (lambda: double_loop(length=1), "'length' is 1"),
        (lambda: double_loop(left_reward=None), "'left_reward' is None"),
    ],
)
def test_wrong_parameters(build, message):
    with pytest.raises(UserError, match=message):
        build()
