"""All runs of a condition at once, in this process: for a GPU, which is no busier with fifty runs than with ten.

Every run has its own keys, so that a cell's numbers are those that it has when computed alone, up to the rounding of a
program compiled for another number of runs. There are no checkpoints: what is lost by stopping is one condition.
"""

import time
from collections.abc import Iterator

from bellief.errors import UserError
from bellief.sweeps.cells import Cell, canonical
from bellief.sweeps.engines import Event, Job


class Batch:
    """The batch engine."""

    name = "batch"

    def run(self, cells: list[Cell], job: Job) -> Iterator[Event]:
        """Compute the cells, those of neighbouring runs together."""
        for group in together(cells):
            if job.stop.is_set():
                return
            yield from ({"kind": "begin", "cell": cell.id} for cell in group)
            try:
                yield from _compute(group, job)
            except UserError as error:
                yield from ({"kind": "failed", "cell": cell.id, "reason": str(error)} for cell in group)

    def close(self) -> None:
        """Nothing was started."""


def together(cells: list[Cell]) -> list[list[Cell]]:
    """Cells that differ only in their runs, where these follow one another."""
    groups: list[list[Cell]] = []
    for cell in sorted(cells, key=lambda cell: (_condition(cell), cell.first)):
        last = groups[-1][-1] if groups else None
        joins = last is not None and _condition(last) == _condition(cell)
        if joins and last is not None and cell.first == last.first + last.identity["width"]:
            groups[-1].append(cell)
        else:
            groups.append([cell])
    return groups


def _condition(cell: Cell) -> str:
    return canonical({name: value for name, value in cell.identity.items() if name != "first"})


def _compute(group: list[Cell], job: Job) -> Iterator[Event]:
    from bellief.experiments.results import READINGS, check_size
    from bellief.sweeps import parquet_tables, work
    from bellief.sweeps.worker import RECORDED, finished_event, progress_event

    whole = Cell("batch", group[0].identity | {"width": sum(cell.identity["width"] for cell in group)})
    readings = READINGS + len(whole.identity["readings"])
    check_size(whole.identity["steps"], whole.identity["width"], readings)
    began = time.monotonic()
    for message in work.compute(whole, None, float("inf"), job.stop.is_set):
        if isinstance(message, work.Finished):
            # The time is shared evenly, so that the times of cells add up.
            seconds = (time.monotonic() - began) / len(group)
            for cell in group:
                own = {
                    name: parquet_tables.of_runs(table, cell.first, cell.identity["width"])
                    for name, table in message.tables.items()
                }
                event = finished_event(message._replace(tables=own, seconds=seconds))
                facts = {name: event[name] for name in RECORDED}
                job.home(cell.id).commit(cell, own, event["content"], **facts)
                yield {"cell": cell.id, **event}
        elif isinstance(message, work.Stopped):
            yield from ({"kind": "stopped", "cell": cell.id} for cell in group)
        elif (told := progress_event(message)) is not None:
            yield from ({"cell": cell.id, **told} for cell in group)
