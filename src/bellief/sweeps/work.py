"""Computing one cell, from the beginning or from a checkpoint. Engines differ only in where this runs."""

import contextlib
import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np

from bellief.agents.saved_agent import decode_config
from bellief.experiments.event_collector import Collector
from bellief.experiments.event_loop import Snapshot
from bellief.experiments.gymnasium_agents import ReplayError
from bellief.experiments.results import reading_steps
from bellief.experiments.task import Case, inform, open_task
from bellief.fast import placement
from bellief.registry import CONTINUOUS
from bellief.sweeps import parquet_tables
from bellief.sweeps.cells import Cell, agent_module, agent_name, plan_steps
from bellief.sweeps.checkpoint import CheckpointError, decode, encode
from bellief.sweeps.machine import fingerprint

# Seconds between two messages about progress.
NEWS = 0.5


class Progress(NamedTuple):
    """How far a cell is, and the smoothed reward of its runs."""

    step: int
    steps: int
    reward: float | None


class Checkpoint(NamedTuple):
    """To be kept until the next one, or until the cell is finished."""

    content: bytes


class Restarted(NamedTuple):
    """A checkpoint could not be used, and the cell begins again."""

    reason: str


class Stopped(NamedTuple):
    """The cell was stopped at its last checkpoint."""


class Finished(NamedTuple):
    """A cell's tables as Parquet files, the seconds spent on it since it was taken up, and what it was made with."""

    tables: dict[str, bytes]
    seconds: float
    made: list[dict[str, Any]]


Message = Progress | Checkpoint | Restarted | Stopped | Finished


class Chunk:
    """The runs that a cell's identity stands for. A new kind of loop is added in `open_task`, not here."""

    def __init__(self, identity: dict[str, Any]):
        described, steps, first = identity["environment"], identity["steps"], identity["first"]
        name, settings = agent_name(identity), identity["agent"]["settings"]
        task = open_task(described["name"], described["settings"], described.get("table", False), described.get("bins"))
        agent = agent_module(identity)
        config = decode_config(settings, agent.Config, f"The settings of agent '{name}' do not fit")
        config = inform(agent, config, name, task)
        places = task.places("auto", identity["width"], agent, config)
        readings = reading_steps(steps, identity["readings"])
        schedule = (identity["seed"], plan_steps(identity), readings, identity["half_life"])
        self.case = Case(task, name, agent, config, *schedule, places)
        self.numbers, self.steps = range(first, first + identity["width"]), steps

    def events(self, resume: Snapshot | None) -> Generator[Any]:
        """The events of the chunk, or those after a snapshot."""
        return self.case.events(self.numbers, resume)

    def shapes(self) -> Any:
        """Shapes and dtypes that the runs of a checkpoint must have."""
        return self.case.shapes(self.numbers)

    def tables(self, gathered: Collector) -> dict[str, bytes]:
        """What is kept of the chunk."""
        first, task, agent = self.numbers[0], self.case.task, self.case.agent
        runs: dict[str, Any] = {"run": np.asarray(self.numbers, dtype=np.int32)}
        if task.kind != CONTINUOUS and hasattr(agent, "policy"):
            policies = gathered.policies(agent, self.case.config)
            runs["gain"] = np.array([task.gain(policy) for policy in policies])
            runs["actions"] = np.full(len(policies), policies.shape[-1], dtype=np.int32)
            runs["policy"] = [policy.ravel() for policy in policies]
        columns = {
            parquet_tables.CURVES: parquet_tables.curves(first, np.asarray(self.case.readings), gathered.curves()),
            parquet_tables.RUNS: runs,
            parquet_tables.PLANS: _by_run(gathered.plan_columns(), first),
        }
        if task.real:
            columns[parquet_tables.EPISODES] = _by_run(gathered.episode_columns(), first)
        return {name: parquet_tables.to_parquet(table) for name, table in columns.items()}


def _by_run(columns: dict[str, np.ndarray], first: int) -> dict[str, np.ndarray]:
    return {"run": (columns.pop("lane") + first).astype(np.int32), **columns}


def compute(
    cell: Cell, checkpoint: bytes | None, every: float, stop: Callable[[], bool] = lambda: False
) -> Generator[Message]:
    """Compute a cell. Yields progress and, every so many seconds, a checkpoint; at the end `Finished`, or `Stopped`
    where `stop` says so between two segments.
    """
    chunk = Chunk(cell.identity)
    placement.start_gpu(chunk.case.places)
    with placement.at_work(chunk.case.places):
        if checkpoint is not None:
            try:
                resumed = decode(checkpoint, cell.id, chunk.shapes())
                yield from _compute(cell, chunk, resumed, every, stop)
                return
            except (CheckpointError, ReplayError) as error:
                yield Restarted(str(error))
        yield from _compute(cell, chunk, (None, Collector(), []), every, stop)


def _compute(cell: Cell, chunk: Chunk, state: Any, every: float, stop: Callable[[], bool]) -> Generator[Message]:
    resume, gathered, made = state
    here = fingerprint(chunk.case.places.plan.devices.flat[0])
    made = made if here in made else [*made, here]
    began = saved = time.monotonic()
    told = -NEWS
    with contextlib.closing(chunk.events(resume)) as events:
        for event in events:
            gathered.add(event)
            if not isinstance(event, Snapshot):
                continue
            now = time.monotonic()
            if now - told >= NEWS:
                told = now
                reward = float(gathered.readings[-1].smoothed.mean()) if gathered.readings else None
                yield Progress(event.event, chunk.steps, reward)
            stopping = stop()
            if stopping or now - saved >= every:
                yield Checkpoint(encode(cell.id, event, gathered, made))
                saved = time.monotonic()
            if stopping:
                yield Stopped()
                return
    yield Finished(chunk.tables(gathered), time.monotonic() - began, made)
