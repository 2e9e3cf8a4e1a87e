"""Environments as the compiled loop steps them: a table of outcomes, or functions of continuous states.

Both are trees of arrays with the same methods, so that one loop serves both. `shared` says whether all runs have the
same arrays; `begin` and `step` are for one run, and everything random comes in as uniform draws.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from bellief.envs.box import BoxEnvironment
from bellief.experiments.event_loop import Reading, Survival, unbiased
from bellief.mdp.tabular_mdp import Outcomes
from bellief.types import Transition, default_precision


class Run(NamedTuple):
    """One run between two segments. `age` counts the steps of the present episode; `recent` is the numerator of the
    exponentially smoothed reward.
    """

    agent: Any
    observation: Int[Array, ""]
    age: Int[Array, ""]
    recent: Float[Array, ""]


class Tables(NamedTuple):
    """An outcome table with cumulative probabilities."""

    cumulative: Float[Array, "S A O"]
    next_state: Int[Array, "S A O"]
    reward: Float[Array, "S A O"]
    terminated: Array
    start: Float[Array, "S"]
    time_limit: Int[Array, ""]

    shared = True  # type: ignore[misc]

    def begin(self, key: Key[Array, ""], agent: Any) -> Run:
        """A run in its first state."""
        uniform = jax.random.uniform(key, (), self.start.dtype)
        observation = jnp.sum(uniform >= self.start).astype(jnp.int32)
        return Run(agent, observation, jnp.array(0, jnp.int32), jnp.zeros((), self.start.dtype))

    def uniforms(self, key: Key[Array, ""], count: int) -> Float[Array, "count 2"]:
        """The random numbers of `count` steps."""
        stochastic = self.cumulative.shape[-1] > 1 or self.start.shape[0] > 1
        draw = jax.random.uniform if stochastic else (lambda key, shape, dtype: jnp.zeros(shape, dtype))
        return draw(key, (count, 2), self.start.dtype)

    def step(self, run: Run, action: Int[Array, ""], uniform: Float[Array, "2"], rate) -> tuple[Transition, Run, Any]:
        """One step: the transition, the run after it (the agent's state as it was), and the reward."""
        transition, observation, age = step_environment(self, run.observation, run.age, action, uniform)
        recent = run.recent + rate * (transition.reward - run.recent)
        return transition, Run(run.agent, observation, age, recent), transition.reward

    def no_sums(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The reward of a segment before its first step, and what rounding has added to it."""
        return jnp.zeros((), self.start.dtype), jnp.zeros((), self.start.dtype)

    def add(self, sums, reward) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Kahan's summation, since segments may be long."""
        earned, excess = sums
        gain = reward - excess
        after = earned + gain
        return after, (after - earned) - gain

    @staticmethod
    def host_sums(width: int) -> dict[str, np.ndarray]:
        """What the host adds up for every run, before the first segment."""
        return {"total": np.zeros(width)}

    @staticmethod
    def to_host(sums) -> dict[str, np.ndarray]:
        """What a segment adds to those, in float64."""
        earned, excess = sums
        return {"total": np.asarray(earned, np.float64) - np.asarray(excess, np.float64)}

    @staticmethod
    def smoothed(run: Run) -> Any:
        """What a reading needs to know of a run."""
        return run.recent

    @staticmethod
    def read(step: int, smoothed: Any, sums: dict[str, np.ndarray], rate: np.float32) -> Iterator[Any]:
        """The events of a reading."""
        yield Reading(step, sums["total"], unbiased(smoothed, rate, step))


def make_tables(outcomes: Outcomes, time_limit: int | None = None) -> Tables:
    """The outcome table of an environment in JAX's precision, in host memory until someone steps.

    The last possible outcome's cumulative probability is raised above any uniform draw, so that rounding cannot select
    an outcome that never happens.
    """
    dtype = default_precision()

    def raised(probability):
        cumulative = np.cumsum(probability, axis=-1)
        return np.where(cumulative >= cumulative[..., -1:], 2.0, cumulative)

    fields: tuple[Any, ...] = (
        np.asarray(raised(outcomes.probability), dtype),
        np.asarray(outcomes.next_state, np.int32),
        np.asarray(outcomes.reward, dtype),
        np.asarray(outcomes.terminated),
        np.asarray(raised(outcomes.start), dtype),
        np.asarray(np.iinfo(np.int32).max if time_limit is None else time_limit, np.int32),
    )
    return Tables(*fields)


def step_environment(
    tables: Tables, state: Int[Array, ""], age: Int[Array, ""], action: Int[Array, ""], uniform: Float[Array, "2"]
) -> tuple[Transition, Int[Array, ""], Int[Array, ""]]:
    """One step: the transition, the state to continue from (a new start after an end or a time limit), the age."""
    outcome = jnp.sum(uniform[0] >= tables.cumulative[state, action])
    ends = tables.terminated[state, action, outcome]
    next_state = tables.next_state[state, action, outcome]
    transition = Transition(state, action, tables.reward[state, action, outcome], next_state, ends)
    fresh = jnp.sum(uniform[1] >= tables.start).astype(jnp.int32)
    over = ends | (age + 1 >= tables.time_limit)
    return transition, jnp.where(over, fresh, next_state), jnp.where(over, 0, age + 1)


class BoxRun(NamedTuple):
    """One run in continuous states between two segments; `last` is the length of the last episode that was over."""

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


@functools.partial(jax.tree_util.register_dataclass, data_fields=["constants"], meta_fields=["environment"])
@dataclasses.dataclass(frozen=True)
class Box:
    """An environment with continuous states and the constants of each run.

    Of the episodes a run keeps how many were over, how many of these had ended (rather than reached the time limit),
    their total length, and the length of the last one, smoothed over steps with the half-life of the reward.
    """

    constants: Any
    environment: BoxEnvironment

    shared = False

    def begin(self, key: Key[Array, ""], agent: Any) -> BoxRun:
        """A run in its first state."""
        uniforms = jax.random.uniform(key, (self.environment.noise,))
        zero, none = jnp.array(0, jnp.int32), jnp.array(0.0, float)
        return BoxRun(agent, self.environment.start(self.constants, uniforms), zero, zero, none, none)

    def uniforms(self, key: Key[Array, ""], count: int) -> Float[Array, "count n"]:
        """The random numbers of `count` steps: for the step, and for the start of the episode that may follow it."""
        return jax.random.uniform(key, (count, 2 * self.environment.noise))

    def step(self, run: BoxRun, action: Int[Array, ""], uniforms: Float[Array, "n"], rate):
        """One step: the transition, the run after it (the agent's state as it was), and what the step brought."""
        environment, size = self.environment, self.environment.noise
        limit = np.iinfo(np.int32).max if environment.time_limit is None else environment.time_limit
        outcome = environment.step(self.constants, run.observation, action, uniforms[:size])
        transition = Transition(run.observation, action, outcome.reward, outcome.state, outcome.terminated)
        age = run.age + 1
        over = outcome.terminated | (age >= limit)
        fresh = environment.start(self.constants, uniforms[size:])
        last = jnp.where(over, age, run.last)
        # Until the first episode is over, the length of the present one is used for it.
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

    def no_sums(self) -> Earned:
        """What a segment has brought before its first step."""
        none = jnp.array(0, jnp.int32)
        return Earned(jnp.array(0.0, float), none, none, none)

    def add(self, sums: Earned, earned: Earned) -> Earned:
        """With what one more step brought."""
        return jax.tree.map(jnp.add, sums, earned)

    @staticmethod
    def host_sums(width: int) -> dict[str, np.ndarray]:
        """What the host adds up for every run, before the first segment."""
        return {"reward": np.zeros(width)} | {name: np.zeros(width, np.int64) for name in Earned._fields[1:]}

    @staticmethod
    def to_host(sums: Earned) -> dict[str, np.ndarray]:
        """What a segment adds to those."""
        return sums._asdict()

    @staticmethod
    def smoothed(run: BoxRun) -> Any:
        """What a reading needs to know of a run."""
        return run.recent, run.recent_length

    @staticmethod
    def read(step: int, smoothed: Any, sums: dict[str, np.ndarray], rate: np.float32) -> Iterator[Any]:
        """The events of a reading."""
        reward, length = (unbiased(part, rate, step) for part in smoothed)
        yield Reading(step, sums["reward"], reward)
        yield Survival(step, sums["episodes"], sums["falls"], sums["length"], length)


def make_box(environment: BoxEnvironment, numbers: range) -> Box:
    """The environment with the constants of several runs along a leading axis."""
    return Box(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *(environment.constants(number) for number in numbers)),
        environment,
    )
