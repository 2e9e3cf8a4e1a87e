"""A log in any of its forms, as counts or as rows."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bellief.errors import UserError
from bellief.logs.axes import Sizes
from bellief.logs.count_files import Reading, has_features, rows_of, tally_of
from bellief.logs.labels import shown
from bellief.logs.opened_files import opened
from bellief.logs.tally import Tally

if TYPE_CHECKING:
    from bellief.logs.transitions import Transitions

ENGINES = ("local", "ray")


def as_tally(
    data: Any,
    *,
    states: Sizes = None,
    actions: Sizes = None,
    labels: bool | None = None,
    columns: Mapping[str, str] | None = None,
    query: str | None = None,
    database: str | os.PathLike | None = None,
    engine: str = "local",
    address: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Tally:
    """Counts of a log, from any of its forms.

    - `data`: a path, a glob, a folder, or a list of these (CSV, Parquet, JSON lines; .gz and .zst); `minari:NAME` or a
      Minari dataset; a pandas, Polars or Arrow table; a DuckDB relation; `Transitions`; a `Tally`, or files of those.
    - `states`, `actions`, `labels`: as in `Transitions`.
    - `columns`: the column for some of the roles (state, action, reward, next_state, terminated, done, truncated,
      episode, step), where they do not have the usual names.
    - `query`: SQL whose result is the log, over files that it names or over the tables of `database`, a DuckDB file,
      which is opened for reading only. Then `data` is None.
    - `engine`: local, or ray with the `address` of a cluster whose machines all see the files.
    - `threads`: by default as many as there are processors; the result is the same.
    - `progress`: called with the finished fraction.

    Files are read in the order of their names, as one log. Rows are not kept, and memory is bounded for any number of
    rows: what does not fit goes into a temporary folder.

    >>> import bellief
    >>> import pandas as pd
    >>> table = {"obs": [0, 1], "action": [0, 0], "reward": [0.0, 1.0], "next_obs": [1, 1], "done": [0, 1]}
    >>> tally = bellief.as_tally(pd.DataFrame(table))
    >>> tally.cell_next.tolist(), tally.cell_terminated.tolist(), tally.origin.columns["state"]
    ([1, 1], [False, True], 'obs')
    """
    reading = Reading(states, actions, labels, columns, engine, address, threads, progress)
    _check_engine(reading)
    if hasattr(data, "tally"):
        _refuse_options(reading)
        return data.tally()
    with opened(data, columns, query, database) as found:
        return tally_of(found, reading)


def as_transitions(
    data: Any,
    *,
    states: Sizes = None,
    actions: Sizes = None,
    labels: bool | None = None,
    columns: Mapping[str, str] | None = None,
    query: str | None = None,
    database: str | os.PathLike | None = None,
    format: str | None = None,
) -> "Transitions":
    """Rows of a log, for results that depend on their order; the arguments are those of `as_tally`.

    Where states are vectors, `FeatureTransitions`. `format` (csv, parquet, json) overrides the ending of a file's name.

    >>> import bellief
    >>> import pandas as pd
    >>> table = {"state": [0, 1], "action": [0, 0], "reward": [0.0, 1.0], "next_state": [1, 1], "terminal": [0, 1]}
    >>> bellief.as_transitions(pd.DataFrame(table)).terminated.tolist()
    [False, True]
    """
    from bellief.logs.transitions import Transitions

    reading = Reading(states, actions, labels, columns)
    if isinstance(data, Transitions):
        _refuse_options(reading)
        return data
    if isinstance(data, Tally):
        raise UserError("A tally keeps no rows, and this needs their order: give the log itself.")
    with opened(data, columns, query, database, format) as found:
        return rows_of(found, reading)


def as_log(data: Any, *, query: str | None = None, database: str | os.PathLike | None = None, **options: Any) -> Any:
    """Counts where states are countable, and rows (`FeatureTransitions`) where they are vectors; as `as_tally`."""
    if hasattr(data, "feature_names"):
        return data
    if hasattr(data, "tally"):
        return as_tally(data, **options)
    reading = Reading(**options)
    _check_engine(reading)
    with opened(data, reading.columns, query, database) as found:
        return (rows_of if has_features(found, reading) else tally_of)(found, reading)


def _check_engine(reading: Reading) -> None:
    if reading.engine not in ENGINES:
        raise UserError(f"There is no engine '{shown(reading.engine)}'; choose one of {', '.join(ENGINES)}.")
    if reading.address is not None and reading.engine != "ray":
        raise UserError("--address is for the ray engine; add --engine ray, or leave it out.")


def _refuse_options(reading: Reading) -> None:
    given = [name for name in ("states", "actions", "labels", "columns") if getattr(reading, name) is not None]
    if given:
        raise UserError(f"{given[0]} says how to read a log, and this one has been read: leave it out.")
