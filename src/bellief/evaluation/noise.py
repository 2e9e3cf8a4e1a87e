"""Random numbers as a function of what they are for: the seed, a key for each number, and the index of the draw.

A sampled MDP is thousands of independent random numbers, and a question about a log needs only some of them. Here each
number is a hash of its key and the draw's index, so it does not matter which others are computed, in which order, in
how large batches or on how many threads: draw 17 of the row (state 3, action 1) is the same wherever it is needed.

The hash is SplitMix64 (Steele, Lea and Flood 2014): a counter in steps of the golden ratio, then a bijective mix. A
key is the mix of the numbers that name it, and the place where the counter starts; the counter is the index of the
draw and, where a draw takes several numbers, which of them it is.

Work is done in blocks, in memory that is used again: a fresh array of a million numbers costs more than computing
them.

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

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

# What a key is for; numbers with different purposes are independent.
CELL, REST, ATOM_SIZE, ATOM_PLACE, VARIANCE, REWARD, OUTCOME, SIMULATION, START = range(9)

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _12 = (np.uint64(bits) for bits in (30, 27, 31, 12))

# The counter of a draw's further numbers; no log has so many draws.
_FURTHER = 40

# The bits of 1.0: with 52 random bits below them, a number between one and two.
_ONE = np.uint64(0x3FF0000000000000)

# Numbers that are computed at a time. Between two operations on a block a thread needs Python's lock: with blocks of
# 2^15 numbers two threads waited for one another so often that they were no faster than one (5.9 and 5.8 ms a draw of
# 69,000 gamma variates); with 2^17 they take 3.4 ms, and one thread 4.6 ms.
BLOCK = 1 << 17

# A gamma variate of a small whole shape is a sum of exponential ones, which is cheaper than rejection up to here.
_LARGEST_SUM = 4

# sin(pi t / 2) = t times a polynomial in t^2, within 3e-16 between -1 and 1.
_SINE = [(-1) ** k * (math.pi / 2) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(10)]


def _mix(numbers: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """The finaliser of SplitMix64, in place for contiguous numbers."""
    flat = numbers.reshape(-1)
    shifted = np.empty(min(len(flat), BLOCK), np.uint64)
    for begin in range(0, len(flat), BLOCK):
        some = flat[begin : begin + BLOCK]
        _mix_block(some, shifted[: len(some)])
    return flat.reshape(numbers.shape)


def _mix_block(some: UInt64[np.ndarray, "B"], shifted: UInt64[np.ndarray, "B"]) -> None:
    np.right_shift(some, _30, out=shifted)
    some ^= shifted
    some *= _FIRST
    np.right_shift(some, _27, out=shifted)
    some ^= shifted
    some *= _SECOND
    np.right_shift(some, _31, out=shifted)
    some ^= shifted


def keys(seed: int, purpose: int, *names: Int[np.ndarray, "*shape"] | int) -> UInt64[np.ndarray, "*shape"]:
    """A key for each combination of seed, purpose and names."""
    key = _mix(np.array([seed], np.uint64) + _STEP)
    for name in (purpose, *names):
        with np.errstate(over="ignore"):
            key = _mix(key + (np.asarray(name, np.int64).astype(np.uint64) + np.uint64(1)) * _STEP)
    return key if key.ndim and len(names) else key[0]


def _counter(draws: Int[np.ndarray, "n"], number: int = 0) -> UInt64[np.ndarray, "n"]:
    """How far each draw's number lies behind the key."""
    return np.asarray(draws, np.int64).astype(np.uint64) * _STEP + _further(number)


def _further(number: int) -> np.uint64:
    return np.uint64((number << _FURTHER) * int(_STEP) % 2**64)


class _Block:
    """A block of columns and draws, and memory for numbers about them.

    `floats[k]` and `bits[k]` are the same memory.
    """

    def __init__(self, key: UInt64[np.ndarray, "c"], counter: UInt64[np.ndarray, "d"], memory: np.ndarray):
        shape = len(counter), len(key)
        self.key, self.counter = key, counter
        self.floats = [part[: shape[0] * shape[1]].reshape(shape) for part in memory]
        self.bits = [part.view(np.uint64) for part in self.floats]

    def uniform(self, slot: int, number: int) -> Float[np.ndarray, "d c"]:
        """Uniform numbers in a slot of the memory; the last slot is overwritten."""
        bits = self.bits[slot]
        np.add(self.key, (self.counter + _further(number))[:, None], out=bits)
        _mix_block(bits, self.bits[-1])
        return _unit(bits)

    def normal(self, slot: int, number: int) -> Float[np.ndarray, "d c"]:
        """Standard normal numbers in a slot of the memory, from two; the last two slots are overwritten."""
        angle = self.uniform(len(self.bits) - 2, number + 1)
        return _normal(self.uniform(slot, number), angle, self.floats[-1])


def _memory(numbers: int, slots: int) -> np.ndarray:
    return np.empty((slots, min(numbers, BLOCK)))


def _blocks(
    key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"], memory: np.ndarray
) -> Iterator[tuple[slice, slice, _Block]]:
    """All columns and draws, a block at a time, in the same memory."""
    counter = _counter(draws)
    width = max(1, min(len(key), BLOCK))
    height = BLOCK // width
    for top in range(0, len(draws), height):
        for left in range(0, len(key), width):
            rows, columns = slice(top, top + height), slice(left, left + width)
            yield rows, columns, _Block(key[columns], counter[rows], memory)


