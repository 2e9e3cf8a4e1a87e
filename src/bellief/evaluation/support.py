"""The possible next states, where the user gives them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellief.errors import UserError
from bellief.logs.labels import Labels, label_text, shown
from bellief.logs.tally import Tally

if TYPE_CHECKING:
    import pandas as pd


def read_support(support: Any, log: Tally, terminates: bool) -> tuple[np.ndarray, np.ndarray]:
    """The possible outcomes of each pair, from a SciPy matrix [S, S] or a table with state, next_state (and action).

    A pair that the table leaves out may lead to itself only; the end is always possible where episodes end.
    """
    import pandas as pd
    from scipy import sparse

    from bellief.logs.tables import read_table

    if sparse.issparse(support):
        if support.shape != (log.states, log.states):
            raise UserError(f"The support must have the shape {(log.states, log.states)}, not {support.shape}.")
        state, following = support.nonzero()
        action = None
    else:
        if not isinstance(support, str | os.PathLike | pd.DataFrame):
            raise UserError("The support must be a table, the path of a CSV file, or a SciPy matrix.")
        source = f"{support}: " if isinstance(support, str | os.PathLike) else "The support: "
        frame = support if isinstance(support, pd.DataFrame) else read_table(Path(support), ("state", "next_state"))
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


def _find_all(frame: "pd.DataFrame", column: str, kind: str, size: int, names: Labels, source: str) -> np.ndarray:
    cells = list(frame[column])
    known = None if names is None else {name: number for number, name in enumerate(names)}
    found = np.zeros(len(cells), dtype=np.int64)
    for row, cell in enumerate(cells):
        text = label_text(cell) or ""
        number = known.get(text, -1) if known is not None else int(text) if text.isascii() and text.isdigit() else -1
        if not 0 <= number < size:
            raise UserError(f"{source}row {row + 1} has {column} '{shown(cell)}', which is no {kind} of the data.")
        found[row] = number
    return found
