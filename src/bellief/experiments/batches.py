"""Batches of runs computed concurrently, and their parts joined again."""

from collections.abc import Callable, Generator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import numpy as np

from bellief.experiments.checkpoints import Checkpoints, Progress, gather, gather_saved
from bellief.experiments.event_collector import Collector
from bellief.experiments.event_loop import Snapshot
from bellief.fast import placement
from bellief.fast.placement import Places
from bellief.processors import cores

if TYPE_CHECKING:
    import pandas as pd


def run_batches(
    batches: list[range],
    events: Callable[[range, Snapshot | None], Generator[Any]],
    plans: int,
    progress: Callable[[float], None] | None,
    places: Places,
    checkpoints: Checkpoints | None = None,
    shapes: Callable[[range], Any] = lambda numbers: None,
) -> list[Collector]:
    """Collect the events of every batch, several batches at once; `plans` is how many each makes, for the progress.

    With `checkpoints`, batches go on from where they stood, and an error or interrupt saves every batch under way.
    """
    report = Progress(progress, len(batches) * plans)

    def one_batch(numbers: range) -> Collector:
        if report.stopped:
            raise CancelledError
        with placement.at_work(places):
            if checkpoints is None:
                return gather(events(numbers, None), Collector(), report)
            keep_end = len(batches) > 1
            return gather_saved(numbers, events, lambda: shapes(numbers), checkpoints, report, keep_end)

    with ThreadPoolExecutor(workers(len(batches), places)) as pool:
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

    numbers = np.concatenate([columns["lane"] + width * place for place, columns in enumerate(batches)])
    real = numbers < runs
    others = {name: np.concatenate([columns[name] for columns in batches]) for name in batches[0] if name != "lane"}
    return pd.DataFrame({"run": numbers[real]} | {name: column[real] for name, column in others.items()})


def workers(batches: int, places: Places) -> int:
    """Batches at once: as many as there are cores; with a GPU two, so that one steps while another plans."""
    most = cores() // places.step.size if places.plan.devices.flat[0].platform == "cpu" else 2
    return max(1, min(batches, most))
