"""Runs that step on the host while their plans are made on a GPU.

They step in several groups at once, each in its own thread, and what they have learned is transferred to the GPU for
each plan. Large runs are split into two waves: while one of them plans, the other steps.
"""

import functools
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import jax
import numpy as np

from bellief.experiments import compiled_steps, transfer
from bellief.experiments.compiled_environments import Run
from bellief.experiments.event_loop import Plan, Snapshot
from bellief.fast import placement
from bellief.fast.placement import Places
from bellief.processors import cores

# Seconds between two snapshots, for which the groups have to be joined; for large runs that takes longer.
PAUSE, LARGE_PAUSE = 0.5, 2.0


def plan_on_gpu(
    keys, environment, rate, read, plan_steps, reading_steps, resume, places: Places, agent, config, spaces
) -> Generator[Any]:
    """The events of `compiled_loop.run_batch`."""
    environment = placement.put(environment, places.step, split=False)
    step = compiled_steps.program(agent, config, spaces, places.step)
    plan = compiled_steps.program(agent, config, spaces, places.plan)
    shapes = jax.eval_shape(lambda keys: compiled_steps.begin(keys, environment, program=step), keys)
    large = placement.is_large(shapes)
    single = places.step.size == places.plan.size == 1
    count = placement.wave_count(len(keys.agent), large) if single else 1
    due = _Pause(LARGE_PAUSE if large else PAUSE)

    def one_wave(keys, resume):
        groups = placement.group_count(len(keys.agent), large) if single else 1
        schedule = (read, plan_steps, reading_steps, resume)
        return _wave(keys, environment, rate, *schedule, places, step, plan, groups, due)

    waves = list(map(one_wave, placement.split_keys(keys, count), _split_snapshot(resume, count)))
    yield from _join_waves(waves, places) if count > 1 else waves[0]


def _wave(
    keys, environment, rate, read, plan_steps, reading_steps, resume, places: Places, step, plan, count: int, due
) -> Generator[Any]:
    """Runs that plan together, stepping in `count` groups; `step` and `plan` are the programs for the two."""
    # On first use: a GPU may take a while to initialise.
    plan_keys = functools.cache(lambda: placement.put(keys, places.plan))
    here = placement.put(keys, places.step)
    own_keys = placement.split_keys(here, count)

    def split(runs):
        return placement.put(placement.split_groups(jax.device_get(runs), count), places.step)

    def advance(first, last, own, runs):
        with placement.at_work(places):
            advanced = compiled_steps.advance(own, environment, first, last, rate, runs, program=step)
            return jax.block_until_ready(advanced)

    def make_plans(number, groups):
        states = tuple(runs.agent for runs in groups)
        packed = transfer.pack(states)
        # A call transfers its arguments to a single GPU faster than an explicit transfer beforehand.
        there = packed if places.plan.size == 1 else placement.put(packed, places.plan)
        with placement.at(places.plan):
            changed, info = compiled_steps.plan_packed(plan_keys(), number, there, program=plan)
        # Only what planning changes comes back.
        planned = map(compiled_steps.merge, split(changed), states)
        return [runs._replace(agent=state) for runs, state in zip(groups, planned, strict=True)], info

    compiling = None
    if resume is None:
        runs = compiled_steps.begin(here, environment, program=step)
        groups, spare, no_steps = split(runs), split(runs)[0], np.int32(0)
        compiling = placement.in_background(places, lambda: advance(no_steps, no_steps, own_keys[0], spare))
        last_event, host = -1, environment.host_sums(len(keys.agent))
    else:
        groups, last_event, host = split(resume.runs), resume.event, resume.host
    done, plans, readings = max(last_event, 0), set(plan_steps), set(reading_steps)
    with ThreadPoolExecutor(min(count, cores())) as pool:
        for event in sorted({number - 1 for number in plans} | readings):
            if event <= last_event:
                continue
            if event > done:
                if compiling is not None:
                    compiling.join()
                groups, sums = zip(
                    *pool.map(functools.partial(advance, np.int32(done), np.int32(event)), own_keys, groups),
                    strict=True,
                )
                earned = placement.join_groups([environment.to_host(part) for part in sums])
                # One segment at a time, added up here in float64.
                host = {name: total + np.asarray(earned[name], dtype=total.dtype) for name, total in host.items()}
                done = event
            if event in readings:
                yield from read(event, placement.join_groups([environment.smoothed(runs) for runs in groups]), host)
            if event + 1 in plans and event < max(readings):
                groups, info = make_plans(np.int32(event + 1), groups)
                yield Plan(event + 1, info)
            if due(event):
                yield Snapshot(event, placement.join_groups(groups), host)
    yield placement.join_groups(groups)


class _Pause:
    """Tells after each event whether it is time for a snapshot; all waves get the same answer."""

    def __init__(self, seconds: float):
        self.seconds, self.last, self.lock = seconds, time.monotonic(), threading.Lock()
        self.answers: dict[int, bool] = {}

    def __call__(self, event: int) -> bool:
        with self.lock:
            if event not in self.answers:
                now = time.monotonic()
                self.answers[event] = now - self.last >= self.seconds
                self.last = now if self.answers[event] else self.last
            return self.answers[event]


def _split_snapshot(snapshot: Snapshot | None, count: int) -> list[Snapshot | None]:
    if snapshot is None:
        return [None] * count
    parts = placement.split_groups((jax.device_get(snapshot.runs), snapshot.host), count)
    return [Snapshot(snapshot.event, *part) for part in parts]


def _join_waves(waves: list[Generator[Any]], places: Places) -> Generator[Any]:
    """The events of all waves, joined. Each wave has its own thread and is up to one event ahead of the others."""

    def following(wave):
        with placement.at_work(places):
            return next(wave, None)

    with ThreadPoolExecutor(len(waves)) as pool:
        coming = [pool.submit(following, wave) for wave in waves]
        try:
            while True:
                parts = []
                for number, wave in enumerate(waves):
                    parts.append(coming[number].result())
                    coming[number] = pool.submit(following, wave)
                if parts[0] is None:
                    return
                yield _join(parts)
        finally:
            wait(coming)
            for wave in waves:
                wave.close()


def _join(parts: list[Any]) -> Any:
    """One event from those of the waves; but for the final runs, an event begins with its step."""
    if isinstance(parts[0], Run):
        return placement.join_groups(parts)
    (step, *_), *fields = zip(*parts, strict=True)
    return type(parts[0])(step, *map(placement.join_groups, fields))
