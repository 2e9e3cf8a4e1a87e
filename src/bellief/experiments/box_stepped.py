"""The loop around real Gymnasium environments with Box observations: stepped in Python, the agents compiled."""

import functools
from collections.abc import Callable, Generator
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bellief.experiments import stepped
from bellief.experiments.box_loop import BoxRun
from bellief.experiments.drive import Plan, Reading, Snapshot, Survival
from bellief.experiments.segments import PLAN_STREAM, RunKeys
from bellief.experiments.stepped import Episode
from bellief.types import BoxSpaces, Transition, default_precision


class BoxSimulator(NamedTuple):
    """A Gymnasium environment whose observations are flat vectors and whose actions are counted."""

    reset: Callable[[int | None], np.ndarray]
    step: Callable[[int], tuple[np.ndarray, float, bool, bool]]
    close: Callable[[], None]


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"))
def _plan(keys: RunKeys, step, states, *, agent, config, spaces):
    def one_run(both):
        key, state = both
        return agent.plan(jax.random.fold_in(jax.random.fold_in(key.agent, PLAN_STREAM), step), config, spaces, state)

    return jax.lax.map(one_run, (keys, states))


def run_chunk(
    keys: RunKeys,
    simulators: list[BoxSimulator],
    seeds: list[int],
    agent: ModuleType,
    config: Any,
    spaces: BoxSpaces,
    plan_steps: list[int],
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
) -> Generator[Any]:
    """Drive one chunk of runs to the last reading step; a cut by a time limit begins a new episode but ends nothing.

    With `resume`, only what comes after that snapshot is yielded.
    """
    of = {"agent": agent, "config": config}
    states = stepped.begin(keys, **of, spaces=spaces) if resume is None else resume.runs
    replayed = 0 if resume is None else resume.event
    observations = np.stack([one.reset(seed) for one, seed in zip(simulators, seeds, strict=True)])
    counted = _Counted(len(simulators), half_life)
    plans, readings = set(plan_steps), set(reading_steps)
    history = np.zeros((max(readings), len(simulators)), np.min_scalar_type(spaces.actions - 1))
    if resume is not None:
        history[:replayed] = resume.host["actions"]
    for step in range(1, max(readings) + 1):
        if step in plans and step > replayed:
            states, info = _plan(keys, np.int32(step), states, **of, spaces=spaces)
            yield Plan(step, info)
        if step > replayed:
            history[step - 1] = stepped.act(keys, np.int32(step - 1), states, observations, **of)
        actions = history[step - 1].astype(np.int32)
        results = [one.step(int(action)) for one, action in zip(simulators, actions, strict=True)]
        following = np.stack([result[0] for result in results])
        rewards, ended, cut = (np.array([result[part] for result in results]) for part in (1, 2, 3))
        if step > replayed:
            seen: Any = (observations, actions, rewards.astype(default_precision()), following, ended)
            states = stepped.update(states, jax.tree.map(jnp.asarray, Transition(*seen)), **of)
        # A copy: the device may still be reading the successors when fresh starts are written below.
        observations = following.copy()
        for episode in counted.add(step, rewards, ended, ended | cut):
            observations[episode.lane] = simulators[episode.lane].reset(None)
            if step > replayed:
                yield episode
        if resume is not None and step == replayed and not np.array_equal(observations, resume.host["observations"]):
            raise stepped.ReplayError(f"after {step} steps the environment is not where it was")
        if step in readings and step > replayed:
            yield from counted.read(step)
        if (step in readings or step + 1 in plans) and step > replayed:
            yield Snapshot(step, states, {"actions": history[:step], "observations": observations.copy()})
    yield counted.run(states, observations)


class _Counted:
    """Rewards and episodes of every lane so far, added up in ordinary memory."""

    def __init__(self, width: int, half_life: float):
        self.decay = 0.5 ** (1 / half_life)
        self.total, self.recent, self.earned, self.length, self.smoothed = (np.zeros(width) for _ in range(5))
        self.episodes, self.falls, self.age, self.last = (np.zeros(width, dtype=np.int64) for _ in range(4))

    def add(self, step: int, rewards: np.ndarray, ended: np.ndarray, over: np.ndarray) -> list[Episode]:
        """Count one step of every lane; returns the episodes that it was the last of."""
        decay, age = self.decay, self.age + 1
        self.total, self.recent = self.total + rewards, decay * self.recent + (1 - decay) * rewards
        earned = self.earned + rewards
        self.episodes, self.falls = self.episodes + over, self.falls + ended
        self.length, self.last = self.length + over * age, np.where(over, age, self.last)
        self.smoothed = decay * self.smoothed + (1 - decay) * np.where(self.last > 0, self.last, age)
        self.age, self.earned = np.where(over, 0, age), np.where(over, 0.0, earned)
        return [
            Episode(int(lane), step, int(age[lane]), float(earned[lane]), bool(ended[lane]))
            for lane in np.flatnonzero(over)
        ]

    def read(self, step: int) -> tuple[Reading, Survival]:
        """The curves after a step."""
        weight = 1 - self.decay**step
        survival = Survival(step, self.episodes, self.falls, self.length, self.smoothed / weight)
        return Reading(step, self.total, self.recent / weight), survival

    def run(self, states: Any, observations: np.ndarray) -> BoxRun:
        """How the lanes ended."""
        parts = (observations, self.age, self.last, self.recent, self.smoothed)
        return BoxRun(states, *(jnp.asarray(part) for part in parts))
