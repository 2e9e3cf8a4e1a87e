"""Units folded by threads of this process, a few at a time, and handed back in order."""

import collections
import concurrent.futures
import contextlib
import os
from collections.abc import Iterator, Sequence

from bellief.logs.fold import Part, Unit, fold_unit

# Megabytes that DuckDB may hold, all threads together; what needs more goes to disk.
MEMORY = 320


def default_threads() -> int:
    """One for each processor that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system tells
        return os.cpu_count() or 1


def fold_units(units: Sequence[Unit], scratch: str, threads: int) -> Iterator[Part | None]:
    """The parts of units, in their order. An interrupt, or an error, stops the queries that are running."""
    threads = max(1, min(threads, len(units)))
    memory = f"{max(MEMORY // threads, 40)}MB"
    live: list = []
    with concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="bellief-logs") as pool:
        waiting: collections.deque = collections.deque()
        try:
            for unit in units:
                waiting.append(pool.submit(fold_unit, unit, scratch, memory, live))
                # Parts that wait for an earlier one take memory, too.
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for connection in list(live):
                with contextlib.suppress(Exception):
                    connection.interrupt()
            raise
