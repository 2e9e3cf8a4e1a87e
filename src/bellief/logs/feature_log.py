"""Logs whose states are vectors of features (Box observations): validated rows, and the units that they come in."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.logs.feature_columns import refuse_features
from bellief.logs.tally import Tally
from bellief.logs.transitions import Transitions

if TYPE_CHECKING:
    from bellief.logs.feature_encode import FeatureColumns, FeatureEncoder


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureTransitions(Transitions):
    """A log of `n` steps whose states have `D` features each; the rest is as in `Transitions`.

    Every way into `Transitions` gives one of these where states are vectors: arrays of the shape [n, D], columns
    `state_NAME` and `next_state_NAME` in the place of `state` and `next_state`, Minari datasets with Box observations.
    A step that ended an episode needs its last state, too: the boundary at which episodes end is learned from it.

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
    def _from_features(cls, encoded: "Sequence[FeatureColumns]", encoder: "FeatureEncoder") -> "FeatureTransitions":
        encoder.check_rows()
        actions, action_labels, new_actions = encoder.actions.finish()
        columns = encoder.in_order(type(encoded[0])(*(np.concatenate(parts) for parts in zip(*encoded, strict=True))))
        action = columns.action if new_actions is None else new_actions[columns.action]
        return cls(
            **columns._replace(action=action)._asdict(),
            states=0,
            actions=actions,
            action_labels=action_labels,
            feature_names=encoder.names,
        )

    def tally(self) -> Tally:
        """Raises an error: only countable states have counts."""
        refuse_features(self.feature_names)
        raise AssertionError

    @property
    def _tally(self) -> Tally:
        return self.tally()


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
