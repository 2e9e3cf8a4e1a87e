"""The loop around real Gymnasium environments with Box observations: stepped in Python, the agents compiled."""

import functools
from collections.abc import Callable, Generator
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bellief.experiments.box_loop import BoxRun, Survival
from bellief.experiments.loop import ACT_STREAM, INIT_STREAM, PLAN_STREAM, Plan, Reading, RunKeys
from bellief.experiments.stepped import Episode
from bellief.types import BoxSpaces, Transition


class BoxSimulator(NamedTuple):
    """A Gymnasium environment whose observations are flat vectors and whose actions are counted."""

    reset: Callable[[int | None], np.ndarray]
    step: Callable[[int], tuple[np.ndarray, float, bool, bool]]
    close: Callable[[], None]


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"))
def _begin(keys: RunKeys, *, agent, config, spaces):
    return jax.vmap(lambda key: agent.init(jax.random.fold_in(key.agent, INIT_STREAM), config, spaces))(keys)


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"))
def _plan(keys: RunKeys, step, states, *, agent, config, spaces):
    def one_run(both):
        key, state = both
        return agent.plan(jax.random.fold_in(jax.random.fold_in(key.agent, PLAN_STREAM), step), config, spaces, state)

    return jax.lax.map(one_run, (keys, states))


@functools.partial(jax.jit, static_argnames=("agent", "config"), donate_argnames=("states",))
def _update(states, transitions: Transition, *, agent, config):
    return jax.vmap(lambda state, transition: agent.update(config, state, transition))(states, transitions)


@functools.partial(jax.jit, static_argnames=("agent", "config"))
def _act(keys: RunKeys, step, states, observations, *, agent, config):
    def one_run(key, state, observation):
        act_key = jax.random.fold_in(jax.random.fold_in(key.agent, ACT_STREAM), step)
        return agent.act(act_key, config, state, observation)

    return jax.vmap(one_run)(keys, states, observations)


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
) -> Generator[Reading | Survival | Plan | Episode | BoxRun]:
    """Drive one chunk of runs to the last reading step; a cut by a time limit begins a new episode but ends nothing."""
    width, decay = len(simulators), 0.5 ** (1 / half_life)
    states = _begin(keys, agent=agent, config=config, spaces=spaces)
    observations = np.stack([one.reset(seed) for one, seed in zip(simulators, seeds, strict=True)])
    total, recent, earned, lengths, smoothed = (np.zeros(width) for _ in range(5))
    episodes, falls, age, last = (np.zeros(width, dtype=np.int64) for _ in range(4))
    plans, readings = set(plan_steps), set(reading_steps)
    for step in range(1, max(readings) + 1):
        if step in plans:
            states, info = _plan(keys, np.int32(step), states, agent=agent, config=config, spaces=spaces)
            yield Plan(step, info)
        actions = np.asarray(_act(keys, np.int32(step - 1), states, observations, agent=agent, config=config))
        results = [one.step(int(action)) for one, action in zip(simulators, actions, strict=True)]
        following = np.stack([result[0] for result in results])
        rewards = np.array([result[1] for result in results])
        ended = np.array([result[2] for result in results])
        over = ended | np.array([result[3] for result in results])
        seen: Any = (observations, actions.astype(np.int32), rewards.astype(np.float32), following, ended)
        states = _update(states, jax.tree.map(jnp.asarray, Transition(*seen)), agent=agent, config=config)
        total, recent = total + rewards, decay * recent + (1 - decay) * rewards
        age, earned = age + 1, earned + rewards
        episodes, falls, lengths = episodes + over, falls + ended, lengths + over * age
        last = np.where(over, age, last)
        smoothed = decay * smoothed + (1 - decay) * np.where(last > 0, last, age)
        # A copy: the device may still be reading the successors when fresh starts are written below.
        observations = following.copy()
        for lane in np.flatnonzero(over):
            yield Episode(int(lane), step, int(age[lane]), float(earned[lane]), bool(ended[lane]))
            age[lane], earned[lane] = 0, 0.0
            observations[lane] = simulators[lane].reset(None)
        if step in readings:
            weight = 1 - decay**step
            yield Reading(step, total, recent / weight)
            yield Survival(step, episodes, falls, lengths, smoothed / weight)
    yield BoxRun(states, *(jnp.asarray(part) for part in (observations, age, last, recent, smoothed)))
