"""One writer at a time: a lock of the operating system, which frees it when its holder ends, however that happens.

Shards of one sweep (2/4, 3/4, ...) have different cells and may write side by side; nothing else may.
"""

import contextlib
import errno
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bellief.errors import UserError
from bellief.files import write_whole

Shard = tuple[int, int]

# Seconds to wait for another process that is taking its lock at the same moment.
PATIENCE = 60.0
# Errors of file systems that have no locks.
_WITHOUT_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK}


@contextlib.contextmanager
def hold(folder: Path, shard: Shard | None = None) -> Iterator[bool]:
    """Hold the lock of a folder while the block runs. Yields whether an earlier holder was killed.

    The lock itself is a hidden file; `lock.json` beside it says who holds it, and is stale once that process is gone.
    """
    name = "lock" if shard is None else f"lock-{shard[0]}-of-{shard[1]}"
    with contextlib.ExitStack() as held:
        # Two that start at the same moment must not both find the folder free.
        with contextlib.ExitStack() as starting:
            try:
                starting.callback(acquire(folder / ".starting.lock", PATIENCE))
            except TimeoutError as error:
                raise UserError(f"Another process is about to write into {folder}; stop it first.") from error
            stale = _clear_stale(folder, shard)
            held.callback(acquire(folder / f".{name}.lock", 0.0))
            description = {"pid": os.getpid(), "host": socket.gethostname(), "shard": shard}
            write_whole(folder / f"{name}.json", json.dumps(description).encode())
        held.callback((folder / f"{name}.json").unlink, missing_ok=True)
        yield stale


def _clear_stale(folder: Path, shard: Shard | None) -> bool:
    """Whether descriptions of holders that are gone were removed; refuses where one is at work on the same cells."""
    stale = False
    names = {path.stem for path in folder.glob("lock*.json")} | {path.stem[1:] for path in folder.glob(".lock*.lock")}
    for name in sorted(names):
        found = re.fullmatch(r"lock-(\d{1,9})-of-(\d{1,9})", name)
        other = None if found is None else (int(found[1]), int(found[2]))
        if shard is not None and other is not None and other[1] == shard[1] and other[0] != shard[0]:
            continue
        path, description = folder / f".{name}.lock", folder / f"{name}.json"
        try:
            acquire(path, 0.0)()
        except TimeoutError as error:
            raise UserError(
                f"{folder} is being written by {_holder(description)}; wait for it to end, or stop it."
            ) from error
        stale = stale or description.exists()
        description.unlink(missing_ok=True)
    return stale


def _holder(path: Path) -> str:
    """Who holds a lock, in words; what cannot be read is left out."""
    try:
        with open(path, "rb") as file:
            told = json.loads(file.read(10_000))
        return f"process {int(told['pid'])} on {str(told['host'])[:100]}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"


def acquire(path: Path, seconds: float) -> Callable[[], None]:
    """Take a lock file, and return what frees it; `TimeoutError` where another holds it for so many seconds.

    Where the file system has no locks nothing is held: there, one writer at a time is up to the user.
    """
    try:
        from filelock import FileLock
    except ImportError:
        return _acquire_plainly(path, seconds)
    lock = FileLock(path, timeout=seconds)
    try:
        lock.acquire()
    except NotImplementedError:
        return lambda: None
    return lock.release


def _acquire_plainly(path: Path, seconds: float) -> Callable[[], None]:
    """The same on a machine without the package filelock."""
    import fcntl

    file = open(path, "w")  # noqa: SIM115
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file.close
        except BlockingIOError as error:
            if time.monotonic() >= end:
                file.close()
                raise TimeoutError(f"{path} is locked") from error
            time.sleep(0.05)
        except OSError as error:
            if error.errno in _WITHOUT_LOCKS:
                return file.close
            raise
