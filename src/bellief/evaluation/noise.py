"""Random numbers as a function of what they are for: the seed, a key for each number, and the index of the draw.

A sampled MDP is thousands of independent random numbers, and a question about a log needs only some of them. Here each
number is a hash of its key and the draw's index, so it does not matter which others are computed, in which order, in
how large batches or on how many threads: draw 17 of the row (state 3, action 1) is the same wherever it is needed.

The hash is SplitMix64 (Steele, Lea and Flood 2014): a counter in steps of the golden ratio, then a bijective mix. A
key is the mix of the numbers that name it.

>>> import numpy as np
>>> from bellief.evaluation import noise
>>> keys = noise.keys(7, noise.CELL, np.arange(3))  # seed, purpose, and what the purpose numbers
>>> draws = np.arange(2)
>>> noise.uniform(keys, draws).shape
(2, 3)
>>> bool((noise.uniform(keys[1:], draws) == noise.uniform(keys, draws)[:, 1:]).all())
True
>>> noise.gamma(np.array([1.0, 2.5, 0.1]), keys, draws).shape, noise.normal(keys, draws).shape
((2, 3), (2, 3))
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt64

# What a key is for; numbers with different purposes are independent.
CELL, REST, ATOM_SIZE, ATOM_PLACE, VARIANCE, REWARD, OUTCOME, SIMULATION, START = range(9)

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = (np.uint64(bits) for bits in (30, 27, 31, 11))

# A gamma variate of a small whole shape is a sum of exponential ones, which is cheaper than rejection up to here.
_LARGEST_SUM = 4


def _mix(numbers: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """The finaliser of SplitMix64, in place."""
    numbers ^= numbers >> _30
    numbers *= _FIRST
    numbers ^= numbers >> _27
    numbers *= _SECOND
    numbers ^= numbers >> _31
    return numbers


def keys(seed: int, purpose: int, *names: Int[np.ndarray, "*shape"] | int) -> UInt64[np.ndarray, "*shape"]:
    """A key for each combination of seed, purpose and names."""
    key = _mix(np.array([seed], np.uint64) + _STEP)
    for name in (purpose, *names):
        with np.errstate(over="ignore"):
            key = _mix(key + (np.asarray(name, np.int64).astype(np.uint64) + np.uint64(1)) * _STEP)
    return key if key.ndim and len(names) else key[0]


def derived(key: UInt64[np.ndarray, "*shape"], number: int) -> UInt64[np.ndarray, "*shape"]:
    """Further keys made of given ones."""
    return _mix(key ^ np.uint64((number * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) % 2**64))


def _bits(key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]) -> UInt64[np.ndarray, "n C"]:
    return _mix(key + (np.asarray(draws, np.int64).astype(np.uint64) * _STEP)[:, None])


def uniform(key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n C"]:
    """Uniform numbers strictly between zero and one."""
    return _unit(_bits(key, draws))


def uniform_at(key: UInt64[np.ndarray, "E"], draws: Int[np.ndarray, "E"]) -> Float[np.ndarray, "E"]:
    """Uniform numbers for a list of keys and draws."""
    return _unit(_mix(key + np.asarray(draws, np.int64).astype(np.uint64) * _STEP))


def _unit(bits: UInt64[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    bits >>= _11
    numbers = bits.astype(np.float64)
    numbers += 0.5
    numbers *= 2.0**-53
    return numbers


def normal(key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n C"]:
    """Standard normal numbers (Box and Muller 1958)."""
    return _normal(uniform(key, draws), uniform(derived(key, 1), draws))


def normal_at(key: UInt64[np.ndarray, "E"], draws: Int[np.ndarray, "E"]) -> Float[np.ndarray, "E"]:
    """Standard normal numbers for a list of keys and draws."""
    return _normal(uniform_at(key, draws), uniform_at(derived(key, 1), draws))


def _normal(radius: Float[np.ndarray, "*shape"], angle: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    angle *= 2 * np.pi
    return np.cos(angle, out=angle) * radius


def gamma(
    shape: Float[np.ndarray, "C"], key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]
) -> Float[np.ndarray, "n C"]:
    """Gamma variates of scale one; zero where a tiny shape gives less than the smallest number."""
    shape = np.asarray(shape, np.float64)
    numbers = np.empty((len(draws), len(shape)))
    left = np.ones(len(shape), bool)
    for whole in range(1, _LARGEST_SUM + 1):
        these = np.flatnonzero(shape == whole)
        if len(these):
            numbers[:, these] = _erlang(whole, key[these], draws)
            left[these] = False
    these = np.flatnonzero(left)
    if len(these):
        numbers[:, these] = _any_gamma(shape[these], key[these], draws)
    return numbers


def _erlang(whole: int, key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n C"]:
    product = uniform(key, draws)
    for number in range(1, whole):
        product *= uniform(derived(key, number), draws)
    np.log(product, out=product)
    return np.negative(product, out=product)


def _any_gamma(
    shape: Float[np.ndarray, "C"], key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]
) -> Float[np.ndarray, "n C"]:
    """Shapes below one are raised by one first: Gamma(a) = Gamma(a + 1) U^(1 / a)."""
    small = shape < 1
    numbers = _marsaglia_tsang(shape + small, key, draws)
    if small.any():
        factor = np.log(uniform(derived(key[small], 1), draws)) / shape[small]
        with np.errstate(under="ignore"):
            numbers[:, small] *= np.exp(factor)
    return numbers


def _marsaglia_tsang(
    shape: Float[np.ndarray, "C"], key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]
) -> Float[np.ndarray, "n C"]:
    """Marsaglia and Tsang (2000) for shapes of one and more; what is rejected is drawn again from a further key."""
    centre = shape - 1 / 3
    width = 1 / np.sqrt(9 * centre)
    base = derived(key, 2)
    cube, accepted = _attempt(centre, width, _unit(_bits(base, draws)), _unit(_bits(derived(base, 3), draws)),
                              _unit(_bits(derived(base, 4), draws)))  # fmt: skip
    numbers = centre * cube
    again = np.flatnonzero(~accepted.ravel())
    steps = np.asarray(draws, np.int64).astype(np.uint64) * _STEP
    attempt = 0
    while len(again):
        attempt += 1
        row, column = np.divmod(again, len(shape))

        def fresh(number: int, column: Any = column, row: Any = row) -> Float[np.ndarray, "r"]:
            return _unit(_mix(derived(base[column], number) + steps[row]))

        cube, accepted = _attempt(centre[column], width[column], *(fresh(3 * attempt + 2 + part) for part in range(3)))
        numbers.flat[again[accepted]] = centre[column[accepted]] * cube[accepted]
        again = again[~accepted]
    return numbers


def _attempt(centre: Any, width: Any, radius: Any, angle: Any, chance: Any) -> tuple[np.ndarray, np.ndarray]:
    """One proposal for each number, and whether it is accepted."""
    normal = _normal(radius, angle)
    cube = 1 + width * normal
    positive = cube > 0
    cube **= 3
    normal *= normal
    accepted = chance < 1 - 0.0331 * normal * normal
    accepted &= positive
    unsure = np.flatnonzero((~accepted & positive).ravel())
    if len(unsure):
        some, square, spot = cube.flat[unsure], normal.flat[unsure], np.broadcast_to(centre, cube.shape).flat[unsure]
        limit = square / 2 + spot * (1 - some + np.log(some))
        accepted.flat[unsure] = np.log(chance.flat[unsure]) < limit
    return cube, accepted
