"""Logged transitions, validated: what comes out of here can be trusted by everything after it."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bellief.errors import UserError
from bellief.offline.tables import check_columns, read_table, shown, to_numbers, to_text

REQUIRED = ("state", "action", "reward", "next_state")
OPTIONAL = ("terminated", "episode")
_TRUE, _FALSE = {"true", "t", "1", "1.0", "yes", "y"}, {"false", "f", "0", "0.0", "no", "n", ""}

# Indices beyond this would ask for tables that no machine holds; it is almost always an identifier that was not
# turned into an index.
LARGEST_INDEX = 1_000_000

# Sums of squares of larger rewards would overflow.
LARGEST_REWARD = 1e100


@dataclasses.dataclass(frozen=True, eq=False)
class Transitions:
    """A log of `n` steps. States and actions are indices; `first` marks the first step of each episode."""

    state: Int[np.ndarray, "n"]
    action: Int[np.ndarray, "n"]
    reward: Float[np.ndarray, "n"]
    next_state: Int[np.ndarray, "n"]
    terminated: Bool[np.ndarray, "n"]
    first: Bool[np.ndarray, "n"]
    states: int
    actions: int

    def __len__(self) -> int:
        return len(self.state)

    @classmethod
    def from_arrays(
        cls,
        state: Any,
        action: Any,
        reward: Any,
        next_state: Any,
        terminated: Any = None,
        episode: Any = None,
        *,
        states: int | None = None,
        actions: int | None = None,
    ) -> "Transitions":
        """Build from sequences of equal length. `states` and `actions` default to one more than the largest seen.

        Without `episode`, an episode begins with the first step, after an end, and wherever a step does not start in
        the state that the one before it led to.
        """
        columns = {"state": state, "action": action, "reward": reward, "next_state": next_state}
        if terminated is not None:
            columns["terminated"] = terminated
        if episode is not None:
            columns["episode"] = episode
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        lengths = {name: values.shape for name, values in arrays.items()}
        if any(len(shape) != 1 for shape in lengths.values()) or len(set(lengths.values())) != 1:
            described = ", ".join(f"{name} {shape}" for name, shape in lengths.items())
            raise UserError(f"The columns must be one-dimensional and of one length, but their shapes are {described}.")
        return cls.from_frame(pd.DataFrame(arrays), states=states, actions=actions)

    @classmethod
    def from_csv(cls, path: str | Path, *, states: int | None = None, actions: int | None = None) -> "Transitions":
        """Read a CSV file with the columns state, action, reward, next_state and optionally terminated, episode."""
        return cls.from_frame(read_table(path, REQUIRED), source=f"{path}: ", states=states, actions=actions)

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, source: str = "", states: int | None = None, actions: int | None = None
    ) -> "Transitions":
        """Validate a data frame. Rows are counted from 1 in messages; `source` (a file's name) precedes them."""
        check_columns(frame, REQUIRED, source)
        if len(frame) == 0:
            raise UserError(f"{source}there are no transitions; at least one row is needed.")
        state = _indices(frame, "state", source)
        action = _indices(frame, "action", source)
        next_state = _indices(frame, "next_state", source)
        reward = _rewards(frame, source)
        terminated = _flags(frame, source) if "terminated" in frame else np.zeros(len(frame), dtype=bool)
        states = _size("states", states, {"state": state, "next_state": next_state}, source)
        actions = _size("actions", actions, {"action": action}, source)
        if "episode" in frame:
            first = ~to_text(frame["episode"]).duplicated().to_numpy()
        else:
            first = np.ones(len(frame), dtype=bool)
            first[1:] = terminated[:-1] | (state[1:] != next_state[:-1])
        return cls(state, action, reward, next_state, terminated, first, states, actions)

    def visits(self) -> Int[np.ndarray, "S A"]:
        """How often each action was taken in each state."""
        table = np.zeros((self.states, self.actions), dtype=np.int64)
        np.add.at(table, (self.state, self.action), 1)
        return table

    def behaviour(self) -> Float[np.ndarray, "S A"]:
        """Observed frequency of each action in each state; uniform where a state was never seen."""
        visits = self.visits().astype(float)
        seen = visits.sum(-1, keepdims=True)
        return np.where(seen > 0, visits / np.maximum(seen, 1), 1 / self.actions)

    def start_distribution(self) -> Float[np.ndarray, "S"]:
        """Observed frequency of each state at the beginning of an episode."""
        return np.bincount(self.state[self.first], minlength=self.states) / self.first.sum()


def _first_bad(frame: pd.DataFrame, column: str, bad: np.ndarray, source: str, need: str) -> UserError:
    row = int(np.flatnonzero(bad)[0])
    return UserError(f"{source}row {row + 1} has {column} '{shown(frame[column].iloc[row])}'; {need}.")


def _indices(frame: pd.DataFrame, column: str, source: str) -> Int[np.ndarray, "n"]:
    numbers = to_numbers(frame[column])
    with np.errstate(invalid="ignore"):
        bad = ~np.isfinite(numbers) | (numbers < 0) | (numbers != np.floor(numbers)) | (numbers > LARGEST_INDEX)
    if bad.any():
        need = f"it must be a whole number from 0 to {LARGEST_INDEX}"
        raise _first_bad(frame, column, bad, source, need)
    return numbers.astype(np.int64)


def _rewards(frame: pd.DataFrame, source: str) -> Float[np.ndarray, "n"]:
    numbers = to_numbers(frame["reward"])
    bad = ~(np.abs(numbers) <= LARGEST_REWARD)
    if bad.any():
        need = f"it must be a finite number, at most {LARGEST_REWARD:g} in size"
        raise _first_bad(frame, "reward", bad, source, need)
    return numbers


def _flags(frame: pd.DataFrame, source: str) -> Bool[np.ndarray, "n"]:
    text = to_text(frame["terminated"]).str.strip().str.lower()
    true, false = text.isin(_TRUE).to_numpy(), text.isin(_FALSE).to_numpy()
    if not (true | false).all():
        raise _first_bad(frame, "terminated", ~(true | false), source, "it must be true or false (or 1 or 0)")
    return true


def _size(what: str, given: int | None, columns: dict[str, np.ndarray], source: str) -> int:
    needed = max(int(values.max()) for values in columns.values()) + 1
    if given is None:
        return needed
    if given < needed:
        column, values = max(columns.items(), key=lambda item: item[1].max())
        row = int(np.argmax(values))
        raise UserError(
            f"{source}row {row + 1} has {column} {values[row]}, outside the {given} {what} that were announced; "
            f"announce at least {needed} {what}, or correct the row."
        )
    return given
