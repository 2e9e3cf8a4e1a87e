"""The compiled loop for agents that plan when something has happened (`agents.agenda`), not at steps known beforehand.

Runs need not plan at the same steps, so each goes its own way between two readings, one after the other in one
compiled program: step until a plan is due, plan, step on. A run therefore does not depend on those beside it, not even
in its rounding. Plans are made where runs step.
"""

import functools
from collections.abc import Generator
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from bellief.agents import agenda
from bellief.draws import fold_in
from bellief.draws import uniform as draw_uniform
from bellief.experiments import devices, segments
from bellief.experiments.drive import Plan, Reading, Snapshot, smoothing_rate, unbiased
from bellief.experiments.segments import ACT_STREAM, BLOCK, PLAN_STREAM, Run, RunKeys, exact
from bellief.experiments.tables import Tables, step_environment
from bellief.types import Spaces


class Asked(NamedTuple):
    """What the loop keeps in place of an agent's state: the state and the agenda beside it."""

    state: Any
    agenda: agenda.Agenda


class _Walk(NamedTuple):
    """A run on its way: the next step, what was earned (a sum and what rounding added to it), the random numbers of the
    block it is in, the block's number, and the last plan's report.
    """

    run: Run
    step: Array
    earned: Array
    excess: Array
    uniforms: Array
    block: Array
    info: Any


def asks(config: Any) -> bool:
    """Whether an agent with these settings plans when something has happened."""
    return agenda.schedule_of(config) != agenda.TRIANGULAR


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"))
def begin(keys: RunKeys, tables: Tables, *, agent: ModuleType, config, spaces: Spaces) -> Run:
    """The runs before their first step."""
    runs = segments.begin(keys, tables, agent=agent, config=config, spaces=spaces)
    width = runs.age.shape[0]
    first = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (width, *leaf.shape)), agenda.init(spaces))
    return runs._replace(agent=Asked(runs.agent, first))


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"), donate_argnames=("runs",))
def advance(keys: RunKeys, tables: Tables, first, last, rate, runs: Run, *, agent, config, spaces: Spaces):
    """Steps first, ..., last - 1 of every run; returns the runs, what each earned, and its last plan's report."""

    def one_run(key, run):
        return _one_run(key, tables, first, last, rate, run, agent, config, spaces)

    return devices.one_by_one(one_run)(keys, runs)


def _one_run(key: RunKeys, tables: Tables, first, last, rate, run: Run, agent, config, spaces: Spaces):
    schedule = agenda.schedule_of(config)
    act_key, plan_key = fold_in(key.agent, ACT_STREAM), fold_in(key.agent, PLAN_STREAM)
    dtype = tables.start.dtype
    stochastic = tables.cumulative.shape[-1] > 1 or tables.start.shape[0] > 1

    def draw(block):
        if not stochastic:
            return jnp.zeros((BLOCK, 2), dtype)
        return draw_uniform(fold_in(key.environment, block), (BLOCK, 2), dtype)

    def is_due(walk: _Walk) -> Bool[Array, ""]:
        return agenda.due(schedule, walk.run.agent.agenda, walk.run.observation)

    def plan(walk: _Walk) -> _Walk:
        own = walk.run.agent
        state, info = agent.plan(fold_in(plan_key, walk.step + 1), config, spaces, own.state)
        asked = Asked(state, agenda.planned(own.agenda, walk.run.observation))
        return walk._replace(run=walk.run._replace(agent=asked), info=info)

    def step(walk: _Walk) -> _Walk:
        run, now = walk.run, walk.step
        block = now // BLOCK
        uniforms = jax.lax.cond(block != walk.block, draw, lambda _: walk.uniforms, block)
        action = agent.act(fold_in(act_key, now), config, run.agent.state, run.observation)
        transition, observation, age = step_environment(tables, run.observation, run.age, action, uniforms[now % BLOCK])
        asked = Asked(agent.update(config, run.agent.state, transition), agenda.observe(run.agent.agenda, transition))
        recent = run.recent + rate * (transition.reward - run.recent)
        gain = transition.reward - walk.excess
        earned = walk.earned + gain
        excess = (earned - walk.earned) - gain
        return _Walk(Run(asked, observation, age, recent), now + 1, earned, excess, uniforms, block, walk.info)

    def until_due(walk: _Walk) -> _Walk:
        # At least one step, so that a plan after which another is due cannot stop the run.
        return jax.lax.while_loop(lambda own: (own.step < last) & ~is_due(own), step, step(walk))

    def stretch(walk: _Walk) -> _Walk:
        return until_due(jax.lax.cond(is_due(walk), plan, lambda own: own, walk))

    nothing = jnp.zeros((), dtype)
    shape = jax.eval_shape(lambda state: agent.plan(plan_key, config, spaces, state)[1], run.agent.state)
    silent = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape)
    block = jnp.asarray(first // BLOCK, jnp.int32)
    start = _Walk(run, jnp.asarray(first, jnp.int32), nothing, nothing, draw(block), block, silent)
    end = jax.lax.while_loop(lambda walk: walk.step < last, stretch, start)
    return end.run, (end.earned, end.excess), end.info


def run_chunk(
    keys: RunKeys,
    tables: Tables,
    agent: ModuleType,
    config: Any,
    spaces: Spaces,
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
) -> Generator[Any]:
    """The events of `loop.run_chunk`. A `Plan` comes at every reading, with what each run's last plan before it
    reported.
    """
    place = devices.find_places("cpu", 1).step
    tables, keys = devices.put(tables, place, split=False), devices.put(keys, place)
    rate = smoothing_rate(half_life)
    static = {"agent": agent, "config": config, "spaces": spaces}
    total, done = np.zeros(len(keys.agent)), 0
    if resume is None:
        runs = begin(keys, tables, **static)
    else:
        runs, total, done = devices.put(resume.runs, place), resume.host["total"], resume.event
    for event in sorted(set(reading_steps)):
        if event <= done:
            continue
        runs, earned, info = advance(keys, tables, np.int32(done), np.int32(event), rate, runs, **static)
        total, done = total + exact(*earned), event
        yield Reading(event, total, unbiased(runs.recent, rate, event))
        yield Plan(event, jax.device_get(info))
        yield Snapshot(event, runs, {"total": total})
    yield runs._replace(agent=runs.agent.state)


def run_shapes(keys: RunKeys, tables: Tables, agent: ModuleType, config: Any, spaces: Spaces) -> Run:
    """Shapes and dtypes of a chunk's runs, to check saved ones against; nothing is computed."""
    return jax.eval_shape(functools.partial(begin, agent=agent, config=config, spaces=spaces), keys, tables)
