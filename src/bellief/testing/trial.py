"""An agent on trial: its functions, compiled once for all rules, and a small environment for it to act in."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bellief.envs import Environment, make
from bellief.envs.nchain import ChainView
from bellief.errors import UserError
from bellief.mdp.tabular_mdp import make_outcomes
from bellief.registry import AGENTS, find
from bellief.testing.programs import same_program
from bellief.types import Spaces, Transition

# Rounding in single precision, through solvers that lose some digits, relative to an array's largest entry.
TOLERANCE = 1e-3
# Steps before which an agent on trial plans, and the length of its runs.
PLAN_STEPS, STEPS = (0, 2, 5), 8

# What makes an agent expensive, by the names that settings commonly have, and how small it may become.
_SMALL = {
    "batch": 4,
    "buffer": 16,
    "depth": 2,
    "horizon": 3,
    "mdps": 2,
    "most_sweeps": 20,
    "next_states": 2,
    "return_samples": 4,
    "rewards": 2,
    "samples": 8,
    "simulations": 8,
    "target_steps": 3,
    "utility_samples": 2,
    "warm_up": 1,
    "width": 6,
}


class AgentCheckError(AssertionError):
    """An agent breaks a rule of the contract; the message says which, in one sentence."""


class Functions(NamedTuple):
    """An agent's functions with its settings and spaces filled in."""

    init: Callable[..., Any]
    plan: Callable[..., Any]
    act: Callable[..., Any]
    update: Callable[..., Any]
    policy: Callable[..., Any]


class Turn(NamedTuple):
    """One step of a run: the state before it (after planning, if there was any), what was reported and done."""

    state: Any
    info: Any
    observation: int
    action: Any
    transition: Transition


class Course(NamedTuple):
    """A short run: its steps, and the state and observation it ends with."""

    turns: list[Turn]
    state: Any
    observation: int


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """An agent, its settings, and the environment it is tried in; what several rules need is computed once."""

    agent: Any
    name: str
    config: Any
    environment: Environment

    def fail(self, complaint: str) -> AgentCheckError:
        """The error that says so."""
        return AgentCheckError(f"Agent '{self.name}': {complaint}.")

    @functools.cached_property
    def spaces(self) -> Spaces:
        """What the agent is given: not the range of rewards, because rules try rewards of every size."""
        return self.environment.spaces()._replace(reward_low=None, reward_high=None)

    @functools.cached_property
    def traces(self) -> Counter[str]:
        """How often each compiled function was traced."""
        return Counter()

    @functools.cached_property
    def plain(self) -> Functions:
        """The functions as they are."""
        return self._functions(self.spaces)

    @functools.cached_property
    def compiled(self) -> Functions:
        """The functions under `jax.jit`."""
        return self._compile(self.plain)

    def told_bounds(self, low: float, high: float) -> Functions:
        """The compiled functions for an environment that declares the range of its rewards."""
        fresh = self._functions(self.spaces._replace(reward_low=low, reward_high=high))
        state = self.course.state
        if same_program(fresh.plan, self.plain.plan, key(0, "plan"), state) and same_program(
            fresh.init, self.plain.init, key(0, "init")
        ):
            return self.compiled  # it does not use them, and need not be compiled again
        return self.compiled._replace(
            init=self._guard("init", fast_jit(fresh.init)), plan=self._guard("plan", fast_jit(fresh.plan))
        )

    @functools.cached_property
    def course(self) -> Course:
        """A run of the compiled agent."""
        return self.drive(self.compiled, 0)

    def drive(
        self,
        functions: Functions,
        seed: int,
        reward: Callable[[float], float] = lambda value: value,
        begin: tuple[int, Any, int] | None = None,
        steps: int = STEPS,
    ) -> Course:
        """A run of some steps, or its rest from a step, state and observation on.

        The environment's randomness depends on the step alone: runs of different seeds differ by the agent's keys only.
        """
        first, state, observation = begin or (0, None, self._draw(self.environment.outcomes.start, -1))
        if state is None:
            state = functions.init(key(seed, "init"))
        turns = []
        for step in range(first, steps):
            info = None
            if step in PLAN_STEPS:
                state, info = functions.plan(key(seed, "plan", step), state)
            action = functions.act(key(seed, "act", step), state, np.int32(observation))
            transition, following = self._step(step, observation, action, reward)
            turns.append(Turn(state, info, observation, action, transition))
            state, observation = functions.update(state, transition), following
        return Course(turns, state, observation)

    def _step(self, step: int, state: int, action: Any, reward: Callable[[float], float]) -> tuple[Transition, int]:
        outcomes = self.environment.outcomes
        chosen = int(np.clip(action, 0, self.spaces.actions - 1))
        outcome = self._draw(outcomes.probability[state, chosen], step)
        following, ends = outcomes.next_state[state, chosen, outcome], bool(outcomes.terminated[state, chosen, outcome])
        paid = reward(float(outcomes.reward[state, chosen, outcome]))
        return (
            transition(state, np.asarray(action), paid, following, ends),
            self._draw(outcomes.start, 1000 + step) if ends else int(following),
        )

    def _draw(self, probabilities: np.ndarray, number: int) -> int:
        uniform = np.random.default_rng([1, number + 1]).random()
        return min(int(np.sum(uniform >= np.cumsum(probabilities))), len(probabilities) - 1)

    def _functions(self, spaces: Spaces) -> Functions:
        agent, config = self.agent, self.config
        return Functions(
            init=self._guard("init", lambda key: agent.init(key, config, spaces)),
            plan=self._guard("plan", lambda key, state: agent.plan(key, config, spaces, state)),
            act=self._guard("act", lambda key, state, observation: agent.act(key, config, state, observation)),
            update=self._guard("update", lambda state, transition: agent.update(config, state, transition)),
            policy=self._guard("policy", lambda state: agent.policy(config, state)),
        )

    def _compile(self, functions: Functions) -> Functions:
        def counted(name, function):
            def traced(*arguments):
                self.traces[name] += 1
                return function(*arguments)

            return self._guard(name, fast_jit(traced))

        return Functions(*(counted(name, function) for name, function in functions._asdict().items()))

    def _guard(self, name: str, function: Callable) -> Callable:
        """The same function, whose errors name it in a sentence."""

        def guarded(*arguments):
            try:
                return function(*arguments)
            except AgentCheckError:
                raise
            except jax.errors.UnexpectedTracerError as error:
                raise self.fail(f"`{name}` uses a value that an earlier call kept outside State") from error
            except Exception as error:
                text = next(iter(str(error).strip().splitlines()), "").rstrip(".: ")
                raise self.fail(f"`{name}` raised {type(error).__name__} ({text})") from error

        return guarded


