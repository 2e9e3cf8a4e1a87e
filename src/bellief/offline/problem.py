"""What every question about a log begins with: data, prior and start made ready, and the belief chosen by size."""

import os
import weakref
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import sparse as matrices

from bellief.beliefs import sparse
from bellief.beliefs.tabular import Prior
from bellief.errors import UserError
from bellief.logs import labels
from bellief.logs.tables import read_table, shown
from bellief.logs.tally import LogStatistics
from bellief.offline.checks import check_choice, check_memory, check_sparse_memory
from bellief.offline.outcomes import merged_ends
from bellief.offline.priors import read_prior

BELIEFS = ("auto", "dense", "sparse")

# Up to so many states `auto` takes the dense belief, whose tables hold every possible transition.
DENSE_STATES = 2_000

# With more states than that, a log that shows less than this part of them has identifiers where indices should be.
SMALLEST_SEEN = 0.02


# Sparse beliefs by the log that they are about, for as long as that is there.
_KEPT: "weakref.WeakKeyDictionary[LogStatistics, dict[Any, Any]]" = weakref.WeakKeyDictionary()


class Problem(NamedTuple):
    """A log with everything that has to be assumed about it. `support`: a row and an outcome for each possibility."""

    log: LogStatistics
    discount: float
    horizon: int | None
    prior: Prior
    start: Float[np.ndarray, "S"]
    terminates: bool
    dense: bool
    support: tuple[np.ndarray, np.ndarray] | None = None

    def sparse_belief(self) -> sparse.SparseBelief:
        """The belief by rows, one for each state-action pair, state by state; built once for a log and its options."""
        kept = _KEPT.setdefault(self.log, {})
        key = self.terminates, None if self.support is None else id(self.support)
        if key not in kept:
            # The support is kept, too, so that no other one gets its identity.
            kept[key] = self.support, _sparse_belief(self.log, self.terminates, self.support)
        return kept[key][1]

    def has_variance(self, used: Bool[np.ndarray, "S A"]) -> Bool[np.ndarray, "S"]:
        """Whether the mean reward of every used pair of a state has a posterior variance.

        After n visits it has a Student t distribution with 2 * shape + n degrees of freedom: more than 2 are needed.
        """
        degrees = 2 * self.prior.reward_shape + self.log.visits()
        return np.logical_or(~used, degrees > 2).all(-1)


def prepare(
    data: Any,
    discount: float,
    *,
    prior: str | Prior = "logged",
    reward_scale: float | str | None = None,
    horizon: int | None = None,
    start: Any = None,
    terminates: bool | None = None,
    belief: str = "auto",
    support: Any = None,
    draws: int = 1,
) -> Problem:
    """Check what the user gave and choose the belief; nothing large is allocated before its size was checked."""
    check_choice("belief", belief, BELIEFS)
    log = merged_ends(data.statistics())
    if log.ends and terminates is False:
        raise UserError("Episodes end in the data, so terminates cannot be False.")
    if discount == 1 and horizon is None and not (log.ends or terminates):
        raise UserError(
            "With discount 1 and no end in sight the value is infinite: give a horizon, a discount below 1, or data in "
            "which episodes end (a column 'terminated')."
        )
    dense = belief == "dense" or (belief == "auto" and log.states <= DENSE_STATES and support is None)
    if dense and support is not None:
        raise UserError("A support belongs to the sparse belief: leave belief out, or say sparse.")
    if dense:
        check_memory(log.states, log.actions, tables=1)
    else:
        _check_numbering(log)
        check_sparse_memory(log.states, log.actions, len(log.cell_count), draws)
    ends = bool(log.ends) if terminates is None else terminates
    # The sparse belief keeps reward moments of pairs, not of their outcomes.
    chosen = scaled_prior(prior, reward_scale, log)
    return Problem(
        log,
        float(discount),
        horizon,
        chosen if dense else chosen.by_pair(),
        read_start(start, log),
        ends,
        dense,
        None if support is None else read_support(support, log, ends),
    )


def scaled_prior(prior: str | Prior, reward_scale: float | str | None, log: LogStatistics) -> Prior:
    """The prior for rewards measured in units of `reward_scale`, written for rewards as they are.

    The NormalGamma prior expects rewards of size one or so. Dividing all rewards by a scale and multiplying the values
    by it afterwards is the same as giving the prior the scaled mean and rate. `data` takes the root mean square of the
    logged rewards.
    """
    if reward_scale is None:
        return read_prior(prior, log)
    if prior == "logged":
        raise UserError(
            "The prior 'logged' takes its scale from the log: leave out reward_scale, or name another prior."
        )
    prior = read_prior(prior, log)
    scale = log.typical_reward() if reward_scale == "data" else reward_scale
    if not isinstance(scale, int | float | np.number) or not 0 < scale < np.inf:
        raise UserError(f"reward_scale must be 'data' or a positive number, not {shown(reward_scale)}.")
    return prior.scaled(float(scale))


