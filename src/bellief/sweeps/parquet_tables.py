"""A finished cell as Parquet files. The bytes depend on the numbers alone: no times, no names."""

import hashlib
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CURVES, RUNS, PLANS, EPISODES = "curves", "runs", "plans", "episodes"
# Bytes in memory of the largest table that is read.
LARGEST = 2**32


class UnreadableTable(Exception):
    """A file that is no table of a cell."""


def to_parquet(columns: dict[str, Any]) -> bytes:
    """A Parquet file in memory."""
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content, compression="zstd")
    return content.getvalue()


def read_parquet(content: bytes) -> Any:
    """The table of a Parquet file; `UnreadableTable` where it is none, or would need more memory than `LARGEST`."""
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        if file.metadata.num_rows * file.metadata.num_columns * 8 > LARGEST:
            raise UnreadableTable(f"a table of {file.metadata.num_rows} rows is too large")
        return file.read()
    except (pa.ArrowException, OSError) as error:
        raise UnreadableTable(f"a table is no Parquet file ({type(error).__name__})") from error


def check_numbers(name: str, table: Any) -> Any:
    """The table, if it has the columns of its kind with numbers in them, and curves a row for each run and step."""
    wanted = {CURVES: ("run", "step", "total", "smoothed"), RUNS: ("run",), PLANS: ("run", "step"), EPISODES: ("run",)}
    for column in wanted.get(name, ("run",)):
        if column not in table.column_names or not _is_number(table.schema.field(column).type):
            raise UnreadableTable(f"its {name} have no numbers in a column '{column}'")
    if name == CURVES:
        runs, steps = (len(pc.unique(table[column])) for column in ("run", "step"))
        if table.num_rows != runs * steps:
            raise UnreadableTable("its curves do not have a row for each run and step")
    return table


def _is_number(kind: Any) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def curves(first: int, step: np.ndarray, columns: dict[str, np.ndarray]) -> dict[str, Any]:
    """One row per run and reading; the columns are arrays of runs by readings."""
    runs, readings = columns["total"].shape
    return {
        "run": np.repeat(np.arange(first, first + runs, dtype=np.int32), readings),
        "step": np.tile(step.astype(np.int64), runs),
        **{name: column.ravel() for name, column in columns.items()},
    }


def of_runs(content: bytes, first: int, count: int) -> bytes:
    """The rows of so many runs, as a Parquet file of its own."""
    table = read_parquet(content)
    run = table["run"].to_numpy()
    kept = table.filter(pa.array((run >= first) & (run < first + count))).combine_chunks()
    return to_parquet({name: kept[name] for name in kept.column_names})


def content_hash(tables: dict[str, bytes]) -> str:
    """A hash of names, types and values, which does not depend on how a version of Parquet's writer packs them."""
    digest = hashlib.sha256()
    for name in sorted(tables):
        table = read_parquet(tables[name]).combine_chunks()
        digest.update(f"{name}:{table.num_rows}".encode())
        for field in table.schema:
            digest.update(f"{field.name}:{field.type}".encode())
            for value in _buffers(table.column(field.name)):
                digest.update(value)
    return digest.hexdigest()


def _buffers(column: Any) -> list[bytes]:
    if pa.types.is_list(column.type):
        flat = column.combine_chunks()
        return [np.asarray(flat.value_lengths()).tobytes(), np.asarray(flat.flatten()).tobytes()]
    return [column.to_numpy(zero_copy_only=False).tobytes()]
