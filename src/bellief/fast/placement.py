"""Where runs step and where they plan, and in which order several are computed.

Stepping small environments is a chain of tiny operations, which a GPU does far slower than a CPU core; planning is
wide. So with a GPU runs live and step on the host, and what an agent has learned is transferred to the GPU for each
plan. Runs are split over all devices of a kind, as far as their number divides.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from bellief.errors import UserError, require_choice
from bellief.fast import is_on
from bellief.fast.compiler_options import use_gpu_generator
from bellief.processors import INSIST, cores
from bellief.types import BoxSpaces

DEVICES = ("auto", "cpu", "gpu")
RUNS = "runs"
# Groups of runs that step at once while a GPU plans. Stepping fifty small runs takes little time: more groups cost more
# than they save. Large runs are those above LARGE_RUN bytes.
MOST_GROUPS, MOST_LARGE_GROUPS = 2, 10
# Stepping large runs takes a quarter of the time of planning them, on a GPU whose time grows with their number.
LARGE_WAVES = 2
LARGE_RUN = 2**18
# Up to so many runs step one after the other even where they are large.
FEW_RUNS = 4
# Runs in a batch: on a CPU, and where plans are made on a GPU, where more hardly make a plan cheaper.
CPU_WIDTH, GPU_WIDTH = 10, 50


class Costs(NamedTuple):
    """What is known of an agent's costs.

    `constant_steps`: `act` and `update` are O(1), so that `lax.map` over runs beats `vmap`. `light_plans`: up to this
    many states a plan takes less time on a CPU than a GPU needs to begin. `width_free`: up to this many states the
    results do not depend on the number of runs in a batch, bit for bit (a test checks it), so that a single run need
    not be padded.
    """

    constant_steps: bool = False
    light_plans: int = 0
    width_free: int = 0


# Agents that are not listed may have attributes LIGHT_STEPS and LIGHT_PLANS for the first two.
COSTS = {
    "bellief.agents.bbi_sampled": Costs(constant_steps=True),
    "bellief.agents.bbi_paper": Costs(constant_steps=True),
    "bellief.agents.psrl_paper": Costs(constant_steps=True, light_plans=12, width_free=5),
    "bellief.agents.mmbi": Costs(constant_steps=True, light_plans=12),
    # Plans are sparse, and start from the values of the last one.
    "bellief.agents.bbi": Costs(constant_steps=True, light_plans=2**31),
    "bellief.agents.psrl": Costs(constant_steps=True, light_plans=2**31),
    "bellief.agents.beb": Costs(constant_steps=True, light_plans=12),
    "bellief.agents.ube": Costs(constant_steps=True),
    "bellief.agents.rlsvi": Costs(constant_steps=True),
    "bellief.agents.bql": Costs(light_plans=2**31),
    "bellief.agents.q_learning": Costs(light_plans=2**31),
    "bellief.agents.oracle": Costs(light_plans=2**31),
}


def costs(agent: Any) -> Costs:
    """What is known of an agent's costs."""
    other = Costs(getattr(agent, "LIGHT_STEPS", False), getattr(agent, "LIGHT_PLANS", 0))
    return COSTS.get(getattr(agent, "__name__", ""), other)


def steps_one_by_one(agent: Any, runs: Any) -> bool:
    """Whether runs step one after the other: light steps then become one loop of plain code instead of a series of
    small calls. But each run is taken out of the stack and put back, which costs more where they are large and many.
    """
    return is_on() and costs(agent).constant_steps and (len(runs.age) <= FEW_RUNS or not is_large(runs))


def plans_one_by_one(spaces: Any, platform: str) -> bool:
    """Whether runs plan one after the other, which on a CPU keeps in its cache what a plan of a continuous agent works
    on: twice as fast.
    """
    return platform == "cpu" and isinstance(spaces, BoxSpaces)


def plans_lightly(agent: Any, spaces: Any, width: int | None) -> bool:
    """Whether a CPU has finished an agent's plans before a GPU has begun.

    But many runs whose steps are not light step faster in several groups, as they do where a GPU plans.
    """
    known = costs(agent)
    few = width is None or width <= CPU_WIDTH or known.constant_steps
    return few and spaces.states <= known.light_plans


