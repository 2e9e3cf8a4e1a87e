"""Logs whose states are vectors of features (Box observations): validated rows, and the units that they come in."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bellief.errors import UserError
from bellief.logs.encode import Encoder, first_bad
from bellief.logs.feature_columns import NEXT, STATE, refuse_features, required_columns
from bellief.logs.tables import check_columns, to_numbers
from bellief.logs.tally import Tally
from bellief.logs.transitions import Transitions

# Squares of larger features would overflow when they are multiplied.
LARGEST_FEATURE = 1e50


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureTransitions(Transitions):
    """A log of `n` steps whose states have `D` features each; the rest is as in `Transitions`.

    Every way into `Transitions` gives one of these where states are vectors: arrays of the shape [n, D], columns
    `state_NAME` and `next_state_NAME` in the place of `state` and `next_state`, Minari datasets with Box observations.
    A step that ended an episode needs its last state, too: from it one learns what ends episodes.

    >>> import numpy as np
    >>> import bellief
    >>> states = np.array([[0.0, 1.0], [0.1, 0.9], [0.2, 0.8]])
    >>> log = bellief.Transitions.from_arrays(states[:-1], [0, 1], [1.0, 2.0], states[1:])
    >>> isinstance(log, bellief.FeatureTransitions), log.feature_names
    (True, ('0', '1'))
    """

    state: Float[np.ndarray, "n D"]
    next_state: Float[np.ndarray, "n D"]
    feature_names: tuple[str, ...] = ()

    @classmethod
    def _from_pieces(cls, pieces: Iterable[pd.DataFrame], encoder: Encoder) -> "FeatureTransitions":
        assert isinstance(encoder, FeatureEncoder)
        encoded = [encoder.encode_features(piece) for piece in pieces]
        actions, action_labels, new_actions = encoder.finish_actions()
        columns = FeatureColumns(*(np.concatenate(parts) for parts in zip(*encoded, strict=True)))
        action = columns.action if new_actions is None else new_actions[columns.action]
        return cls(
            **columns._replace(action=action)._asdict(),
            states=0,
            actions=actions,
            action_labels=action_labels,
            feature_names=encoder.names,
        )

    def tally(self) -> Tally:
        """Refused: counts belong to countable states."""
        refuse_features(self.feature_names)
        raise AssertionError

    @property
    def _tally(self) -> Tally:
        return self.tally()


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
        actions: int | Sequence[str] | None = None,
        labels: bool | None = None,
        source: str = "",
        states: Any = None,
    ):
        if states is not None:
            raise UserError(f"{source}states cannot be counted where they are vectors: leave their number out.")
        super().__init__(None, actions, labels, source)
        self.names = names

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that must be there."""
        return required_columns(self.names)

    def encode_features(self, frame: pd.DataFrame) -> FeatureColumns:
        """Check a piece. Row numbers in messages go on from the pieces before."""
        check_columns(frame, self.required, self.source)
        frame = frame.reset_index(drop=True)
        state, next_state = (self._features(frame, prefix) for prefix in (STATE, NEXT))
        if len(frame) == 0:
            none = np.zeros(0, dtype=bool)
            return FeatureColumns(state, none.astype(np.int64), none.astype(float), next_state, none, none)
        self.actions.decide(frame["action"])
        action = self.actions.indices(frame, "action", self.rows)
        terminated = self._flags(frame, "terminated")
        reward = self._rewards(frame)
        ended = terminated | self._flags(frame, "truncated")
        first = self._first(frame, state, next_state, ended)
        self.rows += len(frame)
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


class Units(NamedTuple):
    """What a log is measured in: location and scale of each feature, scale of rewards, and the box in these units."""

    location: Float[np.ndarray, "D"]
    scale: Float[np.ndarray, "D"]
    reward: float
    bounds: Float[np.ndarray, "2 D"]

    def standard(self, states: Float[np.ndarray, "*batch D"]) -> Float[np.ndarray, "*batch D"]:
        """States in these units."""
        return (states - self.location) / self.scale


def units_of(log: FeatureTransitions) -> Units:
    """The log's own: means and standard deviations of features, root mean square of rewards, the box of all states.

    A feature that never changes is measured in units of one.
    """
    every = np.concatenate([log.state, log.next_state])
    location, scale = every.mean(0), every.std(0)
    scale = np.where(scale > 1e-12 * np.maximum(np.abs(location), 1e-300), scale, 1.0)
    standard = (every - location) / scale
    low, high = standard.min(0), standard.max(0)
    flat = high - low <= 0
    reward = float(np.sqrt(np.mean(np.square(log.reward)))) or 1.0
    return Units(location, scale, reward, np.stack([np.where(flat, -1.0, low), np.where(flat, 1.0, high)]))
