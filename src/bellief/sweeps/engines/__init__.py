"""Where cells are computed: `local` on this machine, `ray` on a cluster.

An engine takes cells and yields what happens to them, as plain data: `begin`, `progress`, `restarted`, `lost`,
`finished`, `failed`, `stopped`, `note`, and `full` or `unwritable` where a file could not be written.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from bellief.sweeps.cells import Cell, canonical
from bellief.sweeps.store import Store

# How often a cell whose worker dies is given to another.
RETRIES = 3

# Programs that a process compiles before it is replaced: each keeps a few megabytes.
PROGRAMS = 50

Event = dict[str, Any]

STOPPING = {
    "kind": "note",
    "text": "Stopping: each process finishes its segment and saves; another Ctrl-C ends at once.",
}


class Job(NamedTuple):
    """What cells have in common for an engine. `home` is the store of a cell."""

    home: Callable[[str], Store]
    every: float
    stop: threading.Event


class Engine(Protocol):
    """Computes cells somewhere."""

    name: str

    def run(self, cells: list[Cell], job: Job) -> Iterator[Event]:
        """Compute the cells, until all are done or `job.stop` is set and every one begun has reached a checkpoint."""

    def close(self) -> None:
        """End everything that was started."""


def settings_of(cell: Cell) -> str:
    """What cells that can share a compiled program have in common."""
    return canonical({name: value for name, value in cell.identity.items() if name not in ("first", "seed", "steps")})


def lost_event(event: Event, cell: Cell, times: int, stopping: bool) -> Event:
    """The event for a cell whose process has ended: it is computed again, up to `RETRIES` times."""
    if stopping:
        return {"kind": "stopped", "cell": cell.id}
    if times < RETRIES:
        return {"kind": "lost", "cell": cell.id, "reason": event["reason"]}
    return {"kind": "failed", "cell": cell.id, "reason": f"{event['reason']} {times} times"}
