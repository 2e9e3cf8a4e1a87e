"""Reading tables that people made: every way in which a file can be unreadable becomes one sentence."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from bellief.errors import UserError

LONGEST_SHOWN = 40

# Rows of a file that are in memory at a time: some tens of megabytes of numbers or short texts.
PIECE = 1 << 17


def read_table(path: str | Path, required: tuple[str, ...]) -> pd.DataFrame:
    """A CSV file as text cells, with the required columns present; cells are judged by the caller, who knows them."""
    return pd.concat(list(csv_pieces(path, required)), ignore_index=True)


def csv_pieces(path: str | Path, required: tuple[str, ...], rows: int | None = None) -> Iterator[pd.DataFrame]:
    """A CSV file as text cells, at most `rows` of them at a time; at least one piece, which may have no rows."""
    path = Path(path)
    names: list[str] | None = None
    with _explained(path, "CSV", required):
        # The header is read as a row like the others: pandas would rename a repeated column and, where the rows are
        # longer than the header, take the first column for an index.
        pieces = pd.read_csv(
            path,
            header=None,
            index_col=False,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
            compression=None,
            chunksize=rows or PIECE,
        )
        with pieces:
            for piece in pieces:
                if names is None:
                    names = [str(name).strip() for name in piece.iloc[0]]
                    piece = piece.iloc[1:]
                piece = piece.reset_index(drop=True)
                piece.columns = pd.Index(names)
                check_columns(piece, required, f"{path}: ")
                yield piece


def parquet_pieces(
    path: str | Path, required: tuple[str, ...], optional: tuple[str, ...] | None, rows: int | None = None
) -> Iterator[pd.DataFrame]:
    """A Parquet file, at most `rows` rows at a time and only the columns that are asked for (None: all).

    The first piece has the columns and no rows.
    """
    path = Path(path)
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise UserError("Parquet files need pyarrow: pip install 'bellief[data]'.") from None
    with _explained(path, "Parquet", required):
        try:
            # The system's allocator gives memory back between pieces; and no column is read ahead as a whole.
            pyarrow.set_memory_pool(pyarrow.system_memory_pool())
            with parquet.ParquetFile(path, pre_buffer=False) as file:
                names = file.schema_arrow.names
                check_columns(pd.DataFrame(columns=pd.Index(names, dtype=object)), required, f"{path}: ")
                wanted = [name for name in names if optional is None or name in (*required, *optional)]
                yield pd.DataFrame(columns=pd.Index(wanted, dtype=object))
                for batch in file.iter_batches(rows or PIECE, columns=wanted, use_threads=False):
                    yield batch.to_pandas()
        except pyarrow.ArrowException as error:
            detail = str(error).strip().splitlines()[0].rstrip(".")
            raise UserError(f"{path} is not a readable Parquet file ({shown(detail)}).") from None


@contextlib.contextmanager
def _explained(path: Path, kind: str, required: tuple[str, ...]) -> Iterator[None]:
    """What goes wrong while a file is read, in one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; give the path of a {kind} file.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; give the path of a {kind} file.") from None
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty; it needs a header line with {', '.join(required)}.") from None
    except pd.errors.ParserError as error:
        detail = str(error).strip().splitlines()[-1].removeprefix("Error tokenizing data. ")
        raise UserError(f"{path} is not a well-formed CSV file ({detail}).") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8; save it as a CSV file in UTF-8.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}).") from None


def check_columns(frame: pd.DataFrame, required: tuple[str, ...], source: str) -> None:
    """Every required column must be there, and none twice; `source` (a file's name) precedes the message."""
    missing = [name for name in required if name not in frame.columns]
    if missing:
        found = ", ".join(shown(name) for name in frame.columns) or "none"
        raise UserError(f"{source}there is no column '{missing[0]}'; the columns are {found}.")
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


def shown(cell: Any) -> str:
    """A cell as a message shows it: on one line, and not the whole of a long one."""
    text = " ".join(str(cell).split())
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."
