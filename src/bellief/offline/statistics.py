"""Sufficient statistics of a log: all that a tabular belief ever learns from it, however long it is."""

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.offline import sources
from bellief.offline.encode import Columns, Encoder
from bellief.offline.feature_columns import feature_names, refuse_features
from bellief.offline.labels import Labels

if TYPE_CHECKING:
    from bellief.beliefs.tabular import TabularBelief

# A pair and its outcome in one number of 61 bits: state, action, next state (or the end).
_BITS, _END = 20, 1 << 20
_OUTCOME_BITS = _BITS + 1


@dataclasses.dataclass(frozen=True, eq=False)
class LogStatistics:
    """Counts and reward moments of a log, over what occurs in it: the memory does not depend on the number of rows.

    `cell_*` are the different (state, action, outcome) triples, in that order, with number, mean and sum of squared
    deviations of their rewards; the outcome is the next state, or `states` where the episode ended. `pair_*` are the
    same for the different (state, action) pairs.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0, 0, 1], [0, 0, 0], [1.0, 3.0, 0.0], [1, 1, 0])
    >>> statistics = data.statistics()
    >>> isinstance(statistics, bellief.LogStatistics), statistics.cell_count.tolist(), statistics.pair_mean.tolist()
    (True, [2, 1], [2.0, 0.0])
    """

    transitions: int
    states: int
    actions: int
    cell_state: Int[np.ndarray, "C"]
    cell_action: Int[np.ndarray, "C"]
    cell_outcome: Int[np.ndarray, "C"]
    cell_count: Int[np.ndarray, "C"]
    cell_mean: Float[np.ndarray, "C"]
    cell_squares: Float[np.ndarray, "C"]
    pair_state: Int[np.ndarray, "P"]
    pair_action: Int[np.ndarray, "P"]
    pair_count: Int[np.ndarray, "P"]
    pair_mean: Float[np.ndarray, "P"]
    pair_squares: Float[np.ndarray, "P"]
    start_count: Int[np.ndarray, "S"]
    ends: int
    reward_low: float
    reward_high: float
    state_labels: Labels = None
    action_labels: Labels = None

    def __len__(self) -> int:
        return self.transitions

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike,
        *,
        states: int | Sequence[str] | None = None,
        actions: int | Sequence[str] | None = None,
        labels: bool | None = None,
    ) -> "LogStatistics":
        """Read a CSV or Parquet file piece by piece, or the Minari dataset `minari:NAME`, and keep no rows.

        The memory needed is that of one piece, of the different (state, action, next state) triples, and eight bytes
        for each episode where episodes are named. The arguments are those of `Transitions.from_file`.
        """
        encoder = Encoder(states, actions, labels, source=f"{path}: ")
        pieces, columns = sources.open_log(path)
        refuse_features(feature_names(columns), f"{path}: ")
        return cls.from_columns(map(encoder.encode, pieces), encoder)

    @classmethod
    def from_columns(cls, pieces: Iterable[Columns], encoder: Encoder) -> "LogStatistics":
        """Fold validated pieces into statistics; `encoder` knows the labels once all pieces were read."""
        totals = _Totals()
        for piece in pieces:
            if len(piece.state):
                totals.add(piece)
        states, actions, state_labels, action_labels, new_states, new_actions = encoder.finish()
        return totals.finish(states, actions, state_labels, action_labels, new_states, new_actions)

    @classmethod
    def from_rows(
        cls, rows: Columns, states: int, actions: int, state_labels: Labels = None, action_labels: Labels = None
    ) -> "LogStatistics":
        """Statistics of rows that are validated and numbered for good."""
        totals = _Totals()
        totals.add(rows)
        return totals.finish(states, actions, state_labels, action_labels, None, None)

    def statistics(self) -> "LogStatistics":
        """Itself, so that whoever takes a log takes its statistics as well."""
        return self

    @property
    def episodes(self) -> int:
        """How many episodes begin in the log."""
        return int(self.start_count.sum())

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
        return self.start_count / self.start_count.sum()

    def typical_reward(self) -> float:
        """Root mean square of all rewards, and 1 where they are all zero."""
        squares = (self.pair_squares + self.pair_count * self.pair_mean**2).sum()
        return float(np.sqrt(squares / self.transitions)) or 1.0

    def by_outcome(self, terminates: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts and mean rewards of every outcome, and what is left of a pair's squared deviations within them."""
        shape = (self.states, self.actions, self.states + terminates)
        counts, mean, within = np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape[:2])
        where = (self.cell_state, self.cell_action, self.cell_outcome)
        counts[where], mean[where] = self.cell_count, self.cell_mean
        np.add.at(within, where[:2], self.cell_squares)
        return counts, mean, within

    def belief(self, terminates: bool) -> "TabularBelief":
        """The dense belief's statistics, as JAX arrays in double precision."""
        import jax.numpy as jnp

        from bellief.beliefs import normal_gamma
        from bellief.beliefs.tabular import TabularBelief

        counts = np.zeros((self.states, self.actions, self.states + terminates), dtype=np.int32)
        counts[self.cell_state, self.cell_action, self.cell_outcome] = self.cell_count
        moments = np.zeros((2, self.states, self.actions))
        moments[:, self.pair_state, self.pair_action] = self.pair_mean, self.pair_squares
        count = jnp.asarray(self.visits(), jnp.int32)
        return TabularBelief(jnp.asarray(counts), normal_gamma.Statistics(count, *(jnp.asarray(m) for m in moments)))


