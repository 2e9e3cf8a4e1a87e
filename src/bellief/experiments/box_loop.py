"""The compiled loop for continuous environments: as `loop`, with states that are vectors, and episodes counted.

Nothing is stored per step. Of the episodes a run keeps how many were over, how many of these had ended (not been cut),
their total length, and the length of the last one, smoothed over steps with the half-life of the reward.
"""

import functools
from collections.abc import Generator
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bellief.envs.box import BoxEnvironment
from bellief.experiments.drive import Reading, Snapshot, Survival, drive, smoothing_rate, unbiased
from bellief.experiments.segments import ACT_STREAM, BLOCK, FIRST_STATE, INIT_STREAM, PLAN_STREAM, RunKeys
from bellief.types import BoxSpaces, Transition


class BoxRun(NamedTuple):
    """One run between two segments; `last` is the length of the last episode that was over."""

    agent: Any
    observation: Float[Array, "D"]
    age: Int[Array, ""]
    last: Int[Array, ""]
    recent: Float[Array, ""]
    recent_length: Float[Array, ""]


class Earned(NamedTuple):
    """What a segment brought: reward, episodes over, episodes ended, total length of those over."""

    reward: Float[Array, ""]
    episodes: Int[Array, ""]
    falls: Int[Array, ""]
    length: Int[Array, ""]


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces", "environment"))
def _begin(keys, constants, *, agent: ModuleType, config, spaces: BoxSpaces, environment: BoxEnvironment) -> BoxRun:
    def one_run(key, own):
        luck = jax.random.uniform(jax.random.fold_in(key.environment, FIRST_STATE), (environment.luck,))
        state = agent.init(jax.random.fold_in(key.agent, INIT_STREAM), config, spaces)
        zero, none = jnp.array(0, jnp.int32), jnp.array(0.0, float)
        return BoxRun(state, environment.start(own, luck), zero, zero, none, none)

    return jax.vmap(one_run)(keys, constants)


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"), donate_argnames=("runs",))
def _plan(keys, step, runs: BoxRun, *, agent: ModuleType, config, spaces: BoxSpaces):
    def one_run(key, run):
        plan_key = jax.random.fold_in(jax.random.fold_in(key.agent, PLAN_STREAM), step)
        state, info = agent.plan(plan_key, config, spaces, run.agent)
        return run._replace(agent=state), info

    if jax.default_backend() == "cpu":
        # One after the other, what a plan works on stays in the processor's cache: twice as fast as side by side.
        return jax.lax.map(lambda both: one_run(*both), (keys, runs))
    return jax.vmap(one_run)(keys, runs)


def _step(environment: BoxEnvironment, constants, limit: int, rate, run: BoxRun, action, luck):
    """One step: the transition, the run after it (the agent's state left as it was), what the step brought."""
    outcome = environment.step(constants, run.observation, action, luck[: environment.luck])
    transition = Transition(run.observation, action, outcome.reward, outcome.state, outcome.terminated)
    age = run.age + 1
    over = outcome.terminated | (age >= limit)
    fresh = environment.start(constants, luck[environment.luck :])
    last = jnp.where(over, age, run.last)
    # Until an episode is over, the length of the present one stands in for it.
    length = jnp.maximum(last, jnp.where(run.last == 0, age, 0)).astype(run.recent.dtype)
    after = BoxRun(
        run.agent,
        jnp.where(over, fresh, outcome.state),
        jnp.where(over, 0, age),
        last,
        run.recent + rate * (outcome.reward - run.recent),
        run.recent_length + rate * (length - run.recent_length),
    )
    whole = over.astype(jnp.int32)
    return transition, after, Earned(outcome.reward, whole, outcome.terminated.astype(jnp.int32), whole * age)


@functools.partial(jax.jit, static_argnames=("agent", "config", "environment"), donate_argnames=("runs",))
def _advance(keys, constants, first, last, rate, runs: BoxRun, *, agent: ModuleType, config, environment):
    """Steps first, ..., last - 1 of every run; returns the runs and what each earned in between."""
    limit = np.iinfo(np.int32).max if environment.time_limit is None else environment.time_limit

    def one_run(key, own, run):
        act_key = jax.random.fold_in(key.agent, ACT_STREAM)

        def one_step(step, luck, carry):
            run, earned = carry
            action = agent.act(jax.random.fold_in(act_key, step), config, run.agent, run.observation)
            transition, after, brought = _step(environment, own, limit, rate, run, action, luck[step % BLOCK])
            after = after._replace(agent=agent.update(config, run.agent, transition))
            return after, jax.tree.map(jnp.add, earned, brought)

        def one_block(block, carry):
            # Twice the luck: for the step, and for the start of the episode that may follow it.
            luck = jax.random.uniform(jax.random.fold_in(key.environment, block), (BLOCK, 2 * environment.luck))
            begin, end = jnp.maximum(first, block * BLOCK), jnp.minimum(last, (block + 1) * BLOCK)
            return jax.lax.fori_loop(begin, end, lambda step, inner: one_step(step, luck, inner), carry)

        none = jnp.array(0, jnp.int32)
        carry = (run, Earned(jnp.array(0.0, float), none, none, none))
        return jax.lax.fori_loop(first // BLOCK, (last + BLOCK - 1) // BLOCK, one_block, carry)

    return jax.vmap(one_run)(keys, constants, runs)


def stack_constants(environment: BoxEnvironment, numbers: range) -> Any:
    """The constants of several runs along a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *(environment.constants(number) for number in numbers))


def run_chunk(
    keys: RunKeys,
    environment: BoxEnvironment,
    constants: Any,
    agent: ModuleType,
    config: Any,
    plan_steps: list[int],
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
) -> Generator[Any]:
    """Drive one chunk to the last reading step; as `loop.run_chunk`, with a `Survival` after each `Reading`."""
    rate, width = smoothing_rate(half_life), len(keys.agent)
    of = {"agent": agent, "config": config}

    def begin():
        first = _begin(keys, constants, **of, spaces=environment.spaces, environment=environment)
        return first, {"reward": np.zeros(width)} | {name: np.zeros(width, np.int64) for name in Earned._fields[1:]}

    def advance(first, last, runs):
        runs, earned = _advance(keys, constants, first, last, rate, runs, **of, environment=environment)
        return runs, earned._asdict()

    def plan(step, runs):
        return _plan(keys, step, runs, **of, spaces=environment.spaces)

    def read(step, runs, host):
        yield Reading(step, host["reward"], unbiased(runs.recent, rate, step))
        smoothed = unbiased(runs.recent_length, rate, step)
        yield Survival(step, host["episodes"], host["falls"], host["length"], smoothed)

    return drive(begin, advance, plan, read, plan_steps, reading_steps, resume)


def run_shapes(keys: RunKeys, environment: BoxEnvironment, constants: Any, agent: ModuleType, config: Any) -> BoxRun:
    """Shapes and dtypes of a chunk's `BoxRun`, to check a saved one against; nothing is computed."""
    begin = functools.partial(_begin, agent=agent, config=config, spaces=environment.spaces, environment=environment)
    return jax.eval_shape(begin, keys, constants)
