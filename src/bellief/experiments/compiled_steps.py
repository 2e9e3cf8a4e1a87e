"""The compiled parts of a run: its keys, beginning, plans and steps.

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
from jaxtyping import Array, Key

from bellief.experiments import transfer
from bellief.experiments.compiled_environments import Box, Tables
from bellief.fast import Replacement, placement, random_keys, selected, using_for
from bellief.fast.compiler_options import IN_ORDER
from bellief.registry import FORMER_NAMES
from bellief.types import BoxSpaces, Spaces

# Random numbers of the environment are drawn for this many steps at once; block b serves steps b * BLOCK onwards,
# wherever segments begin and end.
BLOCK = 256

# Streams of an agent's key.
INIT_STREAM, PLAN_STREAM, ACT_STREAM = 0, 1, 2
# Block number of the environment's first state; the blocks of steps count up from zero.
FIRST_STATE = 2**31 - 1


class RunKeys(NamedTuple):
    """Where the randomness of one run comes from: the environment's key and the agent's."""

    environment: Key[Array, ""]
    agent: Key[Array, ""]


def run_keys(seed: int, environment: str, agent: str, run: int | Array) -> RunKeys:
    """The keys of one run. Adding agents, environments or runs never changes another run.

    Run number n of every agent meets the same random numbers in the environment, so that agents can be compared in
    pairs.
    """

    def named(key, name):
        return jax.random.fold_in(key, zlib.crc32(name.encode()))

    of_environment = named(random_keys.key(seed), environment)
    return RunKeys(
        environment=jax.random.fold_in(named(of_environment, ""), run),
        agent=jax.random.fold_in(named(of_environment, agent), run),
    )


# Compiled: a few operations one by one take as long as many a short run.
@functools.partial(jax.jit, static_argnames=("environment", "agent"))
def _batch_keys(seed: Any, environment: str, agent: str, numbers) -> RunKeys:
    return jax.vmap(lambda number: run_keys(seed, environment, agent, number))(numbers)


def batch_keys(seed: int, environment: str, agent: str, numbers: range) -> RunKeys:
    """The keys of several runs. A renamed agent keeps the random numbers of its former name."""
    return _batch_keys(np.uint32(seed), environment, FORMER_NAMES.get(agent, agent), np.asarray(numbers))


class Program(NamedTuple):
    """What a program is compiled for, in addition to the shapes of its arguments."""

    agent: ModuleType
    config: Any
    spaces: Spaces | BoxSpaces
    mesh: Mesh | None
    platform: str
    replacements: tuple[Replacement, ...]


def program(agent: Any, config: Any, spaces: Any, mesh: Mesh | None = None) -> Program:
    """A program for an agent on the devices of a mesh, with the replacements that are selected for them."""
    platform = "cpu" if mesh is None else mesh.devices.flat[0].platform
    return Program(agent, config, spaces, mesh, platform, selected(platform))


def traced(function: Any) -> Any:
    """The function of arguments and a `program`, traced with the program's replacements active."""

    @functools.wraps(function)
    def traced(*arguments: Any, program: Program) -> Any:
        with using_for(program.replacements):
            return function(*arguments, program)

    return traced


def _over_runs(function: Any, environment: Tables | Box, one_by_one: bool) -> Any:
    """`function(environment, key, ...)` of one run, for many: concurrently, or one after the other."""

    def with_own(own, *arguments):
        return function(environment if own is None else own, *arguments)

    def many(*arguments):
        own = None if environment.shared else environment
        if one_by_one:
            return jax.lax.map(lambda each: with_own(*each), (own, *arguments))
        return jax.vmap(with_own)(own, *arguments)

    return many


@functools.partial(jax.jit, static_argnames="program")
@traced
def begin(keys: RunKeys, environment: Tables | Box, program: Program) -> Any:
    """The runs before their first step."""

    def one_run(environment, key):
        state = program.agent.init(jax.random.fold_in(key.agent, INIT_STREAM), program.config, program.spaces)
        return environment.begin(jax.random.fold_in(key.environment, FIRST_STATE), state)

    return placement.split_runs(_over_runs(one_run, environment, False), program.mesh)(keys)


@functools.partial(jax.jit, static_argnames="program")
@traced
def init_agents(keys: RunKeys, program: Program) -> Any:
    """The agents of all runs before their first step, where the environment is stepped elsewhere."""
    return jax.vmap(
        lambda key: program.agent.init(jax.random.fold_in(key.agent, INIT_STREAM), program.config, program.spaces)
    )(keys)


def _plan_several(keys: RunKeys, step, states, program: Program) -> Any:
    """What planning changes in the agents' states, None for what stays as it is (most of what they have learned), and
    what they report.
    """

    def one_run(both):
        key, state = both
        plan_key = jax.random.fold_in(jax.random.fold_in(key.agent, PLAN_STREAM), step)
        planned, info = program.agent.plan(plan_key, program.config, program.spaces, state)
        return jax.tree.map(lambda new, old: None if new is old else new.astype(old.dtype), planned, state), info

    one_by_one = placement.plans_one_by_one(program.spaces, program.platform)
    return jax.lax.map(one_run, (keys, states)) if one_by_one else jax.vmap(one_run)((keys, states))


