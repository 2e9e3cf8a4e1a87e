"""Runs that step on the host while their plans are made elsewhere, on a GPU.

They step in several groups at once, each in a thread of its own, and what they have learned travels to where plans are
made. Large runs go in two waves: while one of them plans, the other steps.
"""

import functools
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import jax
import numpy as np

from bellief.experiments import devices, parcels, segments
from bellief.experiments.devices import Places
from bellief.experiments.drive import Snapshot, drive
from bellief.experiments.segments import Run, RunKeys
from bellief.experiments.tables import Tables
from bellief.processors import cores

# Seconds between two snapshots, which have to be put together; of large runs that takes longer.
PAUSE, LARGE_PAUSE = 0.5, 2.0


def drive_away(
    keys: RunKeys,
    tables: Tables,
    read: Callable[..., Any],
    plan_steps: list[int],
    reading_steps: list[int],
    rate: np.float32,
    resume: Snapshot | None,
    places: Places,
    **static: Any,
) -> Generator[Any]:
    """The events of `loop.run_chunk`; the tables are where runs step, the rest is in no place in particular."""
    shapes = jax.eval_shape(functools.partial(segments.begin, mesh=places.step, **static), keys, tables)
    large = segments.is_large(shapes)
    single = places.step.size == places.plan.size == 1
    count = devices.wave_count(len(keys.agent), large) if single else 1
    due = _Pause(LARGE_PAUSE if large else PAUSE)

    def one_wave(keys, resume):
        groups = devices.group_count(len(keys.agent), large) if single else 1
        return _wave(keys, tables, read, plan_steps, reading_steps, rate, resume, places, groups, due, static)

    waves = list(map(one_wave, devices.split_keys(keys, count), _split_snapshot(resume, count)))
    yield from _side_by_side(waves, places) if count > 1 else waves[0]


def _wave(
    keys, tables, read, plan_steps, reading_steps, rate, resume, places: Places, count: int, due, static
) -> Generator[Any]:
    """Runs that plan together, stepping in `count` groups."""
    # Later: a GPU may take a while to wake up.
    plan_keys = functools.cache(lambda: devices.put(keys, places.plan))
    here = devices.put(keys, places.step)
    own_keys = devices.split_keys(here, count)
    of = {"agent": static["agent"], "config": static["config"], "mesh": places.step}

    def split(runs):
        return devices.put(devices.split_groups(jax.device_get(runs), count), places.step)

    def advance_group(first, last, own, runs):
        with devices.at_work(places):
            return jax.block_until_ready(segments.advance(own, tables, first, last, rate, runs, **of))

    def begin():
        runs = segments.begin(here, tables, mesh=places.step, **static)
        groups, spare = split(runs), split(runs)[0]
        nowhere = np.int32(0)
        preparation.append(devices.aside(places, lambda: advance_group(nowhere, nowhere, own_keys[0], spare)))
        return groups, {"total": np.zeros(len(keys.agent))}

    def advance(first, last, groups):
        while preparation:
            preparation.pop().join()
        done = pool.map(functools.partial(advance_group, first, last), own_keys, groups)
        groups, added = zip(*done, strict=True)
        return groups, {"total": np.concatenate([segments.exact(*sums) for sums in added])}

    def plan(step, groups):
        states = tuple(runs.agent for runs in groups)
        parcel = parcels.pack(states)
        # A call takes one GPU its arguments along, sooner than they could be sent beforehand.
        there = parcel if places.plan.size == 1 else devices.put(parcel, places.plan)
        with devices.at(places.plan):
            changed, info = _plan_parcel(plan_keys(), step, there, mesh=places.plan, **static)
        # Only what planning changes comes back.
        planned = map(segments.merge, split(changed), states)
        return [runs._replace(agent=state) for runs, state in zip(groups, planned, strict=True)], info

    def read_groups(step, groups, host):
        return read(step, np.concatenate([runs.recent for runs in groups]), host)

    preparation: list[threading.Thread] = []
    if resume is not None:
        resume = resume._replace(runs=split(resume.runs))
    drives = (begin, advance, plan, read_groups, plan_steps, reading_steps, resume)
    with ThreadPoolExecutor(min(count, cores())) as pool:
        yield from drive(*drives, whole=devices.join_groups, due=due)


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces", "mesh"))
def _plan_parcel(keys, step, parcel: parcels.Parcel, **static):
    """Plans of states that arrive in a parcel."""
    return segments.plan_runs(keys, step, parcels.unpack(parcel), **static)


class _Pause:
    """Says after each event whether it is time for a snapshot; all waves hear the same."""

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
    parts = devices.split_groups((jax.device_get(snapshot.runs), snapshot.host), count)
    return [Snapshot(snapshot.event, *part) for part in parts]


def _side_by_side(waves: list[Generator[Any]], places: Places) -> Generator[Any]:
    """The events of all waves, joined. Each is computed in a thread of its own, up to one event ahead of the others."""

    def following(wave):
        with devices.at_work(places):
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
        return devices.join_groups(parts)
    (step, *_), *fields = zip(*parts, strict=True)
    return type(parts[0])(step, *map(devices.join_groups, fields))
