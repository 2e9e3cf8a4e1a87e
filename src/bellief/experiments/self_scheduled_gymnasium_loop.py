"""Gymnasium environments with agents that decide when to plan (`agents.agenda`).

Lanes plan at different steps, so each has a state of its own and is called on its own: one compiled call learns from a
step, says whether a plan is due, and gives the next action if not. Events, seeds and replays are those of
`gymnasium_loop`.

How many outcomes a pair can have is not known, and room for all states would make a belief of 500 states a hundred
times larger than what is in it. So a lane's agent gets a bound on the outcomes of a pair (`Spaces.support`), and its
state grows when a pair shows more. Snapshots have room for all.
"""

import functools
from collections.abc import Generator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bellief.beliefs.learned import SIZES
from bellief.experiments import compiled_steps
from bellief.experiments import self_scheduled_loop as loop
from bellief.experiments.compiled_steps import RunKeys
from bellief.experiments.event_loop import Plan, Snapshot
from bellief.experiments.gymnasium_loop import ReplayError, Simulator, Tally
from bellief.experiments.self_scheduled_loop import SelfScheduled
from bellief.fast import placement
from bellief.types import Spaces, Transition, default_precision

begin = jax.jit(compiled_steps.traced(loop.init_agent), static_argnames="program")


@functools.partial(jax.jit, static_argnames="program", donate_argnames="own")
@compiled_steps.traced
def plan(key: RunKeys, step, own: SelfScheduled, observation, program) -> Any:
    """Plan before the step of that number, counted from 1, and choose its action."""
    own = loop.plan_agent(key, step, own, observation, program)
    return own, loop.act(key, step, own, observation, program)


@functools.partial(jax.jit, static_argnames="program", donate_argnames="own")
@compiled_steps.traced
def learn(key: RunKeys, step, own: SelfScheduled, transition: Transition, observation, program) -> Any:
    """Learn from a transition; whether to plan before the next step, of number `step`, and its action if not."""
    own = loop.learn(own, transition, program)
    return own, loop.is_due(own, observation, program), loop.act(key, step, own, observation, program)


class _Lane:
    """One run's agent, whether it is to plan before its next action, and that action if not."""

    def __init__(self, key: RunKeys, program: compiled_steps.Program, own: SelfScheduled | None):
        self.key, self.full = key, program
        self.due, self.action = True, 0
        self.outcomes: dict[tuple[int, int], set[int]] = {}
        self.most = 1
        self.program = self._bounded()
        self.own: Any = begin(key, program=self.program) if own is None else own

    def note(self, state: int, action: int, outcome: int) -> None:
        """Remember an outcome of a pair (-1 for an end); the state is not changed yet."""
        seen = self.outcomes.setdefault((state, action), set())
        seen.add(outcome)
        self.most = max(self.most, len(seen))

    def _bounded(self) -> compiled_steps.Program:
        """The program for as many outcomes as pairs have shown."""
        spaces: Any = self.full.spaces
        possible = spaces.states + int(spaces.terminates)
        size = next((size for size in SIZES if size >= self.most), possible)
        return self.full._replace(spaces=spaces._replace(support=size)) if size < possible else self.full

    def fit(self) -> None:
        """Make the state as large as what has been noted needs."""
        program = self._bounded()
        if program != self.program:
            self.program = program
            self.own = _resize(self.own, jax.eval_shape(functools.partial(begin, program=program), self.key))

    def padded(self) -> SelfScheduled:
        """The state with room for all outcomes."""
        return _resize(self.own, jax.eval_shape(functools.partial(begin, program=self.full), self.key))

    def choose(self, step: int, observation: int) -> int:
        """The action of the step of that number."""
        if self.due:
            self.own, action = plan(self.key, np.int32(step), self.own, np.int32(observation), program=self.program)
            self.action = int(action)
        return self.action

    def learn(self, step: int, transition: Transition, observation: int) -> None:
        """Account for the step before that number."""
        self.fit()
        result = learn(self.key, np.int32(step), self.own, transition, np.int32(observation), program=self.program)
        self.own, due, action = result
        self.due, self.action = bool(due), int(action)


