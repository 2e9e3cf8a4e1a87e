"""An unfinished chunk of runs as one `.npz` file without pickle: enough to continue from, bit for bit."""

import json
from typing import Any

import numpy as np

from bellief.agents.saved_agent import archive, described, named_leaves, restored, to_numpy
from bellief.errors import UserError
from bellief.experiments.event_collector import Collector
from bellief.experiments.event_loop import Snapshot
from bellief.files import read_archive
from bellief.sweeps.machine import software

FORMAT = 1
_KIND = "bellief checkpoint"


class CheckpointError(Exception):
    """A checkpoint that cannot be used: damaged, of another cell, or of another version."""


def encode(cell: str, snapshot: Snapshot, gathered: Collector, made: list[dict[str, Any]]) -> bytes:
    """The file's content. `made` lists what the runs were computed with so far."""
    leaves = named_leaves(snapshot.runs)
    header = {
        "kind": _KIND,
        "format": FORMAT,
        "bellief": software()["bellief"],
        "cell": cell,
        "event": snapshot.event,
        "made": made,
        "leaves": described(leaves),
    }
    arrays = {f"runs.{name}": to_numpy(leaf) for name, leaf in leaves}
    arrays |= {f"host.{name}": array for name, array in snapshot.host.items()}
    arrays |= {f"gathered.{name}": array for name, array in gathered.to_arrays().items()}
    return archive(header, arrays, "header")


def decode(content: bytes, cell: str, template: Any) -> tuple[Snapshot, Collector, list[dict[str, Any]]]:
    """What `encode` was given; `template` has the shapes and dtypes that the runs must have."""
    try:
        arrays = read_archive(content)
        header = json.loads(arrays["header"].tobytes())
        if header["kind"] != _KIND or header["cell"] != cell:
            raise CheckpointError("it belongs to something else")
        if header["format"] != FORMAT or header["bellief"] != software()["bellief"]:
            raise CheckpointError(f"it was written by Bellief {header['bellief']}")
        complaints = ("the runs do not fit this", "it is damaged")
        runs = restored(header["leaves"], _part(arrays, "runs."), template, *complaints)
        snapshot = Snapshot(int(header["event"]), runs, _part(arrays, "host."))
        return snapshot, Collector.from_arrays(_part(arrays, "gathered.")), header["made"]
    except UserError as error:
        raise CheckpointError(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError("it is damaged") from error


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
