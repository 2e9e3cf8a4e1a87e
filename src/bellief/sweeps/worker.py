"""A process that computes cells for the local engine: `python -m bellief.sweeps.worker`.

Work comes as lines of JSON on standard input, news goes back the same way on standard output. Nothing is pickled. When
standard input closes, whoever gave the work is gone, and the worker ends at once.
"""

import errno
import json
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any, TextIO

from bellief.errors import UserError

# Errors of the operating system that mean: no more room.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Mailbox:
    """Reads standard input in a thread: cells into a queue, and the wish to stop."""

    def __init__(self, lines: TextIO):
        self.work: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.stop = threading.Event()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def _read(self, lines: TextIO) -> None:
        for line in lines:
            message = json.loads(line)
            if message["kind"] == "stop":
                self.stop.set()
            else:
                self.work.put(message)
        os._exit(3)


def main() -> None:
    """Compute what comes, until told to quit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever gave the work decides
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not get between the messages
    mailbox = Mailbox(sys.stdin)
    signal.signal(signal.SIGTERM, lambda number, frame: mailbox.stop.set())

    import jax

    def tell(**news: Any) -> None:
        out.write(json.dumps(news, allow_nan=False) + "\n")

    tell(kind="hello", backend=jax.default_backend())
    while (order := mailbox.work.get())["kind"] != "quit":
        forget_other_programs(order["settings"])
        for news in _obey(order, mailbox):
            tell(cell=order["id"], **news)
    os._exit(0)  # the thread that waits for standard input would keep the process


_latest: list[str] = []


def forget_other_programs(settings: str) -> None:
    """Compiled programs of settings that will not come back would pile up."""
    import jax

    if _latest and _latest != [settings]:
        jax.clear_caches()
    _latest[:] = [settings]


def _obey(order: dict[str, Any], mailbox: Mailbox) -> Iterator[dict[str, Any]]:
    try:
        if order["kind"] == "calibrate":
            from bellief.sweeps.calibrate import measure

            yield {"kind": "calibrated", **measure(order["identity"])._asdict()}
        else:
            yield from _compute(order, mailbox)
    except UserError as error:
        yield {"kind": "failed", "reason": str(error)}
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else None
        kind = "full" if error.errno in FULL else "unwritable"
        yield {"kind": kind, "errno": error.errno, "reason": error.strerror or str(error), "file": name}
    except MemoryError:
        yield {"kind": "failed", "reason": "there is not enough memory for it"}
    except Exception as error:
        traceback.print_exc()  # heard with --debug only
        memory = "RESOURCE_EXHAUSTED" in str(error)
        reason = "there is not enough memory for it" if memory else f"{type(error).__name__}: {error}"
        yield {"kind": "failed", "reason": " ".join(reason.split())}


def _compute(order: dict[str, Any], mailbox: Mailbox) -> Iterator[dict[str, Any]]:
    from bellief.sweeps import work
    from bellief.sweeps.cells import Cell
    from bellief.sweeps.store import Store
    from bellief.sweeps.tables import content_hash

    cell = Cell(order["id"], order["identity"])
    # None: only to compare, nothing is written.
    store = None if order["folder"] is None else Store(order["folder"])
    saved = store.read_checkpoint(cell.id) if store is not None else None
    for message in work.compute(cell, saved, order["every"], mailbox.stop.is_set):
        match message:
            case work.Progress():
                yield {"kind": "progress", **message._asdict()}
            case work.Checkpoint() if store is not None:
                store.write_checkpoint(cell.id, message.content)
            case work.Restarted(reason):
                yield {"kind": "restarted", "reason": reason}
            case work.Stopped():
                yield {"kind": "stopped"}
            case work.Finished(tables, seconds, made):
                content = content_hash(tables)
                facts = {"seconds": round(seconds, 3), "made": made, "memory_mib": peak_memory()}
                if store is not None:
                    store.commit(cell, tables, content, **facts)
                yield {"kind": "finished", "content": content, **facts, **summary(tables)}


def summary(tables: dict[str, bytes]) -> dict[str, Any]:
    """What progress shows of a finished cell: the smoothed reward of its runs at the end."""
    from bellief.sweeps.tables import CURVES, read_parquet

    curves = read_parquet(tables[CURVES])
    step = curves["step"].to_numpy()
    last = int(step.max())
    return {"step": last, "steps": last, "reward": float(curves["smoothed"].to_numpy()[step == last].mean())}


def peak_memory() -> float:
    """The most memory this process has held so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


if __name__ == "__main__":
    main()
