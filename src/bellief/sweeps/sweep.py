"""`run_sweep`: compute what is missing in a store, whatever happened before."""

import contextlib
import errno
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bellief.sweeps.cells import Cell, expand
from bellief.sweeps.engines import Engine, Event, Job
from bellief.sweeps.ledger import Ledger, Session
from bellief.sweeps.lock import hold
from bellief.sweeps.spec import Spec
from bellief.sweeps.store import Damaged, Store, now

# Seconds between two checkpoints of a cell.
CHECKPOINT_EVERY = 30.0


class Summary(NamedTuple):
    """How a sweep stands after `run_sweep`."""

    folder: Path
    cells: int
    finished: int
    computed: int
    failed: dict[str, str]
    set_aside: dict[str, str]
    stopped: bool


def run_sweep(
    spec: Spec,
    folder: str | Path,
    *,
    engine: Callable[[], Engine] | None = None,
    shard: tuple[int, int] | None = None,
    every: float = CHECKPOINT_EVERY,
    reuse: Sequence[str | Path] = (),
    listen: Callable[[Event], None] = lambda event: None,
) -> Summary:
    """Compute every cell of a sweep that the store in `folder` does not hold yet.

    Args:
        spec: the sweep.
        folder: where its store is, or is to be made.
        engine: makes what computes, once the folder is found to be free; without it, this machine computes.
        shard: `(2, 4)` for the second of four parts of the cells; parts can be computed at the same time.
        every: seconds between two checkpoints of a cell.
        reuse: folders of other sweeps; cells that are finished there are taken over instead of computed.
        listen: is told what happens, in plain data.

    >>> import tempfile
    >>> from bellief.sweeps.spec import Spec
    >>> from bellief.sweeps.engines.batch import Batch
    >>> from bellief.sweeps.sweep import run_sweep
    >>> spec = Spec(name="chains", steps=20, runs=2, environments=["nchain"], agents=["q-learning"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run_sweep(spec, f"{folder}/chains", engine=Batch)
    ...     again = run_sweep(spec, f"{folder}/chains", engine=Batch)
    >>> summary.finished, summary.computed, again.computed
    (1, 1, 0)
    """
    setups = expand(spec)
    others = [Store(other) for other in reuse]
    store = Store.create(folder, spec)
    with contextlib.ExitStack() as stack:
        stale = stack.enter_context(hold(store.folder, shard))
        store.prepare(alone=shard is None)
        ledger = Ledger(store, setups)
        if stale:
            listen({"kind": "note", "text": "A lock that a killed process had left behind was removed."})
        set_aside = _put_in_order(store, ledger, listen)
        cells = [cell for place, cell in enumerate(ledger.cells.values()) if _belongs(place, shard)]
        _take_over(store, others, ledger, cells)
        missing = [cell for cell in cells if ledger.status(cell.id) != "finished"]
        working = stack.enter_context(contextlib.closing((engine or _local)()))
        session = Session(store, working.name, shard)
        ledger.write(session.facts, force=True)
        listen(_opening(ledger, cells, missing))
        with _graceful() as stop:
            trouble = _compute(missing, working, Job(store, every, stop), ledger, session, listen)
            stopped = stop.is_set() and trouble is None
        _close(ledger, session, trouble, stopped)
        failed = session.facts["failed"]
        done = sum(ledger.status(cell.id) == "finished" for cell in cells)
        summary = Summary(store.folder, len(cells), done, session.facts["computed"], failed, set_aside, stopped)
        listen({"kind": "end", **summary._asdict(), "folder": str(store.folder)})
    return summary


def _take_over(store: Store, others: list[Store], ledger: Ledger, cells: list[Cell]) -> None:
    """Fill in what other stores have finished."""
    for other in others:
        for cell in cells:
            if ledger.status(cell.id) != "finished" and (record := store.adopt(other, cell.id)) is not None:
                ledger.finish(cell.id, record)


def _local() -> Engine:
    from bellief.sweeps.engines.local import Local

    return Local()


def _put_in_order(store: Store, ledger: Ledger, listen: Callable[[Event], None]) -> dict[str, str]:
    """Set damaged cells aside, and say so."""
    try:
        store.read_manifest()
    except Damaged as error:
        path = store.folder / "manifest.json"
        listen({"kind": "note", "text": f"{path} is damaged ({error}); it is rebuilt from the records of the cells."})
    damaged = ledger.scan(deep=True)
    for cell, reason in damaged.items():
        target = store.set_aside(cell, reason)
        text = f"Cell {cell} is damaged ({reason}); it was moved to {target} and is computed again."
        listen({"kind": "note", "text": text, "cell": cell})
        ledger.entries[cell] = {"status": "pending"}
    return damaged


def _belongs(place: int, shard: tuple[int, int] | None) -> bool:
    return shard is None or place % shard[1] == shard[0] - 1


def _opening(ledger: Ledger, cells: list[Cell], missing: list[Cell]) -> Event:
    setups = [
        {
            "environment": setup.environment,
            "agent": setup.agent,
            "steps": setup.steps,
            "runs": setup.runs,
            "cells": [cell.id for cell in setup.cells],
        }
        for setup in ledger.setups
    ]
    return {
        "kind": "sweep",
        "name": ledger.store.spec.name,
        "folder": str(ledger.store.folder),
        "cells": len(cells),
        "finished": len(cells) - len(missing),
        "started": sum(ledger.status(cell.id) == "started" for cell in missing),
        "mine": [cell.id for cell in cells],
        "done": [cell.id for cell in cells if ledger.status(cell.id) == "finished"],
        "setups": setups,
    }


def _compute(
    missing: list[Cell],
    engine: Engine,
    job: Job,
    ledger: Ledger,
    session: Session,
    listen: Callable[[Event], None],
) -> Event | None:
    """Let the engine work; returns the trouble that ended it, if a file could not be written."""
    trouble: Event | None = None
    for event in engine.run(missing, job):
        if event["kind"] == "note":
            listen(event)
            continue
        cell, kind = event["cell"], event["kind"]
        if kind in ("full", "unwritable"):
            trouble = trouble or event
            job.stop.set()
        elif kind == "finished":
            ledger.finish(cell, {**event, "finished": now()})
            session.facts["computed"] += 1
        elif kind == "failed":
            ledger.entries[cell] = {"status": "failed", "reason": event["reason"]}
            session.facts["failed"][cell] = event["reason"]
        elif kind in ("begin", "stopped"):
            ledger.entries[cell] = {"status": "started"}
        listen({**event, **ledger.labels[cell]})
        try:
            ledger.write(session.facts)
        except OSError as error:
            trouble = trouble or {"kind": "unwritable", "errno": error.errno, "reason": error.strerror}
            job.stop.set()
    return trouble


def _close(ledger: Ledger, session: Session, trouble: Event | None, stopped: bool) -> None:
    """Write how it ended; where the disk is full even that may fail, and then the trouble itself is told."""
    status = "full" if trouble else "stopped" if stopped else "failed" if session.facts["failed"] else "finished"
    try:
        session.end(status)
        ledger.scan(deep=False)
        ledger.write(session.facts, force=True)
    except OSError as error:
        trouble = trouble or {"errno": error.errno, "reason": error.strerror}
    if trouble is not None:
        place = str(trouble.get("file") or ledger.store.folder)
        raise OSError(trouble.get("errno") or errno.EIO, trouble.get("reason") or "unknown error", place)


@contextlib.contextmanager
def _graceful() -> Iterator[threading.Event]:
    """The first Ctrl-C or SIGTERM sets the event; the second Ctrl-C ends everything at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        del frame
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