class _Moments(NamedTuple):
    """Number, mean and squared deviations of the rewards of some cells, sorted by the cells' keys."""

    key: np.ndarray
    number: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


class _Totals:
    """Statistics of the pieces read so far."""

    def __init__(self):
        self.rows, self.ends = 0, 0
        self.rewards = _Moments(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        self.starts = np.zeros(0, np.int64)
        self.low, self.high = np.inf, -np.inf

    def add(self, piece: Columns) -> None:
        """Account for a piece."""
        pair = (piece.state << _BITS) | piece.action
        keys = (pair << _OUTCOME_BITS) | np.where(piece.terminated, _END, piece.next_state)
        self.rewards = _combine(self.rewards, _moments(keys, piece.reward))
        starts = np.bincount(piece.state[piece.first], minlength=len(self.starts))
        starts[: len(self.starts)] += self.starts
        self.starts = starts
        self.rows += len(pair)
        self.ends += int(piece.terminated.sum())
        self.low, self.high = min(self.low, float(piece.reward.min())), max(self.high, float(piece.reward.max()))

    def finish(self, states, actions, state_labels, action_labels, new_states, new_actions) -> LogStatistics:
        """Unpack the keys and give labels their final numbers."""
        cell = self.rewards
        state, action = _unpack(cell.key >> _OUTCOME_BITS, new_states, new_actions)
        outcome = cell.key & ((1 << _OUTCOME_BITS) - 1)
        going_on = outcome != _END
        outcome[going_on] = outcome[going_on] if new_states is None else new_states[outcome[going_on]]
        outcome[~going_on] = states
        cells = np.lexsort((outcome, action, state))
        state, action, number, mean, squares = (
            field[cells] for field in (state, action, cell.number, cell.mean, cell.squares)
        )
        pair = _by_pair(state * actions + action, number, mean, squares)
        starts = np.zeros(states, np.int64)
        seen = np.arange(len(self.starts)) if new_states is None else new_states[: len(self.starts)]
        starts[seen] = self.starts
        fields: dict[str, Any] = {
            "cell_state": state,
            "cell_action": action,
            "cell_outcome": outcome[cells],
            "cell_count": number,
            "cell_mean": mean,
            "cell_squares": squares,
            "pair_state": pair.key // actions,
            "pair_action": pair.key % actions,
            "pair_count": pair.number,
            "pair_mean": pair.mean,
            "pair_squares": pair.squares,
        }
        return LogStatistics(
            transitions=self.rows,
            states=states,
            actions=actions,
            start_count=starts,
            ends=self.ends,
            reward_low=self.low,
            reward_high=self.high,
            state_labels=state_labels,
            action_labels=action_labels,
            **fields,
        )


def _unpack(pair_key: np.ndarray, new_states, new_actions) -> tuple[np.ndarray, np.ndarray]:
    state, action = pair_key >> _BITS, pair_key & (_END - 1)
    state = state if new_states is None else new_states[state]
    return state, action if new_actions is None else new_actions[action]


def _by_pair(pair: np.ndarray, number: np.ndarray, mean: np.ndarray, squares: np.ndarray) -> _Moments:
    """Moments of pairs from those of their cells."""
    key, place = np.unique(pair, return_inverse=True)
    total = np.bincount(place, number).astype(np.int64)
    # Deviations from one of the cell means, so that large equal rewards give that reward, not nearly so.
    first = mean[np.searchsorted(place, np.arange(len(key)))] if len(key) else mean
    centre = first + np.bincount(place, number * (mean - first[place])) / total
    spread = np.bincount(place, squares + number * (mean - centre[place]) ** 2)
    return _Moments(key, total, centre, spread)


def _moments(keys: np.ndarray, rewards: np.ndarray) -> _Moments:
    key, place = np.unique(keys, return_inverse=True)
    number = np.bincount(place)
    mean = np.bincount(place, rewards) / number
    # Once more from there: the mean of large equal rewards should be that reward, not nearly so.
    mean += np.bincount(place, rewards - mean[place]) / number
    return _Moments(key, number, mean, np.bincount(place, (rewards - mean[place]) ** 2))


def _combine(first: _Moments, second: _Moments) -> _Moments:
    """Chan's formula, cell by cell."""
    keys = np.union1d(first.key, second.key)
    whole = _Moments(keys, np.zeros(len(keys), np.int64), np.zeros(len(keys)), np.zeros(len(keys)))
    for part in (first, second):
        at = np.searchsorted(keys, part.key)
        before, gap = whole.number[at], part.mean - whole.mean[at]
        number = before + part.number
        whole.squares[at] += part.squares + gap**2 * before * part.number / number
        whole.mean[at] += gap * part.number / number
        whole.number[at] = number
    return whole
