"""What was computed, as the claims and figures need it: arrays by sweep and agent, read from the stores."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.files import DamagedArchive, read_archive
from bellief.paper.tasks import TASKS, Size

if TYPE_CHECKING:
    import pandas as pd


@functools.cache
def _optimum(name: str) -> float | None:
    from bellief.envs import make_any
    from bellief.envs.base import Environment
    from bellief.experiments.compare import best_average

    environment = make_any(name)
    return best_average(environment) if isinstance(environment, Environment) else None


def optimum_of(sweep: str) -> float | None:
    """The largest long-run average reward in a sweep's environment, where its model is a table."""
    return _optimum(TASKS[sweep].environment)


class Missing(Exception):
    """Something that a claim or a figure needs was not computed."""


class Runs(NamedTuple):
    """The finished runs of one agent. `survived` is the smoothed length of episodes, where they are the point; `over`
    and `length` count the episodes that were over and the steps in them.
    """

    step: Int[np.ndarray, "G"]
    total: Float[np.ndarray, "runs G"]
    smoothed: Float[np.ndarray, "runs G"]
    survived: Float[np.ndarray, "runs G"] | None = None
    over: Int[np.ndarray, "runs G"] | None = None
    length: Int[np.ndarray, "runs G"] | None = None

    @property
    def size(self) -> Size:
        """Runs and steps."""
        return Size(len(self.total), int(self.step[-1]))

    def _at(self, values: np.ndarray, step: int) -> np.ndarray:
        place = int(np.searchsorted(self.step, step))
        if place >= len(self.step) or self.step[place] != step:
            raise Missing(f"there is no reading at step {step}")
        return values[:, place]

    def reward(self, first: int, last: int) -> Float[np.ndarray, "runs"]:
        """Reward per step of each run between two readings."""
        before = self._at(self.total, first) if first else 0.0
        return (self._at(self.total, last) - before) / (last - first)

    def steps_survived(self, first: int, last: int) -> Float[np.ndarray, "runs"]:
        """Mean length of the episodes that were over in a span of each run; of none, how long the present one has
        lasted.
        """
        if self.over is None or self.length is None:
            raise Missing("episodes were not counted")
        over, length = self._at(self.over, last), self._at(self.length, last)
        over_before = self._at(self.over, first) if first else 0
        length_before = self._at(self.length, first) if first else 0
        ended = over - over_before
        return np.where(ended > 0, (length - length_before) / np.maximum(ended, 1), last - length)

    def spread(self, first: int, last: int) -> Float[np.ndarray, "runs g"]:
        """The smoothed reward at the readings of a span."""
        return self.smoothed[:, (self.step >= first) & (self.step <= last)]


@dataclasses.dataclass(frozen=True)
class Results:
    """All there is to judge and to draw. Tests fill in the dictionaries; `read` fills them from a folder as needed."""

    runs: Callable[[str, str], Runs]
    plans: Callable[[str, str], "pd.DataFrame"]
    optimum: Callable[[str], float | None]
    computed: Callable[[str], dict[str, np.ndarray]]
    agents: Callable[[str], list[str]]


class Folder:
    """A folder of sweeps and computations."""

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        self._runs: dict[tuple[str, str], Runs] = {}

    @functools.cached_property
    def stores(self) -> dict[str, Any]:
        """The sweeps that were begun, by name."""
        from bellief.sweeps.store_reader import open_store

        return {name: open_store(path) for name in TASKS if (path := self.sweep(name)).joinpath("config.yaml").exists()}

    def sweep(self, name: str) -> Path:
        """Where a sweep's store is."""
        return self.folder / "sweeps" / name

    def computation(self, name: str) -> Path:
        """Where a computation's arrays are."""
        return self.folder / "computed" / f"{name}.npz"

    def results(self) -> Results:
        """What is there."""
        return Results(self.runs, self.plans, optimum_of, self.computed, self.agents)

    def condition(self, sweep: str, agent: str) -> Any:
        """A condition with at least one finished cell."""
        if sweep not in self.stores:
            raise Missing(f"sweep {sweep} was not run")
        for condition in self.stores[sweep]:
            if condition.agent == agent and condition.cells:
                return condition
        raise Missing(f"{agent} in {sweep} was not run")

    def agents(self, sweep: str) -> list[str]:
        """Agents of a sweep with finished runs, in its order."""
        if sweep not in self.stores:
            return []
        return [condition.agent for condition in self.stores[sweep] if condition.cells]

    def runs(self, sweep: str, agent: str) -> Runs:
        """The finished runs of an agent."""
        if (sweep, agent) not in self._runs:
            self._runs[sweep, agent] = self._read(self.condition(sweep, agent))
        return self._runs[sweep, agent]

    def _read(self, condition: Any) -> Runs:
        frame = condition.table("curves")
        step = np.unique(frame["step"].to_numpy())
        shape = (-1, len(step))

        def column(name: str) -> Any:
            return frame[name].to_numpy().reshape(shape) if name in frame else None

        parts = {name: column(name) for name in Runs._fields if name != "step"}
        return Runs(step, **parts)

    def plans(self, sweep: str, agent: str) -> "pd.DataFrame":
        """What an agent reported of its plans."""
        return self.condition(sweep, agent).table("plans")

    def computed(self, name: str) -> dict[str, np.ndarray]:
        """A computation's arrays."""
        path = self.computation(name)
        if not path.exists():
            raise Missing(f"{name} was not computed")
        try:
            return read_archive(path.read_bytes())
        except DamagedArchive as error:
            raise Missing(f"{path} is damaged ({error}); without --draw-only it is computed again") from error
