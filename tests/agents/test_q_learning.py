"""Q-learning against a loop over dictionaries, and its share of random actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError
from bellief.agents import q_learning
from bellief.types import Spaces, Transition

STATES, ACTIONS = 3, 4
SPACES = Spaces(STATES, ACTIONS, True, None, None)
VALUES = np.array([[1.0, 3.0, 2.0, 0.0], [5.0, 5.0, 1.0, 5.0], [0.0, 0.0, 0.0, 0.0]])


def by_dictionaries(transitions, discount, decay, smallest):
    q, visits = {}, {}
    for state, action, reward, following, ended in zip(*map(np.asarray, transitions), strict=True):
        pair = (int(state), int(action))
        visits[pair] = visits.get(pair, 0) + 1
        size = max(1 / visits[pair] ** decay, smallest)
        best = 0.0 if ended else max(q.get((int(following), other), 0.0) for other in range(ACTIONS))
        q[pair] = (1 - size) * q.get(pair, 0.0) + size * (float(reward) + discount * best)
    table = np.zeros((STATES, ACTIONS))
    for pair, value in q.items():
        table[pair] = value
    return table, visits


@pytest.mark.parametrize("settings", [{}, {"discount": 0.7, "decay": 1.0, "smallest_step": 0.2}, {"decay": 0.0}])
def test_updates_against_dictionaries(settings):
    generator = np.random.default_rng(0)
    count = 300
    transitions = Transition(
        jnp.asarray(generator.integers(0, STATES, count)),
        jnp.asarray(generator.integers(0, ACTIONS, count)),
        jnp.asarray(generator.normal(size=count), jnp.float32),
        jnp.asarray(generator.integers(0, STATES, count)),
        jnp.asarray(generator.random(count) < 0.2),
    )
    config = q_learning.Config(**settings)
    first = q_learning.init(jax.random.key(0), config, SPACES)
    last, _ = jax.jit(
        lambda state: jax.lax.scan(lambda s, t: (q_learning.update(config, s, t), None), state, transitions)
    )(first)
    expected, visits = by_dictionaries(transitions, config.discount, config.decay, config.smallest_step)
    np.testing.assert_allclose(last.q_values, expected, rtol=1e-4, atol=1e-5)
    for pair, number in visits.items():
        assert int(last.visits[pair]) == number
    assert max(visits.values()) > 20


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_actions_are_drawn_from_the_policy(key, check, epsilon):
    config = q_learning.Config(epsilon=epsilon)
    state = q_learning.State(jnp.asarray(VALUES, jnp.float32), jnp.zeros((STATES, ACTIONS), jnp.int32))
    policy = np.asarray(q_learning.policy(config, state))
    greedy = np.array([[0, 1, 0, 0], [1 / 3, 1 / 3, 0, 1 / 3], [0.25] * 4])
    np.testing.assert_allclose(policy, (1 - epsilon) * greedy + epsilon / 4, atol=1e-6)
    act = jax.jit(jax.vmap(lambda one, seen: q_learning.act(one, config, state, seen), in_axes=(0, None)))
    for observation in range(STATES):
        actions = act(jax.random.split(jax.random.fold_in(key, observation), 5000), jnp.asarray(observation))
        check.frequencies(np.bincount(actions, minlength=4), (1 - epsilon) * greedy[observation] + epsilon / 4)


def test_a_plan_changes_nothing():
    state = q_learning.State(jnp.asarray(VALUES, jnp.float32), jnp.ones((STATES, ACTIONS), jnp.int32))
    after, info = q_learning.plan(jax.random.key(0), q_learning.Config(), SPACES, state)
    assert after is state
    np.testing.assert_array_equal(info.value_mean, [3.0, 5.0, 0.0])


@pytest.mark.parametrize(
    "choices",
    [
        {"discount": 0.0},
        {"discount": 1.1},
        {"epsilon": -0.1},
        {"epsilon": 1.1},
        {"decay": 1.1},
        {"decay": -0.1},
        {"smallest_step": 0.0},
        {"smallest_step": 1.1},
    ],
)
def test_wrong_settings(choices):
    with pytest.raises(UserError, match=next(iter(choices))):
        q_learning.Config(**choices)
