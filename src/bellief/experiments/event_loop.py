"""Event loop for one batch of runs: advance to the next event, read, plan."""

import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

# The most events that one call of a compiled program works through.
MOST_EVENTS = 128
# Seconds between two reports to the caller, who may stop there: calls that take longer get fewer events.
REPORT_SECONDS = 0.1


class Reading(NamedTuple):
    """What runs have earned up to a step: total since the start, and the reward smoothed with the given half-life."""

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
    """What an agent reported of one plan."""

    step: int
    info: Any


class Snapshot(NamedTuple):
    """The state of a batch once everything due after `event` steps is done: enough to continue from, bit for bit. There
    is one after every call of a compiled program, which may have processed several events.

    `runs` is on the device, and the next segment reuses its memory: copy what is to be kept before asking for the next
    event. `host` is what the loop keeps in host memory.
    """

    event: int
    runs: Any
    host: dict[str, np.ndarray]


def run_many_events(
    begin: Callable[[], tuple[Any, dict[str, np.ndarray]]],
    advance_and_plan: Callable[..., tuple[Any, Any]],
    read: Callable[..., Iterable[Any]],
    plan_steps: list[int],
    reading_steps: list[int],
    resume: Snapshot | None,
    most: int = MOST_EVENTS,
) -> Generator[Any]:
    """Advance to the next event, read, plan; up to `most` events a call, because for short segments a call costs more
    than computing. How many events share a call changes no number.

    Args:
        begin: the first runs, and the sums that the host keeps, all zero.
        advance_and_plan: takes the step to begin after, arrays of `most` steps to advance to and of whether to plan
            there, how many of them count, and the runs. It returns the runs and, with the events along the second axis,
            what each segment adds to the sums, what is read, and what the agent reported.
        read: the events of a reading.
        plan_steps: steps before whose action the agent plans.
        reading_steps: steps after which the curves are read.
        resume: only what comes after this snapshot is yielded.
        most: events a call.
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
        count = min(count, most, len(events) - place)
        now = slice(place, place + count)
        ends, asked = np.full(most, events[place], np.int32), np.zeros(most, bool)
        ends[:count], asked[:count] = events[now], planned[now]
        runs, told = advance_and_plan(np.int32(done), ends, asked, np.int32(count), runs)
        added, seen, info = told
        # Sums after each event, added up in float64.
        sums = {
            name: np.cumsum(np.column_stack([total, added[name][:, :count]]), axis=1, dtype=total.dtype)[:, 1:]
            for name, total in host.items()
        }
        for row, event in enumerate(events[now]):
            if event in readings:
                yield from read(event, _column(seen, row), _column(sums, row))
            if asked[row]:
                yield Plan(event + 1, _column(info, row))
        host = {name: rows[:, -1] for name, rows in sums.items()}
        place, done = place + count, events[now][-1]
        yield Snapshot(done, runs, host)
        count = max(1, int(count * min(4.0, REPORT_SECONDS / 2 / (time.perf_counter() - began))))
    yield runs


def _column(tree: Any, number: int) -> Any:
    """The tree at that place along the second axis of all leaves."""
    return jax.tree.map(lambda leaf: leaf[:, number], tree)
