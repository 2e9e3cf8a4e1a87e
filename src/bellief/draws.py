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
from jaxtyping import Array, Float, Key, UInt32

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


def _is_plain(key, shape: tuple[int, ...], dtype) -> bool:
    """Whether JAX would number the draws one by one and hash each number: its default."""
    return (
        jnp.dtype(dtype) == jnp.float32
        and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        and str(jax.random.key_impl(key)) == "threefry2x32"
        and getattr(jax.config, "jax_threefry_partitionable", False)
        and math.prod(shape) < 2**32
    )


def _between_one_and_two(key, count: int) -> Float[Array, "n"]:
    bits = by_platform(
        lambda own: _written_out(own, count), lambda own: jax.random.bits(own, (count,), jnp.uint32), key
    )
    return jax.lax.bitcast_convert_type((bits >> 9) | np.float32(1).view(np.uint32), jnp.float32)


def _written_out(key, count: int) -> UInt32[Array, "n"]:
    """Threefry with 20 rounds (Salmon and others 2011) of each draw's number; its two words together are the draw."""
    data = jax.random.key_data(key)
    words = (data[0], data[1], data[0] ^ data[1] ^ _PARITY)
    second = jax.lax.iota(jnp.uint32, count) + words[1]
    first = jnp.broadcast_to(words[0], (count,))
    for turn in range(5):
        for distance in _ROTATIONS[turn % 2]:
            first = first + second
            second = first ^ ((second << distance) | (second >> (32 - distance)))
        first = first + words[(turn + 1) % 3]
        second = second + words[(turn + 2) % 3] + np.uint32(turn + 1)
    return first ^ second