def fast_jit(function: Callable) -> Callable:
    """`jax.jit` without the compiler's expensive passes: in runs this short, compiling takes all the time."""
    options = {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else None
    return jax.jit(function, compiler_options=options)


def prepare(agent: Any, config: Any = None, environment: str | Environment | None = None) -> Trial:
    """Put an agent on trial; the arguments are those of `check_agent`."""
    name = agent if isinstance(agent, str) else str(getattr(agent, "__name__", type(agent).__name__))
    module = find(AGENTS, "agent", agent).load() if isinstance(agent, str) else agent
    world = make(environment) if isinstance(environment, str) else environment or small_environment()
    if config is None and hasattr(module, "Config"):
        try:
            config = small_config(module.Config)
        except TypeError as error:
            raise AgentCheckError(f"Agent '{name}': Config cannot be made without arguments ({error}).") from error
    if hasattr(module, "informed") and config is not None:
        config = module.informed(config, world.mdp())
    return Trial(module, name, config, world)


def small_config(config_type: type) -> Any:
    """The default settings with everything that makes an agent expensive, where it has it, as small as possible."""
    config = config_type()
    fields = dataclasses.fields(config_type) if dataclasses.is_dataclass(config_type) else ()
    # Twice, because one setting may have to become small before another can.
    for field in (*fields, *fields):
        current, small = getattr(config, field.name), _SMALL.get(field.name)
        # A setting that may be left open (None) is one that may be large.
        if small is not None and (current is None or (isinstance(current, int) and current > small)):
            try:
                config = dataclasses.replace(config, **{field.name: small})
            except (UserError, TypeError, dataclasses.FrozenInstanceError):
                continue  # it has another meaning here
    return config


def small_environment() -> Environment:
    """Three states in a ring, two actions: stay or go on, either with some slips; going on from the last may end it."""
    follows = np.array([[[0, 1], [1, 0]], [[1, 2], [2, 1]], [[2, 0], [0, 2]]])
    reward = np.array([[[0.5, 0.0], [0.0, 0.5]], [[-0.5, 0.0], [0.0, -0.5]], [[0.0, 1.0], [1.0, 0.0]]])
    ends = np.zeros(follows.shape, dtype=bool)
    ends[2, 1, 0] = True
    return Environment(
        name="small-ring",
        outcomes=make_outcomes(np.broadcast_to([0.75, 0.25], follows.shape), follows, reward, [0.5, 0.5, 0.0], ends),
        action_names=("stay", "go on"),
        parameters={},
        view=ChainView(3),
    )


def transition(state: Any, action: Any, reward: float, next_state: Any, terminated: bool) -> Transition:
    """One step with the types that the experiment loops use."""
    fields: tuple[Any, ...] = (
        jnp.asarray(state, jnp.int32),
        jnp.asarray(action),
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(next_state, jnp.int32),
        jnp.asarray(terminated, bool),
    )
    return Transition(*fields)


def key(seed: int, stream: str, step: int = 0) -> jax.Array:
    """The key of one call."""
    number = ("init", "plan", "act").index(stream)
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), number), step)


def named_leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """Arrays with their paths."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        yield jax.tree_util.keystr(path) or "the result", leaf


def numbers(leaf: Any) -> np.ndarray:
    """A leaf as NumPy sees it; keys by their data."""
    if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf)


def same_structure(first: Any, second: Any) -> bool:
    """Whether two trees differ in their leaves only."""
    structures: list[Any] = [jax.tree.structure(first), jax.tree.structure(second)]
    return structures[0] == structures[1]


def difference(first: Any, second: Any, tolerance: float = 0.0) -> str | None:
    """Path of the first leaf in which two trees differ, if any; `tolerance` is for floats, the rest must be equal."""
    if not same_structure(first, second):
        return "the structure"
    for (path, one), (_, two) in zip(named_leaves(first), named_leaves(second), strict=True):
        one, two = numbers(one), numbers(two)
        if one.shape != two.shape or one.dtype != two.dtype:
            return path
        if tolerance and jnp.issubdtype(one.dtype, jnp.inexact):
            finite = np.abs(one[np.isfinite(one)])
            reach = tolerance * max(float(finite.max(initial=0.0)), 1e-6)
            same = np.allclose(one, two, rtol=0.0, atol=reach, equal_nan=True)
        else:
            same = one.tobytes() == two.tobytes()
        if not same:
            return path
    return None
