"""Rows of logs whose states are vectors, validated."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bellief.errors import UserError
from bellief.logs.axes import Sizes
from bellief.logs.encode import Encoder, first_bad
from bellief.logs.feature_columns import NEXT, STATE
from bellief.logs.tables import to_numbers

# Squares of larger features would overflow when they are multiplied.
LARGEST_FEATURE = 1e50


class FeatureColumns(NamedTuple):
    """Validated rows."""

    state: Float[np.ndarray, "n D"]
    action: Int[np.ndarray, "n"]
    reward: Float[np.ndarray, "n"]
    next_state: Float[np.ndarray, "n D"]
    terminated: Bool[np.ndarray, "n"]
    first: Bool[np.ndarray, "n"]


class FeatureEncoder(Encoder):
    """Feeds on pieces of a table with feature columns and gives back validated rows."""

    def __init__(
        self,
        names: tuple[str, ...],
        actions: Sizes = None,
        labels: bool | None = None,
        source: str = "",
        states: Any = None,
    ):
        if states is not None:
            raise UserError(f"{source}states cannot be counted where they are vectors: leave their number out.")
        super().__init__(None, actions, labels, source)
        self.names = names

    def encode_features(self, frame: pd.DataFrame) -> FeatureColumns:
        """Check a piece. Row numbers in messages go on from the pieces before."""
        frame = frame.reset_index(drop=True)
        state, next_state = (self._features(frame, prefix) for prefix in (STATE, NEXT))
        if len(frame) == 0:
            none = np.zeros(0, dtype=bool)
            return FeatureColumns(state, none.astype(np.int64), none.astype(float), next_state, none, none)
        self.actions.decide(frame["action"])
        action = self.actions.indices(frame, "action", self.rows)
        terminated, truncated = self._ends(frame)
        reward = self._rewards(frame)
        first = self._first(frame, state, next_state, terminated | truncated)
        self._count(frame)
        return FeatureColumns(state, action, reward, next_state, terminated, first)

    def _features(self, frame: pd.DataFrame, prefix: str) -> Float[np.ndarray, "n D"]:
        found = np.zeros((len(frame), len(self.names)))
        for place, name in enumerate(self.names):
            found[:, place] = numbers = to_numbers(frame[prefix + name])
            bad = ~(np.abs(numbers) <= LARGEST_FEATURE)
            if bad.any():
                need = f"it must be a finite number, at most {LARGEST_FEATURE:g} in size"
                need += ", also where the episode ended" if prefix == NEXT else ""
                raise first_bad(frame, prefix + name, bad, self.rows, self.source, need)
        return found
