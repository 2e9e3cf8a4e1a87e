"""The compiled pieces of which runs are made: their keys, beginning, plans and steps.

Everything random in run number n is a function of the seed, the names of environment and agent, and n.
"""

import functools
import zlib
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, Key

from bellief.compiler import IN_ORDER
from bellief.draws import fold_in
from bellief.draws import uniform as draw_uniform
from bellief.experiments import devices
from bellief.experiments.devices import Places
from bellief.experiments.tables import Tables, step_environment
from bellief.types import Spaces

# Random numbers of the environment are drawn for this many steps at once; block b serves steps b * BLOCK onwards,
# wherever segments begin and end.
BLOCK = 256

# Bytes from which on runs step side by side, unless they are as few as this.
LARGE_RUN, FEW = 2**18, 4


class Run(NamedTuple):
    """One run between two segments. `age` counts the steps of the present episode; `recent` is the numerator of the
    exponentially smoothed reward.
    """

    agent: Any
    observation: Int[Array, ""]
    age: Int[Array, ""]
    recent: Float[Array, ""]


class RunKeys(NamedTuple):
    """Where the randomness of one run comes from: the environment's luck and the agent's."""

    environment: Key[Array, ""]
    agent: Key[Array, ""]


def run_keys(seed: int, environment: str, agent: str, run: int | Array) -> RunKeys:
    """The keys of one run. Adding agents, environments or runs never changes another run.

    Run number n of every agent meets the same luck in the environment, so that agents can be compared in pairs.
    """

    def named(key, name):
        return fold_in(key, zlib.crc32(name.encode()))

    of_environment = named(jax.random.key(seed), environment)
    return RunKeys(
        environment=fold_in(named(of_environment, ""), run),
        agent=fold_in(named(of_environment, agent), run),
    )


# Streams of an agent's key, apart from one another.
INIT_STREAM, PLAN_STREAM, ACT_STREAM = 0, 1, 2
# Block number of the environment's first state; the blocks of steps count up from zero.
FIRST_STATE = 2**31 - 1


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces", "mesh"))
def begin(keys, tables: Tables, *, agent: ModuleType, config, spaces: Spaces, mesh: Mesh | None = None) -> Run:
    """The runs before their first step."""

    def one_run(key):
        uniform = draw_uniform(fold_in(key.environment, FIRST_STATE), (), tables.start.dtype)
        observation = jnp.sum(uniform >= tables.start).astype(jnp.int32)
        state = agent.init(fold_in(key.agent, INIT_STREAM), config, spaces)
        return Run(state, observation, jnp.array(0, jnp.int32), jnp.zeros((), tables.start.dtype))

    return devices.over_runs(one_run, mesh)(keys)


def plan_runs(keys, step, states, agent: ModuleType, config, spaces: Spaces, mesh: Mesh | None = None):
    """What planning changes in the agents' states, None for what stays as it is (most of what they have learned), and
    their reports.
    """

    def one_run(key, state):
        planned, info = _plan_one(key, step, state, agent, config, spaces)
        return jax.tree.map(lambda new, old: None if new is old else new, planned, state), info

    return devices.over_runs(one_run, mesh)(keys, states)


def _plan_one(key: RunKeys, step, state, agent: ModuleType, config, spaces: Spaces):
    return agent.plan(fold_in(fold_in(key.agent, PLAN_STREAM), step), config, spaces, state)


plan = jax.jit(plan_runs, static_argnames=("agent", "config", "spaces", "mesh"))


def merge(changed, states):
    """The states with what planning changed."""
    return jax.tree.map(
        lambda new, old: old if new is None else new, changed, states, is_leaf=lambda leaf: leaf is None
    )


def plan_states(keys, step: int, states: Any, places: Places, **static: Any) -> tuple[Any, Any]:
    """Plan where planning is done (`keys` are there already); what planning leaves alone does not travel back."""
    away = places.plan != places.step
    there = devices.put(states, places.plan) if away else states
    with devices.at(places.plan):
        changed, info = plan(keys, np.int32(step), there, mesh=places.plan, **static)
    return merge(devices.put(changed, places.step) if away else changed, states), info


