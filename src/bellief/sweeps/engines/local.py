"""Cells on this machine: one process for each core, each with its own JAX; one process where there is a GPU."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

from bellief.errors import UserError
from bellief.processors import cores
from bellief.sweeps.cells import Cell
from bellief.sweeps.engines import PROGRAMS, RETRIES, STOPPING, Event, Job, settings_of
from bellief.sweeps.machine import worker_environment

# Seconds for a worker to import JAX and say hello, and to end when asked to.
PATIENCE, FAREWELL = 300, 10


class Worker:
    """A process of `bellief.sweeps.worker`, and what it is busy with."""

    def __init__(self, number: int, news: "queue.Queue[tuple[int, Event]]", debug: bool):
        self.number = number
        self.cell: Cell | None = None
        self.settings: str | None = None
        self.backend: str | None = None
        self.programs = 0
        environment = os.environ | worker_environment()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bellief.sweeps.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if debug else subprocess.DEVNULL,
            env=environment,
        )
        threading.Thread(target=self._listen, args=(news,), daemon=True).start()

    def _listen(self, news: "queue.Queue[tuple[int, Event]]") -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with contextlib.suppress(ValueError):
                    news.put((self.number, json.loads(line)))
        news.put((self.number, {"kind": "gone", "code": self.process.wait()}))

    def send(self, **message: Any) -> None:
        """Give an order; that the worker is gone is heard elsewhere."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Ask, wait, kill."""
        self.send(kind="quit")
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        try:
            self.process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Local:
    """The local engine."""

    name = "local"

    def __init__(self, workers: int | None = None, debug: bool = False):
        self.wanted, self.debug = workers or cores(), debug
        self.news: queue.Queue[tuple[int, Event]] = queue.Queue()
        self.workers: dict[int, Worker] = {}
        self.started = 0

    def _start(self) -> Worker:
        self.started += 1
        worker = Worker(self.started, self.news, self.debug)
        self.workers[worker.number] = worker
        return worker

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers.values():
            worker.send(kind="quit")
        for worker in list(self.workers.values()):
            worker.end()
        self.workers.clear()

    def run(self, cells: list[Cell], job: Job) -> Iterator[Event]:
        """Compute the cells."""
        waiting, tries = list(cells), dict.fromkeys((cell.id for cell in cells), 0)
        stopping = False
        if waiting:
            self._start()
        while waiting or any(worker.cell for worker in self.workers.values()):
            if job.stop.is_set() and not stopping:
                stopping, waiting = True, []
                for worker in self.workers.values():
                    worker.send(kind="stop")
                yield STOPPING
                continue
            number, event = self._next()
            if number not in self.workers:  # nobody, or the last word of one that was replaced
                continue
            worker = self.workers[number]
            if event["kind"] == "gone":
                del self.workers[number]
                worker.end()
                if worker.cell is not None:
                    tries[worker.cell.id] += 1
                    yield self._lost(worker.cell, event["code"], tries[worker.cell.id], waiting, stopping)
                elif worker.backend is None:
                    raise UserError(_cannot_start(event["code"]))
                if waiting:  # in its place, even where others are left: they may be idle, and would not ask again
                    self._start()
                continue
            if event["kind"] == "hello":
                worker.backend = event["backend"]
                self._start_others(worker, len(waiting))
            else:
                yield event
            if event["kind"] not in ("progress", "restarted"):
                worker.cell = None
                if waiting and not job.stop.is_set():
                    place = self._choose(worker, waiting)
                    if worker.programs >= PROGRAMS and settings_of(waiting[place]) != worker.settings:
                        self._replace(worker)
                    else:
                        yield self._give(worker, waiting.pop(place), job)

    def _next(self) -> tuple[int, Event]:
        try:
            return self.news.get(timeout=0.2)
        except queue.Empty:
            return 0, {"kind": "none"}

    def _start_others(self, first: Worker, waiting: int) -> None:
        """A GPU is busy enough with one process; cores get one each."""
        if first.backend == "cpu" and self.started == 1:
            for _ in range(min(self.wanted, waiting) - 1):
                self._start()

    def _lost(self, cell: Cell, code: int, tries: int, waiting: list[Cell], stopping: bool) -> Event:
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if stopping:
            return {"kind": "stopped", "cell": cell.id}
        if tries < RETRIES:
            waiting.insert(0, cell)
            return {"kind": "lost", "cell": cell.id, "reason": f"its process ended ({how})"}
        return {"kind": "failed", "cell": cell.id, "reason": f"its process ended {tries} times ({how})"}

    def _replace(self, worker: Worker) -> None:
        del self.workers[worker.number]
        worker.end()
        self._start()

    def _choose(self, worker: Worker, waiting: list[Cell]) -> int:
        """The next cell, if possible one that needs no new compilation, else one that no other worker compiles."""
        busy = {other.settings for other in self.workers.values() if other is not worker}
        keys = [settings_of(cell) for cell in waiting[:200]]
        own = [place for place, key in enumerate(keys) if key == worker.settings]
        free = [place for place, key in enumerate(keys) if key not in busy]
        return (own or free or [0])[0]

    def _give(self, worker: Worker, cell: Cell, job: Job) -> Event:
        worker.programs += settings_of(cell) != worker.settings
        worker.cell, worker.settings = cell, settings_of(cell)
        worker.send(
            kind="compute",
            id=cell.id,
            identity=cell.identity,
            settings=worker.settings,
            folder=str(job.home(cell.id).folder.absolute()),
            every=job.every,
        )
        return {"kind": "begin", "cell": cell.id}

    def ask(self, **order: Any) -> Event:
        """One order to one worker, answered."""
        worker = next(iter(self.workers.values()), None) or self._start()
        if worker.backend is None:
            hello = self.news.get(timeout=PATIENCE)[1]
            if hello["kind"] == "gone":
                raise UserError(_cannot_start(hello["code"]))
            worker.backend = hello["backend"]
        worker.send(**order)
        while True:
            event = self.news.get()[1]
            if event["kind"] == "gone":
                self.workers.clear()
                return {"kind": "failed", "reason": f"its process ended ({event['code']})"}
            if event["kind"] not in ("progress", "restarted"):
                return event


def _cannot_start(code: int) -> str:
    return (
        f"A process for the computation could not start (exit code {code}): see with --debug what it says, and whether "
        "this Python can import bellief and jax."
    )
