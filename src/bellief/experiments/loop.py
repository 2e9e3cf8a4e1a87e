"""The compiled loop: many runs of one agent in one tabular environment, step by step, planning on a schedule.

A chunk of runs advances together under `vmap`. Everything random in run number n is a function of the seed, the names
of environment and agent, and n, and chunks always have the same width, so a run does not depend on how many others
there are. The host drives segments (step many, then plan once or take a reading), so nothing is stored per step.
"""

import functools
import zlib
from collections.abc import Callable, Generator, Iterable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, Key

from bellief.experiments import devices
from bellief.experiments.devices import Places
from bellief.mdp.tabular import Outcomes
from bellief.types import Spaces, Transition

# Batched linear algebra rounds differently at different batch widths; one width for all makes runs reproducible.
CHUNK_WIDTH = 10

# Random numbers of the environment are drawn for this many steps at once; block b serves steps b * BLOCK onwards,
# wherever segments begin and end.
BLOCK = 256


class Tables(NamedTuple):
    """An outcome table as the stepper needs it: cumulative probabilities, on the device."""

    cumulative: Float[Array, "S A O"]
    next_state: Int[Array, "S A O"]
    reward: Float[Array, "S A O"]
    terminated: Array
    start: Float[Array, "S"]
    time_limit: Int[Array, ""]


class Run(NamedTuple):
    """One run between two segments. `age` counts the steps of the present episode; `recent` is the numerator of the
    exponentially smoothed reward.
    """

    agent: Any
    observation: Int[Array, ""]
    age: Int[Array, ""]
    recent: Float[Array, ""]


class Reading(NamedTuple):
    """What a run has earned up to a step: total since the start, and the reward smoothed with the given half-life."""

    step: int
    total: Float[np.ndarray, "runs"]
    smoothed: Float[np.ndarray, "runs"]


class Survival(NamedTuple):
    """Episodes of every run up to a step: how many over, how many ended, total length, smoothed length of the last."""

    step: int
    episodes: Int[np.ndarray, "runs"]
    falls: Int[np.ndarray, "runs"]
    length: Float[np.ndarray, "runs"]
    smoothed: Float[np.ndarray, "runs"]


class Plan(NamedTuple):
    """What an agent reported of one planning step."""

    step: int
    info: Any


class Snapshot(NamedTuple):
    """Where a chunk stands once everything due after `event` steps is done: enough to go on from, bit for bit.

    `runs` lives on the device, and the next segment takes its arrays over: whoever wants to keep them copies them
    before asking for more. `host` is what the loop keeps in ordinary memory.
    """

    event: int
    runs: Any
    host: dict[str, np.ndarray]


def make_tables(outcomes: Outcomes, time_limit: int | None = None, dtype: jnp.dtype = jnp.float32) -> Tables:
    """Put an outcome table on the device.

    The last possible outcome's cumulative probability is lifted above any uniform, so that what rounding leaves of one
    cannot fall to an outcome that never happens.
    """

    def lifted(probability):
        cumulative = np.cumsum(probability, axis=-1)
        return np.where(cumulative >= cumulative[..., -1:], 2.0, cumulative)

    return Tables(
        jnp.asarray(lifted(outcomes.probability), dtype),
        jnp.asarray(outcomes.next_state, jnp.int32),
        jnp.asarray(outcomes.reward, dtype),
        jnp.asarray(outcomes.terminated),
        jnp.asarray(lifted(outcomes.start), dtype),
        jnp.asarray(np.iinfo(np.int32).max if time_limit is None else time_limit, jnp.int32),
    )


class RunKeys(NamedTuple):
    """Where the randomness of one run comes from: the environment's luck and the agent's."""

    environment: Key[Array, ""]
    agent: Key[Array, ""]


def run_keys(seed: int, environment: str, agent: str, run: int | Array) -> RunKeys:
    """The keys of one run. Adding agents, environments or runs never changes another run.

    Run number n of every agent meets the same luck in the environment, so that agents can be compared in pairs.
    """

    def named(key, name):
        return jax.random.fold_in(key, zlib.crc32(name.encode()))

    of_environment = named(jax.random.key(seed), environment)
    return RunKeys(
        environment=jax.random.fold_in(named(of_environment, ""), run),
        agent=jax.random.fold_in(named(of_environment, agent), run),
    )


