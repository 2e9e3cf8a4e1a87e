"""Tables read in pieces; every way in which a file can be unreadable has an error message of one sentence."""

import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from bellief.errors import UserError
from bellief.logs.engine import LONGEST_LINE, open_binary
from bellief.logs.labels import few, shown
from bellief.logs.paths import KINDS, LogFile, log_file, regular_file, scratch_folder

# Rows of a file that are in memory at a time: some tens of megabytes of numbers or short texts.
PIECE = 1 << 17

# Commas after the last cell of a line that are passed over.
MOST_COMMAS = 4
_WIDER = re.compile(r"(?<=C error: )Expected (\d+) fields")


def read_table(path: str | Path, required: tuple[str, ...]) -> pd.DataFrame:
    """A CSV file as text cells, with the required columns present; the caller validates cells.

    A pipe is read once, a device is refused.
    """
    with scratch_folder() as scratch:
        file = regular_file(path, scratch)
        return pd.concat(list(csv_pieces(file, required)), ignore_index=True)


def csv_pieces(
    path: str | Path | LogFile, required: tuple[str, ...], rows: int | None = None
) -> Iterator[pd.DataFrame]:
    """A CSV file as text cells, at most `rows` of them at a time; at least one piece, which may have no rows."""
    file = path if isinstance(path, LogFile) else log_file(path, format="csv")
    options: dict[str, Any] = {
        "header": None,
        "index_col": False,
        "dtype": str,
        "keep_default_na": False,
        "skipinitialspace": True,
        "encoding": "utf-8-sig",
        "compression": None,
    }
    with explained(file, required):
        # The header is read as a row like the others: pandas would rename a repeated column and, where the rows are
        # longer than the header, take the first column for an index.
        with open_binary(file) as content:
            names = [str(name).strip() for name in pd.read_csv(content, nrows=1, **options).iloc[0]]
        done, width = 0, len(names)
        # Commas at the end of a line are no cells, as for DuckDB.
        options["names"] = range(width + MOST_COMMAS)
        with open_binary(file) as content, pd.read_csv(content, chunksize=rows or PIECE, **options) as pieces:
            for piece in pieces:
                _check_width(piece, width, done)
                done += len(piece)
                piece = piece.iloc[int(done == len(piece)) :, :width]
                piece = piece.reset_index(drop=True)
                piece.columns = pd.Index(names)
                check_columns(piece, required, file.source)
                yield piece


def _check_width(piece: pd.DataFrame, width: int, done: int) -> None:
    """Beyond the header's columns there may only be empty cells; `done` lines came before."""
    beyond = piece.iloc[:, width:]
    wrong = (beyond.notna() & (beyond != "")).to_numpy()
    if wrong.any():
        place = int(np.flatnonzero(wrong.any(1))[0])
        found = width + int(np.flatnonzero(wrong[place])[-1]) + 1
        raise pd.errors.ParserError(f"Expected {width} fields in line {done + place + 1}, saw {found}")


def _frame(batch: Any, file: LogFile) -> pd.DataFrame:
    """A batch of Arrow as a data frame; dates may lie beyond those that Python has."""
    try:
        return batch.to_pandas()
    except (ValueError, OverflowError) as error:
        raise UserError(
            f"{file.source}a column holds what Python cannot hold ({shown(error)}); states, actions and rewards are "
            "numbers or texts."
        ) from None


def parquet_pieces(
    file: LogFile, wanted: Sequence[str] | None = None, rows: int | None = None, begin: int = 0
) -> Iterator[pd.DataFrame]:
    """A Parquet file from its row group that holds row `begin`, at most `rows` rows at a time and only some columns.

    The first piece has the columns and no rows.
    """
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise UserError("Parquet files need pyarrow: pip install 'bellief[data]'.") from None
    with explained(file, ()):
        try:
            # The system's allocator gives memory back between pieces; and no column is read ahead as a whole.
            pyarrow.set_memory_pool(pyarrow.system_memory_pool())
            with parquet.ParquetFile(file.path, pre_buffer=False) as content:
                names = content.schema_arrow.names
                yield pd.DataFrame(columns=pd.Index(names if wanted is None else list(wanted), dtype=object))
                sizes = np.cumsum([content.metadata.row_group(at).num_rows for at in range(content.num_row_groups)])
                groups = [at for at, end in enumerate(sizes) if end > begin]
                for batch in content.iter_batches(rows or PIECE, groups, columns=wanted, use_threads=False):
                    yield _frame(batch, file)
        except pyarrow.ArrowException as error:
            detail = str(error).strip().splitlines()[0].rstrip(".")
            raise UserError(f"{file.name} is not a readable Parquet file ({shown(detail)}).") from None


def json_pieces(file: LogFile, rows: int | None = None) -> Iterator[pd.DataFrame]:
    """A file of JSON lines, at most `rows` at a time; keys that a line leaves out are missing cells."""
    columns = None
    held: list[dict] = []
    with explained(file, ()), open_binary(file) as content:
        for number, line in enumerate(iter(lambda: content.readline(LONGEST_LINE), b""), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                text = shown(line.decode(errors="replace"))
                need = 'each line must be a JSON object such as {"state": 0}'
                raise UserError(f"{file.source}row {number} is '{text}'; {need}.")
            columns = list(row) if columns is None else columns
            held.append(row)
            if len(held) >= (rows or PIECE):
                yield pd.DataFrame(held, columns=columns, dtype=object).astype(object)
                held = []
    yield pd.DataFrame(held, columns=columns or [], dtype=object)


@contextlib.contextmanager
def explained(file: LogFile, required: tuple[str, ...]) -> Iterator[None]:
    """What goes wrong while a file is read, in one sentence."""
    path, kind = file.name, KINDS[file.format]
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; give the path of a {kind} file.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; give the path of a {kind} file.") from None
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty; it needs a header line with {', '.join(required)}.") from None
    except pd.errors.ParserError as error:
        detail = (
            _WIDER.sub(lambda found: f"Expected {int(found[1]) - MOST_COMMAS} fields", str(error))
            .strip()
            .splitlines()[-1]
            .removeprefix("Error tokenizing data. ")
        )
        raise UserError(f"{path} is not a well-formed CSV file ({detail}).") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8; save it as a {kind} file in UTF-8.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} cannot be decompressed ({shown(error)}).") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}).") from None


def check_columns(frame: pd.DataFrame, required: tuple[str, ...], source: str) -> None:
    """Every required column must be there, and none twice; `source` (a file's name) precedes the message."""
    missing = [name for name in required if name not in frame.columns]
    if missing:
        raise UserError(f"{source}there is no column '{missing[0]}'; the columns are {few(frame.columns)}.")
    if frame.columns.duplicated().any():
        repeated = frame.columns[frame.columns.duplicated()][0]
        raise UserError(f"{source}the column '{shown(repeated)}' is there more than once; keep one of them.")


def to_numbers(column: pd.Series) -> Float[np.ndarray, "n"]:
    """A column as float64, NaN where a cell is not a number.

    Whatever is not a number by its type goes through text, so that dates, complex numbers and other objects are
    refused rather than silently turned into some number.
    """
    if column.dtype.kind not in "iufb":
        column = pd.to_numeric(to_text(column), errors="coerce")
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def to_text(column: pd.Series) -> pd.Series:
    """A column as Python writes its cells; pandas' own conversion fails on bytes that are not text."""
    return pd.Series([str(cell) for cell in column], dtype=object)
