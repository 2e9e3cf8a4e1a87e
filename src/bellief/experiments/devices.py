"""Where runs step and where they plan.

Stepping small environments is a chain of tiny operations, which a GPU does far slower than a processor core; planning
is wide. So with a GPU runs live and step on the host, and what an agent has learned travels to the GPU for each plan.
Runs are split over all devices of a kind, as far as their number divides.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from bellief.compiler import building_for, prefer_on_gpu
from bellief.errors import UserError
from bellief.processors import INSIST, cores

DEVICES = ("auto", "cpu", "gpu")
RUNS = "runs"
# Stepping fifty small runs is soon done: calling for more groups would take longer than computing them.
MOST_GROUPS, MOST_LARGE_GROUPS = 2, 10
# Stepping large runs takes a quarter of the time of planning them, on a GPU whose time grows with their number.
LARGE_WAVES = 2


class Places(NamedTuple):
    """Devices on which runs step and plan; on a CPU both are the same."""

    step: Mesh
    plan: Mesh


def find_places(device: str, width: int, light: bool = False) -> Places:
    """The places for `width` runs side by side. `auto` is a GPU where JAX has one by default, unless plans are light,
    and else the CPU.
    """
    if device not in DEVICES:
        raise UserError(f"There is no device '{device}'; choose one of {', '.join(DEVICES)}.")
    light = light and os.environ.get(INSIST) != "gpu"
    if device == "cpu" or (device == "auto" and (light or jax.default_backend() == "cpu")):
        mesh = _mesh(jax.devices("cpu"), width)
        return Places(mesh, mesh)
    try:
        found = jax.devices() if device == "auto" else jax.devices("gpu")
    except RuntimeError:
        raise UserError("JAX finds no GPU here: install 'bellief[cuda]', or choose the device cpu.") from None
    prefer_on_gpu()
    # One host device steps them all: splitting the work costs more than the work (benchmarks/NOTES.md).
    return Places(_mesh(jax.devices("cpu")[:1], width), _mesh(found, width))


def _mesh(devices: list[Any], width: int) -> Mesh:
    """As many of the devices as divide the runs evenly."""
    count = max(number for number in range(1, len(devices) + 1) if width % number == 0)
    return Mesh(np.array(devices[:count]), (RUNS,))


def put(tree: Any, mesh: Mesh, split: bool = True) -> Any:
    """Bring arrays to a place: split over its devices along their first axis, or whole on each."""
    if mesh.size == 1:
        return jax.device_put(tree, mesh.devices.flat[0])
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(RUNS) if split else PartitionSpec()))


def over_runs(function: Any, mesh: Mesh | None) -> Any:
    """`vmap` over runs; on several devices each takes its own runs and waits for no other."""
    return split_runs(jax.vmap(function), mesh)


def one_by_one(function: Any) -> Any:
    """One run after the other, in one compiled loop."""
    return lambda *arguments: jax.lax.map(lambda own: function(*own), arguments)


def split_runs(function: Any, mesh: Mesh | None) -> Any:
    """A function of many runs, applied on each device to its own."""
    if mesh is None or mesh.size == 1:
        return function
    spec = PartitionSpec(RUNS)
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)


@contextlib.contextmanager
def at_work(places: Places) -> Iterator[None]:
    """Full precision of matrix products; what belongs to no place in particular is computed on the host: on a GPU every
    small operation would be compiled for it. A matter of each thread.
    """
    with jax.default_matmul_precision("highest"), at(places.step):
        yield


@contextlib.contextmanager
def at(mesh: Mesh) -> Iterator[None]:
    """For whatever is compiled for this place: a GPU's kernels ask where they are."""
    device = mesh.devices.flat[0]
    with jax.default_device(device), building_for(device.platform):
        yield


def aside(places: Places, work: Callable[[], Any]) -> threading.Thread:
    """Start compiling something while something else compiles."""

    def quietly():
        with contextlib.suppress(Exception), at_work(places):
            work()

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    return thread


def wake(places: Places) -> None:
    """Let a GPU get ready, which takes it a second or two, while the host has something to do."""
    if places.plan != places.step:
        aside(places, lambda: jax.jit(jax.lax.neg)(put(np.zeros(places.plan.size), places.plan)))


def wave_count(width: int, large: bool) -> int:
    """Parts of the runs of which one steps while another plans."""
    return LARGE_WAVES if large and width % LARGE_WAVES == 0 else 1


def group_count(width: int, large: bool) -> int:
    """Groups of runs that step at once on the host, each in a thread of its own, where plans are made elsewhere."""
    most = min(MOST_LARGE_GROUPS if large else MOST_GROUPS, cores())
    return max(number for number in range(1, most + 1) if width % number == 0)


def split_groups(tree: Any, count: int) -> list[Any]:
    """Arrays with a leading axis of runs, cut into equal groups."""
    size = max((len(leaf) for leaf in jax.tree.leaves(tree)), default=0) // count
    return [jax.tree.map(lambda leaf, own=own: leaf[own * size : (own + 1) * size], tree) for own in range(count)]


def split_keys(keys: Any, count: int) -> list[Any]:
    """The same for keys of JAX's default kind, by way of ordinary memory: nothing needs to be compiled."""
    groups = split_groups(jax.device_get(jax.tree.map(jax.random.key_data, keys)), count)
    place = next(iter(jax.tree.leaves(keys)[0].devices()))
    return jax.device_put(jax.tree.map(jax.random.wrap_key_data, groups), place)


def join_groups(groups: Sequence[Any]) -> Any:
    """The groups in one, in ordinary memory; waits for whoever still computes them."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *jax.device_get(groups))
