"""The compiled loop: many runs of one agent in one tabular environment, step by step, planning on a schedule.

Chunks always have the same width, so a run does not depend on how many others there are. A chunk advances by segments
(step many, then plan once or take a reading), so nothing is stored per step: several segments a call where runs step
and plan in one place, one a call where they plan on another device.
"""

import functools
from collections.abc import Generator
from types import ModuleType
from typing import Any

import jax
import numpy as np

from bellief.compiler import can_order
from bellief.experiments import devices, segments
from bellief.experiments.away import drive_away
from bellief.experiments.devices import Places
from bellief.experiments.drive import (
    TOGETHER,
    Plan,
    Reading,
    Snapshot,
    Survival,
    drive_together,
    smoothing_rate,
    unbiased,
)
from bellief.experiments.segments import Run, RunKeys, exact, run_keys
from bellief.experiments.tables import Tables, make_tables
from bellief.types import Spaces

# Batched linear algebra rounds differently at different batch widths; one width for all makes runs reproducible.
CHUNK_WIDTH = 10

__all__ = [
    "Plan",
    "Reading",
    "Run",
    "RunKeys",
    "Snapshot",
    "Survival",
    "make_tables",
    "run_chunk",
    "run_keys",
    "run_shapes",
]


def run_chunk(
    keys: RunKeys,
    tables: Tables,
    agent: ModuleType,
    config: Any,
    spaces: Spaces,
    plan_steps: list[int],
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
    places: Places | None = None,
    together: int = TOGETHER,
) -> Generator[Any]:
    """Drive one chunk to the last reading step, yielding a `Plan` after each plan, a `Reading` at each reading step,
    a `Snapshot` now and then after these, and the final `Run` at the end. Steps are counted from 1; a plan at step t
    precedes the t-th action. With `resume`, what comes after that snapshot. `places` are those of the device `auto` if
    not given. Up to `together` events, plans or readings, come between two snapshots, or half a second and more where
    plans are made on another device.
    """
    places = places or devices.find_places("auto", len(keys.agent))
    tables = devices.put(tables, places.step, split=False)
    rate = smoothing_rate(half_life)
    static = {"agent": agent, "config": config, "spaces": spaces}

    def read(step, recent, host):
        yield Reading(step, host["total"], unbiased(recent, rate, step))

    if places.plan != places.step:
        return drive_away(keys, tables, read, plan_steps, reading_steps, rate, resume, places, **static)
    keys = devices.put(keys, places.step)
    if resume is not None:
        resume = resume._replace(runs=devices.put(resume.runs, places.step))
    program = segments.course_alone if len(keys.agent) == 1 and can_order() else segments.course

    def begin():
        first = segments.begin(keys, tables, mesh=places.step, **static)
        return first, {"total": np.zeros(len(keys.agent))}

    def course(first, ends, plans, count, runs):
        runs, told = program(keys, tables, first, ends, plans, count, rate, runs, mesh=places.step, **static)
        added, recent, info = jax.device_get(told)
        return runs, ({"total": exact(*added)}, recent, info)

    return drive_together(begin, course, read, plan_steps, reading_steps, resume, together)


def run_shapes(keys: RunKeys, tables: Tables, agent: ModuleType, config: Any, spaces: Spaces) -> Run:
    """Shapes and dtypes of a chunk's `Run`, to check a saved one against; nothing is computed."""
    mesh = devices.find_places("cpu", len(keys.agent)).step
    begin = functools.partial(segments.begin, agent=agent, config=config, spaces=spaces, mesh=mesh)
    return jax.eval_shape(begin, keys, tables)
