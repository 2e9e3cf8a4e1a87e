"""Counts of a log as the dense and sparse beliefs take them: all ends of a pair are one outcome."""

import dataclasses
import weakref
from typing import TYPE_CHECKING

import numpy as np

from bellief.logs import moments
from bellief.logs.tally import Tally

if TYPE_CHECKING:
    from bellief.beliefs.tabular import TabularBelief

_MERGED: "weakref.WeakKeyDictionary[Tally, Tally]" = weakref.WeakKeyDictionary()


def merged_ends(log: Tally) -> Tally:
    """The same counts with one outcome for all ends of a pair; the same object for the same log."""
    key = (log.cell_state * log.actions + log.cell_action) * (log.states + 1) + log.cell_outcome
    if len(np.unique(key)) == len(key):
        return log
    if log not in _MERGED:
        fields = log.cell_count, log.cell_mean, log.cell_squares, log.cell_low, log.cell_high
        cells = moments.merge(moments.Moments(key, *fields))
        pair, outcome = np.divmod(cells.key, log.states + 1)
        ended = outcome == log.states
        _MERGED[log] = dataclasses.replace(
            log,
            cell_state=pair // log.actions,
            cell_action=pair % log.actions,
            cell_next=np.where(ended, -1, outcome),
            cell_terminated=ended,
            cell_count=cells.number,
            cell_mean=cells.mean,
            cell_squares=cells.squares,
            cell_low=cells.low,
            cell_high=cells.high,
        )
    return _MERGED[log]


def only_ends(log: Tally) -> np.ndarray:
    """States in which episodes end and nobody acts."""
    ends = np.zeros(log.states, dtype=bool)
    ends[log.cell_next[log.cell_terminated & (log.cell_next >= 0)]] = True
    return ends & ~log.acting


def by_outcome(log: Tally, terminates: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts and mean rewards of every outcome, and what is left of a pair's squared deviations within them."""
    log = merged_ends(log)
    shape = (log.states, log.actions, log.states + terminates)
    counts, mean, within = np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape[:2])
    where = (log.cell_state, log.cell_action, log.cell_outcome)
    counts[where], mean[where] = log.cell_count, log.cell_mean
    np.add.at(within, where[:2], log.cell_squares)
    return counts, mean, within


def tabular_belief(log: Tally, terminates: bool) -> "TabularBelief":
    """The dense belief's statistics, as JAX arrays in double precision."""
    import jax.numpy as jnp

    from bellief.beliefs import normal_gamma
    from bellief.beliefs.tabular import TabularBelief

    log = merged_ends(log)
    counts = np.zeros((log.states, log.actions, log.states + terminates), dtype=np.int32)
    counts[log.cell_state, log.cell_action, log.cell_outcome] = log.cell_count
    moments_of_pairs = np.zeros((2, log.states, log.actions))
    moments_of_pairs[:, log.pair_state, log.pair_action] = log.pair_mean, log.pair_squares
    count = jnp.asarray(log.visits(), jnp.int32)
    parts = (jnp.asarray(part) for part in moments_of_pairs)
    return TabularBelief(jnp.asarray(counts), normal_gamma.Statistics(count, *parts))
