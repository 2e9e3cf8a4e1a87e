"""Batches of runs computed concurrently, and their parts joined again."""

import contextlib
import threading
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pandas as pd

from bellief.experiments.collect import Collector
from bellief.experiments.event_loop import Plan
from bellief.fast import placement
from bellief.fast.placement import Places
from bellief.processors import cores


def run_batches(
    batches: list[range],
    events: Callable[[range], Generator[Any]],
    plans: int,
    progress: Callable[[float], None] | None,
    places: Places,
) -> list[Collector]:
    """Collect the events of every batch, several batches at once; `plans` is how many each makes, for the progress."""
    report = _Progress(progress, len(batches) * plans)

    def one_batch(numbers: range) -> Collector:
        gathered = Collector()
        # Closed at once where something fails, so that no environment stays open while the error propagates.
        with placement.at_work(places), contextlib.closing(events(numbers)) as stream:
            for event in stream:
                gathered.add(event)
                if isinstance(event, Plan):
                    report.tick()
        return gathered

    with ThreadPoolExecutor(workers(len(batches), places)) as pool:
        try:
            futures = [pool.submit(one_batch, numbers) for numbers in batches]
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            # The pool waits for its threads; without this an error would only surface when all batches are done.
            report.stop()
            raise


def by_run(batches: list[dict[str, np.ndarray]], width: int, runs: int) -> pd.DataFrame:
    """The batches' columns in one frame, with run numbers in place of lanes, without the runs that were padding."""
    numbers = np.concatenate([columns["lane"] + width * place for place, columns in enumerate(batches)])
    real = numbers < runs
    others = {name: np.concatenate([columns[name] for columns in batches]) for name in batches[0] if name != "lane"}
    return pd.DataFrame({"run": numbers[real]} | {name: column[real] for name, column in others.items()})


def workers(batches: int, places: Places) -> int:
    """Batches at once: as many as there are cores; with a GPU two, so that one steps while another plans."""
    most = cores() // places.step.size if places.plan.devices.flat[0].platform == "cpu" else 2
    return max(1, min(batches, most))


class _Progress:
    """Adds up the plans of all batches and passes the fraction on."""

    def __init__(self, callback: Callable[[float], None] | None, total: int):
        self.callback, self.total, self.done, self.lock = callback, max(total, 1), 0, threading.Lock()
        self.stopped = False

    def stop(self) -> None:
        """Make every batch stop at its next plan."""
        self.stopped = True

    def tick(self) -> None:
        """One more plan is done."""
        if self.stopped:
            raise CancelledError
        with self.lock:
            self.done += 1
            if self.callback is not None:
                self.callback(self.done / self.total)
