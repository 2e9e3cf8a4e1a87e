"""Chunks of runs side by side, and their parts put together again: what `run` does for every kind of state."""

import contextlib
import functools
import threading
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from typing import Any, Protocol

import jax
import numpy as np
import pandas as pd

from bellief.experiments import devices, loop
from bellief.experiments.collect import Collector
from bellief.experiments.devices import Places
from bellief.experiments.stepped import ReplayError
from bellief.processors import cores


def chunk_keys(seed: int, environment: str, agent: str, numbers: range) -> loop.RunKeys:
    """The keys of the runs of one chunk."""
    return _keys(np.uint32(seed), environment, agent, np.asarray(numbers))


# Compiled: a few operations one by one take as long as many a short run.
@functools.partial(jax.jit, static_argnames=("environment", "agent"))
def _keys(seed: Any, environment: str, agent: str, numbers) -> loop.RunKeys:
    return jax.vmap(lambda number: loop.run_keys(seed, environment, agent, number))(numbers)


class Checkpoints(Protocol):
    """Keeps where chunks stand, so that an interrupted run can go on."""

    def load(self, chunk: range, shapes: Callable[[], Any]) -> tuple[loop.Snapshot, Collector] | None:
        """Where a chunk stands; `shapes` gives the shapes and dtypes that its runs must have."""

    def due(self, chunk: range) -> bool:
        """Whether it is time for another checkpoint."""

    def save(self, chunk: range, snapshot: loop.Snapshot, gathered: Collector) -> None:
        """Keep a checkpoint."""


def run_chunks(
    chunks: list[range],
    events: Callable[[range, loop.Snapshot | None], Generator[Any]],
    plans: int,
    progress: Callable[[float], None] | None,
    places: Places,
    checkpoints: Checkpoints | None = None,
    shapes: Callable[[range], Any] = lambda numbers: None,
) -> list[Collector]:
    """Gather the events of every chunk, several at once; `plans` is how many each makes, for the progress.

    With `checkpoints`, chunks go on from where they stood, and an error or interrupt saves every chunk under way.
    """
    report = _Progress(progress, len(chunks) * plans)

    def gather(numbers: range, resume: loop.Snapshot | None, gathered: Collector) -> Collector:
        latest = None  # the last snapshot, while its arrays are still there
        # Closed at once where something fails, so that no environment stays open while an error is on its way.
        with contextlib.closing(events(numbers, resume)) as stream:
            for event in stream:
                gathered.add(event)
                if isinstance(event, loop.Plan):
                    report.tick(may_stop=checkpoints is None)
                if gathered.last is None:
                    latest = event if isinstance(event, loop.Snapshot) else None
                if checkpoints is not None and latest is not None and gathered.last is None:
                    stopping = report.stopped
                    if stopping or checkpoints.due(numbers):
                        checkpoints.save(numbers, latest, gathered)
                    if stopping:
                        raise CancelledError
        if checkpoints is not None and latest is not None and len(chunks) > 1:
            checkpoints.save(numbers, latest, gathered)
        return gathered

    def one_chunk(numbers: range) -> Collector:
        if report.stopped:
            raise CancelledError
        with devices.at_work(places):
            found = None if checkpoints is None else checkpoints.load(numbers, lambda: shapes(numbers))
            if found is not None:
                report.tick(found[1].number)
                try:
                    return gather(numbers, *found)
                except ReplayError:  # a real environment that does not repeat itself: from the beginning
                    pass
            return gather(numbers, None, Collector())

    with ThreadPoolExecutor(workers(len(chunks), places)) as pool:
        try:
            futures = [pool.submit(one_chunk, numbers) for numbers in chunks]
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            # The pool waits for its threads; without this an error would take effect when all chunks are done.
            report.stop()
            raise


def by_run(chunks: list[dict[str, np.ndarray]], width: int, runs: int) -> pd.DataFrame:
    """The chunks' columns in one frame, their lanes turned into numbers of runs, without the runs that only padded."""
    numbers = np.concatenate([columns["lane"] + width * place for place, columns in enumerate(chunks)])
    real = numbers < runs
    others = {name: np.concatenate([columns[name] for columns in chunks]) for name in chunks[0] if name != "lane"}
    return pd.DataFrame({"run": numbers[real]} | {name: column[real] for name, column in others.items()})


def workers(chunks: int, places: Places) -> int:
    """Chunks side by side: as many as there are processors; with a GPU two, so that one steps while another plans."""
    most = cores() // places.step.size if places.plan.devices.flat[0].platform == "cpu" else 2
    return max(1, min(chunks, most))


class _Progress:
    """Adds up the plans of all chunks and passes the fraction on."""

    def __init__(self, callback: Callable[[float], None] | None, total: int):
        self.callback, self.total, self.done, self.lock = callback, max(total, 1), 0, threading.Lock()
        self.stopped = False

    def stop(self) -> None:
        """Make every chunk give up at its next plan."""
        self.stopped = True

    def tick(self, plans: int = 1, may_stop: bool = False) -> None:
        """So many more plans are done."""
        if self.stopped and may_stop:
            raise CancelledError
        with self.lock:
            self.done += plans
            if self.callback is not None:
                self.callback(min(self.done / self.total, 1.0))
