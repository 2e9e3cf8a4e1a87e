"""Logged transitions, validated."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from bellief.errors import UserError
from bellief.logs.axes import Sizes
from bellief.logs.labels import Labels
from bellief.logs.origin import Origin
from bellief.logs.tally import Columns, Tally

if TYPE_CHECKING:
    import pandas as pd

    from bellief.logs.encode import Encoder


@dataclasses.dataclass(frozen=True, eq=False)
class Transitions:
    """A log of `n` steps. States and actions are indices; `first` marks the first step of each episode.

    `state_labels` and `action_labels` hold their names where the log had names instead of numbers.

    Every way in takes `states` and `actions`: a number, where there are more than the log shows, or a list of labels,
    which also fixes their order. Without them numbers run to the largest seen, and labels are sorted. `labels` says
    whether cells are labels (True) or numbers from 0 (False); without it the first row decides.

    A step that `terminated` may name the state in which the episode ended, which has no actions; where its cell is
    empty, `next_state` is -1. A step that was `truncated` ends the episode in the log but not in the environment: its
    next state counts as any other. Without `episode`, an
    episode begins with the first step, after an end, and wherever a step does not start in the state that the one
    before it led to.

    Where states are vectors, every way in gives `FeatureTransitions` instead.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays(
    ...     state=["low", "high", "high"],
    ...     action=["wait", "sell", "wait"],
    ...     reward=[0, 5, 1],
    ...     next_state=["high", "low", "high"],
    ... )
    >>> len(data), data.state_labels, data.action_labels
    (3, ('high', 'low'), ('sell', 'wait'))
    >>> data.behaviour().tolist(), data.visits().tolist()
    ([[0.5, 0.5], [0.0, 1.0]], [[1, 1], [0, 1]])
    >>> bellief.Transitions.from_arrays([0], [0], [float("nan")], [0])
    Traceback (most recent call last):
        ...
    bellief.errors.UserError: row 1 has reward 'nan'; it must be a finite number, at most 1e+100 in size.
    """

    state: Int[np.ndarray, "n"]
    action: Int[np.ndarray, "n"]
    reward: Float[np.ndarray, "n"]
    next_state: Int[np.ndarray, "n"]
    terminated: Bool[np.ndarray, "n"]
    first: Bool[np.ndarray, "n"]
    states: int
    actions: int
    state_labels: Labels = None
    action_labels: Labels = None
    origin: Origin = dataclasses.field(default_factory=Origin)

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
        truncated: Any = None,
        states: Sizes = None,
        actions: Sizes = None,
        labels: bool | None = None,
    ) -> "Transitions":
        """Build from sequences of equal length."""
        columns = {"state": state, "action": action, "reward": reward, "next_state": next_state}
        optional = {"terminated": terminated, "truncated": truncated, "episode": episode}
        columns |= {name: values for name, values in optional.items() if values is not None}
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        import pandas as pd

        if arrays["state"].ndim == 2:
            from bellief.logs.feature_columns import as_frame

            whole = as_frame(arrays.pop("state"), arrays.pop("next_state"), arrays)
            return cls.from_frame(whole, states=states, actions=actions, labels=labels)
        shapes = {name: values.shape for name, values in arrays.items()}
        if any(len(shape) != 1 for shape in shapes.values()) or len(set(shapes.values())) != 1:
            described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise UserError(f"The columns must be one-dimensional and of one length, but their shapes are {described}.")
        return cls.from_frame(pd.DataFrame(arrays), states=states, actions=actions, labels=labels)

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame",
        *,
        source: str = "",
        states: Sizes = None,
        actions: Sizes = None,
        labels: bool | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> "Transitions":
        """Validate a data frame. Rows are counted from 1 in messages; `source` (a file's name) precedes them."""
        from bellief.logs.sources import frame_log
        from bellief.logs.validate import rows_of

        return rows_of([frame_log(frame, columns, source)], states, actions, labels)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        states: Sizes = None,
        actions: Sizes = None,
        labels: bool | None = None,
    ) -> "Transitions":
        """Read a CSV file: state, action, reward, next_state; optionally terminated, truncated, episode, step.

        `Tally.from_file` is enough for values, and keeps no rows.
        """
        return _from_file(path, "csv", states=states, actions=actions, labels=labels)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        *,
        states: Sizes = None,
        actions: Sizes = None,
        labels: bool | None = None,
    ) -> "Transitions":
        """Read a Parquet file with the same columns as a CSV file's."""
        return _from_file(path, "parquet", states=states, actions=actions, labels=labels)

    @classmethod
    def from_minari(cls, dataset: Any, *, states: int | None = None, actions: int | None = None) -> "Transitions":
        """Read a Minari dataset (or the name of one on this machine) with Discrete actions."""
        from bellief.logs.sources import minari_log
        from bellief.logs.validate import rows_of

        return rows_of([minari_log(dataset)], states, actions, False)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike,
        *,
        states: Sizes = None,
        actions: Sizes = None,
        labels: bool | None = None,
    ) -> "Transitions":
        """Read a file, a glob, a folder or `minari:NAME`; see `as_transitions`."""
        return _from_file(path, None, states=states, actions=actions, labels=labels)

    @classmethod
    def _from_columns(cls, encoded: Sequence[Columns], encoder: "Encoder") -> "Transitions":
        encoder.check_rows()
        states, state_labels, new_states = encoder.states.finish()
        actions, action_labels, new_actions = encoder.actions.finish()
        whole = encoder.in_order(Columns(*(np.concatenate(parts) for parts in zip(*encoded, strict=True))))
        if new_states is not None:
            following = np.where(whole.next_state < 0, -1, new_states[whole.next_state])
            whole = whole._replace(state=new_states[whole.state], next_state=following)
        if new_actions is not None:
            whole = whole._replace(action=new_actions[whole.action])
        return cls(*whole, states, actions, state_labels, action_labels)

    @functools.cached_property
    def _tally(self) -> Tally:
        columns = Columns(self.state, self.action, self.reward, self.next_state, self.terminated, self.first)
        return dataclasses.replace(
            Tally.from_rows(columns, self.states, self.actions, self.state_labels, self.action_labels),
            origin=self.origin,
        )

    def tally(self) -> Tally:
        """What a tabular belief learns from the log: counts and reward moments."""
        return self._tally

    def statistics(self) -> Tally:
        """The same as `tally`."""
        return self.tally()

    def visits(self) -> Int[np.ndarray, "S A"]:
        """How often each action was taken in each state."""
        return self._tally.visits()

    def behaviour(self) -> Float[np.ndarray, "S A"]:
        """Observed frequency of each action in each state; uniform where a state was never seen."""
        return self._tally.behaviour()

    def start_distribution(self) -> Float[np.ndarray, "S"]:
        """Observed frequency of each state at the beginning of an episode."""
        return self._tally.start_distribution()


def _from_file(path: str | os.PathLike, format: str | None, **options: Any) -> Transitions:
    from bellief.logs.read import as_transitions

    return as_transitions(path, format=format, **options)
