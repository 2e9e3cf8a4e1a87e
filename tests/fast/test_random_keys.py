"""The unrolled generator gives JAX's own numbers, and other generators are left to JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.agents.saved_agent import from_numpy, to_numpy
from bellief.fast import random_keys
from bellief.testing.programs import read_program

DRAWS = {
    "uniform": lambda key: jax.random.uniform(key, (4, 3, 2)),
    "one uniform": lambda key: jax.random.uniform(key, ()),
    "half precision": lambda key: jax.random.uniform(key, (7,), jnp.float16),
    "normal": lambda key: jax.random.normal(key, (9,)),
    "integers": lambda key: jax.random.randint(key, (9,), 0, 1000),
    "bytes": lambda key: jax.random.bits(key, (9,), jnp.uint8),
    "split": lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 2**32 - 1)),
    "many keys": lambda key: jax.vmap(lambda one: jax.random.uniform(one, (5,)))(jax.random.split(key, 3)),
    "many numbers": lambda key: jax.random.key_data(jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(4))),
}


def pair():
    usual = jax.random.fold_in(jax.random.key(5), 7)
    return jax.random.fold_in(random_keys.key(5), 7), usual


@pytest.mark.parametrize("jit", [lambda function: function, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("name", DRAWS)
def test_the_same_numbers_as_jax(name, jit):
    ours, usual = pair()
    assert ours.dtype != usual.dtype, "the keys must differ in their generator, or the test shows nothing"
    np.testing.assert_array_equal(jit(DRAWS[name])(ours), jit(DRAWS[name])(usual))


@pytest.mark.usefixtures("double")
def test_the_same_doubles_as_jax():
    ours, usual = pair()
    np.testing.assert_array_equal(jax.random.uniform(ours, (5,), float), jax.random.uniform(usual, (5,), float))


def test_another_generator_is_left_to_jax():
    with jax.default_prng_impl("rbg"):
        assert random_keys.key(3).dtype == jax.random.key(3).dtype


def test_all_of_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("BELLIEF_FAST", "0")
    assert random_keys.key(3).dtype == jax.random.key(3).dtype


def test_keys_can_be_saved():
    ours, _ = pair()
    again = from_numpy(to_numpy(ours), ours, "damaged")
    assert again.dtype == ours.dtype
    np.testing.assert_array_equal(jax.random.key_data(again), jax.random.key_data(ours))


def test_a_program_that_draws_is_seen_to():
    for name, draw in DRAWS.items():
        assert read_program(draw, random_keys.key(0)).draws, name
    assert not read_program(jax.random.key_data, random_keys.key(0)).draws
