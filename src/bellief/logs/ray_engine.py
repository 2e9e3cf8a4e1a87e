"""Units folded on a Ray cluster, one task each, and handed back in order.

A task that is lost with its worker or its node is computed again by another; what it gives depends on the file alone.
All machines must see the files under the same paths. Without an address a private cluster is started on this machine.
"""

import collections
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from bellief.errors import UserError
from bellief.logs.axes import Doubt
from bellief.logs.engine import connect
from bellief.logs.fold import Part, Unit, fold_unit
from bellief.logs.paths import scratch_folder
from bellief.ray_cluster import join

# Tasks under way for each core of the cluster.
AHEAD = 2


def fold_units_on_ray(units: Sequence[Unit], address: str | None) -> Iterator[Part | None]:
    """The parts of units, in their order."""
    ray = _import_ray(private=address is None)
    here = not ray.is_initialized()
    if here:
        join(ray, address)
    try:
        # Retried without end: a task fails for good only with an error of its own, which is raised here.
        task = ray.remote(num_cpus=1, max_retries=-1)(_fold)
        waiting: collections.deque[Any] = collections.deque()
        for unit in units:
            waiting.append(task.remote(unit))
            if len(waiting) > AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1))):
                yield _taken(ray, waiting.popleft())
        while waiting:
            yield _taken(ray, waiting.popleft())
    finally:
        if here:
            ray.shutdown()


def _fold(unit: Unit) -> Part | Doubt | None:
    """On a node."""
    with scratch_folder() as scratch, connect(scratch) as connection:
        try:
            return fold_unit(unit, connection)
        except Doubt as doubt:
            return doubt


def _taken(ray: Any, reference: Any) -> Part | None:
    try:
        part = ray.get(reference)
    except ray.exceptions.RayError as error:
        raise UserError(f"A task on the Ray cluster failed ({' '.join(str(error).split())[:200]}).") from None
    if isinstance(part, Doubt):
        raise part
    return part


def _import_ray(private: bool) -> Any:
    if private and sys.platform == "linux":
        # Read when Ray is imported: without it a cluster of one machine listens on all addresses.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        import ray
    except ImportError:
        raise UserError("The ray engine needs Ray: pip install 'bellief[ray]'.") from None
    return ray
