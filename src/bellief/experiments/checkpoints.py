"""Runs that can be interrupted: where they stand is saved, and they go on from there to the same numbers."""

import contextlib
import threading
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError
from typing import Any, Protocol

from bellief.experiments.event_collector import Collector
from bellief.experiments.event_loop import Plan, Snapshot
from bellief.experiments.gymnasium_loop import ReplayError


class Checkpoints(Protocol):
    """Keeps where groups of runs stand; a group is named by the numbers of its runs."""

    def load(self, numbers: range, shapes: Callable[[], Any]) -> tuple[Snapshot, Collector] | None:
        """Where a group stands; `shapes` gives the shapes and dtypes that its runs must have."""

    def due(self, numbers: range) -> bool:
        """Whether it is time for another checkpoint."""

    def save(self, numbers: range, snapshot: Snapshot, gathered: Collector) -> None:
        """Keep a checkpoint."""


class Progress:
    """Adds up the plans of all batches and passes the fraction on."""

    def __init__(self, callback: Callable[[float], None] | None, total: int):
        self.callback, self.total, self.done, self.lock = callback, max(total, 1), 0, threading.Lock()
        self.stopped = False

    def stop(self) -> None:
        """Make every group of runs end at its next plan, or at its next checkpoint where there are any."""
        self.stopped = True

    def tick(self, plans: int = 1, may_stop: bool = False) -> None:
        """So many more plans are done; ends the caller where that was asked for."""
        if self.stopped and may_stop:
            raise CancelledError
        with self.lock:
            self.done += plans
            if self.callback is not None:
                self.callback(min(self.done / self.total, 1.0))


def gather(stream: Generator[Any], gathered: Collector, progress: Progress) -> Collector:
    """Collect the events of a group of runs."""
    # Closed at once where something fails, so that no environment stays open while an error is on its way.
    with contextlib.closing(stream) as events:
        for event in events:
            gathered.add(event)
            if isinstance(event, Plan):
                progress.tick(may_stop=True)
    return gathered


def gather_saved(
    numbers: range,
    events: Callable[[range, Snapshot | None], Generator[Any]],
    shapes: Callable[[], Any],
    checkpoints: Checkpoints,
    progress: Progress,
    keep_end: bool,
) -> Collector:
    """The same from the last checkpoint on, with checkpoints on the way; with `keep_end` also one at the end."""
    found = checkpoints.load(numbers, shapes)
    if found is not None:
        progress.tick(found[1].number)
        # A real environment that does not repeat itself begins again.
        with contextlib.suppress(ReplayError):
            return _gather_saved(numbers, events(numbers, found[0]), found[1], checkpoints, progress, keep_end)
    return _gather_saved(numbers, events(numbers, None), Collector(), checkpoints, progress, keep_end)


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
