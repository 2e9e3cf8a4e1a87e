"""The agents of a batch as the Gymnasium loop calls them.

`ScheduledAgents` plan, act and learn together. Agents that decide when to plan (`agents.agenda`) do so at different
steps: of `SelfScheduledAgents` each has a state of its own and is called on its own. One compiled call learns from a
step, says whether a plan is due, and gives the next action if not.

How many outcomes a pair can have is not known, and room for all states would make a belief of 500 states a hundred
times larger than its content. So a self-scheduled agent gets a bound on the outcomes of a pair (`Spaces.support`), and
its state grows when a pair shows more. Snapshots have room for all.
"""

import functools
from collections.abc import Set
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bellief.beliefs.learned import SIZES
from bellief.experiments import compiled_steps, self_scheduled_loop
from bellief.experiments.compiled_steps import ACT_STREAM, RunKeys
from bellief.experiments.event_loop import Plan
from bellief.experiments.self_scheduled_loop import SelfScheduled
from bellief.fast import placement
from bellief.fast.placement import Places
from bellief.types import BoxSpaces, Spaces, Transition


class ReplayError(RuntimeError):
    """An environment did not repeat itself: same seed, same actions, other observations."""


class ScheduledAgents:
    """Agents that plan before the steps in `plans`. Steps are counted from 1."""

    def __init__(self, keys: RunKeys, agent: Any, config: Any, spaces: Any, plan_steps: list[int], places: Places):
        self.spaces, self.places, self.plans = spaces, places, set(plan_steps)
        self.plan_keys, self.keys = placement.put(keys, places.plan), placement.put(keys, places.step)
        self.program = compiled_steps.program(agent, config, spaces, places.step)
        self.successors = _Successors(spaces)
        self.own: Any = None

    def begin(self, saved: Any) -> None:
        """Start without experience, or from a snapshot's `runs`."""
        states = compiled_steps.init_agents(self.keys, program=self.program) if saved is None else saved
        self.own = placement.put(states, self.places.step)

    def plan(self, step: int) -> Plan:
        """Plan before this step."""
        program = compiled_steps.program(*self.program[:2], self.successors.known_spaces(), self.places.plan)
        self.own, info = compiled_steps.plan_states(self.plan_keys, step, self.own, self.places, program)
        return Plan(step, info)

    def act(self, step: int, observations: np.ndarray) -> Any:
        """The actions of this step."""
        return act(self.keys, np.int32(step - 1), self.own, observations, program=self.program)

    def note(self, transition: Transition) -> None:
        """Register which outcomes exist; called in replayed steps too."""
        self.successors.add(transition)

    def learn(self, step: int, transition: Transition, observations: np.ndarray) -> None:
        """Learn from the transition before this step, which begins in `observations`."""
        del step, observations
        self.own = update(self.own, transition, program=self.program)

    def report(self, step: int) -> list[Plan]:
        """What a reading has of the last plans: nothing, they were reported when they were made."""
        del step
        return []

    def saved(self) -> tuple[Any, dict[str, np.ndarray]]:
        """What a snapshot keeps as `runs`, and in host memory."""
        return self.own, {}

    def restore(self, host: dict[str, np.ndarray]) -> None:
        """Continue from a snapshot whose steps have been replayed."""
        del host

    def states(self) -> Any:
        """The states at the end."""
        return self.own

    def shapes(self) -> Any:
        """Shapes and dtypes of a snapshot's `runs`, to check saved ones against; nothing is computed."""
        return jax.eval_shape(lambda keys: compiled_steps.init_agents(keys, program=self.program), self.keys)


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


class SelfScheduledAgents:
    """Agents that decide when to plan, on one CPU device; the methods are those of `ScheduledAgents`."""

    plans: Set[int] = frozenset()

    def __init__(self, keys: RunKeys, agent: Any, config: Any, spaces: Spaces):
        self.spaces, self.mesh = spaces, placement.find_places("cpu", 1).step
        self.keys = placement.put(keys, self.mesh)
        self.program = compiled_steps.program(agent, config, spaces, self.mesh)
        self.lanes: list[_Lane] = []

    def begin(self, saved: Any) -> None:
        """Start without experience, or from a snapshot's `runs`."""
        runs = None if saved is None else placement.put(saved, self.mesh)
        self.lanes = [
            _Lane(_lane(self.keys, lane), self.program, None if runs is None else _lane(runs, lane))
            for lane in range(len(self.keys.agent))
        ]

    def act(self, step: int, observations: np.ndarray) -> Any:
        """The actions of this step."""
        return [lane.choose(step, observations[own]) for own, lane in enumerate(self.lanes)]

    def note(self, transition: Transition) -> None:
        """Register which outcomes exist; called in replayed steps too."""
        state, action, _, following, ended = transition
        for own, lane in enumerate(self.lanes):
            lane.note(int(state[own]), int(action[own]), -1 if ended[own] else int(following[own]))

    def learn(self, step: int, transition: Transition, observations: np.ndarray) -> None:
        """Learn from the transition before this step, which begins in `observations`."""
        for own, lane in enumerate(self.lanes):
            lane.learn(step, Transition(*(column[own] for column in transition)), observations[own])

    def report(self, step: int) -> list[Plan]:
        """The report of each lane's last plan."""
        return [Plan(step, jax.device_get(_stack([lane.own.info for lane in self.lanes])))]

    def saved(self) -> tuple[Any, dict[str, np.ndarray]]:
        """States with room for all outcomes; which plans are due, and the next actions of the other lanes."""
        due = np.array([lane.due for lane in self.lanes])
        actions = np.array([lane.action for lane in self.lanes], dtype=np.int32)
        return _stack([lane.padded() for lane in self.lanes]), {"due": due, "next_actions": actions}

    def restore(self, host: dict[str, np.ndarray]) -> None:
        """Continue from a snapshot whose steps have been replayed."""
        for lane, due, action in zip(self.lanes, host["due"], host["next_actions"], strict=True):
            lane.due, lane.action = bool(due), int(action)
            lane.program = lane.full  # what was saved has room for all
            lane.fit()

    def states(self) -> Any:
        """The states at the end."""
        return _stack([lane.padded().state for lane in self.lanes])

    def shapes(self) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        return jax.eval_shape(jax.vmap(lambda key: begin(key, program=self.program)), self.keys)


begin = jax.jit(compiled_steps.traced(self_scheduled_loop.init_agent), static_argnames="program")


@functools.partial(jax.jit, static_argnames="program", donate_argnames="own")
@compiled_steps.traced
def plan(key: RunKeys, step, own: SelfScheduled, observation, program) -> Any:
    """Plan before the step of that number, counted from 1, and choose its action."""
    own = self_scheduled_loop.plan_agent(key, step, own, observation, program)
    return own, self_scheduled_loop.act(key, step, own, observation, program)


@functools.partial(jax.jit, static_argnames="program", donate_argnames="own")
@compiled_steps.traced
def learn(key: RunKeys, step, own: SelfScheduled, transition: Transition, observation, program) -> Any:
    """Learn from a transition; whether to plan before the next step, of number `step`, and its action if not."""
    own = self_scheduled_loop.learn(own, transition, program)
    due = self_scheduled_loop.is_due(own, observation, program)
    return own, due, self_scheduled_loop.act(key, step, own, observation, program)


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


def _lane(tree: Any, lane: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[lane], tree)


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
