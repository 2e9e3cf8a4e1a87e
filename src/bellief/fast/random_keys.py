"""Keys with which `jax.random` gives JAX's own numbers, bit for bit, computed in the form that is fastest on a CPU.

JAX compiles its generator (Threefry) for CPUs as a loop of small operations, which keeps programs short. Unrolled it is
one operation on whole arrays, several times faster. Keys carry their generator, so code that uses `jax.random` need not
know: the loop that creates the keys chooses.

>>> import jax
>>> from bellief.fast import random_keys
>>> key, usual = random_keys.key(5), jax.random.key(5)
>>> bool((jax.random.uniform(key, (3,)) == jax.random.uniform(usual, (3,))).all())
True
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import random as generators
from jaxtyping import Array, Int, Key, UInt32

from bellief.fast import is_on

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_USUAL = "threefry2x32"


def key(seed: int | Int[Array, ""]) -> Key[Array, ""]:
    """As `jax.random.key`; exactly that where JAX is set to use another generator, or this package is off."""
    usual = jax.random.key(seed)
    return wrap(jax.random.key_data(usual)) if _applies(usual) else usual


def wrap(data: UInt32[Array, "*batch 2"]) -> Key[Array, "*batch"]:
    """As `jax.random.wrap_key_data`, for the data of keys from `key`."""
    return jax.random.wrap_key_data(data, impl=_generator() if _applies(jax.random.key(0)) else None)


def _applies(usual: Key[Array, ""]) -> bool:
    # The bits below are those of JAX's default: one counter for each number that is drawn.
    counts = getattr(jax.config, "jax_threefry_partitionable", False)
    return is_on() and counts and str(jax.random.key_impl(usual)) == _USUAL


@functools.cache
def _generator() -> Any:
    return generators.define_prng_impl(
        key_shape=(2,),
        seed=_seed,
        split=_split,
        random_bits=_bits,
        fold_in=_fold_in,  # type: ignore[arg-type]  # traced numbers too
        name="threefry unrolled",
        tag="fry",
    )


def _usual(data: UInt32[Array, "2"]) -> Key[Array, ""]:
    return jax.random.wrap_key_data(data, impl=_USUAL)


def _seed(seed: Int[Array, ""]) -> UInt32[Array, "2"]:
    return jax.random.key_data(jax.random.key(seed, impl=_USUAL))


def _on_gpu(plain: Any, usual: Any, *arguments: Any) -> Any:
    """JAX's own generator on a GPU, where it has a kernel for it."""
    return jax.lax.platform_dependent(*arguments, cuda=usual, default=plain)


def _split(data: UInt32[Array, "2"], shape: tuple[int, ...]) -> UInt32[Array, "*shape 2"]:
    def unrolled(data):
        return _new_keys(data, jax.lax.iota(jnp.uint32, math.prod(shape))).reshape(*shape, 2)

    return _on_gpu(unrolled, lambda data: jax.random.key_data(jax.random.split(_usual(data), shape)), data)


def _fold_in(data: UInt32[Array, "2"], number: UInt32[Array, ""]) -> UInt32[Array, "2"]:
    def usual(data, number):
        return jax.random.key_data(jax.random.fold_in(_usual(data), number))

    return _on_gpu(_new_keys, usual, data, jnp.asarray(number, jnp.uint32))


def _bits(data: UInt32[Array, "2"], width: int, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)

    def usual(data):
        return jax.random.bits(_usual(data), shape, jnp.dtype(f"uint{width}"))

    def unrolled(data):
        # One long row: vector instructions work along the last axis.
        return jnp.bitwise_xor(*_threefry(data, jax.lax.iota(jnp.uint32, count))).reshape(shape)

    return usual(data) if width != 32 or count >= 2**32 else _on_gpu(unrolled, usual, data)


def _new_keys(data: UInt32[Array, "2"], numbers: UInt32[Array, "*n"]) -> UInt32[Array, "*n 2"]:
    # Without the barrier a key would be recomputed for every number that is drawn with it.
    return jax.lax.optimization_barrier(jnp.stack(_threefry(data, numbers), axis=-1))


def _threefry(
    data: UInt32[Array, "2"], numbers: UInt32[Array, "*n"]
) -> tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]]:
    """Threefry with 20 rounds (Salmon and others 2011) of each number: two words, which are a new key, or together the
    bits of a draw.
    """
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
