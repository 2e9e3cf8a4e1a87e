"""Cells on this machine: one process for each core, each with its own JAX; one process where there is a GPU.

Every process has a `ProcessPoolExecutor` of its own, so that one that is killed takes no other with it, and cells that
share a compiled program can go to the process that has it.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import types
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection

from bellief.errors import UserError
from bellief.processors import cores
from bellief.sweeps import worker
from bellief.sweeps.cells import Cell
from bellief.sweeps.engines import PROGRAMS, RETRIES, STOPPING, Event, Job, lost_event, settings_of
from bellief.sweeps.machine import worker_environment

# Seconds between two checks of processes that send no events.
PAUSE = 0.2


class Worker:
    """A process, its pool, and what it is busy with. `future` is the answer to its last order."""

    def __init__(self, debug: bool):
        context = multiprocessing.get_context("spawn")
        self.cell: Cell | None = None
        self.settings: str | None = None
        self.programs = 0
        self.pid: int | None = None
        self.backend: str | None = None
        self.progress, self._sender = context.Pipe(duplex=False)
        self.pool = ProcessPoolExecutor(1, context, initializer=worker.start, initargs=(self._sender, debug))
        with _starting():
            self.future: Future[Event] = self.pool.submit(worker.describe)

    def ready(self) -> bool:
        """Whether it has started and has nothing to do."""
        return self.pid is not None and self.cell is None

    def messages(self) -> Iterator[Event]:
        """The events of its cell; after the last one its answer is there, or its process has ended."""
        with contextlib.suppress(EOFError, OSError):
            while self.progress.poll():
                message = self.progress.recv()
                if message is None:
                    with contextlib.suppress(BrokenProcessPool):
                        self.future.result()
                else:
                    yield message

    def signal(self, number: int) -> None:
        """Send a signal to its process, if it is still there."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def close(self) -> None:
        """End the process: at once where it is still busy, since the answer is not needed."""
        if not self.future.done():
            self.signal(signal.SIGKILL)
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.progress.close()
        self._sender.close()


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """What a process finds when it starts: its environment variables, and signals blocked until it has handlers.

    It does not import the main module again, as spawned processes do: it needs nothing of it, and a script without
    `if __name__ == "__main__"` would begin from its first line.
    """
    main, variables = sys.modules["__main__"], worker_environment()
    before = {name: os.environ.get(name) for name in variables}
    sys.modules["__main__"] = types.ModuleType("__main__")
    os.environ.update(variables)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, worker.SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sys.modules["__main__"] = main
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Local:
    """The local engine."""

    name = "local"

    def __init__(self, workers: int | None = None, debug: bool = False):
        self.wanted, self.debug = workers or cores(), debug
        self.workers: list[Worker] = []
        self.started = self.failures = 0

    def _start(self) -> Worker:
        self.started += 1
        self.workers.append(Worker(self.debug))
        return self.workers[-1]

    def _end(self, one: Worker) -> None:
        self.workers.remove(one)
        one.close()

    def close(self) -> None:
        """End all processes."""
        while self.workers:
            self._end(self.workers[-1])

    def run(self, cells: list[Cell], job: Job) -> Iterator[Event]:
        """Compute the cells."""
        waiting, lost = list(cells), Counter[str]()
        stopping = False
        while waiting or any(one.cell for one in self.workers):
            if job.stop.is_set() and not stopping:
                stopping, waiting = True, []
                for one in self.workers:
                    one.signal(signal.SIGTERM)
                yield STOPPING
            self._start_missing(waiting)
            connection.wait([one.progress for one in self.workers], PAUSE)
            for one in list(self.workers):
                yield from one.messages()
                if one.future.done() and not one.ready():
                    yield from self._answer(one, lost, waiting, stopping)
            for one in list(self.workers):
                if one.ready() and waiting and not job.stop.is_set():
                    yield from self._give(one, waiting, job)

    def _start_missing(self, waiting: list[Cell]) -> None:
        """One process first, to learn what JAX finds: one is enough for a GPU; on CPUs there is one for each core."""
        backend = next((one.backend for one in self.workers if one.backend), None)
        busy = sum(one.cell is not None for one in self.workers)
        wanted = min(self.wanted if backend == "cpu" else 1, len(waiting) + busy)
        while len(self.workers) < wanted:
            self._start()

    def _answer(self, one: Worker, lost: Counter[str], waiting: list[Cell], stopping: bool) -> Iterator[Event]:
        """The answer to a worker's last order, or the loss of its process."""
        try:
            event = one.future.result()
        except BrokenProcessPool:
            event = {"kind": "lost", "reason": "its process ended"}
        if one.pid is None:
            self._note_start(one, event)
            return
        cell, one.cell = one.cell, None
        assert cell is not None
        if event["kind"] == "stopped" and not stopping:  # the signal came from elsewhere
            event = {"kind": "lost", "reason": "its process was told to stop"}
        if event["kind"] == "lost":
            self._end(one)
            lost[cell.id] += 1
            event = lost_event(event, cell, lost[cell.id], stopping)
            if event["kind"] == "lost":
                waiting.insert(0, cell)
        yield event

    def _note_start(self, one: Worker, event: Event) -> None:
        """A new process has started, or was lost while starting: then another is started, up to `RETRIES` times."""
        if event.get("kind") != "lost":
            one.pid, one.backend, self.failures = event["pid"], event["backend"], 0
            return
        self._end(one)
        self.failures += 1
        if self.failures >= RETRIES:
            raise UserError(
                "Processes for the computation cannot start: see with --debug what they say, and whether this Python "
                "can import bellief and jax."
            )

    def _give(self, one: Worker, waiting: list[Cell], job: Job) -> Iterator[Event]:
        place = self._choose(one, waiting)
        cell = waiting[place]
        settings = settings_of(cell)
        if one.programs >= PROGRAMS and settings != one.settings:
            self._end(one)
            self._start()
            return
        order = {"kind": "compute", "id": cell.id, "identity": cell.identity, "settings": settings, "every": job.every}
        try:
            folder = str(job.home(cell.id).folder.absolute())
            one.future = one.pool.submit(worker.execute, order | {"folder": folder})
        except BrokenProcessPool:  # killed while it had nothing to do
            self._end(one)
            return
        del waiting[place]
        one.programs += settings != one.settings
        one.cell, one.settings = cell, settings
        yield {"kind": "begin", "cell": cell.id}

    def _choose(self, one: Worker, waiting: list[Cell]) -> int:
        """The next cell, if possible one that needs no new compilation, else one that no other worker compiles."""
        busy = {other.settings for other in self.workers if other is not one}
        keys = [settings_of(cell) for cell in waiting[:200]]
        own = [place for place, key in enumerate(keys) if key == one.settings]
        free = [place for place, key in enumerate(keys) if key not in busy]
        return (own or free or [0])[0]

    def ask(self, **order: object) -> Event:
        """One order to one worker, answered."""
        while True:
            one = self.workers[0] if self.workers else self._start()
            if one.pid is None:
                try:
                    self._note_start(one, one.future.result())
                except BrokenProcessPool:
                    self._note_start(one, {"kind": "lost"})
                continue
            try:
                one.future = one.pool.submit(worker.execute, order)
                return one.future.result()
            except BrokenProcessPool:
                self._end(one)
                return {"kind": "failed", "reason": "its process ended"}
