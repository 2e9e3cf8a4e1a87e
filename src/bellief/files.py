"""Files that are written completely or not at all, and CSV files without spreadsheet formulas."""

import contextlib
import io
import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

# Metadata of a dataclass field that files leave out where it has its default: identities of cells and saved agents then
# are those of versions without the field.
OMIT_DEFAULT = "omit_default"
PART = ".part"

# An archive may expand to so many bytes, or to so many times its own size, whichever is more; real results compress by
# a factor of ten or so, and the zip directory gives the size before anything is expanded.
LARGEST_EXPANDED, MOST_EXPANSION = 1 << 28, 100


def write_whole(path: Path, content: bytes, *, sync: bool = True) -> Path:
    """Write under another name beside `path`, reach the disk, then rename: a reader or a crash never meets half a
    file. Without `sync` the new name may reach the disk later; `sync_folder` makes sure for all names in a folder.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        if sync:
            sync_folder(path.parent)
    except OSError as error:
        # A full disk is met while writing, where Python does not know the name.
        error.filename = str(path)
        raise
    finally:
        # On a full disk even this may fail, and what went wrong before matters more.
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    return path


def sync_folder(folder: Path) -> None:
    """Make new names themselves reach the disk; some file systems cannot, and then there is nothing to be done."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class DamagedArchive(ValueError):
    """Bytes that are no NumPy archive, or whose members are not plain arrays."""


def read_archive(content: bytes) -> "dict[str, np.ndarray]":
    """All arrays of a NumPy archive (.npz), without pickle: nothing in it is executed.

    Damaged bytes make NumPy, zip and the tokeniser of array headers raise some fifteen kinds of error, down to
    `MemoryError` for an array that claims a size of its own; here they are one.
    """
    import numpy as np  # the command line reads this module before it knows whether it needs NumPy

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as directory:
            expanded = sum(member.file_size for member in directory.infolist())
        if expanded > max(LARGEST_EXPANDED, MOST_EXPANSION * len(content)):
            raise DamagedArchive(f"{len(content)} bytes that expand to {expanded}")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except DamagedArchive:
        raise
    except Exception as error:
        raise DamagedArchive(f"no NumPy archive ({type(error).__name__})") from error
    strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if strange:
        raise DamagedArchive(f"'{strange[0]}' is no array")
    return arrays


# A spreadsheet takes a cell that begins like this for a formula. The quotes before it are those that `neutralise` adds.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def neutralise(text: str) -> str:
    """A text as it is written into a CSV file: with a quote before what a spreadsheet would run.

    >>> from bellief.files import neutralise, restore
    >>> [neutralise(text) for text in ("=1+1", "-2.5", "left", "'=x")]
    ["'=1+1", '-2.5', 'left', "''=x"]
    >>> restore("''=x")
    "'=x"
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def restore(text: str) -> str:
    """The text that `neutralise` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) and not _NUMBER.fullmatch(text[1:]) else text


def to_csv(frame: "pd.DataFrame") -> bytes:
    """A CSV file whose texts, column names included, are neutralised; numbers stay numbers."""

    def safe(value: Any) -> Any:
        return neutralise(value) if isinstance(value, str) else value

    kept = frame.rename(columns=safe)
    texts = [place for place, kind in enumerate(kept.dtypes) if kind.kind not in "biufcmM"]
    for place in texts:
        kept.isetitem(place, kept.iloc[:, place].map(safe))
    return kept.to_csv(index=False, lineterminator="\n").encode()
