"""Files that are there whole or not at all."""

import contextlib
import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

PART = ".part"

# An archive may expand to so many bytes, or to so many times its own size, whichever is more; real results compress by
# a factor of ten or so, and the zip directory tells before anything is expanded.
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
