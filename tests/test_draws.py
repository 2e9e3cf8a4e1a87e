"""The written-out generator gives JAX's own numbers, and leaves to JAX what it does not know."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import draws


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


def test_other_generators_and_precisions_are_left_to_jax():
    key = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(draws.uniform(key, (4,)), jax.random.uniform(key, (4,)))
    half = draws.normal(jax.random.key(0), (4,), jnp.float16)
    assert half.dtype == jnp.float16


def test_the_same_keys_as_jax():
    keys = jax.random.split(jax.random.key(3), 4)
    for number in (2, 5):
        found = jax.jit(jax.vmap(lambda key, number=number: draws.split(key, number)))(keys)
        expected = jax.vmap(lambda key, number=number: jax.random.split(key, number))(keys)
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))
    for data in (0, 1, 2**31 - 1, 2**32 - 1):
        found, expected = draws.fold_in(keys[0], data), jax.random.fold_in(keys[0], data)
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))
    found = jax.jit(jax.vmap(lambda key: draws.fold_in(key, jnp.int32(9))))(keys)
    expected = jax.vmap(lambda key: jax.random.fold_in(key, jnp.int32(9)))(keys)
    np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))
    other = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(jax.random.key_data(draws.split(other)), jax.random.key_data(jax.random.split(other)))
