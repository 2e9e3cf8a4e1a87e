"""Columns of logs whose states are vectors: `state_NAME` and `next_state_NAME` for every feature."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellief.errors import UserError
from bellief.logs.labels import shown

if TYPE_CHECKING:
    import pandas as pd

STATE, NEXT = "state_", "next_state_"


def required_columns(names: Sequence[str]) -> tuple[str, ...]:
    """The columns that a log with these features needs."""
    return (*(STATE + name for name in names), "action", "reward", *(NEXT + name for name in names))


def feature_names(columns: Iterable[Any], source: str = "") -> tuple[str, ...]:
    """Names of the features of a table; none where it has a column `state`, or no feature columns."""
    texts = [str(column) for column in columns]
    if "state" in texts or "next_state" in texts:
        return ()
    names = tuple(text.removeprefix(STATE) for text in texts if text.startswith(STATE))
    followed = {text.removeprefix(NEXT) for text in texts if text.startswith(NEXT)}
    for name in names:
        if name not in followed:
            raise UserError(f"{source}there is a column '{shown(STATE + name)}' and no '{shown(NEXT + name)}'; add it.")
    return names


def refuse_features(names: Sequence[str], source: str = "") -> None:
    """Raise an error where states are vectors, which cannot be counted."""
    if names:
        raise UserError(
            f"{source}the states of this log are vectors ({', '.join(map(shown, names[:4]))}), and only evaluate works "
            "with those; for anything else cut them into bins."
        )


def as_frame(state: np.ndarray, next_state: np.ndarray, columns: dict[str, np.ndarray]) -> "pd.DataFrame":
    """Arrays of the shape [n, D] as a table with one column for each feature."""
    import pandas as pd

    if state.shape != next_state.shape:
        raise UserError(
            f"States have the shape {state.shape} and next states {next_state.shape}: both need one row for each step "
            "and one column for each feature."
        )
    wrong = {name: values.shape for name, values in columns.items() if values.shape != (len(state),)}
    if wrong:
        name, shape = next(iter(wrong.items()))
        raise UserError(
            f"The column {name} must be one-dimensional with one entry for each of the {len(state)} states, and its "
            f"shape is {shape}."
        )
    dimensions = range(state.shape[1])
    frame = {f"{STATE}{place}": state[:, place] for place in dimensions}
    return pd.DataFrame(frame | columns | {f"{NEXT}{place}": next_state[:, place] for place in dimensions})
