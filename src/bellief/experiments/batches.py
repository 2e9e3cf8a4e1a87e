"""Batches of runs computed concurrently, and their parts joined again.

Runs can be interrupted: with checkpoints their position is saved, and they continue from there to the same numbers.
"""

import contextlib
import threading
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bellief.experiments.event_collector import Collector
from bellief.experiments.event_loop import Plan, Snapshot
from bellief.experiments.gymnasium_agents import ReplayError
from bellief.experiments.task import Case
from bellief.fast import placement
from bellief.processors import cores

if TYPE_CHECKING:
    import pandas as pd


class Checkpoints(Protocol):
    """Saves the state of batches of runs; a batch is identified by the numbers of its runs."""

    def load(self, numbers: range, shapes: Callable[[], Any]) -> tuple[Snapshot, Collector] | None:
        """The saved state of a batch; `shapes` gives the shapes and dtypes that its runs must have."""

    def due(self, numbers: range) -> bool:
        """Whether it is time for another checkpoint."""

    def save(self, numbers: range, snapshot: Snapshot, gathered: Collector) -> None:
        """Save a checkpoint."""


class Progress:
    """Adds up the plans of all batches and reports the finished fraction."""

    def __init__(self, callback: Callable[[float], None] | None, total: int):
        self.callback, self.total, self.done, self.lock = callback, max(total, 1), 0, threading.Lock()
        self.stopped = False

    def stop(self) -> None:
        """Make every batch end at its next plan, or at its next checkpoint where there are any."""
        self.stopped = True

    def tick(self, plans: int = 1, may_stop: bool = False) -> None:
        """Count finished plans; with `may_stop`, end the caller if `stop` was called."""
        if self.stopped and may_stop:
            raise CancelledError
        with self.lock:
            self.done += plans
            if self.callback is not None:
                self.callback(min(self.done / self.total, 1.0))


def gather(stream: Generator[Any], gathered: Collector, progress: Progress) -> Collector:
    """Collect the events of a batch."""
    # Closed at once where something fails, so that no environment stays open while an error is raised.
    with contextlib.closing(stream) as events:
        for event in events:
            gathered.add(event)
            if isinstance(event, Plan):
                progress.tick(may_stop=True)
    return gathered


def gather_saved(case: Case, numbers: range, checkpoints: Checkpoints, progress: Progress, keep_end: bool) -> Collector:
    """The same from the last checkpoint on, with checkpoints on the way; with `keep_end` also one at the end."""
    found = checkpoints.load(numbers, lambda: case.shapes(numbers))
    if found is not None:
        progress.tick(found[1].number)
        # A real environment that does not repeat itself begins again.
        with contextlib.suppress(ReplayError):
            return _gather_saved(numbers, case.events(numbers, found[0]), found[1], checkpoints, progress, keep_end)
    return _gather_saved(numbers, case.events(numbers), Collector(), checkpoints, progress, keep_end)


def _gather_saved(
    numbers: range,
    stream: Generator[Any],
    gathered: Collector,
    checkpoints: Checkpoints,
    progress: Progress,
    keep_end: bool,
) -> Collector:
    latest = None  # the last snapshot, as long as no later segment has taken its arrays over
    with contextlib.closing(stream) as events:
        for event in events:
            gathered.add(event)
            if isinstance(event, Plan):
                progress.tick()
            if gathered.last is not None:
                break
            latest = event if isinstance(event, Snapshot) else None
            if latest is not None:
                stopping = progress.stopped
                if stopping or checkpoints.due(numbers):
                    checkpoints.save(numbers, latest, gathered)
                if stopping:
                    raise CancelledError
    if keep_end and latest is not None:
        checkpoints.save(numbers, latest, gathered)
    return gathered


def run_batches(
    case: Case,
    batches: list[range],
    progress: Callable[[float], None] | None,
    checkpoints: Checkpoints | None = None,
) -> list[Collector]:
    """Collect the events of every batch, several batches at once.

    With `checkpoints`, batches continue from where they stood, and an error or interrupt saves every running batch.
    """
    report = Progress(progress, len(batches) * len(case.plans))

    def one_batch(numbers: range) -> Collector:
        if report.stopped:
            raise CancelledError
        with placement.at_work(case.places):
            if checkpoints is None:
                return gather(case.events(numbers), Collector(), report)
            return gather_saved(case, numbers, checkpoints, report, keep_end=len(batches) > 1)

    with ThreadPoolExecutor(workers(len(batches), case.places)) as pool:
        try:
            futures = [pool.submit(one_batch, numbers) for numbers in batches]
            import pandas  # noqa: F401  # for the results: imported while batches are compiled, not before

            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            # The pool waits for its threads; without this an error would only surface when all batches are done.
            report.stop()
            raise


def by_run(batches: list[dict[str, np.ndarray]], width: int, runs: int) -> "pd.DataFrame":
    """The batches' columns in one frame, with run numbers in place of lanes, without the runs that were padding."""
    import pandas as pd

    columns = {name: np.concatenate([one[name] for one in batches]) for name in batches[0]}
    first = width * np.repeat(np.arange(len(batches)), [len(one["lane"]) for one in batches])
    frame = pd.DataFrame({"run": columns.pop("lane") + first, **columns})
    return frame[frame["run"] < runs].reset_index(drop=True)


def workers(batches: int, places: placement.Places) -> int:
    """Batches at once: as many as there are cores; with a GPU two, so that one steps while another plans."""
    most = cores() // places.step.size if places.plan.devices.flat[0].platform == "cpu" else 2
    return max(1, min(batches, most))
