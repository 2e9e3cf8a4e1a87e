"""Query results and tables in memory, written into a temporary Parquet file that is then read as any other."""

import os
from typing import Any

from bellief.errors import UserError
from bellief.logs.engine import connect, execute_interruptibly, quoted
from bellief.logs.labels import shown
from bellief.logs.paths import LogFile, shown_path
from bellief.logs.pool import default_threads

WAYS_IN = (
    "a path, a glob, a folder or a list of paths, minari:NAME, a pandas, Polars or Arrow table, a DuckDB relation, a "
    "Minari dataset, Transitions or a Tally"
)


def query_file(data: Any, query: str, database: str | os.PathLike | None, scratch: str) -> LogFile:
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
        with connect(scratch, home, default_threads()) as connection:
            copy = f"copy ({query.rstrip().rstrip(';')}) to {quoted(target)} (format parquet)"
            execute_interruptibly(connection, copy)
    except duckdb.Error as error:
        detail = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise UserError(f"The query failed ({detail[:300]}).") from None
    return LogFile(target, "query", "parquet")


def table_file(data: Any, home: str, scratch: str) -> LogFile:
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
        raise UserError(f"A log is {WAYS_IN}; this is a {shown(type(data).__name__)}.")
    return LogFile(target, "", "parquet")
