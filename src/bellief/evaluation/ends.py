"""How the ends of episodes are outcomes of a pair."""

import weakref

import numpy as np
from jaxtyping import Bool, Int

from bellief.logs import reward_moments
from bellief.logs.tally import Tally

_MERGED: "weakref.WeakKeyDictionary[Tally, Tally]" = weakref.WeakKeyDictionary()


def merged_ends(log: Tally) -> Tally:
    """The same counts with one outcome for all ends of a pair; the same object for the same log.

    >>> import bellief
    >>> from bellief.evaluation.ends import merged_ends
    >>> log = bellief.Transitions.from_arrays([0, 0], [0, 0], [0.0, 1.0], [1, 2], terminated=[True, True]).tally()
    >>> len(log.cell_count), merged_ends(log).cell_count.tolist()
    (2, [2])
    """
    pair = log.cell_state * log.actions + log.cell_action
    # Cells are sorted by their pair.
    if (np.diff(pair[log.cell_terminated]) > 0).all():
        return log
    merged = _MERGED.get(log)
    if merged is None:
        key = pair * (log.states + 1) + log.cell_outcome
        fields = log.cell_count, log.cell_mean, log.cell_squares, log.cell_low, log.cell_high
        cells = reward_moments.merge(reward_moments.Moments(key, *fields))
        pair, outcome = np.divmod(cells.key, log.states + 1)
        ended = outcome == log.states
        merged = log.with_cells(*np.divmod(pair, log.actions), np.where(ended, -1, outcome), ended, cells[1:])
        _MERGED[log] = merged
    return merged


def split_outcomes(log: Tally) -> tuple[Int[np.ndarray, "C"], Int[np.ndarray, "E"]]:
    """The outcome of each cell, where each state that episodes end in is an outcome of its own, after the states; and
    these states (-1: the log names none).

    >>> import bellief
    >>> from bellief.evaluation.ends import split_outcomes
    >>> log = bellief.Transitions.from_arrays([0, 0], [0, 0], [0.0, 1.0], [1, 2], terminated=[True, True]).tally()
    >>> [array.tolist() for array in split_outcomes(log)]
    [[3, 4], [1, 2]]
    """
    ends = np.unique(log.cell_next[log.cell_terminated])
    return np.where(log.cell_terminated, log.states + np.searchsorted(ends, log.cell_next), log.cell_next), ends


def only_ends(log: Tally) -> Bool[np.ndarray, "S"]:
    """States in which episodes only end and no action is taken.

    >>> import bellief
    >>> from bellief.evaluation.ends import only_ends
    >>> log = bellief.Transitions.from_arrays([0, 1], [0, 0], [0.0, 1.0], [1, 2], terminated=[False, True]).tally()
    >>> only_ends(log).tolist()
    [False, False, True]
    """
    ends = np.zeros(log.states, dtype=bool)
    ends[log.cell_next[log.cell_terminated & (log.cell_next >= 0)]] = True
    return ends & ~log.acting