def _unit(bits: UInt64[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Uniform numbers strictly between zero and one, in place."""
    bits >>= _12
    bits |= _ONE
    numbers = bits.view(np.float64)
    numbers -= 1 - 2.0**-53
    return numbers


def _normal(
    radius: Float[np.ndarray, "*shape"], angle: Float[np.ndarray, "*shape"], square: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """Box and Muller (1958) in the place of `radius`; an angle from -pi/2 to pi/2 gives the same law."""
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    angle *= 2
    angle -= 1
    radius *= angle
    angle *= angle
    np.multiply(angle, _SINE[-1], out=square)
    for coefficient in _SINE[-2:0:-1]:
        square += coefficient
        square *= angle
    square += _SINE[0]
    radius *= square
    return radius


def uniform(key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"], number: int = 0) -> Float[np.ndarray, "n C"]:
    """Uniform numbers strictly between zero and one."""
    found = np.empty((len(draws), len(key)))
    for rows, columns, block in _blocks(key, draws, _memory(found.size, 2)):
        found[rows, columns] = block.uniform(0, number)
    return found


def uniform_at(key: UInt64[np.ndarray, "E"], draws: Int[np.ndarray, "E"], number: int = 0) -> Float[np.ndarray, "E"]:
    """Uniform numbers for a list of keys and draws."""
    return _unit(_mix(key + _counter(draws, number)))


def normal(key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n C"]:
    """Standard normal numbers."""
    found = np.empty((len(draws), len(key)))
    for rows, columns, block in _blocks(key, draws, _memory(found.size, 3)):
        found[rows, columns] = block.normal(0, 0)
    return found


def normal_at(key: UInt64[np.ndarray, "E"], draws: Int[np.ndarray, "E"], number: int = 0) -> Float[np.ndarray, "E"]:
    """Standard normal numbers for a list of keys and draws."""
    radius = uniform_at(key, draws, number)
    return _normal(radius, uniform_at(key, draws, number + 1), np.empty_like(radius))


def gamma(
    shape: Float[np.ndarray, "C"], key: UInt64[np.ndarray, "C"], draws: Int[np.ndarray, "n"]
) -> Float[np.ndarray, "n C"]:
    """Gamma variates of scale one; zero where a tiny shape gives less than the smallest number."""
    shape = np.asarray(shape, np.float64)
    found = np.empty((len(draws), len(shape)))
    memory = _memory(found.size, 5)
    for left in range(0, len(shape), BLOCK):
        part = slice(left, left + BLOCK)
        kind = _kinds(shape[part])
        for number in np.flatnonzero(np.bincount(kind)):
            these = left + np.flatnonzero(kind == number)
            for rows, columns, block in _blocks(key[these], draws, memory):
                some = these[columns]
                found[rows, some] = _KINDS[number](block, shape[some])
    return found


def _kinds(shape: Float[np.ndarray, "C"]) -> Int[np.ndarray, "C"]:
    """Which of `_KINDS` draws each shape."""
    kind = np.where(shape < 1, 0, _LARGEST_SUM + 1)
    whole = (shape <= _LARGEST_SUM) & (shape == np.floor(shape))
    kind[whole] = shape[whole]
    return kind


def _exponentials(block: _Block, shape: Float[np.ndarray, "c"]) -> Float[np.ndarray, "d c"]:
    """All shapes are the same whole number: a sum of so many exponential variates."""
    product = block.uniform(0, 0)
    for number in range(1, int(shape[0])):
        product *= block.uniform(1, number)
    np.log(product, out=product)
    return np.negative(product, out=product)


def _below_one(block: _Block, shape: Float[np.ndarray, "c"]) -> Float[np.ndarray, "d c"]:
    """Gamma(a) = Gamma(a + 1) U^(1 / a)."""
    numbers = _marsaglia_tsang(block, shape + 1)
    factor = block.uniform(0, 0)
    np.log(factor, out=factor)
    factor /= shape
    with np.errstate(under="ignore"):
        np.exp(factor, out=factor)
        numbers *= factor
    return numbers


def _marsaglia_tsang(block: _Block, shape: Float[np.ndarray, "c"]) -> Float[np.ndarray, "d c"]:
    """Marsaglia and Tsang (2000) for shapes of one and more; what is refused is drawn again from further numbers.

    Their quick test before the exact one is left out: logarithms of whole blocks are cheap, picking numbers is not.
    """
    centre = shape - 1 / 3
    width = 1 / np.sqrt(9 * centre)
    normal = block.normal(0, 2)
    cube = np.multiply(normal, width, out=block.floats[1])
    flat = cube.reshape(-1)
    refused = _refused(normal, cube, block.uniform(3, 1), centre, block.floats[2])
    again = np.flatnonzero(refused)
    number = 4
    while len(again):
        row, column = np.divmod(again, len(shape))
        place = block.key[column], block.counter[row] + _further(number)
        chance, radius, angle = (_unit(_mix(place[0] + (place[1] + _further(part)))) for part in range(3))
        normal = _normal(radius, angle, np.empty_like(radius))
        proposal = normal * width[column]
        refused = _refused(normal, proposal, chance, centre[column], angle)
        flat[again] = proposal  # what is refused is overwritten in the next round
        again = again[refused]
        number += 3
    cube *= centre
    return cube


def _refused(normal, cube, chance, centre, bound) -> Bool[np.ndarray, "*shape"]:
    """The proposals (1 + cube)^3 in the place of `cube`, and whether they are refused. All arrays but `centre` are
    overwritten.
    """
    cube += 1
    np.multiply(cube, cube, out=bound)
    cube *= bound
    with np.errstate(invalid="ignore", divide="ignore"):  # no number below zero has a logarithm: refused
        np.log(cube, out=bound)
    bound -= cube
    bound += 1
    bound *= centre
    normal *= normal
    normal *= 0.5
    bound += normal
    np.log(chance, out=chance)
    return ~(chance < bound)


_KINDS = [_below_one, *_LARGEST_SUM * [_exponentials], _marsaglia_tsang]
