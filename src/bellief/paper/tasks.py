"""The sweeps behind the paper's figures: which agents run in which task, how often and how long at each scale.

One sweep a task, so that the figures of a task and their confidence panels share every cell; horizons and rollout
formulas have sweeps of their own, which take the cells that they have in common with the task's sweep from there.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from bellief.errors import UserError
from bellief.paper.agents import (
    BQL_VARIANTS,
    DISCRETE,
    HORIZON_AGENTS,
    LINEAR,
    OURS,
    PENDULUM,
    ROLLOUT_AGENTS,
    VDQN_PACES,
    with_variants,
)

SCALES = ("tiny", "quick", "standard", "full")
SEED = 0
MARGIN_NOTE = (
    "The paper's qualitative words are quantified as follows: 'similar' and 'very small' mean within 10% of the best "
    "possible reward, 'competitive' at most 10% of it behind, 'slightly' within 25%, 'not satisfactory' more than 10% "
    "behind the best of BBI, MMBI and PSRL. "
    "Rewards are those of the last half of the runs; intervals are 95% bootstrap intervals over runs."
)


class Size(NamedTuple):
    """So many runs of so many steps."""

    runs: int
    steps: int


class Task(NamedTuple):
    """A sweep: its environment, its agents by label, and its size at every scale (None where it is left out).

    `exceptions` are sizes of single agents, the last two for VDQN and BSS, which need work at every step. `shares`
    names the sweep that may hold some of its cells. Those with more `weight`, which have the longest cells, are
    computed first.
    """

    environment: str
    title: str
    agents: dict[str, dict[str, Any]]
    sizes: dict[str, Size | None]
    exceptions: Mapping[str, dict[str, Size]] = MappingProxyType({})
    half_life: float = 1000.0
    shares: str | None = None
    weight: int = 0


Pair = tuple[int, int]


def _sizes(tiny: Pair, quick: Pair | None, standard: Pair, full: Pair) -> dict[str, Any]:
    given = (tiny, quick, standard, full)
    return {scale: None if pair is None else Size(*pair) for scale, pair in zip(SCALES, given, strict=True)}


def _without(agents: dict[str, dict[str, Any]], *labels: str) -> dict[str, dict[str, Any]]:
    return {label: entry for label, entry in agents.items() if label not in labels}


MILLION = 1_000_000


def _vdqn(standard: tuple[Pair, Pair, Pair], always: Pair, scheduled: Pair) -> dict[str, dict[str, Size]]:
    """Sizes of the variants of VDQN. Those that learn at every step cost tens of times as much as the last one, which
    learns where the model-based agents plan.
    """
    full = dict.fromkeys(VDQN_PACES, always) | {"VDQN, scheduled learning": scheduled}
    return {label: _sizes(*standard, full[label]) for label in VDQN_PACES}


_VDQN = _vdqn(((2, 100), (10, 10_000), (10, 10_000)), (20, 10_000), (50, 100_000))
_VDQN_ON_LAKE = _vdqn(((2, 100), (10, 10_000), (10, 10_000)), (10, 10_000), (50, 100_000))
_VDQN_ON_LARGE_LAKE = _vdqn(((2, 100), (4, 1_000), (10, 20_000)), (10, 10_000), (30, 100_000))
_VDQN_ON_MAZE = _vdqn(((2, 20), (10, 10_000), (10, 10_000)), (10, 10_000), (30, 100_000))
# VDQN learns and BSS plans at every step: both have fewer steps, and only the sizes given here are computed.
# Ours beside the paper's, and the paper's with other horizons, decide with fewer runs.
_FEWER = _sizes((2, 200), (40, 50_000), (30, 100_000), (20, MILLION))
_BSS = {"BSS": _sizes((2, 100), (20, 10_000), (20, 10_000), (50, 10_000))}
_BQL = {label: _sizes((2, 100), (10, 10_000), (10, 20_000), (20, 100_000)) for label in BQL_VARIANTS if label != "BQL"}

# BSS is in the paper's figures of NChain and DoubleLoop only, BQL in all but the Maze's; both are run where they are.
TASKS: dict[str, Task] = {
    "nchain": Task(
        "nchain",
        "NChain",
        with_variants(DISCRETE),
        _sizes((2, 200), (40, 50_000), (30, 100_000), (50, MILLION)),
        _VDQN | _BSS | _BQL | {OURS: _FEWER},
    ),
    "doubleloop": Task(
        "doubleloop",
        "DoubleLoop",
        with_variants(DISCRETE),
        _sizes((2, 200), (40, 50_000), (30, 100_000), (50, MILLION)),
        _VDQN | _BSS | _BQL,
    ),
    "lavalake": Task(
        "lavalake",
        "LavaLake 5x7",
        _without(with_variants(DISCRETE), "BSS"),
        _sizes((2, 200), (10, 50_000), (20, 100_000), (100, MILLION)),
        _VDQN_ON_LAKE
        | _BQL
        | {
            "BBI": _sizes((2, 200), (10, 50_000), (20, 100_000), (100, 200_000)),
            OURS: _sizes((2, 200), (10, 50_000), (20, 100_000), (20, 200_000)),
        },
        weight=1,
    ),
    "lavalake10": Task(
        "lavalake10",
        "LavaLake 10x10",
        _without(with_variants(DISCRETE), "BSS"),
        _sizes((2, 100), None, (10, 50_000), (30, MILLION)),
        _VDQN_ON_LARGE_LAKE | _BQL,
        weight=1,
    ),
    "maze": Task(
        "maze",
        "Maze",
        _without(with_variants(DISCRETE), "BSS", *BQL_VARIANTS),
        _sizes((2, 20), None, (10, 20_000), (30, MILLION)),
        _VDQN_ON_MAZE,
        weight=3,
    ),
    "nchain-horizons": Task(
        "nchain",
        "NChain",
        HORIZON_AGENTS,
        _sizes((2, 200), (40, 50_000), (30, 100_000), (50, MILLION)),
        {label: _FEWER for label in HORIZON_AGENTS if label != "BBI, H = 100"},
        shares="nchain",
    ),
    "maze-horizons": Task(
        "maze",
        "Maze",
        HORIZON_AGENTS,
        _sizes((2, 20), None, (10, 20_000), (30, MILLION)),
        shares="maze",
        weight=3,
    ),
    "nchain-rollouts": Task(
        "nchain",
        "NChain",
        ROLLOUT_AGENTS,
        _sizes((2, 200), (40, 50_000), (30, 100_000), (50, MILLION)),
        shares="nchain",
    ),
    "linear-model": Task(
        "linear-model",
        "LinearModel",
        LINEAR,
        _sizes((2, 60), None, (10, 5_000), (20, 5_000)),
        weight=2,
    ),
    "pendulum": Task(
        "pendulum",
        "InvertedPendulum",
        PENDULUM,
        _sizes((2, 60), None, (10, 5_000), (20, 5_000)),
        half_life=2500.0,
        weight=2,
    ),
}
# Where claims look at the curves. The same for every sweep, because a cell's readings are part of what it is, and cells
# are shared; the sizes above are chosen so that half of a run's length and the whole are among them.
MARKS = [digit * 10**power for power in range(1, 7) for digit in (1, 2, 5)]


def is_computed(name: str, scale: str, changes: Mapping[str, Size] | None = None) -> bool:
    """Whether a sweep is computed at a scale. At `quick` those with long cells are left out, unless given a size.

    >>> from bellief.paper.tasks import is_computed
    >>> is_computed("nchain", "quick"), is_computed("maze", "quick")
    (True, False)
    """
    return TASKS[name].sizes[scale] is not None or name in (changes or {})


def size_of(name: str, agent: str, scale: str) -> Size | None:
    """Runs and steps of an agent of a sweep; None where the sweep is left out."""
    task = TASKS[name]
    return None if task.sizes[scale] is None else task.exceptions.get(agent, task.sizes)[scale]


def sweep_document(name: str, scale: str, changes: dict[str, Size] | None = None) -> dict[str, Any]:
    """The description of a sweep at a scale, in plain data.

    `changes` give the sweep (`maze`) or one of its agents (`maze/VDQN`) another size.

    >>> from bellief.paper.tasks import sweep_document
    >>> chain = sweep_document("nchain", "quick")
    >>> chain["environments"], len(chain["agents"])
    (['nchain'], 18)
    """
    task, changes = TASKS[name], changes or {}
    usual = changes.get(name, task.sizes[scale])
    if usual is None:
        raise UserError(f"Sweep '{name}' is not computed at scale {scale}: choose another, or give it a --size.")
    agents, sizes = [], []
    for label, entry in task.agents.items():
        exception = task.exceptions.get(label, {}).get(scale)
        if exception is not None:
            exception = Size(*map(min, exception, usual))
        size = changes.get(f"{name}/{label}", exception)
        apart = {} if size is None or size == usual else {"runs": size.runs, "steps": size.steps}
        sizes.append(size or usual)
        agents.append({"label": label, **entry, **apart})
    return {
        "name": name,
        "seed": SEED,
        "runs": usual.runs,
        "steps": usual.steps,
        "half_life": task.half_life,
        "readings": readings(max(size.steps for size in sizes)),
        "environments": [task.environment],
        "agents": agents,
    }


def readings(steps: int) -> list[int]:
    """Steps at which the curves of a sweep are read besides the usual ones."""
    return sorted(mark for mark in {*MARKS, steps // 2, steps} if 0 < mark <= steps)


def check_scale(scale: str) -> str:
    """The name of a scale."""
    if scale not in SCALES:
        raise UserError(f"There is no scale '{scale}'; choose one of {', '.join(SCALES)}.")
    return scale


def read_size(text: str) -> tuple[str, Size]:
    """`maze/VDQN=10x5000` as its parts."""
    key, equals, numbers = text.partition("=")
    found = re.fullmatch(r"([1-9]\d{0,5})x([1-9]\d{0,9})", numbers.strip())
    if not equals or found is None:
        raise UserError(f"--size needs SWEEP=RUNSxSTEPS, for example maze=10x5000 or maze/VDQN=5x1000, not '{text}'.")
    sweep, _, agent = key.strip().partition("/")
    if sweep not in TASKS:
        raise UserError(f"--size: there is no sweep '{sweep}'; choose one of {', '.join(TASKS)}.")
    if agent and agent not in TASKS[sweep].agents:
        raise UserError(f"--size: sweep '{sweep}' has no agent '{agent}'; it has {', '.join(TASKS[sweep].agents)}.")
    return key.strip(), Size(int(found[1]), int(found[2]))


def sweep_spec(name: str, scale: str, changes: dict[str, Size] | None = None) -> Any:
    """The same, checked, as `bellief.sweeps.run_sweep` takes it."""
    from bellief.sweeps.spec import build_spec

    return build_spec(sweep_document(name, scale, changes), f"sweep {name}")
