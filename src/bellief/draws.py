"""JAX's own random numbers, bit for bit, in the form that a processor computes fastest.

JAX's generator (Threefry) is compiled for processors as a loop of small operations, which keeps programs short; written
out it is one operation on whole arrays, several times faster. Elsewhere, and for other generators and precisions, these
functions are JAX's. Ask for one long row where the last axis of what is wanted is short, and reshape it as late as
possible: vector instructions work along the last axis.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from bellief.compiler import by_platform

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def uniform(key: Key[Array, ""], shape: tuple[int, ...], dtype: jnp.dtype = jnp.float32) -> Float[Array, "*shape"]:
    """As `jax.random.uniform`, between zero and one."""
    if not _is_plain(key, shape, dtype):
        return jax.random.uniform(key, shape, dtype)
    return (_between_one_and_two(key, math.prod(shape)) - 1).reshape(shape)


def normal(key: Key[Array, ""], shape: tuple[int, ...], dtype: jnp.dtype = jnp.float32) -> Float[Array, "*shape"]:
    """As `jax.random.normal`."""
    if not _is_plain(key, shape, dtype):
        return jax.random.normal(key, shape, dtype)
    low = np.nextafter(np.float32(-1), np.float32(0))
    spread = jnp.maximum(low, (_between_one_and_two(key, math.prod(shape)) - 1) * (np.float32(1) - low) + low)
    return (np.float32(np.sqrt(2)) * jax.lax.erf_inv(spread)).reshape(shape)


def split(key: Key[Array, ""], count: int = 2) -> Key[Array, "count"]:
    """As `jax.random.split`."""
    if not _counts(key):
        return jax.random.split(key, count)
    data = by_platform(
        lambda own: _new_keys(own, jax.lax.iota(jnp.uint32, count)),
        lambda own: jax.random.key_data(jax.random.split(own, count)),
        key,
    )
    return jax.random.wrap_key_data(data)


def fold_in(key: Key[Array, ""], number: Int[Array, ""] | int) -> Key[Array, ""]:
    """As `jax.random.fold_in`."""
    if not _counts(key):
        return jax.random.fold_in(key, number)
    data = by_platform(
        _new_keys,
        lambda own, one: jax.random.key_data(jax.random.fold_in(own, one)),
        key,
        jnp.asarray(number, jnp.uint32),
    )
    return jax.random.wrap_key_data(data)


def _counts(key) -> bool:
    """Whether JAX would number draws and keys one by one and hash each number: its default."""
    return (
        jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        and str(jax.random.key_impl(key)) == "threefry2x32"
        and getattr(jax.config, "jax_threefry_partitionable", False)
    )


def _is_plain(key, shape: tuple[int, ...], dtype) -> bool:
    return jnp.dtype(dtype) == jnp.float32 and _counts(key) and math.prod(shape) < 2**32


def _new_keys(key, numbers: UInt32[Array, "*n"]) -> UInt32[Array, "*n 2"]:
    # Without the barrier a key would be computed anew for every number that is drawn with it.
    return jax.lax.optimization_barrier(jnp.stack(_written_out(key, numbers), axis=-1))


def _between_one_and_two(key, count: int) -> Float[Array, "n"]:
    bits = by_platform(
        lambda own: jnp.bitwise_xor(*_written_out(own, jax.lax.iota(jnp.uint32, count))),
        lambda own: jax.random.bits(own, (count,), jnp.uint32),
        key,
    )
    return jax.lax.bitcast_convert_type((bits >> 9) | np.float32(1).view(np.uint32), jnp.float32)


def _written_out(key, numbers: UInt32[Array, "*n"]) -> tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]]:
    """Threefry with 20 rounds (Salmon and others 2011) of each number: two words, which are a new key, or together a
    draw.
    """
    data = jax.random.key_data(key)
    words = (data[0], data[1], data[0] ^ data[1] ^ _PARITY)
    second = numbers + words[1]
    first = jnp.broadcast_to(words[0], numbers.shape)
    for turn in range(5):
        for distance in _ROTATIONS[turn % 2]:
            first = first + second
            second = first ^ ((second << distance) | (second >> (32 - distance)))
        first = first + words[(turn + 1) % 3]
        second = second + words[(turn + 2) % 3] + np.uint32(turn + 1)
    return first, second
