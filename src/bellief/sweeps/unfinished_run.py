"""The folder of an unfinished `bellief run`: reserved at the start, checkpoints while it computes, results at the end.

Until the results are there, the folder holds nothing but `checkpoint/`; the same command continues from it.
"""

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bellief.errors import UserError
from bellief.experiments.event_collector import Collector
from bellief.experiments.event_loop import Snapshot
from bellief.experiments.results import check_new_folder
from bellief.files import sync_folder, write_whole
from bellief.sweeps import lock
from bellief.sweeps.checkpoint import CheckpointError, decode, encode

# Seconds between two checkpoints of runs that are computed together.
CHECKPOINT_EVERY = 30.0
LARGEST_DESCRIPTION = 1_000_000


class UnfinishedRun:
    """Checkpoints of the batches of a run, for `experiments.run`."""

    def __init__(self, folder: Path, described: dict[str, Any], every: float):
        self.folder, self.every = folder, every
        self.id = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:20]
        self.saved: dict[range, float] = {}

    def _path(self, chunk: range) -> Path:
        return self.folder / f"runs-{chunk.start}-to-{chunk.stop - 1}.npz"

    def load(self, chunk: range, shapes: Callable[[], Any]) -> tuple[Snapshot, Collector] | None:
        """Where the runs of a chunk stand, nothing where they have not begun or what is there cannot be used."""
        self.saved[chunk] = time.monotonic()
        try:
            snapshot, gathered, _ = decode(self._path(chunk).read_bytes(), self.id, shapes())
        except (FileNotFoundError, CheckpointError):
            return None
        return snapshot, gathered

    def due(self, chunk: range) -> bool:
        """Whether it is time for another checkpoint."""
        return time.monotonic() - self.saved[chunk] >= self.every

    def save(self, chunk: range, snapshot: Snapshot, gathered: Collector) -> None:
        """Keep a checkpoint in place of the one before."""
        write_whole(self._path(chunk), encode(self.id, snapshot, gathered, []))
        self.saved[chunk] = time.monotonic()

    def begun(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return any(self.folder.glob("runs-*.npz"))


@contextlib.contextmanager
def reserve(folder: Path, described: dict[str, Any], every: float = CHECKPOINT_EVERY) -> Iterator[UnfinishedRun]:
    """Make the folder of a run, or open an unfinished one, and lock it while the block runs.

    `described` is everything that decides the numbers, as JSON data. A folder that nothing was saved in is removed.
    """
    checkpoint = folder / "checkpoint"
    if not checkpoint.is_dir():
        check_new_folder(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError:
            check_new_folder(folder)
        checkpoint.mkdir()
    unfinished = UnfinishedRun(checkpoint, described, every)
    with _held(folder, checkpoint):
        _check_same(folder, checkpoint / "run.json", described)
        try:
            yield unfinished
        finally:
            if checkpoint.is_dir() and not unfinished.begun():
                shutil.rmtree(checkpoint, ignore_errors=True)
                with contextlib.suppress(OSError):  # results are there
                    folder.rmdir()


@contextlib.contextmanager
def _held(folder: Path, checkpoint: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock.hold(checkpoint))
        except UserError as error:
            raise UserError(str(error).replace(str(checkpoint), str(folder), 1)) from error
        except FileNotFoundError as error:
            raise UserError(f"Another run into {folder} has just ended; choose a new folder.") from error
        yield


def _check_same(folder: Path, path: Path, described: dict[str, Any]) -> None:
    """Refuse to go on with other settings than those the folder was reserved for."""
    try:
        with open(path, "rb") as file:
            before = json.loads(file.read(LARGEST_DESCRIPTION))
    except FileNotFoundError:
        write_whole(path, json.dumps(described, indent=1).encode() + b"\n")
        return
    except (ValueError, RecursionError):
        before = None
    if before != described:
        names = [name for name in described if not isinstance(before, dict) or before.get(name) != described[name]]
        other = ", ".join(names[:3]) or "description"
        raise UserError(
            f"{folder} holds an unfinished run with another {other}; finish it with its own command, or delete it."
        )


def finish(folder: Path, save: Callable[[Path], None]) -> None:
    """Write the results (`save` fills a new folder) and put them in the place of the checkpoints."""
    made = folder / "checkpoint" / "results"
    shutil.rmtree(made, ignore_errors=True)  # of an earlier try
    save(made)
    for path in sorted(made.iterdir()):
        target = folder / path.name
        if target.is_dir():  # moved by an earlier try
            shutil.rmtree(target)
        os.replace(path, target)
    sync_folder(folder)
    shutil.rmtree(folder / "checkpoint")
