"""The loop around real Gymnasium environments, which are stepped in Python while the agents stay compiled.

It yields the events of the compiled loop, and an `Episode` whenever one is over. An environment's inner state cannot be
saved, so a snapshot holds every action: to continue from it, new environments repeat the same actions.
"""

import zlib
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from bellief.experiments.compiled_environments import BoxRun, Run
from bellief.experiments.event_loop import Reading, Snapshot, Survival
from bellief.experiments.gymnasium_agents import ReplayError
from bellief.types import BoxSpaces, Spaces, Transition, default_precision


class Episode(NamedTuple):
    """One finished episode: in which lane, after which step, how long, what it paid, and whether the MDP ended it."""

    lane: int
    step: int
    length: int
    reward: float
    terminated: bool


class Simulator(NamedTuple):
    """A Gymnasium environment with numbered actions; observations are numbers too, or flat vectors."""

    reset: Callable[[int | None], Any]
    step: Callable[[int], tuple[Any, float, bool, bool]]
    close: Callable[[], None]


def environment_seed(seed: int, environment: str, run: int) -> int:
    """The seed that a run's environment is reset with, the same for every agent."""
    return int(np.random.SeedSequence([seed, zlib.crc32(environment.encode()), run]).generate_state(1)[0])


def run_batch(
    simulators: list[Simulator],
    seeds: list[int],
    agents: Any,
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
) -> Generator[Any]:
    """Run a batch to the last reading step, with agents from `gymnasium_agents`.

    A time limit begins a new episode but is not an end of the MDP. With `resume`, only what comes after that snapshot
    is yielded.
    """
    spaces, last = agents.spaces, max(reading_steps)
    box = isinstance(spaces, BoxSpaces)
    agents.begin(None if resume is None else resume.runs)
    replayed = 0 if resume is None else resume.event
    observations = _stack([one.reset(seed) for one, seed in zip(simulators, seeds, strict=True)], spaces)
    tally, readings = Tally(len(simulators), half_life), set(reading_steps)
    history = np.zeros((last, len(simulators)), np.min_scalar_type(spaces.actions - 1))
    if resume is not None:
        history[:replayed] = resume.host["actions"]
    for step in range(1, last + 1):
        new = step > replayed
        if new and step in agents.plans:
            yield agents.plan(step)
        if new:
            history[step - 1] = agents.act(step, observations)
        actions = history[step - 1].astype(np.int32)
        results = [one.step(int(action)) for one, action in zip(simulators, actions, strict=True)]
        following = _stack([result[0] for result in results], spaces)
        rewards, ended, cut = (np.array([result[part] for result in results]) for part in (1, 2, 3))
        seen: Any = (observations, actions, rewards.astype(default_precision()), following, ended)
        transition = Transition(*seen)
        # A copy: the device may still be reading the successors when new starts are written below.
        observations = following.copy()
        for episode in tally.add(step, rewards, ended, ended | cut):
            if new:
                yield episode
            observations[episode.lane] = simulators[episode.lane].reset(None)
        agents.note(transition)
        if resume is not None and step == replayed:
            if not np.array_equal(observations, resume.host["observations"]):
                raise ReplayError(f"after {step} steps the environment is not where it was")
            agents.restore(resume.host)
        if not new:
            continue
        agents.learn(step + 1, transition, observations)
        if step in readings:
            yield from tally.read(step, box)
            yield from agents.report(step)
        if step in readings or step + 1 in agents.plans:
            runs, host = agents.saved()
            yield Snapshot(step, runs, {"actions": history[:step], "observations": observations.copy(), **host})
    yield tally.runs(agents.states(), observations, box)


def _stack(observations: list[Any], spaces: Spaces | BoxSpaces) -> np.ndarray:
    return np.stack(observations) if isinstance(spaces, BoxSpaces) else np.array(observations, dtype=np.int32)


class Tally:
    """Rewards and episodes of every lane so far, added up in host memory."""

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

    def read(self, step: int, survival: bool) -> Generator[Any]:
        """The events of a reading, with those about episodes where asked for."""
        weight = 1 - self.decay**step
        yield Reading(step, self.total, self.recent / weight)
        if survival:
            yield Survival(step, self.episodes, self.falls, self.length, self.smoothed / weight)

    def runs(self, states: Any, observations: np.ndarray, survival: bool) -> Run | BoxRun:
        """The runs as they ended."""
        if survival:
            parts = (observations, self.age, self.last, self.recent, self.smoothed)
            return BoxRun(states, *map(jnp.asarray, parts))
        return Run(states, *map(jnp.asarray, (observations, self.age, self.recent)))
