"""The same loop around real Gymnasium environments, which are stepped in Python while the agents stay compiled.

It yields the events of the compiled loop, and an `Episode` whenever one is over. An environment's inner state cannot be
saved, so a snapshot holds every action: to go on from it, fresh environments are led through the same actions.
"""

import functools
import zlib
from collections.abc import Callable, Generator
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bellief.experiments import devices
from bellief.experiments.devices import Places
from bellief.experiments.drive import Plan, Reading, Snapshot
from bellief.experiments.segments import ACT_STREAM, INIT_STREAM, Run, RunKeys, plan_states
from bellief.types import Spaces, Transition, default_precision


class Episode(NamedTuple):
    """One finished episode: in which lane, after which step, how long, what it paid, and whether the MDP ended it."""

    lane: int
    step: int
    length: int
    reward: float
    terminated: bool


class Simulator(NamedTuple):
    """A Gymnasium environment with its observations and actions counted."""

    reset: Callable[[int | None], int]
    step: Callable[[int], tuple[int, float, bool, bool]]
    close: Callable[[], None]


class ReplayError(RuntimeError):
    """An environment did not repeat itself: same seed, same actions, other observations."""


def environment_seed(seed: int, environment: str, run: int) -> int:
    """The seed that a run's environment is reset with, the same for every agent."""
    return int(np.random.SeedSequence([seed, zlib.crc32(environment.encode()), run]).generate_state(1)[0])


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"))
def begin(keys: RunKeys, *, agent, config, spaces):
    """The agents of all lanes as they begin."""
    return jax.vmap(lambda key: agent.init(jax.random.fold_in(key.agent, INIT_STREAM), config, spaces))(keys)


@functools.partial(jax.jit, static_argnames=("agent", "config"))
def act(keys: RunKeys, step, states, observations, *, agent, config):
    """An action for every lane."""

    def one_run(key, state, observation):
        return agent.act(
            jax.random.fold_in(jax.random.fold_in(key.agent, ACT_STREAM), step), config, state, observation
        )

    return jax.vmap(one_run)(keys, states, observations)


@functools.partial(jax.jit, static_argnames=("agent", "config"), donate_argnames=("states",))
def update(states, transitions: Transition, *, agent, config):
    """Every lane learns from its transition."""
    return jax.vmap(lambda state, transition: agent.update(config, state, transition))(states, transitions)


def run_chunk(
    keys: RunKeys,
    simulators: list[Simulator],
    seeds: list[int],
    agent: ModuleType,
    config: Any,
    spaces: Spaces,
    plan_steps: list[int],
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
    places: Places | None = None,
) -> Generator[Reading | Plan | Snapshot | Run | Episode]:
    """Drive one chunk of runs to the last reading step; a cut by a time limit begins a new episode but ends nothing.

    With `resume`, only what comes after that snapshot is yielded.
    """
    width, decay = len(simulators), 0.5 ** (1 / half_life)
    places = places or devices.find_places("auto", width)
    plan_keys, keys = devices.put(keys, places.plan), devices.put(keys, places.step)
    states = begin(keys, agent=agent, config=config, spaces=spaces) if resume is None else resume.runs
    states = devices.put(states, places.step)
    replayed = 0 if resume is None else resume.event
    observations = np.array([one.reset(seed) for one, seed in zip(simulators, seeds, strict=True)], dtype=np.int32)
    total, recent = np.zeros(width), np.zeros(width)
    length, earned = np.zeros(width, dtype=int), np.zeros(width)
    successors = _Successors(spaces)
    plans, readings = set(plan_steps), set(reading_steps)
    history = np.zeros((max(readings), width), np.min_scalar_type(spaces.actions - 1))
    if resume is not None:
        history[:replayed] = resume.host["actions"]
    for step in range(1, max(readings) + 1):
        if step in plans and step > replayed:
            known = spaces._replace(support=successors.bound())
            static = {"agent": agent, "config": config, "spaces": known}
            states, info = plan_states(plan_keys, step, states, places, **static)
            yield Plan(step, info)
        if step > replayed:
            history[step - 1] = act(keys, np.int32(step - 1), states, observations, agent=agent, config=config)
        actions = history[step - 1].astype(np.int32)
        results = [one.step(int(action)) for one, action in zip(simulators, actions, strict=True)]
        following = np.array([result[0] for result in results], dtype=np.int32)
        rewards = np.array([result[1] for result in results])
        ended = np.array([result[2] for result in results])
        over = ended | np.array([result[3] for result in results])
        seen: tuple[Any, ...] = (
            observations,
            actions,
            rewards.astype(default_precision()),
            following,
            ended,
        )
        transition = Transition(*seen)
        if step > replayed:
            states = update(states, transition, agent=agent, config=config)
        successors.add(transition)
        total, recent = total + rewards, decay * recent + (1 - decay) * rewards
        length, earned = length + 1, earned + rewards
        # A copy: the device may still be reading the successors when fresh starts are written below.
        observations = following.copy()
        for lane in np.flatnonzero(over):
            if step > replayed:
                yield Episode(int(lane), step, int(length[lane]), float(earned[lane]), bool(ended[lane]))
            length[lane], earned[lane] = 0, 0.0
            observations[lane] = simulators[lane].reset(None)
        if resume is not None and step == replayed and not np.array_equal(observations, resume.host["observations"]):
            raise ReplayError(f"after {step} steps the environment is not where it was")
        if step in readings and step > replayed:
            yield Reading(step, total, recent / (1 - decay**step))
        if (step in readings or step + 1 in plans) and step > replayed:
            yield Snapshot(step, states, {"actions": history[:step], "observations": observations.copy()})
    yield Run(states, jnp.asarray(observations), jnp.asarray(length), jnp.asarray(recent))


def run_shapes(keys: RunKeys, agent: ModuleType, config: Any, spaces: Spaces) -> Any:
    """Shapes and dtypes of a chunk's agents, to check saved ones against; nothing is computed."""
    return jax.eval_shape(functools.partial(begin, agent=agent, config=config, spaces=spaces), keys)


class _Successors:
    """Bounds the number of different outcomes that any pair has shown, for the sampler's `support`.

    The bound is a power of two, so that planning is compiled again only a few times while it grows.
    """

    def __init__(self, spaces: Spaces):
        self.outcomes = spaces.states + int(spaces.terminates)
        self.seen: set[tuple[int, int, int, int]] = set()
        self.number: dict[tuple[int, int, int], int] = {}
        self.largest = 1

    def add(self, transitions: Transition) -> None:
        """Note one transition of every lane."""
        outcome = np.where(transitions.terminated, self.outcomes - 1, transitions.next_state)
        rows = np.stack([transitions.state, transitions.action, outcome], axis=1).tolist()
        for lane, (state, action, end) in enumerate(rows):
            if (lane, state, action, end) not in self.seen:
                self.seen.add((lane, state, action, end))
                pair = (lane, state, action)
                self.number[pair] = self.number.get(pair, 0) + 1
                self.largest = max(self.largest, self.number[pair])

    def bound(self) -> int | None:
        """A power of two that no pair exceeds, or nothing if that is no help."""
        power = max(2, 1 << (self.largest - 1).bit_length())
        return power if power < self.outcomes else None
