"""How long a sweep will take: a short run of a condition is measured, and its cells are extrapolated from it."""

import time
from typing import Any, NamedTuple

import numpy as np

from bellief.experiments.event_loop import Plan, Snapshot
from bellief.fast import placement
from bellief.sweeps.work import Chunk
from bellief.sweeps.worker import peak_memory

# Steps of a calibration, and the seconds and calls of a compiled program after which it is enough.
STEPS, SECONDS, CALLS = 2_000, 5.0, 4


class Costs(NamedTuple):
    """Seconds to get ready (mostly compiling), for a plan and for a step of ten runs; memory of the process in MiB."""

    ready: float
    plan: float
    step: float
    memory: float

    def seconds(self, plans: int, steps: int) -> float:
        """Of one cell, once everything is compiled."""
        return plans * self.plan + steps * self.step


class _Clock:
    """Seconds since it was last asked: those of the processors where several worked, since other workers need them."""

    def __init__(self) -> None:
        self.wall, self.work = time.perf_counter(), time.process_time()

    def __call__(self) -> float:
        wall, work = time.perf_counter(), time.process_time()
        spent = max(wall - self.wall, work - self.work)
        self.wall, self.work = wall, work
        return spent


def measure(identity: dict[str, Any]) -> Costs:
    """Run the beginning of a cell, and take the time of every call of a compiled program.

    The first call is what it takes to get ready, because it is compiled first. A call works through several plans and
    segments; what one plan and one step cost is found by least squares over the calls.
    """
    clock = _Clock()
    chunk = Chunk({**identity, "steps": min(identity["steps"], STEPS), "readings": []})
    calls: list[tuple[float, int, int]] = []
    plans, done, began = 0, 0, time.perf_counter()
    with placement.at_work(chunk.case.places):
        for event in chunk.events(None):
            if isinstance(event, Plan):
                plans += 1
            elif isinstance(event, Snapshot):
                calls.append((clock(), plans, event.event - done))
                plans, done = 0, event.event
                if len(calls) == 1:
                    began = time.perf_counter()
                elif len(calls) > CALLS and time.perf_counter() - began > SECONDS:
                    break
    rest = calls[1:] or calls
    plan, step = _prices(np.array([row[1:] for row in rest], float), np.array([row[0] for row in rest]))
    return Costs(round(calls[0][0], 3), plan, step, peak_memory())


def _prices(counts: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """What a plan and a step cost, none less than nothing."""
    from scipy.optimize import nnls

    found, _ = nnls(counts, seconds)
    return float(found[0]), float(found[1])
