"""From raw pieces of a table to validated columns: the one gate through which every log comes in.

A log arrives as one data frame or as many pieces of a file too large for memory; both go through the same checks, and
messages count rows over all pieces.
"""

import re
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from bellief.errors import UserError
from bellief.logs.axes import LARGEST_INDEX, Axis, Sizes
from bellief.logs.fold import FALSE, LARGEST_REWARD, TRUE
from bellief.logs.labels import LONGEST_LABEL, label_text, shown
from bellief.logs.tables import to_numbers, to_text
from bellief.logs.tally import Columns

ColumnsOfAnyKind = TypeVar("ColumnsOfAnyKind", bound=Any)

# A whole number with a zero in front is a code, and would become another number's.
_PADDED = re.compile(r"\s*[+-]?0[0-9]")


class RowAxis(Axis):
    """States or actions of a log that is read row by row, where the first mistake is to be named."""

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
        if frame[column].dtype.kind not in "iufb":
            bad |= np.array([isinstance(cell, str) and _PADDED.match(cell) is not None for cell in frame[column]])
        if bad.any():
            need = f"it must be a whole number from 0 to {LARGEST_INDEX}, without zeros in front"
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
        long = np.array([text is not None and len(text) > LONGEST_LABEL for text in texts] + [False])[codes]
        if long.any():
            need = f"a label has at most {LONGEST_LABEL} characters: give such {self.kind}s shorter names"
            raise first_bad(frame, column, long, row, self.source, need)
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
        self.check_number()
        return np.array([known.get(str(text), -1) for text in texts] + [-1], dtype=np.int64)[codes]


class Encoder:
    """Feeds on pieces of a table and gives back validated columns."""

    def __init__(self, states: Sizes = None, actions: Sizes = None, labels: bool | None = None, source: str = ""):
        self.source, self.rows, self.total = source, 0, 0
        self.states = RowAxis("state", states, labels, source)
        self.actions = RowAxis("action", actions, labels, source)
        self.episodes: list[np.ndarray] = []
        self.steps: list[np.ndarray] = []
        self._seen = np.zeros(0, dtype=np.uint64)
        self._last: tuple[bool, np.ndarray] | None = None

    def begin(self, source: str, row: int = 0) -> None:
        """Go on with another file: messages name it and count its rows after `row`."""
        self.source = self.states.source = self.actions.source = source
        self.rows = row

    def encode(self, frame: pd.DataFrame) -> Columns:
        """Check a piece. Row numbers in messages go on from the pieces before."""
        frame = frame.reset_index(drop=True)
        if len(frame) == 0:
            empty = np.zeros(0, dtype=np.int64)
            return Columns(empty, empty, empty.astype(float), empty, empty.astype(bool), empty.astype(bool))
        self.states.decide(frame["state"], frame["next_state"])
        self.actions.decide(frame["action"])
        state = self.states.indices(frame, "state", self.rows)
        action = self.actions.indices(frame, "action", self.rows)
        terminated, truncated = self._ends(frame)
        next_state = self.states.indices(frame, "next_state", self.rows, idle=terminated)
        reward = self._rewards(frame)
        first = self._first(frame, state, next_state, terminated | truncated)
        self._count(frame)
        return Columns(state, action, reward, next_state, terminated, first)

    def check_rows(self) -> None:
        """There must have been a row."""
        if self.total == 0:
            raise UserError(f"{self.source}there are no transitions; at least one row is needed.")

    def _count(self, frame: pd.DataFrame) -> None:
        self.rows += len(frame)
        self.total += len(frame)

    def _ends(self, frame: pd.DataFrame) -> tuple[Bool[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
        """Where episodes ended in the world, and where only the log broke off; `done` means either."""
        truncated = self._flags(frame, "truncated")
        terminated = self._flags(frame, "done") & ~truncated if "done" in frame else self._flags(frame, "terminated")
        return terminated, truncated

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
        true, false = text.isin(TRUE).to_numpy(), text.isin(FALSE).to_numpy()
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
        # Eight bytes for each episode are all that is kept of their names; 7 and the text 7 are one name.
        codes, distinct = pd.factorize(names)
        hashes = pd.util.hash_array(np.array([str(name).strip() for name in distinct], dtype=object))[codes]
        first = ~pd.Series(hashes).duplicated().to_numpy()
        places = np.searchsorted(self._seen, hashes).clip(max=max(len(self._seen) - 1, 0))
        if len(self._seen):
            first &= self._seen[places] != hashes
        self._seen = np.union1d(self._seen, hashes[first])
        if "step" in frame:
            self.episodes.append(hashes)
            steps = to_numbers(frame["step"])
            if not np.isfinite(steps).all():
                raise first_bad(frame, "step", ~np.isfinite(steps), self.rows, self.source, "it must be a number")
            self.steps.append(steps)
        return first

    def in_order(self, rows: ColumnsOfAnyKind) -> ColumnsOfAnyKind:
        """All rows, episode by episode and step by step, where the log has both columns."""
        if not self.steps:
            return rows
        _, appeared, episode = np.unique(np.concatenate(self.episodes), return_index=True, return_inverse=True)
        order = np.lexsort((np.concatenate(self.steps), appeared[episode]))
        episode = episode[order]
        first = np.append(True, episode[1:] != episode[:-1])
        return rows._replace(
            first=first, **{name: getattr(rows, name)[order] for name in rows._fields if name != "first"}
        )


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
