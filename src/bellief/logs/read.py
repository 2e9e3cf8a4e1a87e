"""Whatever a person has at hand, as counts or as rows."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bellief.errors import UserError
from bellief.logs.axes import Axis, Doubt, Sizes
from bellief.logs.columns import Taken, take
from bellief.logs.engine import connect, relation
from bellief.logs.feature_columns import refuse_features
from bellief.logs.fold import Folding, Unit, units
from bellief.logs.labels import shown
from bellief.logs.origin import origin_from
from bellief.logs.paths import LogFile, expand, scratch_folder
from bellief.logs.query_results import query_file, table_file
from bellief.logs.tally import Tally
from bellief.logs.tally_files import is_tally, read_tallies

if TYPE_CHECKING:
    import duckdb

    from bellief.logs.sources import TableLog
    from bellief.logs.transitions import Transitions

MINARI = "minari:"
ENGINES = ("local", "ray")


class Reading(NamedTuple):
    """How to read: sizes or labels of states and actions, columns for some roles, and where the work is done."""

    states: Sizes = None
    actions: Sizes = None
    labels: bool | None = None
    columns: Mapping[str, str] | None = None
    engine: str = "local"
    address: str | None = None
    threads: int | None = None
    progress: Callable[[float], None] | None = None


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
    """Counts of a log, from whatever there is of it.

    - `data`: a path, a glob, a folder, or a list of these (CSV, Parquet, JSON lines; .gz and .zst); `minari:NAME` or a
      Minari dataset; a pandas, Polars or Arrow table; a DuckDB relation; `Transitions`; a `Tally`, or files of those.
    - `states`, `actions`, `labels`: as in `Transitions`.
    - `columns`: the column for some of the roles (state, action, reward, next_state, terminated, done, truncated,
      episode, step), where the usual names do not tell.
    - `query`: SQL whose result is the log, over files that it names or over the tables of `database`, a DuckDB file,
      which is opened for reading only. Then `data` is None.
    - `engine`: local, or ray with the `address` of a cluster whose machines all see the files.
    - `threads`: as many as there are processors, unless told; the result is the same.
    - `progress`: called with the finished fraction.

    Files are read in the order of their names, as one log. Rows are not kept, and however many there are, memory is
    bounded: what does not fit goes into a temporary folder.

    >>> import bellief
    >>> import pandas as pd
    >>> table = {"obs": [0, 1], "action": [0, 0], "reward": [0.0, 1.0], "next_obs": [1, 1], "done": [0, 1]}
    >>> tally = bellief.as_tally(pd.DataFrame(table))
    >>> tally.cell_next.tolist(), tally.cell_terminated.tolist(), tally.origin.columns["state"]
    ([1, 1], [False, True], 'obs')
    """
    reading = Reading(states, actions, labels, columns, engine, address, threads, progress)
    if engine not in ENGINES:
        raise UserError(f"There is no engine '{shown(engine)}'; choose one of {', '.join(ENGINES)}.")
    if address is not None and engine != "ray":
        raise UserError("--address is for the ray engine; add --engine ray, or leave it out.")
    if hasattr(data, "tally"):
        _refuse_options(reading)
        return data.tally()
    with _opened(data, columns, query, database) as found:
        return _tally(found, reading)


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
    """Rows of a log, for what needs their order; the arguments are those of `as_tally`.

    Where states are vectors, `FeatureTransitions`. `format` (csv, parquet, json) comes before the ending of a name.

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
    with _opened(data, columns, query, database, format) as found:
        return _rows(found, reading)


def as_log(data: Any, *, query: str | None = None, database: str | os.PathLike | None = None, **options: Any) -> Any:
    """Counts where states are countable, and rows (`FeatureTransitions`) where they are vectors; as `as_tally`."""
    if hasattr(data, "feature_names"):
        return data
    if hasattr(data, "tally"):
        return as_tally(data, **options)
    reading = Reading(**options)
    with _opened(data, reading.columns, query, database) as found:
        return (_rows if _features(found, reading) else _tally)(found, reading)


class Files(NamedTuple):
    """Files in the order in which they are read, a folder for what does not fit into memory, and a connection."""

    files: list[LogFile]
    scratch: str
    connection: "duckdb.DuckDBPyConnection"


@contextlib.contextmanager
def _opened(
    data: Any,
    columns: Mapping[str, str] | None,
    query: str | None,
    database: str | os.PathLike | None,
    format: str | None = None,
) -> "Iterator[Files | TableLog]":
    """The files that `data` stands for, or a table that is in memory."""
    home = type(data).__module__.split(".")[0]
    if query is None and database is not None:
        raise UserError('A database needs a query that says what to read: --query "select ... from ...".')
    if query is None and (hasattr(data, "iterate_episodes") or (isinstance(data, str) and data.startswith(MINARI))):
        from bellief.logs.sources import minari_log

        yield minari_log(data.removeprefix(MINARI) if isinstance(data, str) else data)
    elif query is None and home == "pandas" and hasattr(data, "columns"):
        from bellief.logs.sources import frame_log

        yield frame_log(data, columns)
    else:
        with scratch_folder() as scratch:
            if query is not None:
                files = [query_file(data, query, database, scratch)]
            elif isinstance(data, str | os.PathLike) or (
                isinstance(data, list | tuple) and all(isinstance(path, str | os.PathLike) for path in data)
            ):
                files = expand(data, scratch, format)
            else:
                files = [table_file(data, home, scratch)]
            with connect(scratch) as connection:
                yield Files(files, scratch, connection)


