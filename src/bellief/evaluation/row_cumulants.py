"""Cumulants of what transition rows contribute to a number, for any number of states.

A row p of the belief is Dirichlet with mean m and total weight W (`evaluation.rows`), however its unseen mass is drawn.
For a number f(o) that each outcome has, with c_j the mean under m of the j-th power of f less its mean,

    E[(p f)^2] = c_2 / (W + 1),    E[(p f)^3] = 2 c_3 / ((W + 1)(W + 2)),
    E[(p f)^4] = (6 c_4 + 3 W c_2^2) / ((W + 1)(W + 2)(W + 3)).

The mean m is a list of seen outcomes, the places of the row's state and one distribution g for all rows
(`evaluation.base_measure`). Here f is a combination of a few functions of the outcome, the same for all rows except
for its coefficients, so that means under g are polynomials of these. The cost of a row is then proportional to its seen
outcomes, not to all outcomes as in `evaluation.row_tables`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.evaluation import rows
from bellief.evaluation.problem import Part

# Cells and places of a chunk of rows.
CHUNK = 1 << 17


class Noise(NamedTuple):
    """Expected variance of each row's mean reward given its probabilities, and the fourth cumulant of that part; both
    are infinite where they do not exist.
    """

    variance: Float[np.ndarray, "R"]
    excess: Float[np.ndarray, "R"]


class _Spread(NamedTuple):
    """The base measures of all states: masses at places, sorted by state, and so much of one measure for all."""

    first: Int[np.ndarray, "S1"]
    outcome: Int[np.ndarray, "L"]
    mass: Float[np.ndarray, "L"]
    elsewhere: Float[np.ndarray, "S"]
    share: Float[np.ndarray, "O"]

    @classmethod
    def of(cls, part: Part, states: int) -> "_Spread":
        base, outcomes = part.held.base, part.held.outcomes
        if base is None:
            nothing = np.zeros(0, np.int64)
            share = np.full(outcomes, 1 / outcomes)
            return cls(np.zeros(states + 1, np.int64), nothing, np.zeros(0), np.ones(states), share)
        first = np.searchsorted(base.place_state, np.arange(states + 1))
        return cls(first, base.place_outcome, base.place_mass, base.elsewhere, base.share)

    def places(self, state: Int[np.ndarray, "r"]) -> tuple[Int[np.ndarray, "r1"], Int[np.ndarray, "l"]]:
        """Where the places of each of some states stand: the first of each in a list, and the list."""
        lengths = (self.first[1:] - self.first[:-1])[state]
        first = np.append(0, np.cumsum(lengths))
        return first, np.repeat(self.first[state] - first[:-1], lengths) + np.arange(first[-1])


class RowCumulants:
    """Second, third and fourth cumulants of rows, given the belief about them and what outcomes are worth."""

    def __init__(self, part: Part, values: Float[np.ndarray, "k S"], discount: float):
        self.part, self.discount, held = part, discount, part.held
        states = values.shape[1]
        self._spread = _Spread.of(part, states)
        self._chance, self._rest = rows.mean(held)
        self._weight = rows.sums(held.shape, held.first) + held.rest
        self._base_mass = held.base_mass()
        paid = part.rewards.outcomes
        level = part.rewards.level if part.rewards.level is not None else np.zeros(held.outcomes)
        scale = part.rewards.scale if part.rewards.scale is not None else np.ones(held.outcomes)
        self._scale = scale
        # Where rewards do not depend on outcomes, the mean reward of a row adds nothing to the functions.
        functions = [] if paid is None else [level, scale]
        functions += list(np.pad(values, ((0, 0), (0, held.outcomes - states))))
        table = np.stack(functions)
        self._functions = table - (table @ self._spread.share)[:, None]
        self._extra = None
        if paid is not None:
            pair = np.repeat(part.rewards.location, np.diff(held.first))
            self._extra = scale[held.outcome] * (paid.location + (paid.share - 1) * pair)

    def of(self, weight: Float[np.ndarray, "k R"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cumulants of weight times (reward + discount * value of the next state), with a weight for each function of
        values; the reward counts as often as all of these, without its noise.
        """
        used = np.flatnonzero((weight != 0).any(1))
        used = used if len(used) else np.array([0])  # nothing counts: zeros all over
        paid, columns = weight.sum(0), [self.discount * weight[number] for number in used]
        functions = self._functions[len(self._functions) - len(weight) + used]
        if self._extra is not None:
            columns = [paid, paid * self.part.rewards.location, *columns]
            functions = np.concatenate([self._functions[:2], functions])
        coefficients = np.stack(columns, 1)
        second, third, fourth = (np.empty(len(self._weight)) for _ in range(3))
        shared = _SharedMoments.of(functions, self._spread.share)
        for chunk in self._chunks():
            found = self._moments(chunk, coefficients[chunk], paid[chunk], functions, shared)
            second[chunk], third[chunk], fourth[chunk] = found
        total = self._weight
        variance, more = second / (total + 1), (total + 1) * (total + 2)
        fourth = (6 * fourth + 3 * total * second**2) / (more * (total + 3))
        return variance, 2 * third / more, fourth - 3 * variance**2

    def _chunks(self) -> Iterator[slice]:
        held, first = self.part.held, self._spread.first
        size = np.cumsum(np.diff(held.first) + (first[1:] - first[:-1])[self.part.state] + 1)
        cuts = np.searchsorted(size, np.arange(CHUNK, size[-1] if len(size) else 0, CHUNK))
        cuts = np.unique(np.concatenate([[0], cuts, [len(size)]]))
        for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            yield slice(begin, end)

    def _moments(self, chunk: slice, coefficients, paid, functions, shared: "_SharedMoments") -> list[np.ndarray]:
        """Central moments of the outcomes' numbers under the rows' means."""
        held, spread, state, rest = self.part.held, self._spread, self.part.state[chunk], self._rest[chunk]
        cell_first = held.first[chunk.start : chunk.stop + 1]
        cells = slice(int(cell_first[0]), int(cell_first[-1]))
        cell_first = cell_first - cell_first[0]
        place_first, place = spread.places(state)
        cell_row, place_row = (np.repeat(np.arange(len(rest)), np.diff(first)) for first in (cell_first, place_first))
        unseen = _combined(coefficients, functions, cell_row, held.outcome[cells])
        local = _combined(coefficients, functions, place_row, spread.outcome[place])
        seen = unseen if self._extra is None else unseen + paid[cell_row] * self._extra[cells]
        by_place, by_base = rest[place_row] * spread.mass[place], rest[cell_row] * self._base_mass[cells]
        by_cell, around = self._chance[cells] + by_base, rest * spread.elsewhere[state]
        # The functions have mean zero under the shared measure.
        mean = rows.sums(by_cell * seen - by_base * unseen, cell_first) + rows.sums(by_place * local, place_first)
        seen, unseen, local = seen - mean[cell_row], unseen - mean[cell_row], local - mean[place_row]
        found = []
        powers = [seen.copy(), unseen.copy(), local.copy()]
        for elsewhere in shared.around(coefficients, mean):
            for power, one in zip(powers, (seen, unseen, local), strict=True):
                power *= one
            listed = rows.sums(by_cell * powers[0] - by_base * powers[1], cell_first)
            found.append(listed + rows.sums(by_place * powers[2], place_first) + around * elsewhere)
        return found

    def noise(self) -> Noise:
        """What the rows' mean rewards vary by when their probabilities are known."""
        belief, held = self.part.rewards, self.part.held
        with np.errstate(divide="ignore"):
            variance = np.where(belief.shape > 1, belief.rate / np.maximum(belief.shape - 1, 1e-300), np.inf)
            excess = np.where(belief.shape > 2, 3 * variance**2 / np.maximum(belief.shape - 2, 1e-300), np.inf)
        paid = belief.outcomes
        if paid is None:
            return Noise(variance / belief.strength, excess / belief.strength**2)
        scale, state, total, rest = self._scale, self.part.state, self._weight, self._rest
        square, cell_scale = scale**2, scale[held.outcome]
        # Sums under the base measure of each state, and of the square of its masses.
        first, second, doubled = self._base_sums(np.stack([scale, square]), square)
        by_base = np.repeat(rest, np.diff(held.first)) * self._base_mass
        by_cell, shared = self._chance + by_base, cell_scale * paid.share
        own, unseen = cell_scale**2 / paid.strength, cell_scale**2 / paid.unseen

        def added(numbers: Float[np.ndarray, "C"]) -> Float[np.ndarray, "R"]:
            return rows.sums(numbers, held.first)

        pair = rest * first[state] + added(by_cell * shared - by_base * cell_scale)
        pair_square = rest * second[state] + added(by_cell * shared**2 - by_base * cell_scale**2)
        once = rest * second[state] / paid.unseen + added(by_cell * own - by_base * unseen)
        twice = rest**2 * doubled[state] / paid.unseen + added(by_cell**2 * own - by_base**2 * unseen)
        width = (total * twice + once) / (total + 1)
        width += (pair**2 + (pair_square - pair**2) / (total + 1)) / belief.strength
        none = width <= 0  # everything pays exactly its level
        variance[none], excess[none], width[none] = 0.0, 0.0, 0.0
        return Noise(variance * width, excess * width**2)

    def _base_sums(self, functions: Float[np.ndarray, "2 O"], function: Float[np.ndarray, "O"]) -> tuple[Any, ...]:
        spread = self._spread
        around = np.repeat(spread.elsewhere, np.diff(spread.first)) * spread.share[spread.outcome]
        doubled = ((spread.mass + around) ** 2 - around**2) * function[spread.outcome]
        single = rows.sums(spread.mass * functions[:, spread.outcome], spread.first)
        single += (functions @ spread.share)[:, None] * spread.elsewhere
        return *single, rows.sums(doubled, spread.first) + spread.elsewhere**2 * (spread.share**2 @ function)


