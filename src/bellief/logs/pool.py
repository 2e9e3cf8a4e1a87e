"""Units folded by threads of this process, or by tasks on a Ray cluster, a few at a time and handed back in order."""

import collections
import concurrent.futures
import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bellief.logs.engine import MEMORY, connect
from bellief.logs.fold import Part, Unit, fold_unit
from bellief.processors import cores

if TYPE_CHECKING:
    import duckdb


class _Connections(threading.local):
    """A connection for each thread, made when it is first needed."""

    own: "duckdb.DuckDBPyConnection | None" = None


def fold_units(
    units: Sequence[Unit],
    connection: "duckdb.DuckDBPyConnection",
    scratch: str,
    engine: str,
    address: str | None,
    threads: int | None,
) -> Iterator[Part | None]:
    """The parts of units, in their order. An interrupt, or an error, stops the queries that are running."""
    if engine == "ray":
        from bellief.logs.ray_engine import fold_units_on_ray

        yield from fold_units_on_ray(units, address)
        return
    threads = threads or cores()
    if threads == 1 or len(units) <= 1:
        yield from (fold_unit(unit, connection) for unit in units)
        return
    threads = min(threads, len(units))
    connections = _Connections()
    live: list[duckdb.DuckDBPyConnection] = []

    def work(unit: Unit) -> Part | None:
        if connections.own is None:
            connections.own = opened.enter_context(connect(scratch, memory=max(MEMORY // threads, 40)))
            live.append(connections.own)
        return fold_unit(unit, connections.own)

    with (
        contextlib.ExitStack() as opened,
        concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="bellief-logs") as pool,
    ):
        waiting: collections.deque[concurrent.futures.Future] = collections.deque()
        try:
            for unit in units:
                waiting.append(pool.submit(work, unit))
                # Parts that wait for an earlier one take memory, too.
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for running in live:
                with contextlib.suppress(Exception):
                    running.interrupt()
            raise
