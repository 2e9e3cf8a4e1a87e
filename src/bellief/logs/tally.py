"""Counts of a log: the sufficient statistics of a tabular belief, of a size that does not depend on the rows."""

import dataclasses
import functools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bellief.errors import UserError
from bellief.logs import reward_moments
from bellief.logs.axes import Sizes
from bellief.logs.labels import Labels
from bellief.logs.origin import Origin
from bellief.logs.reward_moments import Moments

if TYPE_CHECKING:
    from bellief.logs.encode import Encoder

# A cell in one number of 63 bits: state, action, terminated, next state + 1.
_BITS = 21


class Columns(NamedTuple):
    """Validated rows. Until the last piece has been read, labels are numbered in the order of their appearance."""

    state: Int[np.ndarray, "n"]
    action: Int[np.ndarray, "n"]
    reward: Float[np.ndarray, "n"]
    next_state: Int[np.ndarray, "n"]
    terminated: Bool[np.ndarray, "n"]
    first: Bool[np.ndarray, "n"]


@dataclasses.dataclass(frozen=True, eq=False)
class Tally:
    """Counts and reward moments of a log, over what occurs in it: the memory does not depend on the number of rows.

    A cell is a state, an action and an outcome, and an outcome is a next state and whether the episode ended there:
    an end in one state and an end in another are two outcomes. `cell_next` is -1 where the episode ended and the log
    names no state. Cells are sorted by state, action, terminated and next state; each has the number of its rows and,
    of their rewards, mean, sum of squared deviations, smallest and largest. `start_count` is how many episodes begin
    in each state.

    >>> import bellief
    >>> log = bellief.Transitions.from_arrays([0, 0, 1], [0, 0, 0], [1.0, 3.0, 0.0], [1, 1, 0])
    >>> tally = log.tally()
    >>> isinstance(tally, bellief.Tally), tally.cell_count.tolist(), tally.pair_mean.tolist()
    (True, [2, 1], [2.0, 0.0])
    """

    states: int
    actions: int
    cell_state: Int[np.ndarray, "C"]
    cell_action: Int[np.ndarray, "C"]
    cell_next: Int[np.ndarray, "C"]
    cell_terminated: Bool[np.ndarray, "C"]
    cell_count: Int[np.ndarray, "C"]
    cell_mean: Float[np.ndarray, "C"]
    cell_squares: Float[np.ndarray, "C"]
    cell_low: Float[np.ndarray, "C"]
    cell_high: Float[np.ndarray, "C"]
    start_count: Int[np.ndarray, "S"]
    state_labels: Labels = None
    action_labels: Labels = None
    origin: Origin = dataclasses.field(default_factory=Origin)

    def __len__(self) -> int:
        return self.transitions

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike,
        *,
        states: Sizes = None,
        actions: Sizes = None,
        labels: bool | None = None,
    ) -> "Tally":
        """Read a file, a glob, a folder or `minari:NAME`, and keep no rows; see `as_tally`."""
        from bellief.logs.read import as_tally

        return as_tally(path, states=states, actions=actions, labels=labels)

    @classmethod
    def assemble(cls, cells: Moments, starts: Int[np.ndarray, "s"], states: Any, actions: Any) -> "Tally":
        """Counts from the moments of numbered cells, with the final numbers from `Axis.finish`."""
        (number_of_states, state_labels, new_states), (number_of_actions, action_labels, new_actions) = states, actions
        low = (1 << _BITS) - 1
        state, action, outcome = cells.key >> (2 * _BITS), (cells.key >> _BITS) & low, cells.key & low
        terminated, following = outcome >> (_BITS - 1) == 1, (outcome & (low >> 1)) - 1
        if new_states is not None:
            state, following = new_states[state], np.where(following < 0, -1, new_states[following])
        if new_actions is not None:
            action = new_actions[action]
        start_count = np.zeros(number_of_states, np.int64)
        at = np.arange(len(starts)) if new_states is None else new_states[: len(starts)]
        start_count[at] += starts
        order = np.lexsort((following, terminated, action, state))
        fields = (field[order] for field in (state, action, following, terminated, *cells[1:]))
        columns: dict[str, Any] = dict(zip(CELL_FIELDS, fields, strict=True))
        return cls(
            number_of_states,
            number_of_actions,
            start_count=start_count,
            state_labels=state_labels,
            action_labels=action_labels,
            **columns,
        )

    @classmethod
    def from_columns(cls, pieces: Iterable[Columns], encoder: "Encoder") -> "Tally":
        """Fold validated pieces into counts; `encoder` has all labels once all pieces are read."""
        parts, starts = [], np.zeros(0, np.int64)
        for piece in pieces:
            if len(piece.state):
                parts.append(reward_moments.of_rows(_row_keys(piece), piece.reward))
                more = np.bincount(piece.state[piece.first], minlength=len(starts))
                more[: len(starts)] += starts
                starts = more
        encoder.check_rows()
        cells = reward_moments.merge(Moments(*(np.concatenate(fields) for fields in zip(*parts, strict=True))))
        return cls.assemble(cells, starts, encoder.states.finish(), encoder.actions.finish())

    @classmethod
    def from_rows(
        cls, rows: Columns, states: int, actions: int, state_labels: Labels = None, action_labels: Labels = None
    ) -> "Tally":
        """Counts of rows that are validated and numbered for good."""
        cells = reward_moments.of_rows(_row_keys(rows), rows.reward)
        starts = np.bincount(rows.state[rows.first], minlength=states)
        return cls.assemble(cells, starts, (states, state_labels, None), (actions, action_labels, None))

    def with_cells(self, state, action, following, terminated, moments: Iterable[np.ndarray]) -> "Tally":
        """The same log with other cells: their names, and number, mean, squares, low and high of their rewards."""
        columns: dict[str, Any] = dict(zip(CELL_FIELDS, (state, action, following, terminated, *moments), strict=True))
        return dataclasses.replace(self, **columns)

    def save(self, path: str | os.PathLike) -> None:
        """Write a Parquet file that every command and `as_tally` read."""
        from bellief.logs.tally_files import save

        save(self, path)

    def statistics(self) -> "Tally":
        """Itself, so that functions of a log take its counts as well."""
        return self

    def tally(self) -> "Tally":
        """Itself, so that functions of a log take its counts as well."""
        return self

    @functools.cached_property
    def transitions(self) -> int:
        """How many rows the log has."""
        return int(self.cell_count.sum())

    @property
    def episodes(self) -> int:
        """How many episodes begin in the log."""
        return int(self.start_count.sum())

    @functools.cached_property
    def ends(self) -> int:
        """How many rows ended an episode by termination."""
        return int(self.cell_count[self.cell_terminated].sum())

    @functools.cached_property
    def reward_low(self) -> float:
        """The smallest reward."""
        return float(self.cell_low.min())

    @functools.cached_property
    def reward_high(self) -> float:
        """The largest reward."""
        return float(self.cell_high.max())

    @functools.cached_property
    def cell_outcome(self) -> Int[np.ndarray, "C"]:
        """The next state, or `states` where the episode ended."""
        return np.where(self.cell_terminated, self.states, self.cell_next)

    @functools.cached_property
    def acting(self) -> Bool[np.ndarray, "S"]:
        """States in which an action was taken, that a step led to without ending, or that an episode began in."""
        acting = self.start_count > 0
        acting[self.cell_state] = True
        acting[self.cell_next[~self.cell_terminated]] = True
        return acting

    @functools.cached_property
    def _pairs(self) -> Moments:
        key = self.cell_state * self.actions + self.cell_action
        fields = self.cell_count, self.cell_mean, self.cell_squares, self.cell_low, self.cell_high
        return reward_moments.merge(Moments(key, *fields))

    @functools.cached_property
    def pair_of_cell(self) -> Int[np.ndarray, "C"]:
        """The pair that each cell belongs to."""
        return np.searchsorted(self._pairs.key, self.cell_state * self.actions + self.cell_action)

    @functools.cached_property
    def pair_state(self) -> Int[np.ndarray, "P"]:
        """The state of each different (state, action) pair, in the order of the cells."""
        return self._pairs.key // self.actions

    @functools.cached_property
    def pair_action(self) -> Int[np.ndarray, "P"]:
        """The action of each pair."""
        return self._pairs.key % self.actions

    @property
    def pair_count(self) -> Int[np.ndarray, "P"]:
        """How many rows each pair has."""
        return self._pairs.number

    @property
    def pair_mean(self) -> Float[np.ndarray, "P"]:
        """Mean reward of each pair."""
        return self._pairs.mean

    @property
    def pair_squares(self) -> Float[np.ndarray, "P"]:
        """Sum of squared deviations of each pair's rewards from their mean."""
        return self._pairs.squares

    def visits(self) -> Int[np.ndarray, "S A"]:
        """How often each action was taken in each state."""
        table = np.zeros((self.states, self.actions), dtype=np.int64)
        table[self.pair_state, self.pair_action] = self.pair_count
        return table

    def behaviour(self) -> Float[np.ndarray, "S A"]:
        """Observed frequency of each action in each state; uniform where a state was never seen."""
        visits = self.visits().astype(float)
        seen = visits.sum(-1, keepdims=True)
        return np.where(seen > 0, visits / np.maximum(seen, 1), 1 / self.actions)

    def start_distribution(self) -> Float[np.ndarray, "S"]:
        """Observed frequency of each state at the beginning of an episode."""
        if not self.episodes:
            raise UserError("This tally does not say where episodes begin: give a start.")
        return self.start_count / self.start_count.sum()

    def typical_reward(self) -> float:
        """Root mean square of all rewards, and 1 where they are all zero."""
        # In units of the largest, so that squares neither overflow nor vanish.
        unit = max(abs(self.reward_low), abs(self.reward_high)) or 1.0
        squares = (self.pair_squares / unit / unit + self.pair_count * (self.pair_mean / unit) ** 2).sum()
        return float(np.sqrt(squares / self.transitions) * unit) or 1.0


LogStatistics = Tally

# In the order of `Tally`'s arguments.
CELL_FIELDS = tuple(field.name for field in dataclasses.fields(Tally) if field.name.startswith("cell_"))


def cell_keys(
    state: Int[np.ndarray, "n"],
    action: Int[np.ndarray, "n"],
    terminated: Bool[np.ndarray, "n"],
    following: Int[np.ndarray, "n"],
) -> Int[np.ndarray, "n"]:
    """Each cell as one number, in the order of cells."""
    pair = (state << _BITS) | action
    return (pair << _BITS) | (terminated.astype(np.int64) << (_BITS - 1)) | (following + 1)


def _row_keys(rows: Columns) -> Int[np.ndarray, "n"]:
    return cell_keys(rows.state, rows.action, rows.terminated, rows.next_state)
