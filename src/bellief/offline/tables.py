"""Reading tables that people made: every way in which a file can be unreadable becomes one sentence."""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from bellief.errors import UserError

LONGEST_SHOWN = 40


def read_table(path: str | Path, required: tuple[str, ...]) -> pd.DataFrame:
    """A CSV file as text cells, with the required columns present; cells are judged by the caller, who knows them."""
    path = Path(path)
    try:
        # The header is read as a row like the others: pandas would rename a repeated column and, where the rows are
        # longer than the header, take the first column for an index.
        frame = pd.read_csv(
            path,
            header=None,
            index_col=False,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
            compression=None,
        )
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; give the path of a CSV file.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; give the path of a CSV file.") from None
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty; it needs a header line with {', '.join(required)}.") from None
    except pd.errors.ParserError as error:
        detail = str(error).strip().splitlines()[-1].removeprefix("Error tokenizing data. ")
        raise UserError(f"{path} is not a well-formed CSV file ({detail}).") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8; save it as a CSV file in UTF-8.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}).") from None
    names = [str(name).strip() for name in frame.iloc[0]]
    frame = frame.iloc[1:].reset_index(drop=True)
    frame.columns = pd.Index(names)
    check_columns(frame, required, f"{path}: ")
    return frame


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


def shown(cell: object) -> str:
    """A cell as a message shows it: on one line, and not the whole of a long one."""
    text = " ".join(str(cell).split())
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."
