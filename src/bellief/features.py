"""Feature maps of continuous states: small frozen objects that can be added up and written as text.

A map is called with a state and the bounds of the box that it lives in, `[2, D]`: lower ends, then upper ends. Maps
that need a scale measure states against these bounds; the others ignore them.

>>> import jax.numpy as jnp
>>> from bellief import features
>>> box, state = jnp.array([[0.0, 0.0], [2.0, 4.0]]), jnp.array([2.0, 2.0])
>>> features.to_unit(state, box).tolist()
[1.0, 0.0]
>>> both = features.parse("constant+raw", dimension=2)
>>> both == features.Together((features.Constant(), features.Identity())), both(state, box).tolist()
(True, [1.0, 2.0, 2.0])
>>> features.Polynomial(2)(state, box).tolist()
[1.0, 0.0, 1.0, 0.0, 0.0]
>>> [kind.size(2) for kind in (features.RadialBasis(), features.Grid(3), features.Fourier(2))]
[9, 9, 8]
>>> described: features.Features = features.Grid(2)
>>> described(state, box).shape
(4,)
"""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Protocol

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bellief.errors import UserError

KINDS = "constant, raw, paper, rbf:N, poly:N, fourier:N"
MOST_FEATURES = 2000


class Features(Protocol):
    """A map from states to feature vectors."""

    def size(self, dimension: int) -> int:
        """Number of features of a state with so many dimensions."""

    def __call__(self, state: Float[Array, "D"], bounds: Float[Array, "2 D"]) -> Float[Array, "F"]:
        """The features of one state."""


def to_unit(state: Float[Array, "D"], bounds: Float[Array, "2 D"]) -> Float[Array, "D"]:
    """The state measured from -1 at the lower ends to 1 at the upper ends."""
    return (2 * state - bounds[0] - bounds[1]) / (bounds[1] - bounds[0])


@dataclasses.dataclass(frozen=True)
class Constant:
    """The number one."""

    def size(self, dimension: int) -> int:
        """One."""
        del dimension
        return 1

    def __call__(self, state, bounds):
        """One."""
        del bounds
        return jnp.ones(1, state.dtype)


@dataclasses.dataclass(frozen=True)
class Identity:
    """The state itself."""

    def size(self, dimension: int) -> int:
        """As many as there are dimensions."""
        return dimension

    def __call__(self, state, bounds):
        """The state."""
        del bounds
        return state


@dataclasses.dataclass(frozen=True)
class RadialBasis:
    """`exp(-|s - c|^2 / (2 w^2))` around given centres, with one width for each dimension.

    The defaults are the paper's nine for the pendulum (Lagoudakis and Parr's), which do not use the bounds.
    """

    centres: tuple[tuple[float, ...], ...] = tuple(
        itertools.product((-math.pi / 4, 0.0, math.pi / 4), (-1.0, 0.0, 1.0))
    )
    widths: tuple[float, ...] = (1.0, 1.0)

    def size(self, dimension: int) -> int:
        """One for each centre."""
        if dimension != len(self.widths):
            raise UserError(f"These radial basis functions are for {len(self.widths)} dimensions, not {dimension}.")
        return len(self.centres)

    def __call__(self, state, bounds):
        """Closeness to each centre."""
        del bounds
        apart = (state - jnp.asarray(self.centres, state.dtype)) / jnp.asarray(self.widths, state.dtype)
        return jnp.exp(-0.5 * jnp.sum(apart**2, axis=-1))


@dataclasses.dataclass(frozen=True)
class Grid:
    """Radial basis functions on a grid over the box, `count` a dimension, as wide as they are apart."""

    count: int

    def size(self, dimension: int) -> int:
        """`count` to the power of the dimension."""
        return self.count**dimension

    def __call__(self, state, bounds):
        """Products of closeness along each dimension."""
        ticks = jnp.linspace(-0.9, 0.9, self.count, dtype=state.dtype)
        width = 1.8 / (self.count - 1)
        near = jnp.exp(-0.5 * ((to_unit(state, bounds)[:, None] - ticks) / width) ** 2)
        features = near[0]
        for row in near[1:]:
            features = (features[:, None] * row).reshape(-1)
        return features


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """All monomials of degrees 1 to `degree` of the state, measured against the bounds."""

    degree: int

    def _powers(self, dimension: int) -> list[tuple[int, ...]]:
        return [
            powers
            for degree in range(1, self.degree + 1)
            for powers in itertools.combinations_with_replacement(range(dimension), degree)
        ]

    def size(self, dimension: int) -> int:
        """Number of monomials."""
        return math.comb(dimension + self.degree, self.degree) - 1

    def __call__(self, state, bounds):
        """Each monomial from one of the degree before."""
        unit = to_unit(state, bounds)
        known: dict[tuple[int, ...], Array] = {(): jnp.ones((), state.dtype)}
        powers = self._powers(state.shape[0])
        for one in powers:
            known[one] = known[one[:-1]] * unit[one[-1]]
        return jnp.stack([known[one] for one in powers])


@dataclasses.dataclass(frozen=True)
class Fourier:
    """cos(pi c . z), z from 0 to 1 over the box, for all c in {0..order}^D but zero (Konidaris et al. 2011)."""

    order: int

    def size(self, dimension: int) -> int:
        """Number of frequencies."""
        return (self.order + 1) ** dimension - 1

    def __call__(self, state, bounds):
        """One cosine for each frequency."""
        every = np.array(list(itertools.product(range(self.order + 1), repeat=state.shape[0]))[1:])
        return jnp.cos(jnp.pi * jnp.asarray(every, state.dtype) @ ((to_unit(state, bounds) + 1) / 2))


@dataclasses.dataclass(frozen=True)
class Together:
    """Several maps, concatenated."""

    maps: tuple[Features, ...]

    def size(self, dimension: int) -> int:
        """All of them."""
        return sum(one.size(dimension) for one in self.maps)

    def __call__(self, state, bounds):
        """All of them."""
        return jnp.concatenate([one(state, bounds) for one in self.maps])


PLAIN: dict[str, Features] = {"constant": Constant(), "raw": Identity(), "paper": RadialBasis()}
SIZED: dict[str, Callable[[int], Features]] = {"rbf": Grid, "poly": Polynomial, "fourier": Fourier}


def parse(text: str, dimension: int) -> Features:
    """A map from its description, such as `constant+raw+rbf:5`; `paper` is the pendulum's nine functions."""
    maps: list[Features] = []
    for part in text.split("+"):
        name, _, number = part.strip().partition(":")
        if name in PLAIN and not number:
            maps.append(PLAIN[name])
        elif name in SIZED and number.isdecimal() and int(number) >= (2 if name == "rbf" else 1):
            maps.append(SIZED[name](int(number)))
        else:
            raise UserError(f"'{part}' is no feature map; join some of {KINDS} with +, for example constant+rbf:9.")
    together = Together(tuple(maps))
    if together.size(dimension) > MOST_FEATURES:
        raise UserError(
            f"'{text}' makes {together.size(dimension):,} features of {dimension} dimensions, and the most are "
            f"{MOST_FEATURES:,}; choose smaller numbers or poly."
        )
    return together
