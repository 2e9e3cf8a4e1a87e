"""Learning where episodes end."""

import jax
import jax.numpy as jnp
import numpy as np

from bellief.beliefs import ending

BOUNDS = jnp.array([[-1.0, -5.0], [1.0, 5.0]])


def data(count, seed=0):
    generator = np.random.default_rng(seed)
    states = generator.uniform([-1, -5], [1, 5], (count, 2)).astype(np.float32)
    return states, np.abs(states[:, 0]) > 0.6


def test_both_sides_are_found():
    states, ended = data(400)
    ends = ending.init(64, 2)
    for state in states[ended]:
        ends = ending.update(ends, state, jnp.array(True))
    others = jnp.asarray(states[~ended])
    boundary = ending.fit(ends, others, jnp.array(len(others)), BOUNDS)
    fresh, truth = data(500, seed=1)
    chance = np.asarray(jax.jit(jax.vmap(lambda state: ending.probability(boundary, state)))(fresh))
    assert ((chance > 0.5) == truth).mean() > 0.95


def test_without_an_end_there_is_none():
    states, _ = data(50)
    boundary = ending.fit(ending.init(8, 2), jnp.asarray(states), jnp.array(50), BOUNDS)
    assert float(ending.probability(boundary, jnp.array([0.9, 0.0]))) < 1e-6


def test_what_is_no_end_is_not_kept():
    ends = ending.update(ending.init(4, 2), jnp.array([1.0, 2.0]), jnp.array(False))
    assert int(ends.count) == 0
    np.testing.assert_array_equal(ends.states, np.zeros((4, 2)))


def test_the_ring_keeps_the_last():
    ends = ending.init(2, 1)
    for value in (1.0, 2.0, 3.0):
        ends = ending.update(ends, jnp.array([value]), jnp.array(True))
    assert sorted(np.asarray(ends.states).ravel()) == [2.0, 3.0]