def read_start(start: Any, log: LogStatistics) -> Float[np.ndarray, "S"]:
    """A distribution over first states from one state, from probabilities, or from the log."""
    if start is None:
        return log.start_distribution()
    if isinstance(start, str | int | np.integer):
        first = np.zeros(log.states)
        first[labels.find("state", start, log.states, log.state_labels, "start")] = 1.0
        return first
    start = np.asarray(start, dtype=np.float64)
    if start.shape != (log.states,) or (start < 0).any() or not np.isclose(start.sum(), 1):
        raise UserError(f"The start distribution must be {log.states} non-negative numbers with sum 1.")
    return start


def read_support(support: Any, log: LogStatistics, terminates: bool) -> tuple[np.ndarray, np.ndarray]:
    """The possible outcomes of each pair, from a SciPy matrix [S, S] or a table with state, next_state (and action).

    A pair that the table leaves out may lead to itself only; the end is always possible where episodes end.
    """
    if matrices.issparse(support):
        if support.shape != (log.states, log.states):
            raise UserError(f"The support must have the shape {(log.states, log.states)}, not {support.shape}.")
        state, following = support.nonzero()
        action = None
    else:
        source = f"{support}: " if isinstance(support, str | os.PathLike) else "The support: "
        frame = support if isinstance(support, pd.DataFrame) else read_table(support, ("state", "next_state"))
        state = _find_all(frame, "state", "state", log.states, log.state_labels, source)
        following = _find_all(frame, "next_state", "state", log.states, log.state_labels, source)
        by_action = "action" in frame
        action = _find_all(frame, "action", "action", log.actions, log.action_labels, source) if by_action else None
    if action is None:
        state, following = np.repeat(state, log.actions), np.repeat(following, log.actions)
        action = np.tile(np.arange(log.actions), len(state) // log.actions)
    row = state * log.actions + action
    left_out = np.setdiff1d(np.arange(log.states * log.actions), row)
    row, following = np.append(row, left_out), np.append(following, left_out // log.actions)
    if terminates:
        every = np.arange(log.states * log.actions)
        row, following = np.append(row, every), np.append(following, np.full(len(every), log.states))
    return row, following


def _find_all(frame: pd.DataFrame, column: str, kind: str, size: int, names: labels.Labels, source: str) -> np.ndarray:
    cells = list(frame[column])
    known = None if names is None else {name: number for number, name in enumerate(names)}
    found = np.zeros(len(cells), dtype=np.int64)
    for row, cell in enumerate(cells):
        text = labels.label_text(cell) or ""
        number = known.get(text, -1) if known is not None else int(text) if text.isascii() and text.isdigit() else -1
        if not 0 <= number < size:
            raise UserError(f"{source}row {row + 1} has {column} '{shown(cell)}', which is no {kind} of the data.")
        found[row] = number
    return found


def _sparse_belief(log: LogStatistics, terminates: bool, support) -> sparse.SparseBelief:
    rows, outcomes = log.states * log.actions, log.states + terminates
    row, outcome, count = log.cell_state * log.actions + log.cell_action, log.cell_outcome, log.cell_count
    if support is None:
        unseen = outcomes - np.bincount(row, minlength=rows)
    else:
        possible = np.unique(support[0] * outcomes + support[1])
        places = np.searchsorted(possible, row * outcomes + outcome).clip(max=len(possible) - 1)
        missing = np.flatnonzero(possible[places] != row * outcomes + outcome)
        if len(missing):
            at = missing[0]
            state, target = (labels.name_of(n, log.state_labels) for n in (log.cell_state[at], outcome[at]))
            action = labels.name_of(log.cell_action[at], log.action_labels)
            raise UserError(
                f"In the data state {state}, action {action} leads to {target}, which the support leaves out; add it."
            )
        counts = np.zeros(len(possible), dtype=np.int64)
        counts[places] = count
        row, outcome, count = possible // outcomes, possible % outcomes, counts
        unseen = np.zeros(rows, dtype=np.int64)
    rewards = np.zeros((3, rows))
    pair = log.pair_state * log.actions + log.pair_action
    rewards[:, pair] = log.pair_count, log.pair_mean, log.pair_squares
    first = np.append(0, np.cumsum(np.bincount(row, minlength=rows)))
    return sparse.SparseBelief(first, outcome, count, unseen, rewards, log.states)


def _check_numbering(log: LogStatistics) -> None:
    """Identifiers used as numbers of states leave huge gaps."""
    seen = len(np.union1d(log.pair_state, log.cell_outcome[log.cell_outcome < log.states]))
    if log.states > DENSE_STATES and seen < SMALLEST_SEEN * log.states:
        raise UserError(
            f"The data show {seen} of {log.states} states: number states 0, 1, 2, ... without gaps, or take them as "
            "labels (labels=True, --labels)."
        )