def step_environment(
    tables: Tables, state: Int[Array, ""], age: Int[Array, ""], action: Int[Array, ""], uniform: Float[Array, "2"]
) -> tuple[Transition, Int[Array, ""], Int[Array, ""]]:
    """One step: the transition, the state to go on from (a fresh start after an end or a cut), the episode's age."""
    outcome = jnp.sum(uniform[0] >= tables.cumulative[state, action])
    ends = tables.terminated[state, action, outcome]
    next_state = tables.next_state[state, action, outcome]
    transition = Transition(state, action, tables.reward[state, action, outcome], next_state, ends)
    fresh = jnp.sum(uniform[1] >= tables.start).astype(jnp.int32)
    over = ends | (age + 1 >= tables.time_limit)
    return transition, jnp.where(over, fresh, next_state), jnp.where(over, 0, age + 1)


# Streams of an agent's key, apart from one another.
INIT_STREAM, PLAN_STREAM, ACT_STREAM = 0, 1, 2
# Block number of the environment's first state; the blocks of steps count up from zero.
FIRST_STATE = 2**31 - 1


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces", "mesh"))
def _begin(keys, tables: Tables, *, agent: ModuleType, config, spaces: Spaces, mesh: Mesh | None = None) -> Run:
    def one_run(key):
        uniform = jax.random.uniform(jax.random.fold_in(key.environment, FIRST_STATE), (), tables.start.dtype)
        observation = jnp.sum(uniform >= tables.start).astype(jnp.int32)
        state = agent.init(jax.random.fold_in(key.agent, INIT_STREAM), config, spaces)
        return Run(state, observation, jnp.array(0, jnp.int32), jnp.zeros((), tables.start.dtype))

    return devices.over_runs(one_run, mesh)(keys)


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces", "mesh"))
def _plan(keys, step, states, *, agent: ModuleType, config, spaces: Spaces, mesh: Mesh | None = None):
    """What planning changes in the agents' states, None for what stays as it is (most of what they have learned), and
    their reports.
    """

    def one_run(key, state):
        plan_key = jax.random.fold_in(jax.random.fold_in(key.agent, PLAN_STREAM), step)
        planned, info = agent.plan(plan_key, config, spaces, state)
        return jax.tree.map(lambda new, old: None if new is old else new, planned, state), info

    return devices.over_runs(one_run, mesh)(keys, states)


def plan_states(keys, step: int, states: Any, places: Places, **static: Any) -> tuple[Any, Any]:
    """Plan where planning is done (`keys` are there already); what planning leaves alone does not travel back."""
    away = places.plan != places.step
    there = devices.put(states, places.plan) if away else states
    changed, info = _plan(keys, np.int32(step), there, mesh=places.plan, **static)
    if away:
        changed = devices.put(changed, places.step)
    kept = jax.tree.map(
        lambda new, old: old if new is None else new, changed, states, is_leaf=lambda leaf: leaf is None
    )
    return kept, info