def _advance_all(keys, tables: Tables, first, last, rate, runs: Run, agent: ModuleType, config):
    """Steps first, ..., last - 1 of every run; returns the runs and the reward each earned in between, as a sum
    and what rounding has added to it (Kahan's summation): segments may be long.
    """

    def one_run(key, run):
        act_key = fold_in(key.agent, ACT_STREAM)
        stochastic = tables.cumulative.shape[-1] > 1 or tables.start.shape[0] > 1

        def one_step(step, uniforms, carry):
            run, (earned, excess) = carry
            action = agent.act(fold_in(act_key, step), config, run.agent, run.observation)
            transition, observation, age = step_environment(
                tables, run.observation, run.age, action, uniforms[step % BLOCK]
            )
            state = agent.update(config, run.agent, transition)
            recent = run.recent + rate * (transition.reward - run.recent)
            gain = transition.reward - excess
            after = earned + gain
            return Run(state, observation, age, recent), (after, (after - earned) - gain)

        def one_block(block, carry):
            shape = (BLOCK, 2)
            uniforms = (
                draw_uniform(fold_in(key.environment, block), shape, tables.start.dtype)
                if stochastic
                else jnp.zeros(shape, tables.start.dtype)
            )
            begin, end = jnp.maximum(first, block * BLOCK), jnp.minimum(last, (block + 1) * BLOCK)
            return jax.lax.fori_loop(begin, end, lambda step, inner: one_step(step, uniforms, inner), carry)

        nothing = jnp.zeros((), tables.start.dtype)
        carry = (run, (nothing, nothing))
        return jax.lax.fori_loop(first // BLOCK, (last + BLOCK - 1) // BLOCK, one_block, carry)

    # One run after the other, light steps become one loop of plain code; side by side they are a series of small calls.
    # But each run is then taken out of the stack and put back, which costs more where they are large and many.
    alone = getattr(agent, "LIGHT_STEPS", False) and (len(runs.age) <= FEW or not is_large(runs))
    return (devices.one_by_one(one_run) if alone else jax.vmap(one_run))(keys, runs)


def is_large(runs: Run) -> bool:
    """Whether each of the runs, or shapes of runs, takes up more than `LARGE_RUN`."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(runs)) > LARGE_RUN * len(runs.age)


@functools.partial(jax.jit, static_argnames=("agent", "config", "mesh"), donate_argnames=("runs",))
def advance(keys, tables: Tables, first, last, rate, runs: Run, *, agent: ModuleType, config, mesh: Mesh | None = None):
    """One segment, where planning is done elsewhere."""

    def several(keys, runs):
        return _advance_all(keys, tables, first, last, rate, runs, agent, config)

    return devices.split_runs(several, mesh)(keys, runs)


def _course_of(
    keys,
    tables: Tables,
    first,
    ends,
    plans,
    count,
    rate,
    runs: Run,
    *,
    agent: ModuleType,
    config,
    spaces: Spaces,
    mesh: Mesh | None = None,
):
    """Several segments: for each of the first `count` of `ends` the steps up to it, then a plan where `plans` says so.

    Returns the runs and, with a row for each segment, what `advance` says of it, the smoothed rewards' numerators, and
    what the agents reported.
    """

    def several(keys, runs):
        # A function of its own for the compiler's sake: asked for its shapes and then called, it is traced once.
        @jax.jit
        def plan(keys, step, states):
            planned, info = jax.vmap(lambda key, state: _plan_one(key, step, state, agent, config, spaces))(
                keys, states
            )
            return jax.tree.map(lambda new, old: new.astype(old.dtype), planned, states), info

        def segment(number, carry):
            runs, log = carry
            begin = jnp.where(number == 0, first, ends[number - 1])
            runs, sums = _advance_all(keys, tables, begin, ends[number], rate, runs, agent, config)
            states, info = jax.lax.cond(
                plans[number],
                lambda states: plan(keys, ends[number] + 1, states),
                lambda states: (states, silence),
                runs.agent,
            )
            log = jax.tree.map(lambda rows, row: rows.at[:, number].set(row), log, (sums, runs.recent, info))
            return runs._replace(agent=states), log

        silence = jax.tree.map(jnp.zeros_like, jax.eval_shape(plan, keys, first, runs.agent)[1])
        rows = ((runs.recent, runs.recent), runs.recent, silence)
        log = jax.tree.map(lambda row: jnp.zeros((row.shape[0], ends.shape[0], *row.shape[1:]), row.dtype), rows)
        return jax.lax.fori_loop(0, count, segment, (runs, log))

    return devices.split_runs(several, mesh)(keys, runs)


_compiled = functools.partial(jax.jit, static_argnames=("agent", "config", "spaces", "mesh"), donate_argnames=("runs",))
course = _compiled(_course_of)
course_alone = _compiled(_course_of, compiler_options=IN_ORDER)


def exact(earned, excess) -> Float[np.ndarray, "..."]:
    """Kahan's sum and what rounding has added to it, in float64."""
    return np.asarray(earned, np.float64) - np.asarray(excess, np.float64)
