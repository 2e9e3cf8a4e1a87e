"""The compiled loop: a batch of runs of one agent in one environment, step by step, planning on a schedule.

A batch advances by segments (many steps, then a plan or a reading), so nothing is stored per step: several segments a
call where runs step and plan on the same device, one a call where they plan on a GPU.
"""

from collections.abc import Generator
from typing import Any

import jax

from bellief.experiments import compiled_steps
from bellief.experiments.compiled_environments import Box, Tables
from bellief.experiments.compiled_steps import RunKeys
from bellief.experiments.event_loop import MOST_EVENTS, Snapshot, run_many_events, smoothing_rate
from bellief.experiments.gpu_planning import plan_on_gpu
from bellief.fast import placement
from bellief.fast.compiler_options import can_order
from bellief.fast.placement import Places


def run_batch(
    keys: RunKeys,
    environment: Tables | Box,
    agent: Any,
    config: Any,
    spaces: Any,
    plan_steps: list[int],
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
    places: Places | None = None,
    most: int = MOST_EVENTS,
) -> Generator[Any]:
    """Run a batch to the last reading step. Yields a `Plan` after each plan, a `Reading` (and for continuous states a
    `Survival`) at each reading step, a `Snapshot` from time to time, and the final runs at the end.

    Steps are counted from 1; a plan at step t precedes the t-th action. With `resume`, only what comes after that
    snapshot is yielded. Up to `most` events, plans or readings, come between two snapshots; where plans are made on a
    GPU, half a second or more.
    """
    places = places or placement.find_places("auto", len(keys.agent))
    rate = smoothing_rate(half_life)

    def read(step, smoothed, sums):
        return environment.read(step, smoothed, sums, rate)

    schedule = (read, plan_steps, reading_steps, resume)
    if places.plan != places.step:
        return plan_on_gpu(keys, environment, rate, *schedule, places, agent, config, spaces)
    environment = placement.put(environment, places.step, split=False)
    program = compiled_steps.program(agent, config, spaces, places.step)
    keys = placement.put(keys, places.step)
    if resume is not None:
        resume = resume._replace(runs=placement.put(resume.runs, places.step))
    in_order = len(keys.agent) == 1 and program.replacements and can_order()
    compiled = compiled_steps.advance_and_plan_in_order if in_order else compiled_steps.advance_and_plan

    def begin():
        return compiled_steps.begin(keys, environment, program=program), environment.host_sums(len(keys.agent))

    def advance_and_plan(first, ends, plans, count, runs):
        runs, told = compiled(keys, environment, first, ends, plans, count, rate, runs, program=program)
        sums, smoothed, info = jax.device_get(told)
        return runs, (environment.to_host(sums), smoothed, info)

    return run_many_events(begin, advance_and_plan, read, plan_steps, reading_steps, resume, most)


def run_shapes(keys: RunKeys, environment: Tables | Box, agent: Any, config: Any, spaces: Any) -> Any:
    """Shapes and dtypes of a batch's runs, to check saved ones against; nothing is computed."""
    mesh = placement.find_places("cpu", len(keys.agent)).step
    program = compiled_steps.program(agent, config, spaces, mesh)
    return jax.eval_shape(lambda keys: compiled_steps.begin(keys, environment, program=program), keys)
