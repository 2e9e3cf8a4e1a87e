"""DuckDB as the reader of files: connections, and the SQL that stands for a file."""

import contextlib
import csv
import io
import json
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bellief.errors import UserError
from bellief.logs.labels import shown
from bellief.logs.paths import LogFile

if TYPE_CHECKING:
    import duckdb

# Megabytes that DuckDB may hold, all threads together; what needs more goes to disk.
MEMORY = 320

# The longest header line, and the longest line of JSON, that is looked at.
LONGEST_LINE = 1 << 24


class Relation(NamedTuple):
    """What to select from, and the columns there: their names in the file, in the SQL, and DuckDB's types."""

    sql: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    types: tuple[str, ...]


@contextlib.contextmanager
def connect(
    scratch: str, database: str = ":memory:", threads: int = 1, memory: int = MEMORY
) -> "Iterator[duckdb.DuckDBPyConnection]":
    """A connection of its own, so that any number of threads may read; larger than memory goes into `scratch`.

    Extensions are neither installed nor loaded, so that no address is ever contacted.
    """
    import duckdb

    config: dict[str, Any] = {
        "threads": threads,
        "memory_limit": f"{memory}MB",
        "temp_directory": scratch,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection = duckdb.connect(database, read_only=database != ":memory:", config=config)
    try:
        connection.execute("set enable_progress_bar = false")
        yield connection
    finally:
        connection.close()


def execute_interruptibly(connection: "duckdb.DuckDBPyConnection", sql: str) -> None:
    """Execute a statement that may take long, so that signals end it.

    Python runs the handler of a signal in the main thread, between two of its own steps; so the main thread waits here
    while another one executes. A signal at the moment in which the statement begins may still have no effect: DuckDB
    can block when it is interrupted there.
    """
    import duckdb

    failures: list[BaseException] = []
    done = threading.Event()

    def execute() -> None:
        try:
            connection.execute(sql)
        except BaseException as error:
            failures.append(error)
        finally:
            done.set()

    threading.Thread(target=execute, daemon=True).start()
    try:
        # Not `Thread.join`: interrupted, it takes the thread for finished.
        while not done.wait(0.05):
            pass
    except BaseException:
        # An interrupt has no effect just before a statement begins or while the connection is busy: so it is repeated.
        while not done.is_set():
            with contextlib.suppress(duckdb.Error):
                connection.interrupt()
            done.wait(1)
        raise
    if failures:
        raise failures[0]


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def path_literal(path: str) -> str:
    """A path as an SQL literal in which *, ? and [ are not wildcards."""
    return quoted("".join(f"[{letter}]" if letter in "*?[" else letter for letter in path))


def relation(connection: "duckdb.DuckDBPyConnection", file: LogFile) -> Relation:
    """A file as something to select from. DuckDB's own errors are left to the caller."""
    if file.format == "parquet":
        sql = f"read_parquet({path_literal(file.path)}, file_row_number = true, hive_partitioning = false)"
        described = connection.execute(f"describe select * exclude (file_row_number) from {sql}").fetchall()
        names = tuple(row[0] for row in described)
        return Relation(sql, names, tuple(map(identifier, names)), tuple(str(row[1]) for row in described))
    names = tuple(header(file))
    columns = names if file.format == "json" else tuple(f"c{place}" for place in range(len(names)))
    shape = "{" + ", ".join(f"{quoted(column)}: 'VARCHAR'" for column in columns) + "}"
    compression = f", compression = {quoted(file.compression or 'none')}"
    if file.format == "json":
        options = f"format = 'newline_delimited', columns = {shape}"
        sql = f"read_json({path_literal(file.path)}, {options}{compression}, hive_partitioning = false)"
    else:
        # Empty cells are empty texts, not nulls: no text is taken for a null.
        options = (
            f"header = true, delim = ',', quote = '\"', escape = '\"', columns = {shape}, auto_detect = false, "
            "allow_quoted_nulls = false, hive_partitioning = false"
        )
        sql = f"read_csv({path_literal(file.path)}, {options}{compression})"
    return Relation(sql, names, tuple(map(identifier, columns)), ("VARCHAR",) * len(names))


def open_binary(file: LogFile) -> io.BufferedIOBase:
    """A file's bytes, uncompressed."""
    if file.compression == "gzip":
        import gzip

        return gzip.open(file.path, "rb")
    if file.compression == "zstd":
        import pyarrow

        return io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.OSFile(file.path), "zstd"))
    return open(file.path, "rb")


def sound_gzip(path: str) -> bool:
    """Whether a gzip file has the checksums that it says it has; DuckDB does not look at them."""
    import gzip
    import zlib

    try:
        with gzip.open(path, "rb") as file:
            while file.read(2**20):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True


def header(file: LogFile) -> Sequence[str]:
    """Names of the columns of a CSV or JSON lines file, from its first line."""
    with open_binary(file) as raw:
        line = raw.readline(LONGEST_LINE)
        if file.format == "csv":
            # A quoted name may hold line breaks.
            while line.count(b'"') % 2 and len(line) < LONGEST_LINE and (more := raw.readline(LONGEST_LINE)):
                line += more
    text = line.decode("utf-8-sig")
    if file.format == "csv":
        try:
            return [name.strip() for name in next(csv.reader(io.StringIO(text), skipinitialspace=True), [])]
        except csv.Error:  # lines that end in carriage returns alone, or a name of more than 100,000 characters
            raise UserError(
                f"{file.source}the header is no line of CSV: end lines as Unix or Windows do, and keep names short."
            ) from None
    try:
        first = json.loads(text)
    except (ValueError, RecursionError):
        first = None
    if not isinstance(first, dict):
        raise UserError(
            f"{file.source}row 1 is '{shown(text)}'; each line must be a JSON object such as {{\"state\": 0}}."
        )
    return list(first)
