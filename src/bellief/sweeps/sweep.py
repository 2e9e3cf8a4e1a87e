"""`run_sweep`: compute what is missing in a store."""

import contextlib
import errno
import os
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
from bellief.sweeps.worker import writing_failed

# Seconds between two checkpoints of a cell.
CHECKPOINT_EVERY = 30.0


class Summary(NamedTuple):
    """How a sweep stands after `run_sweep`; `signal` is the number of the one that stopped it."""

    folder: Path
    cells: int
    finished: int
    computed: int
    failed: dict[str, str]
    set_aside: dict[str, str]
    stopped: bool
    signal: int | None = None


class Wanted(NamedTuple):
    """A sweep to compute, where its store is or is to be made, and folders of other sweeps that may hold its cells."""

    spec: Spec
    folder: str | Path
    reuse: Sequence[str | Path] = ()


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
        reuse: folders of other sweeps; cells that are finished there are copied instead of computed.
        listen: called with every event, as plain data.

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
    wanted = [Wanted(spec, folder, reuse)]
    return run_sweeps(wanted, engine=engine, shard=shard, every=every, listen=listen)[0]


def run_sweeps(
    wanted: Sequence[Wanted],
    *,
    engine: Callable[[], Engine] | None = None,
    shard: tuple[int, int] | None = None,
    every: float = CHECKPOINT_EVERY,
    listen: Callable[[Event], None] = lambda event: None,
) -> list[Summary]:
    """The same for several sweeps at once: one engine works through all their cells, so that no worker waits for the
    last cell of a sweep. A cell that several lack is computed for the first of them, and the others take it over.
    """
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(_opened(one, shard, listen)) for one in wanted]
        owners: dict[str, _Opened] = {}
        for one in opened:
            for cell in one.missing():
                owners.setdefault(cell.id, one)
        working = stack.enter_context(contextlib.closing((engine or _local)()))
        for one in opened:
            one.session = Session(one.store, working.name, shard)
            one.ledger.write(one.session.facts, force=True)
        listen(_opening(opened))
        with _graceful() as stop:
            trouble = _compute(owners, working, Job(lambda cell: owners[cell].store, every, stop), listen)
            stopped = stop.is_set() and trouble is None and any(one.missing() for one in opened)
        for one in opened:
            shared = dict.fromkeys(owners[cell.id].store for cell in one.missing() if owners[cell.id] is not one)
            trouble = one.close(list(shared), trouble, stopped)
        if trouble is not None:
            place = str(trouble.get("file") or opened[0].store.folder)
            raise OSError(trouble.get("errno") or errno.EIO, trouble.get("reason") or "unknown error", place)
        summaries = [one.summary(stopped)._replace(signal=stop.number if stopped else None) for one in opened]
        for summary in summaries:
            listen({"kind": "end", **summary._asdict(), "folder": str(summary.folder)})
    return summaries


class _Opened:
    """A store that is locked and checked, with the cells it has taken from other stores."""

    session: Session

    def __init__(self, store: Store, ledger: Ledger, cells: list[Cell], set_aside: dict[str, str]):
        self.store, self.ledger, self.cells, self.set_aside = store, ledger, cells, set_aside

    def missing(self) -> list[Cell]:
        """The cells that are not finished."""
        return [cell for cell in self.cells if self.ledger.status(cell.id) != "finished"]

    def close(self, shared: list[Store], trouble: Event | None, stopped: bool) -> Event | None:
        """Take over what others computed, and write how it ended; where the disk is full even that may fail, and then
        the first trouble is returned.
        """
        failed = self.session.facts["failed"]
        status = "full" if trouble else "stopped" if stopped else "failed" if failed else "finished"
        try:
            _take_over(self.store, shared, self.ledger, self.cells)
            self.session.end(status)
            self.ledger.scan(deep=False)
            self.ledger.write(self.session.facts, force=True)
        except OSError as error:
            trouble = trouble or writing_failed(error)
        return trouble

    def summary(self, stopped: bool) -> Summary:
        """How it stands."""
        done, facts = len(self.cells) - len(self.missing()), self.session.facts
        counts = (len(self.cells), done, facts["computed"])
        return Summary(self.store.folder, *counts, facts["failed"], self.set_aside, stopped)


@contextlib.contextmanager
def _opened(wanted: Wanted, shard: tuple[int, int] | None, listen: Callable[[Event], None]) -> Iterator[_Opened]:
    setups = expand(wanted.spec)
    others = [Store(other) for other in wanted.reuse]
    store = Store.create(wanted.folder, wanted.spec)
    with hold(store.folder, shard) as stale:
        store.prepare(alone=shard is None)
        ledger = Ledger(store, setups)
        if stale:
            listen({"kind": "note", "text": "A lock that a killed process had left behind was removed."})
        set_aside = _put_in_order(store, ledger, listen)
        cells = [cell for place, cell in enumerate(ledger.cells.values()) if _belongs(place, shard)]
        _take_over(store, others, ledger, cells)
        yield _Opened(store, ledger, cells, set_aside)


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


def _opening(opened: list[_Opened]) -> Event:
    setups = [
        {
            "environment": setup.environment,
            "agent": setup.agent,
            "steps": setup.steps,
            "runs": setup.runs,
            "cells": [cell.id for cell in setup.cells],
        }
        for one in opened
        for setup in one.ledger.setups
    ]
    status = {cell.id: one.ledger.status(cell.id) for one in reversed(opened) for cell in one.cells}
    done = [cell for cell, state in status.items() if state == "finished"]
    return {
        "kind": "sweep",
        "name": ", ".join(one.store.spec.name for one in opened),
        "folder": os.path.commonpath([one.store.folder for one in opened]),
        "cells": len(status),
        "finished": len(done),
        "started": sum(state == "started" for state in status.values()),
        "mine": list(status),
        "done": done,
        "setups": setups,
    }


def _compute(owners: dict[str, _Opened], engine: Engine, job: Job, listen: Callable[[Event], None]) -> Event | None:
    """Let the engine work; returns the trouble that ended it, if a file could not be written."""
    trouble: Event | None = None
    for event in engine.run([one.ledger.cells[cell] for cell, one in owners.items()], job):
        if event["kind"] == "note":
            listen(event)
            continue
        cell, kind = event["cell"], event["kind"]
        ledger, facts = owners[cell].ledger, owners[cell].session.facts
        if kind in ("full", "unwritable"):
            trouble = trouble or event
            job.stop.set()
        elif kind == "finished":
            ledger.finish(cell, {**event, "finished": now()})
            facts["computed"] += 1
        elif kind == "failed":
            ledger.entries[cell] = {"status": "failed", "reason": event["reason"]}
            facts["failed"][cell] = event["reason"]
        elif kind in ("begin", "stopped"):
            ledger.entries[cell] = {"status": "started"}
        listen({**event, **ledger.labels[cell]})
        try:
            ledger.write(facts)
        except OSError as error:
            trouble = trouble or writing_failed(error)
            job.stop.set()
    return trouble


class _Stop(threading.Event):
    """Set by a signal, whose number it keeps."""

    number: int | None = None


@contextlib.contextmanager
def _graceful() -> Iterator[_Stop]:
    """The first Ctrl-C or SIGTERM sets the event; the second Ctrl-C ends everything at once."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        del frame
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.number = stop.number or number
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