class _SharedMoments(NamedTuple):
    """Moments of some functions, and of their products, under one measure; their means are zero."""

    second: Float[np.ndarray, "K K"]
    third: Float[np.ndarray, "K K2"]
    fourth: Float[np.ndarray, "K2 K2"]

    @classmethod
    def of(cls, functions: Float[np.ndarray, "K O"], share: Float[np.ndarray, "O"]) -> "_SharedMoments":
        products = (functions[:, None] * functions).reshape(-1, functions.shape[1])
        weighted = share * functions
        return cls(weighted @ functions.T, weighted @ products.T, (share * products) @ products.T)

    def around(self, coefficients: Float[np.ndarray, "r K"], centre: Float[np.ndarray, "r"]) -> list[np.ndarray]:
        """Second to fourth moments, around a centre, of a combination of the functions for each row."""
        products = (coefficients[:, :, None] * coefficients[:, None]).reshape(len(coefficients), -1)
        second = ((coefficients @ self.second) * coefficients).sum(-1)
        third = ((coefficients @ self.third) * products).sum(-1)
        fourth = ((products @ self.fourth) * products).sum(-1)
        return [
            second + centre**2,
            third - 3 * second * centre - centre**3,
            fourth - 4 * third * centre + 6 * second * centre**2 + centre**4,
        ]


def _combined(coefficients, functions, row: Int[np.ndarray, "e"], outcome: Int[np.ndarray, "e"]) -> np.ndarray:
    """The number of each outcome for its row."""
    found = coefficients[row, 0] * functions[0, outcome]
    for column in range(1, len(functions)):
        found += coefficients[row, column] * functions[column, outcome]
    return found
