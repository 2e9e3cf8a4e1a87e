"""Chunks of runs side by side, and their parts put together again: what `run` does for every kind of state."""

import functools
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from typing import Any

import jax
import numpy as np
import pandas as pd

from bellief.experiments import devices, loop
from bellief.experiments.checkpoints import Checkpoints, Progress, gather, gather_saved
from bellief.experiments.collect import Collector
from bellief.experiments.devices import Places
from bellief.processors import cores


def chunk_keys(seed: int, environment: str, agent: str, numbers: range) -> loop.RunKeys:
    """The keys of the runs of one chunk."""
    return _keys(np.uint32(seed), environment, agent, np.asarray(numbers))


# Compiled: a few operations one by one take as long as many a short run.
@functools.partial(jax.jit, static_argnames=("environment", "agent"))
def _keys(seed: Any, environment: str, agent: str, numbers) -> loop.RunKeys:
    return jax.vmap(lambda number: loop.run_keys(seed, environment, agent, number))(numbers)


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
    report = Progress(progress, len(chunks) * plans)

    def one_chunk(numbers: range) -> Collector:
        if report.stopped:
            raise CancelledError
        with devices.at_work(places):
            if checkpoints is None:
                return gather(events(numbers, None), Collector(), report)
            keep_end = len(chunks) > 1
            return gather_saved(numbers, events, lambda: shapes(numbers), checkpoints, report, keep_end)

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
