"""The order of things in a chunk of runs: advance to the next event, read, plan; one event a call, or several."""

import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

# The most events that one call of a compiled program works through.
TOGETHER = 128
# Seconds after which a caller should hear something and may stop: calls that take longer get fewer events.
PATIENCE = 0.1


class Reading(NamedTuple):
    """What a run has earned up to a step: total since the start, and the reward smoothed with the given half-life."""

    step: int
    total: Float[np.ndarray, "runs"]
    smoothed: Float[np.ndarray, "runs"]


class Survival(NamedTuple):
    """Episodes of every run up to a step: how many over, how many ended, total length, smoothed length of the last."""

    step: int
    episodes: Int[np.ndarray, "runs"]
    falls: Int[np.ndarray, "runs"]
    length: Float[np.ndarray, "runs"]
    smoothed: Float[np.ndarray, "runs"]


def smoothing_rate(half_life: float) -> np.float32:
    """The share of a new reward in the smoothed one.

    In single precision it is exact to seven digits; one minus it, the decay, would not be.
    """
    return np.float32(-np.expm1(-np.log(2) / half_life))


def unbiased(recent: Array, rate: np.float32, step: int) -> Float[np.ndarray, "runs"]:
    """The smoothed reward from its numerator."""
    return np.asarray(recent, dtype=np.float64) / (1 - (1 - float(rate)) ** step)


class Plan(NamedTuple):
    """What an agent reported of one planning step."""

    step: int
    info: Any


class Snapshot(NamedTuple):
    """Where a chunk stands once everything due after `event` steps is done: enough to go on from, bit for bit. There is
    one after every call of a compiled program, which may have worked through several events.

    `runs` lives on the device, and the next segment takes its arrays over: whoever wants to keep them copies them
    before asking for more. `host` is what the loop keeps in ordinary memory.
    """

    event: int
    runs: Any
    host: dict[str, np.ndarray]


def drive(
    begin: Callable[[], tuple[Any, dict[str, np.ndarray]]],
    advance: Callable[..., tuple[Any, dict[str, Any]]],
    plan: Callable[..., tuple[Any, Any]],
    read: Callable[..., Iterable[Any]],
    plan_steps: list[int],
    reading_steps: list[int],
    resume: Snapshot | None,
    whole: Callable[[Any], Any] = lambda runs: runs,
    due: Callable[[int], bool] = lambda event: True,
) -> Generator[Any]:
    """The order of things in a chunk, whatever its states are: advance to the next event, read, plan.

    Args:
        begin: the first runs, and the sums that the host keeps, all zero.
        advance: the runs after steps first, ..., last - 1, and what these add to the sums.
        plan: the runs after planning, and what the agent reported.
        read: the events of a reading.
        plan_steps: steps before whose action the agent plans.
        reading_steps: steps after which the curves are read.
        resume: only what comes after this snapshot is yielded.
        whole: the runs as they are passed on, from what `advance` and `plan` work with.
        due: whether there is to be a snapshot after an event, where making the runs whole takes time.
    """
    resume = Snapshot(-1, *begin()) if resume is None else resume
    runs, host, done = resume.runs, resume.host, max(resume.event, 0)
    plans, readings = set(plan_steps), set(reading_steps)
    for event in sorted({step - 1 for step in plans} | readings):
        if event <= resume.event:
            continue
        if event > done:
            runs, earned = advance(np.int32(done), np.int32(event), runs)
            # A segment at a time, added up here in float64.
            host = {name: sums + np.asarray(earned[name], dtype=sums.dtype) for name, sums in host.items()}
            done = event
        if event in readings:
            yield from read(event, runs, host)
        if event + 1 in plans and event < max(readings):
            runs, info = plan(np.int32(event + 1), runs)
            yield Plan(event + 1, info)
        if due(event):
            yield Snapshot(event, whole(runs), host)
    yield whole(runs)


def drive_together(
    begin: Callable[[], tuple[Any, dict[str, np.ndarray]]],
    course: Callable[..., tuple[Any, Any]],
    read: Callable[..., Iterable[Any]],
    plan_steps: list[int],
    reading_steps: list[int],
    resume: Snapshot | None,
    together: int = TOGETHER,
) -> Generator[Any]:
    """As `drive`, with up to `together` events a call: where segments are short, calling costs more than computing.

    `course` takes the step to begin after, arrays of `together` steps to advance to and of whether to plan there, how
    many of them count, and the runs. It returns the runs and, with the events along the second axis, what each segment
    adds to the sums, what is read, and what the agent reported. How many events share a call changes no number.
    """
    resume = Snapshot(-1, *begin()) if resume is None else resume
    runs, host, done = resume.runs, resume.host, max(resume.event, 0)
    plans, readings = set(plan_steps), set(reading_steps)
    last = max(readings)
    events = [event for event in sorted({step - 1 for step in plans} | readings) if event > resume.event]
    planned = [event + 1 in plans and event < last for event in events]
    place, count = 0, 1
    while place < len(events):
        began = time.perf_counter()
        count = min(count, together, len(events) - place)
        now = slice(place, place + count)
        ends, asked = np.full(together, events[place], np.int32), np.zeros(together, bool)
        ends[:count], asked[:count] = events[now], planned[now]
        runs, told = course(np.int32(done), ends, asked, np.int32(count), runs)
        added, seen, info = told
        seen, info = _by_event(seen), _by_event(info)
        sums = {name: _running(host[name], rows[:, :count]) for name, rows in added.items()}
        for row, event in enumerate(events[now]):
            if event in readings:
                yield from read(event, seen(row), {name: rows[:, row] for name, rows in sums.items()})
            if asked[row]:
                yield Plan(event + 1, info(row))
        host = {name: rows[:, -1] for name, rows in sums.items()}
        place, done = place + count, events[now][-1]
        yield Snapshot(done, runs, host)
        count = max(1, int(count * min(4.0, PATIENCE / 2 / (time.perf_counter() - began))))
    yield runs


def _running(start: Float[np.ndarray, "runs"], added: Array) -> Float[np.ndarray, "runs events"]:
    """Sums after each event: a segment at a time, added up in float64."""
    return np.cumsum(np.column_stack([start, added]), axis=1, dtype=start.dtype)[:, 1:]


def _by_event(tree: Any) -> Callable[[int], Any]:
    """The tree at a place along the second axis of all leaves."""
    leaves, structure = jax.tree.flatten(tree)
    return lambda place: jax.tree.unflatten(structure, [leaf[:, place] for leaf in leaves])
