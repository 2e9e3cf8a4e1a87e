"""The compiled loop for agents that decide when to plan (`agents.agenda`), instead of at steps known beforehand.

Runs plan at different steps, so a batch is computed one run after the other in one compiled program: step until a plan
is due, plan, step on. A run therefore does not depend on the others in its batch, not even in its rounding. Plans are
made where runs step, on the CPU.
"""

import functools
from collections.abc import Generator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from bellief.agents import agenda
from bellief.experiments import compiled_steps
from bellief.experiments.compiled_environments import Run, Tables
from bellief.experiments.compiled_steps import ACT_STREAM, BLOCK, FIRST_STATE, INIT_STREAM, PLAN_STREAM, RunKeys
from bellief.experiments.event_loop import Plan, Snapshot, smoothing_rate
from bellief.fast import placement
from bellief.types import Transition

# The most steps of one call, after which there is a snapshot.
MOST_STEPS = 4096


class SelfScheduled(NamedTuple):
    """What the loop keeps in place of an agent's state: the state, its agenda, and the last plan's report."""

    state: Any
    agenda: agenda.Agenda
    info: Any


class _Progress(NamedTuple):
    """A run within a segment: the next step, the rewards so far, and the random numbers of the present block."""

    run: Run
    step: Int[Array, ""]
    sums: Any
    uniforms: Array
    block: Int[Array, ""]


def init_agent(key: RunKeys, program: compiled_steps.Program) -> SelfScheduled:
    """One run's agent before its first step, when a plan is due."""
    agent, config = program.agent, program.config
    spaces: Any = program.spaces
    state = agent.init(jax.random.fold_in(key.agent, INIT_STREAM), config, spaces)
    shapes = jax.eval_shape(functools.partial(_plan, program=program), key.agent, state)[1]
    no_info = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return SelfScheduled(state, agenda.init(spaces), no_info)


# Compiled as a function: asked for its shapes at the beginning and called later, it is traced once.
@functools.partial(jax.jit, static_argnames="program")
def _plan(key, state, program: compiled_steps.Program) -> Any:
    return program.agent.plan(key, program.config, program.spaces, state)


def plan_agent(key: RunKeys, step, own: SelfScheduled, observation, program: compiled_steps.Program) -> SelfScheduled:
    """Plan before the step of that number, counted from 1."""
    plan_key = jax.random.fold_in(jax.random.fold_in(key.agent, PLAN_STREAM), step)
    state, info = _plan(plan_key, own.state, program=program)
    state = jax.tree.map(lambda new, old: new.astype(old.dtype), state, own.state)
    return SelfScheduled(state, agenda.planned(own.agenda, observation), info)


def act(key: RunKeys, step, own: SelfScheduled, observation, program: compiled_steps.Program) -> Int[Array, ""]:
    """The action of the step of that number, counted from 1."""
    act_key = jax.random.fold_in(jax.random.fold_in(key.agent, ACT_STREAM), step - 1)
    return program.agent.act(act_key, program.config, own.state, observation)


def learn(own: SelfScheduled, transition: Transition, program: compiled_steps.Program) -> SelfScheduled:
    """Learn from one step."""
    state = program.agent.update(program.config, own.state, transition)
    return own._replace(state=state, agenda=agenda.observe(own.agenda, transition))


def is_due(own: SelfScheduled, observation, program: compiled_steps.Program) -> Bool[Array, ""]:
    """Whether to plan before acting in `observation`."""
    return agenda.due(agenda.schedule_of(program.config), own.agenda, observation)


@functools.partial(jax.jit, static_argnames="program")
@compiled_steps.traced
def begin(keys: RunKeys, tables: Tables, program: compiled_steps.Program) -> Run:
    """The runs before their first step."""

    def one_run(key):
        return tables.begin(jax.random.fold_in(key.environment, FIRST_STATE), init_agent(key, program))

    return jax.vmap(one_run)(keys)


