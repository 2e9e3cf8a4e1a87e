"""Checks of a log: p values that are uniform where nothing is wrong, and small where something is."""

import numpy as np
import pytest
from scipy import stats

from bellief.decisions import check
from bellief.errors import UserError
from bellief.logs import Transitions

ROWS = np.random.default_rng(0).dirichlet(np.ones(4), (4, 2))


def make_log(seed, steps=400, memory=0.0, drift=0.0, tails=None, keep=1.0):
    """A log of four states and two actions; with `memory` the next state repeats the one before the present."""
    rng = np.random.default_rng(seed)
    state, before, columns = 0, 0, []
    for step in range(steps):
        action = int(rng.integers(2))
        row = ROWS[state, action]
        if drift and step >= steps // 2:
            row = (1 - drift) * row + drift * row[::-1]
        following = before if rng.random() < memory else int(rng.choice(4, p=row))
        noise = rng.standard_t(tails) if tails else rng.normal()
        columns.append((state, action, state + 0.3 * noise, following))
        state, before = following, state
    return Transitions.from_arrays(*map(np.array, zip(*columns, strict=True)), states=4, actions=2)


def test_p_values_are_uniform_where_nothing_is_wrong():
    found = [check(make_log(seed, steps=200), permutations=99, seed=seed) for seed in range(120)]
    for name in ("markov", "drift", "reward_shape"):
        ranks = np.array([getattr(one, name) for one in found]) - np.random.default_rng(1).random(120) / 100
        assert stats.kstest(ranks, "uniform").pvalue > 1e-4, name
    assert np.mean([len(one.outliers) > 0 for one in found]) < 0.06


@pytest.mark.parametrize(
    ("wrong", "name", "word"),
    [
        ({"memory": 0.25}, "markov", "state before"),
        ({"drift": 0.5}, "drift", "second half"),
        ({"tails": 2.2}, "reward_shape", "heavier tails"),
    ],
)
def test_power(wrong, name, word):
    found = [check(make_log(100 + seed, **wrong), permutations=199, seed=seed) for seed in range(10)]
    assert np.mean([getattr(one, name) < 0.01 for one in found]) >= 0.8
    assert any(word in " ".join(one.warnings) for one in found)


def test_a_stray_reward_is_named():
    log = make_log(3)
    reward = log.reward.copy()
    reward[77] += 30.0
    data = Transitions.from_arrays(log.state, log.action, reward, log.next_state, states=4, actions=2)
    found = check(data, permutations=99)
    assert found.outliers[0]["row"] == 78
    assert found.outliers[0]["p"] < 1e-9
    assert "row 78" in " ".join(found.warnings)


def test_a_rare_prize_is_not_a_stray_reward():
    """A reward that recurs belongs to the environment, however rare it is."""
    zeros = np.zeros(200, int)
    reward = np.where(np.arange(200) % 50 == 0, 10.0, 0.0)
    assert check(Transitions.from_arrays(zeros, zeros, reward, zeros), permutations=99).outliers == []


def test_without_enough_data():
    found = check(Transitions.from_arrays([0, 1], [0, 0], [1.0, 2.0], [1, 0]), permutations=99)
    assert (found.markov, found.drift, found.reward_shape) == (None, None, None)
    assert "Too few steps" in found.warnings[0]
    with pytest.raises(UserError, match="at least two"):
        check(Transitions.from_arrays([0], [0], [1.0], [0]))


def test_episodes_are_not_joined():
    """The step before the first of an episode tells nothing about it, whatever stands there."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 2, 300)
    # Two-step episodes: 0 or 1, then 2, then back to what the next episode happens to begin with.
    state = np.stack([first, np.full(300, 2)], 1).ravel()
    following = np.stack([np.full(300, 2), np.full(300, 3)], 1).ravel()
    episode = np.repeat(np.arange(300), 2)
    data = Transitions.from_arrays(state, np.zeros(600, int), np.zeros(600), following, None, episode)
    assert check(data, permutations=99).compared == 0


def test_states_that_are_vectors_are_refused():
    states = np.arange(6.0).reshape(3, 2)
    log = Transitions.from_arrays(states, [0, 1, 0], [0.0, 1.0, 2.0], states + 1)
    with pytest.raises(UserError, match="the states of this log are vectors"):
        check(log)
