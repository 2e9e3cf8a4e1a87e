"""Reading a store: conditions, their curves as arrays, tables for pandas, results as `bellief.run` gives them.

>>> import tempfile
>>> from bellief.sweeps import store_reader, run_sweep
>>> from bellief.sweeps.engines.batch import Batch
>>> from bellief.sweeps.spec import Spec
>>> spec = Spec(name="chains", steps=20, runs=2, environments=["nchain"], agents=["q-learning"])
>>> with tempfile.TemporaryDirectory() as folder:
...     summary = run_sweep(spec, f"{folder}/chains", engine=Batch)
...     results = store_reader.open_store(f"{folder}/chains")
...     condition = results.condition("nchain", "q-learning")
...     curves = condition.curves()
>>> isinstance(results, store_reader.SweepResults), isinstance(condition, store_reader.Condition)
(True, True)
>>> isinstance(curves, store_reader.Curves), curves.total.shape[0], condition.complete
(True, 2, True)
"""

import dataclasses
import io
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bellief.agents.saved_agent import decode_config
from bellief.errors import UserError, require
from bellief.experiments.event_collector import EPISODE_COUNTS
from bellief.experiments.results import RunResult
from bellief.files import to_csv, write_whole
from bellief.sweeps import parquet_tables
from bellief.sweeps.cells import Cell, Setup, agent_module, agent_name, expand, plan_steps
from bellief.sweeps.ledger import Ledger
from bellief.sweeps.store import Damaged, Store

EXPORTS = (".csv", ".parquet")


class Curves(NamedTuple):
    """What the runs of a condition had earned at each reading, and their smoothed reward.

    Where states are continuous, the episodes too, as in `RunResult`: how many were over, how many of them had ended,
    how long they were together, and the smoothed length of the last one.
    """

    run: Int[np.ndarray, "runs"]
    step: Int[np.ndarray, "G"]
    total: Float[np.ndarray, "runs G"]
    smoothed: Float[np.ndarray, "runs G"]
    over: Int[np.ndarray, "runs G"] | None = None
    falls: Int[np.ndarray, "runs G"] | None = None
    length: Float[np.ndarray, "runs G"] | None = None
    survived: Float[np.ndarray, "runs G"] | None = None


class Condition:
    """An agent in an environment with its settings, and the cells that hold its runs."""

    def __init__(self, store: Store, setup: Setup, cells: tuple[Cell, ...]):
        self.store, self.setup, self.cells = store, setup, cells
        self.environment, self.agent = setup.environment, setup.agent
        self.steps, self.runs, self.half_life = setup.steps, setup.runs, setup.half_life

    @property
    def complete(self) -> bool:
        """Whether all its cells are finished."""
        return len(self.cells) == len(self.setup.cells)

    def table(self, name: str) -> pd.DataFrame:
        """One of its tables (curves, runs, plans, episodes) over all finished cells, without runs beyond the spec's.

        Every file is compared with its hash; `UserError` where one is damaged.
        """
        require(self.cells, f"{self} has no finished cell yet; continue the sweep with 'bellief resume'.")
        frames = []
        for cell in self.cells:
            try:
                table = parquet_tables.read_parquet(self.store.read(cell.id, name))
                frames.append(parquet_tables.check_numbers(name, table).to_pandas())
            except (Damaged, parquet_tables.UnreadableTable) as error:
                raise UserError(
                    f"Cell {cell.id} of {self.store.folder} is damaged ({error}); 'bellief resume' computes it again."
                ) from error
        whole = pd.concat(frames, ignore_index=True)
        return whole[whole["run"] < self.runs].reset_index(drop=True)

    def curves(self) -> Curves:
        """Curves of all its finished runs."""
        frame = self.table(parquet_tables.CURVES)
        step = np.unique(frame["step"].to_numpy())
        shape = (-1, len(step))
        return Curves(
            frame["run"].to_numpy().reshape(shape)[:, 0],
            step,
            **{
                name: frame[name].to_numpy().reshape(shape)
                for name in ("total", "smoothed", *EPISODE_COUNTS)
                if name in frame
            },
        )

    def result(self) -> RunResult:
        """The object that `bellief.run` would have given, with its averages, table and picture."""
        curves, identity = self.curves(), self.cells[0].identity
        real = parquet_tables.EPISODES in (self.store.record(self.cells[0].id) or {"files": {}})["files"]
        shared: dict[str, Any] = {
            "env": identity["environment"]["name"],
            "agent": agent_name(identity),
            "steps": self.steps,
            "runs": len(curves.run),
            "seed": identity["seed"],
            "settings": _settings(identity),
            "half_life": self.half_life,
            "step": curves.step,
            "total": curves.total,
            "smoothed": curves.smoothed,
            "episodes": self.table(parquet_tables.EPISODES) if real else None,
            "info": self.table(parquet_tables.PLANS),
            "updates": len(plan_steps(identity)),
            "seconds": sum((self.store.record(cell.id) or {"seconds": 0.0})["seconds"] for cell in self.cells),
        }
        if curves.over is not None:
            counts: dict[str, Any] = {name: getattr(curves, name) for name in EPISODE_COUNTS}
            nothing: dict[str, Any] = {
                "policies": np.zeros((len(curves.run), 0, 0)),
                "gain": np.full(len(curves.run), np.nan),
            }
            return RunResult(**shared, **nothing, **counts)
        ended = self.table(parquet_tables.RUNS)
        policies = np.stack([np.reshape(row, (-1, ended["actions"][0])) for row in ended["policy"]])
        return RunResult(**shared, policies=policies, gain=ended["gain"].to_numpy())

    def to_pandas(self) -> pd.DataFrame:
        """One row per run and reading: environment, agent, run, step, total, smoothed."""
        frame = self.table(parquet_tables.CURVES)
        frame.insert(0, "agent", self.agent)
        frame.insert(0, "environment", self.environment)
        return frame

    def __repr__(self) -> str:
        return f"{self.agent} in {self.environment}, {self.runs} runs of {self.steps} steps"