@functools.partial(jax.jit, static_argnames="program", donate_argnames="runs")
@compiled_steps.traced
def advance(keys: RunKeys, tables: Tables, first, last, rate, runs: Run, program: compiled_steps.Program) -> Any:
    """Steps first, ..., last - 1 of every run, counted from 0, with the plans that are due; returns the runs and what
    each earned.
    """

    def one_run(both):
        key, run = both
        return _advance_one(key, run, tables, first, last, rate, program)

    return jax.lax.map(one_run, (keys, runs))


def _advance_one(key: RunKeys, run: Run, tables: Tables, first, last, rate, program: compiled_steps.Program) -> Any:
    def uniforms_of(block):
        return tables.uniforms(jax.random.fold_in(key.environment, block), BLOCK)

    def due(now: _Progress) -> Bool[Array, ""]:
        return is_due(now.run.agent, now.run.observation, program)

    def plan(now: _Progress) -> _Progress:
        run = now.run
        return now._replace(run=run._replace(agent=plan_agent(key, now.step + 1, run.agent, run.observation, program)))

    def step(now: _Progress) -> _Progress:
        run, block = now.run, now.step // BLOCK
        uniforms = jax.lax.cond(block != now.block, uniforms_of, lambda _: now.uniforms, block)
        action = act(key, now.step + 1, run.agent, run.observation, program)
        transition, after, earned = tables.step(run, action, uniforms[now.step % BLOCK], rate)
        after = after._replace(agent=learn(run.agent, transition, program))
        return _Progress(after, now.step + 1, tables.add(now.sums, earned), uniforms, block)

    def until_due(now: _Progress) -> _Progress:
        # At least one step, so that a plan after which another is due cannot stop the run.
        return jax.lax.while_loop(lambda own: (own.step < last) & ~due(own), step, step(now))

    def stretch(now: _Progress) -> _Progress:
        return until_due(jax.lax.cond(due(now), plan, lambda own: own, now))

    block = first // BLOCK
    start = _Progress(run, first, tables.no_sums(), uniforms_of(block), block)
    end = jax.lax.while_loop(lambda now: now.step < last, stretch, start)
    return end.run, end.sums


def run_batch(
    keys: RunKeys,
    tables: Tables,
    agent: Any,
    config: Any,
    spaces: Any,
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
) -> Generator[Any]:
    """Run a batch to the last reading step; the events of `compiled_loop.run_batch`. A `Plan` comes at every reading,
    with the report of each run's last plan.
    """
    mesh = placement.find_places("cpu", 1).step
    tables, keys = placement.put(tables, mesh), placement.put(keys, mesh)
    program = compiled_steps.program(agent, config, spaces, mesh)
    rate = smoothing_rate(half_life)
    if resume is None:
        resume = Snapshot(0, begin(keys, tables, program=program), tables.host_sums(len(keys.agent)))
    runs, host, done = placement.put(resume.runs, mesh), resume.host, resume.event
    readings = set(reading_steps)
    for event in sorted(readings | set(range(MOST_STEPS, max(readings), MOST_STEPS))):
        if event <= resume.event:
            continue
        runs, sums = advance(keys, tables, np.int32(done), np.int32(event), rate, runs, program=program)
        added = tables.to_host(jax.device_get(sums))
        host = {name: total + added[name] for name, total in host.items()}
        done = event
        if event in readings:
            yield from tables.read(event, tables.smoothed(runs), host, rate)
            yield Plan(event, jax.device_get(runs.agent.info))
        yield Snapshot(event, runs, host)
    yield runs._replace(agent=runs.agent.state)


def run_shapes(keys: RunKeys, tables: Tables, agent: Any, config: Any, spaces: Any) -> Run:
    """Shapes and dtypes of a batch's runs, to check saved ones against; nothing is computed."""
    program = compiled_steps.program(agent, config, spaces, placement.find_places("cpu", 1).step)
    return jax.eval_shape(lambda keys: begin(keys, tables, program=program), keys)
