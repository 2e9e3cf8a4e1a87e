"""From raw pieces of a table to validated columns: the one gate through which every log comes in.

A log arrives as one data frame or as many pieces of a file too large for memory; both go through the same checks, and
messages count rows over all pieces.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bellief.errors import UserError
from bellief.logs.labels import Labels, label_text, natural_order
from bellief.logs.tables import check_columns, shown, to_numbers, to_text

REQUIRED = ("state", "action", "reward", "next_state")
OPTIONAL = ("terminated", "truncated", "episode")
_TRUE, _FALSE = {"true", "t", "1", "1.0", "yes", "y"}, {"false", "f", "0", "0.0", "no", "n", ""}

# Indices beyond this would ask for tables that no machine holds; it is almost always an identifier that was not
# turned into an index.
LARGEST_INDEX = 1_000_000

# Sums of squares of larger rewards would overflow.
LARGEST_REWARD = 1e100


class Columns(NamedTuple):
    """Validated rows. Until the last piece has been read, labels are numbered in the order of their appearance."""

    state: Int[np.ndarray, "n"]
    action: Int[np.ndarray, "n"]
    reward: Float[np.ndarray, "n"]
    next_state: Int[np.ndarray, "n"]
    terminated: Bool[np.ndarray, "n"]
    first: Bool[np.ndarray, "n"]


class _Axis:
    """States or actions: whether they are numbers or labels, and how many there are.

    Without being told (`labels`), the first row decides: a number there means that all are numbers.
    """

    def __init__(self, kind: str, announced: int | Sequence[str] | None, labels: bool | None, source: str):
        self.kind, self.source = kind, source
        self.size = announced if isinstance(announced, int | np.integer) else None
        self.named: dict[str, int] | None = {} if labels else None
        self.decided = labels is not None
        self.fixed = False
        self.largest, self.largest_at = -1, ("", 0)
        if isinstance(announced, str):
            raise UserError(f"{kind}s must be a number or a list of labels, not the text '{shown(announced)}'.")
        if isinstance(announced, Sequence):
            self._announce([label_text(label) or "" for label in announced])
        elif self.size is not None and self.size < 1:
            raise UserError(f"{kind}s must be at least 1, not {self.size}.")

    def _announce(self, labels: list[str]) -> None:
        if "" in labels or len(set(labels)) < len(labels) or not labels:
            raise UserError(f"The labels of {self.kind}s must be texts or whole numbers, all different.")
        self.named, self.decided, self.fixed = {label: number for number, label in enumerate(labels)}, True, True

    def decide(self, *columns: pd.Series) -> None:
        """Look at the first row, once."""
        if not self.decided:
            cells = [label_text(column.iloc[0]) for column in columns if isinstance(column.iloc[0], str)]
            if any(cell and np.isnan(to_numbers(pd.Series([cell]))[0]) for cell in cells):
                self.named = {}
            self.decided = True

    def indices(self, frame: pd.DataFrame, column: str, row: int, idle: np.ndarray | None = None) -> np.ndarray:
        """A column as indices; `row` is how many rows came before it, and `idle` marks cells that do not matter.

        Idle cells may be empty, and name a state that was not announced; both come back as -1.
        """
        none = np.zeros(len(frame), dtype=bool) if idle is None else idle
        read = self._numbers if self.named is None else self._labels
        return read(frame, column, row, none)

    def _numbers(self, frame: pd.DataFrame, column: str, row: int, idle: np.ndarray) -> np.ndarray:
        numbers = to_numbers(frame[column])
        with np.errstate(invalid="ignore"):
            bad = ~np.isfinite(numbers) | (numbers < 0) | (numbers != np.floor(numbers)) | (numbers > LARGEST_INDEX)
        empty = _empty(frame[column], idle & np.isnan(numbers))
        bad &= ~empty
        if bad.any():
            need = f"it must be a whole number from 0 to {LARGEST_INDEX}"
            if column != "next_state":
                need += f", or all {self.kind}s must be taken as labels (labels=True, --labels)"
            raise first_bad(frame, column, bad, row, self.source, need)
        indices = np.where(empty, -1, np.nan_to_num(numbers)).astype(np.int64)
        if indices.max() > self.largest:
            self.largest, self.largest_at = int(indices.max()), (column, row + int(indices.argmax()) + 1)
        if self.size is not None and self.largest >= self.size:
            raise UserError(
                f"{self.source}row {self.largest_at[1]} has {column} {self.largest}, outside the {self.size} "
                f"{self.kind}s that were announced; announce at least {self.largest + 1} {self.kind}s, or correct "
                "the row."
            )
        return indices

    def _labels(self, frame: pd.DataFrame, column: str, row: int, idle: np.ndarray) -> np.ndarray:
        known = self.named
        assert known is not None
        cells = frame[column]
        if cells.dtype == object:  # may hold lists, which cannot be told apart by hashing
            cells = pd.Series([label_text(cell) for cell in cells], dtype=object)
        codes, distinct = pd.factorize(cells)
        texts = [label_text(cell) for cell in distinct]
        bad = np.array([text is None for text in texts] + [True])[codes]  # code -1, a missing cell, is the last
        bad &= ~_empty(frame[column], bad & idle)
        if bad.any():
            raise first_bad(frame, column, bad, row, self.source, "a label must be text or a whole number")
        # In the order of their appearance; the last entry is for cells without a label. A state that was not announced
        # is refused unless episodes only end in it.
        used = np.zeros(len(texts) + 1, dtype=bool)
        used[codes[~idle] if self.fixed else codes] = True
        for text, is_used in zip(texts, used, strict=False):
            if is_used and text is not None and text not in known:
                if self.fixed:
                    wrong = np.array([label_text(cell) == text for cell in frame[column]])
                    need = f"it is not among the {self.kind}s that were announced"
                    raise first_bad(frame, column, wrong, row, self.source, need)
                known[str(text)] = len(known)
        return np.array([known.get(str(text), -1) for text in texts] + [-1], dtype=np.int64)[codes]

    def finish(self) -> tuple[int, Labels, np.ndarray | None]:
        """How many there are, their labels in order, and (for labels) the new number of each old one."""
        if self.named is None:
            return (self.largest + 1 if self.size is None else int(self.size)), None, None
        labels = list(self.named) if self.fixed else natural_order(list(self.named))
        if self.size is not None and self.size != len(labels):
            raise UserError(
                f"{self.source}the data name {len(labels)} {self.kind}s and {self.size} were announced; announce the "
                "labels themselves, or leave the number out."
            )
        place = {label: number for number, label in enumerate(labels)}
        return len(labels), tuple(labels), np.array([place[label] for label in self.named], dtype=np.int64)


class Encoder:
    """Feeds on pieces of a table and gives back validated columns."""

    def __init__(
        self,
        states: int | Sequence[str] | None = None,
        actions: int | Sequence[str] | None = None,
        labels: bool | None = None,
        source: str = "",
    ):
        self.source, self.rows = source, 0
        self.states = _Axis("state", states, labels, source)
        self.actions = _Axis("action", actions, labels, source)
        self._episodes = np.zeros(0, dtype=np.uint64)
        self._last: tuple[bool, np.ndarray] | None = None

    def encode(self, frame: pd.DataFrame) -> Columns:
        """Check a piece. Row numbers in messages go on from the pieces before."""
        check_columns(frame, REQUIRED, self.source)
        frame = frame.reset_index(drop=True)
        if len(frame) == 0:
            empty = np.zeros(0, dtype=np.int64)
            return Columns(empty, empty, empty.astype(float), empty, empty.astype(bool), empty.astype(bool))
        self.states.decide(frame["state"], frame["next_state"])
        self.actions.decide(frame["action"])
        state = self.states.indices(frame, "state", self.rows)
        action = self.actions.indices(frame, "action", self.rows)
        terminated = self._flags(frame, "terminated")
        next_state = self.states.indices(frame, "next_state", self.rows, idle=terminated)
        reward = self._rewards(frame)
        ended = terminated | self._flags(frame, "truncated")
        first = self._first(frame, state, next_state, ended)
        self.rows += len(frame)
        return Columns(state, action, reward, next_state, terminated, first)

    def finish(self) -> tuple[int, int, Labels, Labels, np.ndarray | None, np.ndarray | None]:
        """Numbers of states and actions, their labels, and the new numbers of both; there must have been a row."""
        self._check_rows()
        states, state_labels, new_states = self.states.finish()
        actions, action_labels, new_actions = self.actions.finish()
        return states, actions, state_labels, action_labels, new_states, new_actions

    def finish_actions(self) -> tuple[int, Labels, np.ndarray | None]:
        """Number of actions, their labels, and their new numbers; there must have been a row."""
        self._check_rows()
        return self.actions.finish()

    def _check_rows(self) -> None:
        if self.rows == 0:
            raise UserError(f"{self.source}there are no transitions; at least one row is needed.")

    def _rewards(self, frame: pd.DataFrame) -> Float[np.ndarray, "n"]:
        numbers = to_numbers(frame["reward"])
        bad = ~(np.abs(numbers) <= LARGEST_REWARD)
        if bad.any():
            need = f"it must be a finite number, at most {LARGEST_REWARD:g} in size"
            raise first_bad(frame, "reward", bad, self.rows, self.source, need)
        return numbers

    def _flags(self, frame: pd.DataFrame, column: str) -> Bool[np.ndarray, "n"]:
        if column not in frame:
            return np.zeros(len(frame), dtype=bool)
        if frame[column].dtype == bool:
            return frame[column].to_numpy()
        text = to_text(frame[column]).str.strip().str.lower()
        true, false = text.isin(_TRUE).to_numpy(), text.isin(_FALSE).to_numpy()
        if not (true | false).all():
            need = "it must be true or false (or 1 or 0)"
            raise first_bad(frame, column, ~(true | false), self.rows, self.source, need)
        return true

    def _first(self, frame: pd.DataFrame, state, next_state, ended) -> Bool[np.ndarray, "n"]:
        """Where an episode begins: a name not seen before or, without names, after an end and wherever a step does not
        start in the state that the one before it led to.
        """
        if "episode" not in frame:
            before, came_from = (True, next_state[:1]) if self._last is None else self._last
            self._last = bool(ended[-1]), next_state[-1:]
            # Numbers of states must agree exactly; features are often written with fewer digits.
            allowed = 1e-6 if state.dtype.kind == "f" else 0
            jumped = ~np.isclose(state, np.concatenate([came_from, next_state[:-1]]), rtol=allowed, atol=0)
            return np.append(before, ended[:-1]) | jumped.reshape(len(state), -1).any(1)
        names = frame["episode"]
        if names.dtype.kind not in "iu":
            names = to_text(names)
        # Eight bytes for each episode are all that is kept of their names.
        hashes = pd.util.hash_array(names.to_numpy())
        first = ~pd.Series(hashes).duplicated().to_numpy()
        places = np.searchsorted(self._episodes, hashes).clip(max=max(len(self._episodes) - 1, 0))
        if len(self._episodes):
            first &= self._episodes[places] != hashes
        self._episodes = np.union1d(self._episodes, hashes[first])
        return first


def _empty(cells: pd.Series, candidates: Bool[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    """Which of the candidates are gaps, as people and pandas write them."""
    gaps = candidates.copy()
    for place, cell in zip(np.flatnonzero(candidates), cells[candidates], strict=True):
        gaps[place] = cell is None or cell is pd.NA or cell is pd.NaT or str(cell).strip().lower() in ("", "nan")
    return gaps


def first_bad(frame: pd.DataFrame, column: str, bad: np.ndarray, row: int, source: str, need: str) -> UserError:
    """The mistake in the first bad row, `row` rows having come before this piece."""
    place = int(np.flatnonzero(bad)[0])
    return UserError(f"{source}row {row + place + 1} has {column} '{shown(frame[column].iloc[place])}'; {need}.")
