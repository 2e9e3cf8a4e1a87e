"""Files counted by DuckDB, a unit at a time: by threads of this process, or by tasks on a Ray cluster."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bellief.errors import UserError
from bellief.logs.axes import Axis, Doubt, Sizes
from bellief.logs.columns import Taken, take
from bellief.logs.engine import MEMORY, connect
from bellief.logs.feature_columns import refuse_features
from bellief.logs.fold import Folding, Part, Unit, fold_unit, units
from bellief.logs.opened_files import Files
from bellief.logs.origin import origin_from
from bellief.logs.tally import Tally
from bellief.logs.tally_files import is_tally, read_tallies
from bellief.processors import cores

if TYPE_CHECKING:
    import duckdb


class Reading(NamedTuple):
    """How to read: sizes or labels of states and actions, columns for some roles, and where the work is done."""

    states: Sizes = None
    actions: Sizes = None
    labels: bool | None = None
    columns: Mapping[str, str] | None = None
    engine: str = "local"
    address: str | None = None
    threads: int | None = None
    progress: Callable[[float], None] | None = None


def tally_of_files(found: Files, reading: Reading) -> Tally:
    """Counts of logs, or the sum of tallies."""
    files, columns = found.files, found.columns
    tallies = [is_tally(names) for names in columns]
    if all(tallies):
        return read_tallies(files, found.connection, *reading[:3])
    if any(tallies):
        file = files[tallies.index(True)]
        raise UserError(f"{file.source}this is a tally, and other files here are logs: make a tally of those first.")
    taken = [take(names, reading.columns, file.source) for names, file in zip(columns, files, strict=True)]
    for file, one in zip(files, taken, strict=True):
        refuse_features(one.features, file.source)
    origin = origin_from([file.name for file in files if file.name], taken)
    return dataclasses.replace(_fold(found, taken, reading), origin=origin)


def _fold(found: Files, taken: Sequence[Taken], reading: Reading) -> Tally:
    """Aggregated by DuckDB; where a row needs a closer look, read row by row."""
    import duckdb

    folding = Folding(Axis("state", reading.states, reading.labels), Axis("action", reading.actions, reading.labels))
    work: list[Unit] = []
    try:
        for file, one in zip(found.files, taken, strict=True):
            work += units(found.connection, file, one)
        for number, part in enumerate(_parts(work, found, reading)):
            folding.add(part, number)
            if reading.progress is not None:
                reading.progress((number + 1) / len(work))
        if folding.held:
            return folding.finish()
    except (Doubt, duckdb.Error):
        # The first unit that is not accounted for is in doubt: most often its rows show what is wrong.
        if len(work) > 1 and folding.parts < len(work):
            from bellief.logs.validate import examine

            examine(work[folding.parts], folding, *reading[:4])
    from bellief.logs.validate import tables_of, tally_of

    return tally_of(tables_of(found.files, reading.columns), *reading[:3])


def _parts(work: Sequence[Unit], found: Files, reading: Reading) -> Iterator[Part | None]:
    if reading.engine == "ray":
        from bellief.logs.ray_engine import fold_units_on_ray

        return fold_units_on_ray(work, reading.address)
    return _fold_units(work, found.connection, found.scratch, reading.threads or cores())


class _Connections(threading.local):
    """A connection for each thread, made when it is first needed."""

    own: "duckdb.DuckDBPyConnection | None" = None


def _fold_units(
    units: Sequence[Unit], connection: "duckdb.DuckDBPyConnection", scratch: str, threads: int
) -> Iterator[Part | None]:
    """The parts of units, in their order. An interrupt, or an error, stops the queries that are running."""
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