def _columns(file: LogFile, connection: "duckdb.DuckDBPyConnection") -> Sequence[str]:
    """Names of a file's columns; where DuckDB cannot tell, a second look says why in one sentence."""
    import zlib

    import duckdb

    try:
        if names := relation(connection, file).names:
            return names
    except (duckdb.Error, OSError, EOFError, UnicodeError, zlib.error):
        pass
    from bellief.logs.sources import file_columns

    return file_columns(file)


def _features(found: "Files | TableLog", reading: Reading) -> bool:
    """Whether states are vectors, decided by the first table."""
    if not isinstance(found, Files):
        return bool(found.taken.features)
    names = _columns(found.files[0], found.connection)
    return not is_tally(names) and bool(take(names, reading.columns, found.files[0].source).features)


def _rows(found: "Files | TableLog", reading: Reading) -> "Transitions":
    from bellief.logs.sources import file_log
    from bellief.logs.validate import rows_of

    if not isinstance(found, Files):
        return rows_of([found], *reading[:3])
    for file in found.files:
        if is_tally(_columns(file, found.connection)):
            raise UserError(f"{file.source}a tally keeps no rows, and this needs their order: give the log itself.")
    return rows_of([file_log(file, reading.columns) for file in found.files], *reading[:3])


def _tally(found: "Files | TableLog", reading: Reading) -> Tally:
    if not isinstance(found, Files):
        from bellief.logs.validate import tally_of

        return tally_of([found], *reading[:3])
    files = found.files
    columns = [_columns(file, found.connection) for file in files]
    tallies = [is_tally(names) for names in columns]
    if all(tallies):
        return read_tallies(files, found.connection, *reading[:3])
    if any(tallies):
        file = files[tallies.index(True)]
        raise UserError(f"{file.source}this is a tally, and other files here are logs: make a tally of those first.")
    taken = [take(names, reading.columns, file.source) for names, file in zip(columns, files, strict=True)]
    for file, one in zip(files, taken, strict=True):
        refuse_features(one.features, file.source)
    origin = origin_from([file.name for file in files if file.name], taken)
    return dataclasses.replace(_fold(found, taken, reading), origin=origin)


def _fold(found: Files, taken: Sequence[Taken], reading: Reading) -> Tally:
    """Aggregated by DuckDB; where some row is not plainly in order, read row by row."""
    import duckdb

    files = found.files
    folding = Folding(Axis("state", reading.states, reading.labels), Axis("action", reading.actions, reading.labels))
    work: list[Unit] = []
    try:
        for file, one in zip(files, taken, strict=True):
            work += units(found.connection, file, one)
        for number, part in enumerate(_parts(work, found, reading)):
            folding.add(part, number)
            if reading.progress is not None:
                reading.progress((number + 1) / len(work))
        if folding.held:
            return folding.finish()
    except (Doubt, duckdb.Error):
        # The unit after the last one that was accounted for is in doubt: most often its rows tell what is wrong.
        if len(work) > 1 and folding.parts < len(work):
            _examine(work[folding.parts], folding, reading)
    return _row_by_row(files, reading)


def _examine(unit: Unit, folding: Folding, reading: Reading) -> None:
    """Look at a unit's rows one by one, and raise what is wrong with the first bad one; nothing if all are fine."""
    from bellief.logs.encode import Encoder
    from bellief.logs.sources import file_log

    encoder = Encoder(reading.states, reading.actions, reading.labels)
    if folding.parts:
        encoder.states.decide_as(folding.states)
        encoder.actions.decide_as(folding.actions)
    encoder.begin(unit.file.source, unit.begin)
    for piece in file_log(unit.file, reading.columns, unit.begin).pieces:
        encoder.encode(piece)
        if unit.end is not None and encoder.rows >= unit.end:
            return


def _parts(work: Sequence[Unit], found: Files, reading: Reading) -> Iterator:
    if reading.engine == "ray":
        from bellief.logs.ray_engine import fold_units_on_ray

        return fold_units_on_ray(work, reading.address)
    from bellief.logs.pool import default_threads, fold_units

    return fold_units(work, found.connection, found.scratch, reading.threads or default_threads())


def _row_by_row(files: Sequence[LogFile], reading: Reading) -> Tally:
    from bellief.logs.sources import file_log
    from bellief.logs.validate import tally_of

    return tally_of([file_log(file, reading.columns) for file in files], *reading[:3])


def _refuse_options(reading: Reading) -> None:
    given = [name for name in ("states", "actions", "labels", "columns") if getattr(reading, name) is not None]
    if given:
        raise UserError(f"{given[0]} says how to read a log, and this one has been read: leave it out.")
