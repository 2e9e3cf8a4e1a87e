"""The written-out generator gives JAX's own numbers, and leaves to JAX what it does not know."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import draws
from bellief.testing.programs import read_program


@pytest.mark.parametrize("shape", [(), (3,), (4, 3, 2)])
@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_the_same_numbers_as_jax(name, shape):
    key = jax.random.fold_in(jax.random.key(5), 7)
    found = jax.jit(lambda key: getattr(draws, name)(key, shape))(key)
    expected = jax.jit(lambda key: getattr(jax.random, name)(key, shape))(key)
    assert found.shape == shape
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_many_keys_at_once():
    keys = jax.random.split(jax.random.key(1), 3)
    found = jax.vmap(lambda key: draws.uniform(key, (5,)))(keys)
    np.testing.assert_array_equal(found, jax.vmap(lambda key: jax.random.uniform(key, (5,)))(keys))


@pytest.mark.parametrize("jit", [lambda function: function, jax.jit])
def test_the_same_keys_as_jax(jit):
    key = jax.random.fold_in(jax.random.key(5), 7)
    pairs = [
        (draws.split(key, 3), jax.random.split(key, 3)),
        (jit(lambda one: draws.split(one))(key), jax.random.split(key)),
        (jit(lambda one: draws.fold_in(one, 2**32 - 1))(key), jax.random.fold_in(key, 2**32 - 1)),
        (jit(draws.fold_in)(key, jnp.int32(12)), jax.random.fold_in(key, 12)),
        (jax.vmap(draws.split)(jax.random.split(key, 4)), jax.vmap(jax.random.split)(jax.random.split(key, 4))),
        (jax.vmap(draws.fold_in, (None, 0))(key, jnp.arange(4)), jax.random.split(key, 4)),
    ]
    for found, expected in pairs:
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))


def test_other_generators_and_precisions_are_left_to_jax():
    key = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(draws.uniform(key, (4,)), jax.random.uniform(key, (4,)))
    for name in ("split", "fold_in"):
        found, expected = (jax.random.key_data(getattr(module, name)(key, 3)) for module in (draws, jax.random))
        np.testing.assert_array_equal(found, expected)
    half = draws.normal(jax.random.key(0), (4,), jnp.float16)
    assert half.dtype == jnp.float16


def test_a_program_that_draws_is_seen_to():
    for draw in (lambda key: draws.uniform(key, (3,)), lambda key: draws.normal(key, (3,)), draws.split):
        assert read_program(draw, jax.random.key(0)).draws
    assert not read_program(jax.random.key_data, jax.random.key(0)).draws
