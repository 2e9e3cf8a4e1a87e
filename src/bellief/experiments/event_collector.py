"""What is kept of the events of one batch: curves, a thinned list of plans, episodes.

Its size does not grow with steps, except for the episodes of real environments.
"""

import functools
from typing import Any

import jax
import numpy as np

from bellief.experiments.compiled_environments import Run
from bellief.experiments.event_loop import Plan, Reading, Snapshot, Survival
from bellief.experiments.gymnasium_loop import Episode

# What is kept of the episodes at a reading where states are continuous, in the order of `Survival`.
EPISODE_COUNTS = ("over", "falls", "length", "survived")


class Collector:
    """Takes the events of a batch one by one; `to_arrays` and `from_arrays` save and restore it."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.survival: list[Survival] = []
        self.plans: list[tuple[int, dict[str, np.ndarray]]] = []
        self.episodes: list[Episode] = []
        self.number = 0
        self.last: Run | None = None

    def add(self, event: Any) -> None:
        """Keep what is needed of an event; of the plans, fewer are kept as they grow in number."""
        if isinstance(event, Reading):
            self.readings.append(event)
        elif isinstance(event, Survival):
            self.survival.append(event)
        elif isinstance(event, Plan):
            self.number += 1
            # Early plans differ much, late ones little: keep the first 32, then fewer.
            if self.number <= 32 or self.number % max(1, self.number // 32) == 0:
                self.plans.append((event.step, _per_run(event.info)))
        elif isinstance(event, Episode):
            self.episodes.append(event)
        elif not isinstance(event, Snapshot):
            self.last = event

    def curves(self) -> dict[str, np.ndarray]:
        """Of each run at each reading: the total reward, the smoothed reward, and in continuous states the number of
        finished episodes, of those that the environment ended, their total length, and the smoothed length of the last.
        """
        found = {"total": [one.total for one in self.readings], "smoothed": [one.smoothed for one in self.readings]}
        if self.survival:
            columns = zip(*(one[1:] for one in self.survival), strict=True)
            found |= dict(zip(EPISODE_COUNTS, map(list, columns), strict=True))
        return {name: np.stack(columns, axis=1) for name, columns in found.items()}

    def policies(self, module: Any, config: Any) -> np.ndarray:
        """Action probabilities that the runs ended with."""
        assert self.last is not None
        return np.asarray(_policies(module, config, self.last.agent), dtype=np.float64)

    def plan_columns(self) -> dict[str, np.ndarray]:
        """One row per kept plan and run: lane, step, and what the agent reported."""
        if not self.plans:
            return {"lane": np.zeros(0, int), "step": np.zeros(0, int)}
        lanes = [len(next(iter(columns.values()), ())) for _, columns in self.plans]
        told = {name: np.concatenate([columns[name] for _, columns in self.plans]) for name in self.plans[0][1]}
        lane = np.concatenate([np.arange(count) for count in lanes])
        return {"lane": lane, "step": np.repeat([step for step, _ in self.plans], lanes), **told}

    def episode_columns(self) -> dict[str, np.ndarray]:
        """One row per finished episode, by lane."""
        kinds = {"reward": np.float64, "terminated": bool}
        return {
            name: np.array([episode[place] for episode in self.episodes], dtype=kinds.get(name, np.int64))
            for place, name in enumerate(Episode._fields)
        }

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything as named arrays."""
        arrays = {
            "number": np.array(self.number),
            "reading.step": np.array([reading.step for reading in self.readings], dtype=np.int64),
            "reading.total": np.array([reading.total for reading in self.readings], dtype=np.float64),
            "reading.smoothed": np.array([reading.smoothed for reading in self.readings], dtype=np.float64),
            "plan.step": np.array([step for step, _ in self.plans], dtype=np.int64),
        }
        for name in self.plans[0][1] if self.plans else ():
            arrays[f"plan.info.{name}"] = np.stack([columns[name] for _, columns in self.plans])
        for name in Survival._fields if self.survival else ():
            arrays[f"survival.{name}"] = np.array([getattr(one, name) for one in self.survival])
        return arrays | {f"episode.{name}": column for name, column in self.episode_columns().items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Collector":
        """The collector that `to_arrays` was called on; `KeyError` where an array is missing."""
        made = cls()
        made.number = int(arrays["number"])
        rows = (arrays[f"reading.{name}"] for name in Reading._fields)
        made.readings = [Reading(int(step), total, smoothed) for step, total, smoothed in zip(*rows, strict=True)]
        if "survival.step" in arrays:
            rows = (arrays[f"survival.{name}"] for name in Survival._fields)
            made.survival = [Survival(int(step), *parts) for step, *parts in zip(*rows, strict=True)]
        columns = {
            name.removeprefix("plan.info."): array for name, array in arrays.items() if name.startswith("plan.info.")
        }
        made.plans = [
            (int(step), {name: column[place] for name, column in columns.items()})
            for place, step in enumerate(arrays["plan.step"])
        ]
        fields = (arrays[f"episode.{name}"].tolist() for name in Episode._fields)
        made.episodes = [Episode(*values) for values in zip(*fields, strict=True)]
        return made


@functools.partial(jax.jit, static_argnames=("module", "config"))
def _policies(module: Any, config: Any, states: Any) -> Any:
    return jax.vmap(lambda state: module.policy(config, state))(states)


def _per_run(info: Any) -> dict[str, np.ndarray]:
    """One number per run; fields with a value per state are averaged over states."""
    columns = {}
    for name, value in info._asdict().items():
        array = np.asarray(value, dtype=np.float64).reshape(len(value), -1)
        columns[name] = array.sum(-1) / array.shape[1]
    return columns
