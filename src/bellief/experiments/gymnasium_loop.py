"""The loop around real Gymnasium environments, which are stepped in Python while the agents stay compiled.

It yields the events of the compiled loop, and an `Episode` whenever one is over. An environment's inner state cannot be
saved, so a snapshot holds every action: to continue from it, new environments are led through the same actions.
"""

import functools
import zlib
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bellief.experiments import compiled_steps
from bellief.experiments.compiled_environments import BoxRun, Run
from bellief.experiments.compiled_steps import ACT_STREAM, RunKeys
from bellief.experiments.event_loop import Plan, Reading, Snapshot, Survival
from bellief.fast import placement
from bellief.fast.placement import Places
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


class ReplayError(RuntimeError):
    """An environment did not repeat itself: same seed, same actions, other observations."""


def environment_seed(seed: int, environment: str, run: int) -> int:
    """The seed that a run's environment is reset with, the same for every agent."""
    return int(np.random.SeedSequence([seed, zlib.crc32(environment.encode()), run]).generate_state(1)[0])


@functools.partial(jax.jit, static_argnames="program")
@compiled_steps.traced
def act(keys: RunKeys, step, states, observations, program):
    """An action for every lane."""

    def one_run(key, state, observation):
        act_key = jax.random.fold_in(jax.random.fold_in(key.agent, ACT_STREAM), step)
        return program.agent.act(act_key, program.config, state, observation)

    return jax.vmap(one_run)(keys, states, observations)


@functools.partial(jax.jit, static_argnames="program", donate_argnames="states")
@compiled_steps.traced
def update(states, transitions: Transition, program):
    """Every lane learns from its transition."""
    return jax.vmap(lambda state, one: program.agent.update(program.config, state, one))(states, transitions)


def run_batch(
    keys: RunKeys,
    simulators: list[Simulator],
    seeds: list[int],
    agent: Any,
    config: Any,
    spaces: Spaces | BoxSpaces,
    plan_steps: list[int],
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
    places: Places | None = None,
) -> Generator[Any]:
    """Run a batch to the last reading step; a time limit begins a new episode but is not an end of the MDP.

    With `resume`, only what comes after that snapshot is yielded.
    """
    places = places or placement.find_places("auto", len(simulators))
    plan_keys, keys = placement.put(keys, places.plan), placement.put(keys, places.step)
    step_program = compiled_steps.program(agent, config, spaces, places.step)
    states = compiled_steps.init_agents(keys, program=step_program) if resume is None else resume.runs
    states = placement.put(states, places.step)
    replayed = 0 if resume is None else resume.event
    observations = _stack([one.reset(seed) for one, seed in zip(simulators, seeds, strict=True)], spaces)
    tally, successors = Tally(len(simulators), half_life), _Successors(spaces)
    plans, readings = set(plan_steps), set(reading_steps)
    history = np.zeros((max(readings), len(simulators)), np.min_scalar_type(spaces.actions - 1))
    if resume is not None:
        history[:replayed] = resume.host["actions"]
    for step in range(1, max(readings) + 1):
        new = step > replayed
        if new and step in plans:
            program = compiled_steps.program(agent, config, successors.known_spaces(), places.plan)
            states, info = compiled_steps.plan_states(plan_keys, step, states, places, program)
            yield Plan(step, info)
        if new:
            history[step - 1] = act(keys, np.int32(step - 1), states, observations, program=step_program)
        actions = history[step - 1].astype(np.int32)
        results = [one.step(int(action)) for one, action in zip(simulators, actions, strict=True)]
        following = _stack([result[0] for result in results], spaces)
        rewards, ended, cut = (np.array([result[part] for result in results]) for part in (1, 2, 3))
        seen: Any = (observations, actions, rewards.astype(default_precision()), following, ended)
        transition = Transition(*seen)
        if new:
            states = update(states, transition, program=step_program)
        successors.add(transition)
        # A copy: the device may still be reading the successors when new starts are written below.
        observations = following.copy()
        for episode in tally.add(step, rewards, ended, ended | cut):
            if new:
                yield episode
            observations[episode.lane] = simulators[episode.lane].reset(None)
        if resume is not None and step == replayed and not np.array_equal(observations, resume.host["observations"]):
            raise ReplayError(f"after {step} steps the environment is not where it was")
        if new and step in readings:
            yield from tally.read(step, isinstance(spaces, BoxSpaces))
        if new and (step in readings or step + 1 in plans):
            yield Snapshot(step, states, {"actions": history[:step], "observations": observations.copy()})
    yield tally.runs(states, observations, isinstance(spaces, BoxSpaces))


def _stack(observations: list[Any], spaces: Spaces | BoxSpaces) -> np.ndarray:
    return np.stack(observations) if isinstance(spaces, BoxSpaces) else np.array(observations, dtype=np.int32)


def run_shapes(keys: RunKeys, agent: Any, config: Any, spaces: Any) -> Any:
    """Shapes and dtypes of a batch's agents, to check saved ones against; nothing is computed."""
    program = compiled_steps.program(agent, config, spaces)
    return jax.eval_shape(lambda keys: compiled_steps.init_agents(keys, program=program), keys)


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


class _Successors:
    """Bounds the number of different outcomes that any pair has shown, for the sampler's `support`.

    The bound is a power of two, so that planning is compiled again only a few times while it grows.
    """

    def __init__(self, spaces: Spaces | BoxSpaces):
        self.spaces = spaces
        self.outcomes = 0 if isinstance(spaces, BoxSpaces) else spaces.states + int(spaces.terminates)
        self.seen: set[tuple[int, int, int, int]] = set()
        self.number: dict[tuple[int, int, int], int] = {}
        self.largest = 1

    def add(self, transitions: Transition) -> None:
        """Note one transition of every lane."""
        if isinstance(self.spaces, BoxSpaces):
            return
        outcome = np.where(transitions.terminated, self.outcomes - 1, transitions.next_state)
        rows = np.stack([transitions.state, transitions.action, outcome], axis=1).tolist()
        for lane, (state, action, end) in enumerate(rows):
            if (lane, state, action, end) not in self.seen:
                self.seen.add((lane, state, action, end))
                pair = (lane, state, action)
                self.number[pair] = self.number.get(pair, 0) + 1
                self.largest = max(self.largest, self.number[pair])

    def bound(self) -> int | None:
        """A power of two that no pair exceeds, or None where that is no help."""
        power = max(2, 1 << (self.largest - 1).bit_length())
        return power if power < self.outcomes else None

    def known_spaces(self) -> Spaces | BoxSpaces:
        """The agent's `Spaces`, with the bound."""
        return self.spaces if isinstance(self.spaces, BoxSpaces) else self.spaces._replace(support=self.bound())