def default_width(device: str, runs: int, agent: Any, spaces: Any, light: bool = False) -> int:
    """Runs in a batch. On a CPU always as many, so that no run depends on how many there are: batched linear algebra
    rounds differently at different widths. A single run is computed alone where that is known to change nothing.
    """
    if find_places(device, 1, light).plan.devices.flat[0].platform == "cpu":
        alone = runs == 1 and not isinstance(spaces, BoxSpaces) and spaces.states <= costs(agent).width_free
        return 1 if alone else CPU_WIDTH
    batches = -(-runs // GPU_WIDTH)
    return -(-runs // batches)


def is_large(runs: Any) -> bool:
    """Whether each of the runs, or shapes of runs, takes up more than `LARGE_RUN`."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(runs)) > LARGE_RUN * len(runs.age)


class Places(NamedTuple):
    """Devices on which runs step and plan; on a CPU both are the same."""

    step: Mesh
    plan: Mesh


def find_places(device: str, width: int, light: bool = False) -> Places:
    """The devices for a batch of `width` runs. `auto` is a GPU where JAX has one by default, unless plans are light,
    and else the CPU.
    """
    require_choice(device, DEVICES, "There is no device")
    light = light and os.environ.get(INSIST) != "gpu"
    if device == "cpu" or (device == "auto" and (light or jax.default_backend() == "cpu")):
        mesh = _mesh(jax.devices("cpu"), width)
        return Places(mesh, mesh)
    try:
        found = jax.devices() if device == "auto" else jax.devices("gpu")
    except RuntimeError:
        raise UserError("JAX finds no GPU here: install 'bellief[cuda]', or choose the device cpu.") from None
    use_gpu_generator()
    # One host device steps them all: splitting the work costs more than the work (benchmarks/NOTES.md).
    return Places(_mesh(jax.devices("cpu")[:1], width), _mesh(found, width))


def _mesh(devices: list[Any], width: int) -> Mesh:
    """As many of the devices as divide the runs evenly."""
    count = max(number for number in range(1, len(devices) + 1) if width % number == 0)
    return Mesh(np.array(devices[:count]), (RUNS,))


def put(tree: Any, mesh: Mesh, split: bool = True) -> Any:
    """Transfer arrays to a mesh: split over its devices along their first axis, or whole on each."""
    if mesh.size == 1:
        return jax.device_put(tree, mesh.devices.flat[0])
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(RUNS) if split else PartitionSpec()))


def split_runs(function: Any, mesh: Mesh | None) -> Any:
    """A function of many runs, applied on each device to its own."""
    if mesh is None or mesh.size == 1:
        return function
    spec = PartitionSpec(RUNS)
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)


@contextlib.contextmanager
def at_work(places: Places) -> Iterator[None]:
    """Full precision of matrix products, and the host for what belongs to no device in particular: on a GPU every small
    operation would be compiled for it. To be entered in each thread.
    """
    with jax.default_matmul_precision("highest"), at(places.step):
        yield


@contextlib.contextmanager
def at(mesh: Mesh) -> Iterator[None]:
    """What is computed inside is computed on the first device of the mesh."""
    with jax.default_device(mesh.devices.flat[0]):
        yield


def in_background(places: Places, work: Callable[[], Any]) -> threading.Thread:
    """Start compiling something in a thread while something else compiles."""

    def ignore_errors():
        with contextlib.suppress(Exception), at_work(places):
            work()

    thread = threading.Thread(target=ignore_errors, daemon=True)
    thread.start()
    return thread


def start_gpu(places: Places) -> None:
    """Let a GPU initialise, which takes a second or two, while the host prepares."""
    if places.plan != places.step:
        in_background(places, lambda: jax.jit(jax.lax.neg)(put(np.zeros(places.plan.size), places.plan)))


def wave_count(width: int, large: bool) -> int:
    """Waves: parts of the runs of which one steps while another plans."""
    return LARGE_WAVES if large and width % LARGE_WAVES == 0 else 1


def group_count(width: int, large: bool) -> int:
    """Groups of runs that step at once on the host, each in its own thread, where plans are made on a GPU."""
    most = min(MOST_LARGE_GROUPS if large else MOST_GROUPS, cores())
    return max(number for number in range(1, most + 1) if width % number == 0)


def split_groups(tree: Any, count: int) -> list[Any]:
    """Arrays with a leading axis of runs, cut into equal groups."""
    size = max((len(leaf) for leaf in jax.tree.leaves(tree)), default=0) // count
    return [jax.tree.map(lambda leaf, own=own: leaf[own * size : (own + 1) * size], tree) for own in range(count)]


def split_keys(keys: Any, count: int) -> list[Any]:
    """The same for keys, through host memory: nothing needs to be compiled."""
    groups = split_groups(jax.device_get(jax.tree.map(jax.random.key_data, keys)), count)
    first = jax.tree.leaves(keys)[0]
    wrap = functools.partial(jax.random.wrap_key_data, impl=jax.random.key_impl(first))
    return jax.device_put(jax.tree.map(wrap, groups), next(iter(first.devices())))


def join_groups(groups: Sequence[Any]) -> Any:
    """The groups in one, in host memory; waits until they are computed."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *jax.device_get(groups))
