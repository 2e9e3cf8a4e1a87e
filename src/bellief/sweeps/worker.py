"""What a process of the local engine does: compute the cells that it is given, one after another.

Orders and results are plain data, exchanged through the process's pool; progress is sent through a pipe. SIGTERM
requests a checkpoint. A process whose driver has ended ends at once.
"""

import errno
import multiprocessing
import os
import resource
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from bellief.errors import UserError

Event = dict[str, Any]

# Errors of the operating system for a full disk.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

# Blocked while a process starts, until it has set their handlers.
SIGNALS = {signal.SIGINT, signal.SIGTERM}

_stop = threading.Event()
_progress: list[Connection] = []
_latest: list[str] = []


def start(progress: Connection, debug: bool) -> None:
    """Prepare a new process."""
    if not debug:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)  # standard output belongs to the driver
    _progress.append(progress)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides
    signal.signal(signal.SIGTERM, lambda number, frame: _stop.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(3)


def describe() -> Event:
    """The first order of every process: its number, and the backend of its JAX."""
    import jax

    return {"pid": os.getpid(), "backend": jax.default_backend()}


def execute(order: Event) -> Event:
    """Compute a cell, or measure one; returns how it ended. Nothing is raised."""
    try:
        forget_other_programs(order["settings"])
        if order["kind"] == "calibrate":
            from bellief.sweeps.calibrate import measure

            told = {"kind": "calibrated", **measure(order["identity"])._asdict()}
        else:
            told = _compute(order)
    except UserError as error:
        told = {"kind": "failed", "reason": str(error)}
    except OSError as error:
        told = writing_failed(error)
    except Exception as error:
        traceback.print_exc()  # shown with --debug only
        memory = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
        reason = "there is not enough memory for it" if memory else f"{type(error).__name__}: {error}"
        told = {"kind": "failed", "reason": " ".join(reason.split())[:1000]}
    _progress[0].send(None)  # wakes the driver
    return {"cell": order["id"], **told}


def _compute(order: Event) -> Event:
    from bellief.sweeps import work
    from bellief.sweeps.cells import Cell
    from bellief.sweeps.store import Store

    cell, store = Cell(order["id"], order["identity"]), Store(order["folder"])
    told: Event = {"kind": "stopped"}
    for message in work.compute(cell, store.read_checkpoint(cell.id), order["every"], _stop.is_set):
        match message:
            case work.Checkpoint(content):
                store.write_checkpoint(cell.id, content)
            case work.Finished(tables):
                told = finished_event(message)
                store.commit(cell, tables, told["content"], **{name: told[name] for name in RECORDED})
            case _ if (event := progress_event(message)) is not None:
                _progress[0].send({"cell": cell.id, **event})
    return told


# The fields of a `finished` event that the record of the cell keeps.
RECORDED = ("seconds", "made", "memory_mib")


def progress_event(message: Any) -> Event | None:
    """The event for a message about progress, None for other messages."""
    from bellief.sweeps import work

    match message:
        case work.Progress():
            return {"kind": "progress", **message._asdict()}
        case work.Restarted(reason):
            return {"kind": "restarted", "reason": reason[:1000]}
    return None


def finished_event(message: Any) -> Event:
    """The event for a finished cell: its facts, and the smoothed reward of its runs at the end."""
    from bellief.sweeps.parquet_tables import CURVES, content_hash, read_parquet

    curves = read_parquet(message.tables[CURVES])
    step = curves["step"].to_numpy()
    last = int(step.max())
    return {
        "kind": "finished",
        "content": content_hash(message.tables),
        "seconds": round(message.seconds, 3),
        "made": message.made,
        "memory_mib": peak_memory(),
        "step": last,
        "steps": last,
        "reward": float(curves["smoothed"].to_numpy()[step == last].mean()),
    }


def writing_failed(error: OSError) -> Event:
    """The event for a file that could not be written."""
    name = error.filename if isinstance(error.filename, str) else None
    kind = "full" if error.errno in FULL else "unwritable"
    return {"kind": kind, "errno": error.errno, "reason": error.strerror or str(error), "file": name}


def forget_other_programs(settings: str) -> None:
    """Drop the compiled programs of other settings, which would accumulate."""
    import jax

    if _latest and _latest != [settings]:
        jax.clear_caches()
    _latest[:] = [settings]


def peak_memory() -> float:
    """The most memory this process has held so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