@functools.partial(jax.jit, static_argnames=("agent", "config", "mesh"), donate_argnames=("runs",))
def _advance(
    keys, tables: Tables, first, last, rate, runs: Run, *, agent: ModuleType, config, mesh: Mesh | None = None
):
    """Steps first, ..., last - 1 of every run; returns the runs and the reward each earned in between."""

    def one_run(key, run):
        act_key = jax.random.fold_in(key.agent, ACT_STREAM)
        stochastic = tables.cumulative.shape[-1] > 1 or tables.start.shape[0] > 1

        def one_step(step, uniforms, carry):
            run, earned = carry
            action = agent.act(jax.random.fold_in(act_key, step), config, run.agent, run.observation)
            transition, observation, age = step_environment(
                tables, run.observation, run.age, action, uniforms[step % BLOCK]
            )
            state = agent.update(config, run.agent, transition)
            recent = run.recent + rate * (transition.reward - run.recent)
            return Run(state, observation, age, recent), earned + transition.reward

        def one_block(block, carry):
            shape = (BLOCK, 2)
            uniforms = (
                jax.random.uniform(jax.random.fold_in(key.environment, block), shape, tables.start.dtype)
                if stochastic
                else jnp.zeros(shape, tables.start.dtype)
            )
            begin, end = jnp.maximum(first, block * BLOCK), jnp.minimum(last, (block + 1) * BLOCK)
            return jax.lax.fori_loop(begin, end, lambda step, inner: one_step(step, uniforms, inner), carry)

        carry = (run, jnp.zeros((), tables.start.dtype))
        return jax.lax.fori_loop(first // BLOCK, (last + BLOCK - 1) // BLOCK, one_block, carry)

    return devices.over_runs(one_run, mesh)(keys, runs)


def run_chunk(
    keys: RunKeys,
    tables: Tables,
    agent: ModuleType,
    config: Any,
    spaces: Spaces,
    plan_steps: list[int],
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
    places: Places | None = None,
) -> Generator[Any]:
    """Drive one chunk to the last reading step, yielding a `Plan` after each plan, a `Reading` at each reading step,
    a `Snapshot` after these, and the final `Run` at the end. Steps are counted from 1; a plan at step t precedes the
    t-th action. With `resume`, what comes after that snapshot. `places` are those of the device `auto` if not given.
    """
    places = places or devices.find_places("auto", len(keys.agent))
    plan_keys, keys = devices.put(keys, places.plan), devices.put(keys, places.step)
    tables = devices.put(tables, places.step, split=False)
    if resume is not None:
        resume = resume._replace(runs=devices.put(resume.runs, places.step))
    rate = smoothing_rate(half_life)

    def begin():
        first = _begin(keys, tables, agent=agent, config=config, spaces=spaces, mesh=places.step)
        return first, {"total": np.zeros(len(keys.agent))}

    def advance(first, last, runs):
        runs, earned = _advance(keys, tables, first, last, rate, runs, agent=agent, config=config, mesh=places.step)
        return runs, {"total": earned}

    def plan(step, runs):
        static = {"agent": agent, "config": config, "spaces": spaces}
        states, info = plan_states(plan_keys, step, runs.agent, places, **static)
        return runs._replace(agent=states), info

    def read(step, runs, host):
        yield Reading(step, host["total"], unbiased(runs.recent, rate, step))

    return drive(begin, advance, plan, read, plan_steps, reading_steps, resume)


def smoothing_rate(half_life: float) -> np.float32:
    """The share of a new reward in the smoothed one.

    In single precision it is exact to seven digits; one minus it, the decay, would not be.
    """
    return np.float32(-np.expm1(-np.log(2) / half_life))


def unbiased(recent: Array, rate: np.float32, step: int) -> Float[np.ndarray, "runs"]:
    """The smoothed reward from its numerator."""
    return np.asarray(recent, dtype=np.float64) / (1 - (1 - float(rate)) ** step)


def drive(
    begin: Callable[[], tuple[Any, dict[str, np.ndarray]]],
    advance: Callable[..., tuple[Any, dict[str, Array]]],
    plan: Callable[..., tuple[Any, Any]],
    read: Callable[..., Iterable[Any]],
    plan_steps: list[int],
    reading_steps: list[int],
    resume: Snapshot | None,
) -> Generator[Any]:
    """The order of things in a chunk, whatever its states are: advance to the next event, read, plan.

    Args:
        begin: the first runs, and the sums that the host keeps, all zero.
        advance: the runs after steps first, ..., last - 1, and what these add to the sums.
        plan: the runs after planning, and what the agent reported.
        read: the events of a reading.
        plan_steps: steps before whose action the agent plans.
        reading_steps: steps after which the curves are read.
        resume: only what comes after this snapshot is yielded.
    """
    resume = Snapshot(-1, *begin()) if resume is None else resume
    runs, host, done = resume.runs, resume.host, max(resume.event, 0)
    plans, readings = set(plan_steps), set(reading_steps)
    for event in sorted({step - 1 for step in plans} | readings):
        if event <= resume.event:
            continue
        if event > done:
            runs, earned = advance(np.int32(done), np.int32(event), runs)
            # Float32 sums stay short: a segment at a time, added up here in float64.
            host = {name: sums + np.asarray(earned[name], dtype=sums.dtype) for name, sums in host.items()}
            done = event
        if event in readings:
            yield from read(event, runs, host)
        if event + 1 in plans and event < max(readings):
            runs, info = plan(np.int32(event + 1), runs)
            yield Plan(event + 1, info)
        yield Snapshot(event, runs, host)
    yield runs


def run_shapes(keys: RunKeys, tables: Tables, agent: ModuleType, config: Any, spaces: Spaces) -> Run:
    """Shapes and dtypes of a chunk's `Run`, to check a saved one against; nothing is computed."""
    mesh = devices.find_places("cpu", len(keys.agent)).step
    begin = functools.partial(_begin, agent=agent, config=config, spaces=spaces, mesh=mesh)
    return jax.eval_shape(begin, keys, tables)
