"""How long will it take? A short run of a condition, measured, and what that means for its cells."""

import resource
import statistics
import sys
import time
from typing import Any, NamedTuple

import jax

from bellief.experiments import loop
from bellief.sweeps.work import Chunk

# Steps of a calibration, and the seconds after which it is enough.
STEPS, SECONDS = 2_000, 5.0


class Costs(NamedTuple):
    """Seconds to get ready (mostly compiling), for a plan and for a step of ten runs; memory of the process in MiB."""

    ready: float
    plan: float
    step: float
    memory: float

    def seconds(self, plans: int, steps: int) -> float:
        """Of one cell, once everything is compiled."""
        return plans * self.plan + steps * self.step


def measure(identity: dict[str, Any]) -> Costs:
    """Run the beginning of a cell, and take the time between its events.

    The first plan and the first segment are left out, because they are compiled first.
    """
    began = time.perf_counter()
    with jax.default_matmul_precision("highest"):
        chunk = Chunk({**identity, "steps": min(identity["steps"], STEPS), "readings": []})
        plans, segments = [], []
        before, done = time.perf_counter(), 0
        for event in chunk.events(None):
            if isinstance(event, loop.Plan):
                jax.block_until_ready(event.info)
            now = time.perf_counter()
            if isinstance(event, loop.Plan):
                plans.append(now - before)
            elif isinstance(event, loop.Reading):
                segments.append((event.step - done, now - before))
                done = event.step
            before = time.perf_counter()
            if len(segments) > 1 and now - began > SECONDS and len(plans) > 2:
                break
    rest = segments[1:] or segments
    steps = sum(number for number, _ in rest)
    ready = (plans[0] if plans else 0.0) + segments[0][1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return Costs(
        round(ready, 3),
        statistics.median(plans[1:] or plans or [0.0]),
        sum(seconds for _, seconds in rest) / max(steps, 1),
        round(peak, 1),
    )
