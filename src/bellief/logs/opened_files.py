"""What a log consists of, opened: files for DuckDB, or a table in memory; query results and tables of other libraries
become temporary Parquet files.
"""

import contextlib
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bellief.errors import UserError
from bellief.logs.engine import connect, execute_interruptibly, quoted, relation
from bellief.logs.labels import shown
from bellief.logs.paths import LogFile, expand, scratch_folder, shown_path
from bellief.processors import cores

if TYPE_CHECKING:
    import duckdb

    from bellief.logs.sources import TableLog

MINARI = "minari:"
FORMS = (
    "a path, a glob, a folder or a list of paths, minari:NAME, a pandas, Polars or Arrow table, a DuckDB relation, a "
    "Minari dataset, Transitions or a Tally"
)


class Files(NamedTuple):
    """Files in the order in which they are read, the names of their columns, a folder for data that exceed memory, and
    a connection.
    """

    files: list[LogFile]
    columns: list[Sequence[str]]
    scratch: str
    connection: "duckdb.DuckDBPyConnection"


@contextlib.contextmanager
def opened(
    data: Any,
    columns: Mapping[str, str] | None,
    query: str | None,
    database: str | os.PathLike | None,
    format: str | None = None,
) -> "Iterator[Files | TableLog]":
    """The files that `data` stands for, or a table in memory."""
    home = type(data).__module__.split(".")[0]
    if query is None:
        if database is not None:
            raise UserError('A database needs a query that says what to read: --query "select ... from ...".')
        if hasattr(data, "iterate_episodes") or (isinstance(data, str) and data.startswith(MINARI)):
            from bellief.logs.sources import minari_log

            yield minari_log(data.removeprefix(MINARI) if isinstance(data, str) else data)
            return
        if home == "pandas" and hasattr(data, "columns"):
            from bellief.logs.sources import frame_log

            yield frame_log(data, columns)
            return
    with scratch_folder() as scratch:
        if query is not None:
            files = [_query_file(data, query, database, scratch)]
        elif isinstance(data, str | os.PathLike) or (
            isinstance(data, list | tuple) and all(isinstance(path, str | os.PathLike) for path in data)
        ):
            files = expand(data, scratch, format)
        else:
            files = [_table_file(data, home, scratch)]
        with connect(scratch) as connection:
            yield Files(files, [_columns(file, connection) for file in files], scratch, connection)


def _columns(file: LogFile, connection: "duckdb.DuckDBPyConnection") -> Sequence[str]:
    """Names of a file's columns; where DuckDB fails, the plain reader raises an error that says why."""
    import duckdb

    with contextlib.suppress(duckdb.Error, OSError, EOFError, UnicodeError, zlib.error):
        if names := relation(connection, file).names:
            return names
    from bellief.logs.sources import file_columns

    return file_columns(file)


def _query_file(data: Any, query: str, database: str | os.PathLike | None, scratch: str) -> LogFile:
    """The result of a query over files, or over the tables of a DuckDB file."""
    import duckdb

    if data is not None:
        raise UserError("A query says itself what to read: leave out the data, or the query.")
    if database is not None and not os.path.isfile(database):
        raise UserError(f"{shown_path(database)} does not exist or is no file; give a DuckDB file.")
    try:
        statements = duckdb.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UserError("A query must be one SELECT statement.")
        home = ":memory:" if database is None else os.fspath(database)
        target = os.path.join(scratch, "query.parquet")
        with connect(scratch, home, cores()) as connection:
            copy = f"copy ({query.rstrip().rstrip(';')}) to {quoted(target)} (format parquet)"
            execute_interruptibly(connection, copy)
    except duckdb.Error as error:
        detail = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise UserError(f"The query failed ({detail[:300]}).") from None
    return LogFile(target, "query", "parquet")


def _table_file(data: Any, home: str, scratch: str) -> LogFile:
    """A table of another library."""
    target = os.path.join(scratch, "table.parquet")
    if home == "polars" and hasattr(data, "lazy"):
        data.lazy().collect().write_parquet(target)
    elif home in ("duckdb", "_duckdb") and hasattr(data, "write_parquet"):
        data.write_parquet(target)
    elif home == "pyarrow" or hasattr(data, "__arrow_c_stream__"):
        import pyarrow.parquet

        table = data if isinstance(data, pyarrow.Table) else pyarrow.table(data)
        pyarrow.parquet.write_table(table, target)
    else:
        raise UserError(f"A log is {FORMS}; this is a {shown(type(data).__name__)}.")
    return LogFile(target, "", "parquet")
