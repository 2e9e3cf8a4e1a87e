"""The belief about transition rows, and draws from it: seen outcomes one by one, the rest in a few atoms.

A row is Dirichlet: each seen outcome has its count, and a prior weight w is spread over all O outcomes. A Dirichlet
row with parameters n + w b is a sum, made to have mass one, of gamma variates on the seen outcomes (shapes n) and of
one gamma variate (shape w) times a Dirichlet process with base measure b (Ferguson 1973). That process is a sequence
of atoms: sizes by breaking a stick at Beta(1, w) points, places from b (Sethuraman 1994). It is exact as atoms grow in
number and is cut where the expected mass beyond is below `REMAINDER`, so the cost of a row grows with what was seen of
it, not with the number of states. Where the prior weighs so much that this would take more atoms than there are
outcomes (the paper's prior), or where the possible outcomes are given, every possible outcome is a cell of its own.
The base measure is even, or taken from the log (`evaluation.base_measure`).

>>> import numpy as np
>>> from bellief.evaluation import rows
>>> belief = rows.Rows(  # two rows; from the first one, outcome 1 was seen twice
...     row=np.arange(2), first=np.array([0, 1, 1]), outcome=np.array([1]), shape=np.array([2.0]),
...     rest=np.array([0.1, 0.1]), outcomes=3
... )
>>> drawn = rows.sample(belief, seed=0, draws=np.arange(4))
>>> drawn.cell_share.shape, bool(np.allclose(drawn.cell_share.sum() + drawn.atom_share.sum(), 8))
((4, 1), True)
>>> chance, rest = rows.mean(belief)
>>> chance.round(3).tolist(), rest.round(3).tolist()
([0.952], [0.048, 1.0])
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.evaluation import noise
from bellief.evaluation.base_measure import Base

# Mass of a row at which breaking it into atoms ends.
REMAINDER = 1e-6

# A rest of less mass is left out: it changes no value by more than the solver's tolerance.
NOTHING = 1e-12

# A table says which outcomes of which rows may be cells, so that the other atoms are not searched for: so many entries
# for each cell, and at most so many in all.
LOOKUP_SHARE, LOOKUP_SIZE = 32, 1 << 23


class Rows(NamedTuple):
    """The belief about some rows. `row` are their numbers, state * actions + action.

    Row r has the cells first[r] to first[r + 1]: their outcomes, ascending, and the gamma shapes of these.
    `rest[r]` is the prior weight that is spread over all `outcomes`, the seen ones included: as the base says or, where
    there is none, evenly.
    """

    row: Int[np.ndarray, "R"]
    first: Int[np.ndarray, "R1"]
    outcome: Int[np.ndarray, "C"]
    shape: Float[np.ndarray, "C"]
    rest: Float[np.ndarray, "R"]
    outcomes: int
    base: Base | None = None

    def row_of_cell(self) -> Int[np.ndarray, "C"]:
        """Position of each cell's row."""
        return np.repeat(np.arange(len(self.row)), np.diff(self.first))

    def base_mass(self) -> Float[np.ndarray, "C"]:
        """Mass of each cell's outcome in the base measure of its row."""
        if self.base is None:
            return np.full(len(self.outcome), 1 / self.outcomes)
        return self.base.chance(np.repeat(self.row // self.base.actions, np.diff(self.first)), self.outcome)


class Drawn(NamedTuple):
    """Rows in `n` draws: the mass on each cell, and a list of atoms: draw, row, outcome and mass.

    An atom that fell on a cell has given its mass to it, and one on the place of an earlier atom to that, so that every
    outcome of a row occurs once.
    """

    cell_share: Float[np.ndarray, "n C"]
    atom_draw: Int[np.ndarray, "E"]
    atom_row: Int[np.ndarray, "E"]
    atom_outcome: Int[np.ndarray, "E"]
    atom_share: Float[np.ndarray, "E"]

    def atom_sums(self, values: Float[np.ndarray, "E"], rows: int) -> Float[np.ndarray, "n R"]:
        """Sums over the atoms of each row in each draw."""
        number = len(self.cell_share)
        return np.bincount(self.atom_draw * rows + self.atom_row, values, number * rows).reshape(number, rows)


def spans(belief: Rows, numbers: int) -> list[slice]:
    """All rows in pieces that take about so many random numbers a draw."""
    upto = belief.first[1:] + 3 * np.arange(1, len(belief.row) + 1)
    cuts = np.searchsorted(upto, np.arange(0, upto[-1] if len(upto) else 0, max(1, numbers)))
    cuts = np.unique(np.append(cuts, len(belief.row)))
    return [slice(first, last) for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]


def span(belief: Rows, rows: slice) -> tuple[Rows, slice]:
    """The belief about consecutive rows, and the positions of their cells."""
    first = belief.first[rows.start : rows.stop + 1]
    cells = slice(int(first[0]), int(first[-1]))
    row, outcome, shape = belief.row[rows], belief.outcome[cells], belief.shape[cells]
    return belief._replace(row=row, first=first - first[0], outcome=outcome, shape=shape, rest=belief.rest[rows]), cells


def joined(pieces: list[Drawn], spans: list[slice]) -> Drawn:
    """Draws of all rows from draws of pieces of them."""
    if len(pieces) == 1:
        return pieces[0]
    cells, draw, row, outcome, share = zip(*pieces, strict=True)
    shifted = [one + span.start for one, span in zip(row, spans, strict=True)]
    return Drawn(np.concatenate(cells, axis=1), *(np.concatenate(parts) for parts in (draw, shifted, outcome, share)))


def restrict(belief: Rows, rows: Int[np.ndarray, "r"]) -> tuple[Rows, Int[np.ndarray, "c"]]:
    """The belief about the rows at some positions, and the positions of their cells."""
    lengths = np.diff(belief.first)[rows]
    first = np.append(0, np.cumsum(lengths))
    cells = np.repeat(belief.first[rows] - first[:-1], lengths) + np.arange(first[-1])
    return (
        belief._replace(
            row=belief.row[rows],
            first=first,
            outcome=belief.outcome[cells],
            shape=belief.shape[cells],
            rest=belief.rest[rows],
        ),
        cells,
    )


def expand(belief: Rows) -> tuple[Rows, Int[np.ndarray, "C"]]:
    """The same belief with every outcome as a cell, which holds its part of the spread weight; and where cells went."""
    number, outcomes = len(belief.row), belief.outcomes
    shape = np.repeat(belief.rest / outcomes, outcomes)
    place = belief.row_of_cell() * outcomes + belief.outcome
    shape[place] += belief.shape
    first = np.arange(number + 1) * outcomes
    every = np.tile(np.arange(outcomes), number)
    return belief._replace(first=first, outcome=every, shape=shape, rest=np.zeros(number)), place


def sums(values: Float[np.ndarray, "*n C"], first: Int[np.ndarray, "R1"]) -> Float[np.ndarray, "*n R"]:
    """Sums over the cells of each row; zero where it has none."""
    total = np.zeros((*values.shape[:-1], len(first) - 1))
    filled = np.flatnonzero(np.diff(first))
    if len(filled):
        total[..., filled] = np.add.reduceat(values, first[filled], axis=-1)
    return total


def mean(belief: Rows) -> tuple[Float[np.ndarray, "C"], Float[np.ndarray, "R"]]:
    """Expected mass of each cell alone, and of what each row spreads over all outcomes."""
    total = sums(belief.shape, belief.first) + belief.rest
    return belief.shape / np.repeat(total, np.diff(belief.first)), belief.rest / total


def atoms_needed(rest: Float[np.ndarray, "R"], seen: Float[np.ndarray, "R"]) -> Int[np.ndarray, "R"]:
    """How many atoms leave less than `REMAINDER` of a row's mass beyond them, in expectation."""
    rest = np.asarray(rest, np.float64)
    share = np.divide(rest, rest + seen, out=np.zeros_like(rest), where=rest > 0)
    with np.errstate(divide="ignore"):
        count = np.ceil(np.log(REMAINDER / np.maximum(share, 1e-300)) / np.log(rest / (1 + rest)))
    return np.where(rest > 0, np.maximum(count, 1), 0).astype(np.int64)


def sample(belief: Rows, seed: int, draws: Int[np.ndarray, "n"]) -> Drawn:
    """Draws of the rows; those of a row depend on nothing but the seed, the row and the draw."""
    lengths = np.diff(belief.first)
    cell_key = noise.keys(seed, noise.CELL, np.repeat(belief.row, lengths), belief.outcome)
    cells = noise.gamma(belief.shape, cell_key, draws)
    total = sums(cells, belief.first)
    spread = np.flatnonzero(belief.rest > 0)
    # A row without cells consists of its atoms, however small the gamma variate is.
    rest, seen = np.ones((len(draws), len(spread))), np.flatnonzero(lengths[spread])
    rest[:, seen] = noise.gamma(
        belief.rest[spread[seen]], noise.keys(seed, noise.REST, belief.row[spread[seen]]), draws
    )
    total[:, spread] += rest
    cells /= np.repeat(total, lengths, axis=-1)
    rest /= total[:, spread]
    return _atoms(belief, seed, draws, cells, spread, rest)


def _atoms(belief: Rows, seed: int, draws, cells, spread, rest) -> Drawn:
    """Break the rest of each row into atoms, one after the other, until what is left weighs less than `REMAINDER`."""
    draw, place = np.nonzero(rest > NOTHING)
    row, left = spread[place], rest[draw, place]
    size_key, place_key = (noise.keys(seed, purpose, belief.row) for purpose in (noise.ATOM_SIZE, noise.ATOM_PLACE))
    found: list[tuple[np.ndarray, ...]] = []
    # Earlier atoms of the rows that are still being broken: their outcomes, and their positions in `found`.
    outcomes: list[np.ndarray] = []
    stands: list[np.ndarray] = []
    begun = 0
    while len(row):
        number = len(outcomes)
        unit = noise.uniform_at(place_key[row], draws[draw], number)
        if belief.base is None:
            outcome = (unit * belief.outcomes).astype(np.int64)
        else:
            outcome = belief.base.draw(belief.row[row] // belief.base.actions, unit)
        stick = noise.uniform_at(size_key[row], draws[draw], number)
        following = left * np.exp(np.log(stick) / belief.rest[row])
        following[following < REMAINDER] = 0.0  # this atom takes what would lie beyond
        share, left = left - following, following
        stand = np.arange(begun, begun + len(row))
        for earlier, position in zip(outcomes, stands, strict=True):
            stand = np.where(earlier == outcome, position, stand)
        found.append((draw, row, outcome, share, stand))
        begun += len(row)
        going_on = np.flatnonzero(left > 0)
        outcomes = [one[going_on] for one in (*outcomes, outcome)]
        stands = [one[going_on] for one in (*stands, stand)]
        draw, row, left = draw[going_on], row[going_on], left[going_on]
    if not found:
        nothing = np.zeros(0, np.int64)
        return Drawn(cells, nothing, nothing, nothing, np.zeros(0))
    draw, row, outcome, share, stand = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return _merged(belief, cells, draw, row, outcome, np.bincount(stand, share, len(share)))


def _merged(belief: Rows, cells, draw, row, outcome, share) -> Drawn:
    """Give the mass of atoms that fell on cells to these, and leave empty atoms out."""
    code, wanted = belief.row_of_cell() * belief.outcomes + belief.outcome, row * belief.outcomes + outcome
    if len(code):
        mask = min(1 << (LOOKUP_SHARE * len(code)).bit_length(), LOOKUP_SIZE) - 1
        seen = np.zeros(mask + 1, bool)
        seen[code & mask] = True
        maybe = np.flatnonzero((share > 0) & seen[wanted & mask])
        cell = np.minimum(np.searchsorted(code, wanted[maybe]), len(code) - 1)
        hit = code[cell] == wanted[maybe]
        hit, cell = maybe[hit], cell[hit]
        np.add.at(cells.reshape(-1), draw[hit] * len(code) + cell, share[hit])
        share[hit] = 0.0
    kept = np.flatnonzero(share > 0)
    return Drawn(cells, draw[kept], row[kept], outcome[kept], share[kept])
