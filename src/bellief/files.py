"""Files that are there whole or not at all."""

import contextlib
import os
from pathlib import Path

PART = ".part"


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