class SweepResults:
    """A sweep as it stands on disk: iterate over its conditions."""

    def __init__(self, store: Store):
        self.store, self.spec, self.folder = store, store.spec, store.folder
        self.ledger = Ledger(store, expand(store.spec, check=False))
        self.damaged = self.ledger.scan(deep=False)

    @cached_property
    def conditions(self) -> list[Condition]:
        """All conditions in the order of the spec, each with its finished cells."""
        return [
            Condition(
                self.store, setup, tuple(cell for cell in setup.cells if self.ledger.status(cell.id) == "finished")
            )
            for setup in self.ledger.setups
        ]

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.conditions)

    def condition(self, environment: str, agent: str) -> Condition:
        """The condition of these labels."""
        for condition in self.conditions:
            if (condition.environment, condition.agent) == (environment, agent):
                return condition
        raise UserError(f"{self.folder} has no agent '{agent}' in an environment '{environment}'.")

    def to_pandas(self) -> pd.DataFrame:
        """The curves of every finished run, one row per run and reading."""
        frames = [condition.to_pandas() for condition in self.conditions if condition.cells]
        require(frames, f"{self.folder} has no finished cell yet; continue the sweep with 'bellief resume'.")
        return pd.concat(frames, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """How the sweep stands, by condition."""
        rows = []
        for setup in self.ledger.setups:
            status = [self.ledger.status(cell.id) for cell in setup.cells]
            counts = {name: status.count(name) for name in ("finished", "started", "damaged", "pending")}
            described: dict[str, Any] = {"environment": setup.environment, "agent": setup.agent}
            rows.append({**described, "steps": setup.steps, "runs": setup.runs, "cells": len(setup.cells), **counts})
        cells = len(self.ledger.cells)
        done = self.ledger.count("finished")
        name, seed = self.spec.name, self.spec.seed
        return {"name": name, "seed": seed, "cells": cells, "finished": done, "conditions": rows}

    def export(self, path: str | Path) -> int:
        """Write the curves of all finished runs into one CSV or Parquet file; returns the number of rows."""
        path = Path(path)
        require(path.suffix.lower() in EXPORTS, f"{path} must end in .csv or .parquet.")
        if path.resolve().is_relative_to(self.folder.resolve()):
            raise UserError(
                f"{path} lies in the store itself, whose files are never overwritten; choose another place."
            )
        frame = self.to_pandas()
        if path.suffix.lower() == ".csv":
            content = to_csv(frame)
        else:
            buffer = io.BytesIO()
            frame.to_parquet(buffer, index=False)
            content = buffer.getvalue()
        write_whole(path, content)
        return len(frame)


def _settings(identity: dict[str, Any]) -> dict[str, Any]:
    agent, module = identity["agent"], agent_module(identity)
    complaint = f"The settings of agent '{agent_name(identity)}' do not fit"
    return dataclasses.asdict(decode_config(agent["settings"], module.Config, complaint))


def open_store(folder: str | Path) -> SweepResults:
    """Read a sweep's folder; nothing in it is changed."""
    return SweepResults(Store(folder))