def run_batch(
    keys: RunKeys,
    simulators: list[Simulator],
    seeds: list[int],
    agent: Any,
    config: Any,
    spaces: Spaces,
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
) -> Generator[Any]:
    """Run a batch to the last reading step; the events of `gymnasium_loop.run_batch`, with a `Plan` at every reading
    that has the report of each lane's last plan.
    """
    width, last = len(simulators), max(reading_steps)
    lanes = _make_lanes(keys, width, agent, config, spaces, resume)
    observations = np.array([one.reset(seed) for one, seed in zip(simulators, seeds, strict=True)], dtype=np.int32)
    tally, replayed = Tally(width, half_life), 0 if resume is None else resume.event
    history = np.zeros((last, width), np.min_scalar_type(spaces.actions - 1))
    if resume is not None:
        history[:replayed] = resume.host["actions"]
    for step in range(1, last + 1):
        new = step > replayed
        if new:
            history[step - 1] = [lane.choose(step, observations[own]) for own, lane in enumerate(lanes)]
        actions = history[step - 1].astype(np.int32)
        results = [one.step(int(action)) for one, action in zip(simulators, actions, strict=True)]
        following = np.array([result[0] for result in results], dtype=np.int32)
        rewards, ended, cut = (np.array([result[part] for result in results]) for part in (1, 2, 3))
        before, observations = observations, following.copy()
        for episode in tally.add(step, rewards, ended, ended | cut):
            if new:
                yield episode
            observations[episode.lane] = simulators[episode.lane].reset(None)
        for own, lane in enumerate(lanes):
            lane.note(int(before[own]), int(actions[own]), -1 if ended[own] else int(following[own]))
        if resume is not None and step == replayed:
            _check_replay(lanes, observations, resume)
        if not new:
            continue
        seen: Any = (before, actions, rewards.astype(default_precision()), following, ended)
        for own, lane in enumerate(lanes):
            lane.learn(step + 1, Transition(*(column[own] for column in seen)), observations[own])
        if step in reading_steps:
            yield from tally.read(step, survival=False)
            yield Plan(step, jax.device_get(_stack([lane.own.info for lane in lanes])))
            yield _snapshot(step, lanes, history, observations)
    yield tally.runs(_stack([lane.padded().state for lane in lanes]), observations, survival=False)


def _make_lanes(keys: RunKeys, width: int, agent, config, spaces: Spaces, resume: Snapshot | None) -> list[_Lane]:
    mesh = placement.find_places("cpu", 1).step
    keys = placement.put(keys, mesh)
    program = compiled_steps.program(agent, config, spaces, mesh)
    own_keys = [jax.tree.map(lambda leaf, one=lane: leaf[one], keys) for lane in range(width)]
    if resume is None:
        return [_Lane(key, program, None) for key in own_keys]
    runs = placement.put(resume.runs, mesh)
    states = [jax.tree.map(lambda leaf, one=lane: leaf[one], runs) for lane in range(width)]
    return [_Lane(key, program, own) for key, own in zip(own_keys, states, strict=True)]


def _snapshot(step: int, lanes: list[_Lane], history: np.ndarray, observations: np.ndarray) -> Snapshot:
    host = {
        "actions": history[:step],
        "observations": observations.copy(),
        "due": np.array([lane.due for lane in lanes]),
        "next_actions": np.array([lane.action for lane in lanes], dtype=np.int32),
    }
    return Snapshot(step, _stack([lane.padded() for lane in lanes]), host)


def _check_replay(lanes: list[_Lane], observations: np.ndarray, resume: Snapshot) -> None:
    if not np.array_equal(observations, resume.host["observations"]):
        raise ReplayError(f"after {resume.event} steps the environment is not where it was")
    for lane, due, action in zip(lanes, resume.host["due"], resume.host["next_actions"], strict=True):
        lane.due, lane.action = bool(due), int(action)
        lane.program = lane.full  # what was saved has room for all
        lane.fit()


def _resize(tree: Any, wanted: Any) -> Any:
    """The arrays cut or filled up with zeros to the wanted shapes."""

    def resized(leaf: Any, target: Any) -> Any:
        if leaf.shape == target.shape:
            return leaf
        kept = leaf[tuple(slice(0, size) for size in target.shape)]
        return jnp.pad(kept, [(0, size - have) for size, have in zip(target.shape, kept.shape, strict=True)])

    return jax.tree.map(resized, tree, wanted)


def _stack(trees: list[Any]) -> Any:
    """The lanes along a first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def run_shapes(keys: RunKeys, agent: Any, config: Any, spaces: Spaces) -> Any:
    """Shapes and dtypes of a batch's agents, to check saved ones against; nothing is computed."""
    program = compiled_steps.program(agent, config, spaces, placement.find_places("cpu", 1).step)
    return jax.eval_shape(jax.vmap(lambda key: begin(key, program=program)), keys)