def plan_changes(keys: RunKeys, step, states, program: Program) -> Any:
    """The same, on each device for its own runs."""

    def several(keys, states):
        return _plan_several(keys, step, states, program)

    return placement.split_runs(several, program.mesh)(keys, states)


plan = jax.jit(traced(plan_changes), static_argnames="program")


@functools.partial(jax.jit, static_argnames="program")
@traced
def plan_packed(keys: RunKeys, step, packed: transfer.Packed, program: Program) -> Any:
    """The same for states that were packed for their transfer."""
    return plan_changes(keys, step, transfer.unpack(packed), program)


def merge(changed, states):
    """The states with what planning changed."""
    return jax.tree.map(
        lambda new, old: old if new is None else new, changed, states, is_leaf=lambda leaf: leaf is None
    )


def plan_states(keys: RunKeys, step: int, states: Any, places: placement.Places, program: Program) -> tuple[Any, Any]:
    """Plan on the planning devices (`keys` are there already); unchanged parts are not transferred back."""
    elsewhere = places.plan != places.step
    there = placement.put(states, places.plan) if elsewhere else states
    with placement.at(places.plan):
        changed, info = plan(keys, np.int32(step), there, program=program)
    return merge(placement.put(changed, places.step) if elsewhere else changed, states), info


def _advance_all(keys: RunKeys, environment: Tables | Box, first, last, rate, runs, program: Program) -> Any:
    """Steps first, ..., last - 1 of every run; returns the runs and what each earned in between."""
    agent, config = program.agent, program.config

    def one_run(environment, key, run):
        act_key = jax.random.fold_in(key.agent, ACT_STREAM)

        def one_step(step, uniforms, carry):
            run, sums = carry
            action = agent.act(jax.random.fold_in(act_key, step), config, run.agent, run.observation)
            transition, after, earned = environment.step(run, action, uniforms[step % BLOCK], rate)
            return after._replace(agent=agent.update(config, run.agent, transition)), environment.add(sums, earned)

        def one_block(block, carry):
            uniforms = environment.uniforms(jax.random.fold_in(key.environment, block), BLOCK)
            begin, end = jnp.maximum(first, block * BLOCK), jnp.minimum(last, (block + 1) * BLOCK)
            return jax.lax.fori_loop(begin, end, lambda step, inner: one_step(step, uniforms, inner), carry)

        carry = (run, environment.no_sums())
        return jax.lax.fori_loop(first // BLOCK, (last + BLOCK - 1) // BLOCK, one_block, carry)

    return _over_runs(one_run, environment, placement.steps_one_by_one(agent, runs))(keys, runs)


@functools.partial(jax.jit, static_argnames="program", donate_argnames="runs")
@traced
def advance(keys: RunKeys, environment: Tables | Box, first, last, rate, runs, program: Program) -> Any:
    """One segment, where planning is done elsewhere."""

    def several(keys, runs):
        return _advance_all(keys, environment, first, last, rate, runs, program)

    return placement.split_runs(several, program.mesh)(keys, runs)


def _advance_and_plan(keys: RunKeys, environment, first, ends, plans, count, rate, runs, program: Program) -> Any:
    """Several segments: for each of the first `count` of `ends` the steps up to it, then a plan where `plans` says so.

    Returns the runs and, with a row for each segment, what each run earned in it, what a reading needs, and what the
    agents reported.
    """

    def several(keys, runs):
        # Compiled as a function: asked for its shapes and then called, it is traced once.
        @jax.jit
        def plan(keys, step, states):
            changed, info = _plan_several(keys, step, states, program)
            return merge(changed, states), info

        def segment(number, carry):
            runs, log = carry
            begin = jnp.where(number == 0, first, ends[number - 1])
            runs, sums = _advance_all(keys, environment, begin, ends[number], rate, runs, program)
            states, info = jax.lax.cond(
                plans[number],
                lambda states: plan(keys, ends[number] + 1, states),
                lambda states: (states, no_info),
                runs.agent,
            )
            row = (sums, environment.smoothed(runs), info)
            log = jax.tree.map(lambda rows, one: rows.at[:, number].set(one), log, row)
            return runs._replace(agent=states), log

        no_info = jax.tree.map(jnp.zeros_like, jax.eval_shape(plan, keys, first, runs.agent)[1])
        sums = jax.eval_shape(
            lambda: jax.tree.map(lambda one: jnp.zeros(len(runs.age), one.dtype), environment.no_sums())
        )
        rows = (sums, environment.smoothed(runs), no_info)
        log = jax.tree.map(lambda row: jnp.zeros((row.shape[0], ends.shape[0], *row.shape[1:]), row.dtype), rows)
        return jax.lax.fori_loop(0, count, segment, (runs, log))

    return placement.split_runs(several, program.mesh)(keys, runs)


_compile = functools.partial(jax.jit, traced(_advance_and_plan), static_argnames="program", donate_argnames="runs")
advance_and_plan = _compile()
advance_and_plan_in_order = _compile(compiler_options=IN_ORDER)
