"""`bellief.run`: many runs of one agent in one environment."""

import dataclasses
import time
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from bellief.agents.schedule import steps_of
from bellief.envs import Environment, make
from bellief.envs.box import BoxEnvironment
from bellief.errors import UserError
from bellief.experiments import asked, asked_gymnasium, loop, stepped
from bellief.experiments.chunks import by_run, chunk_keys, run_chunks
from bellief.experiments.devices import at_work, find_places, wake
from bellief.experiments.results import RunResult, reading_steps
from bellief.experiments.run_box import Compiled, Real, open_box, run_box
from bellief.experiments.settings import build_config
from bellief.mdp.bellman import long_run_average
from bellief.processors import cores
from bellief.registry import AGENTS, DISCRETE, find, looks_like_gymnasium
from bellief.types import Spaces

# Runs that plan together on a GPU: more hardly make a plan cheaper.
GPU_WIDTH = 50


def run(
    env: str | Environment | BoxEnvironment,
    agent: str = "bbi",
    steps: int = 10_000,
    runs: int = 10,
    seed: int = 0,
    *,
    settings: dict[str, Any] | None = None,
    env_settings: dict[str, Any] | None = None,
    table: bool = False,
    bins: int | None = None,
    half_life: float = 1000.0,
    width: int | None = None,
    device: str = "auto",
    readings: tuple[int, ...] = (),
    longest_gap: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> RunResult:
    """Let an agent learn in an environment, `runs` times independently.

    Args:
        env: a registered name, an environment, or the id of a Gymnasium environment with countable actions, and states
            that are countable or a Box.
        agent: a registered name.
        steps: steps of each run.
        runs: number of runs. Run number n is the same however many there are.
        seed: same seed, same result, bit for bit on one machine.
        settings: the agent's settings by name, for example {"rule": "optimistic"}.
        env_settings: parameters of a named environment, for example {"slip": 0.1}. For a Gymnasium environment with
            Box observations `termination` may name a function of a state that says whether it ends an episode.
        table: read a Gymnasium environment's transition table, if it offers one, and run compiled instead of stepping.
        bins: cut Box observations of a Gymnasium environment into so many bins a dimension.
        half_life: steps after which a reward counts half in the smoothed curves.
        width: runs computed side by side; results of different widths differ in rounding. By default 10; where plans
            are made on a GPU as many as there are, up to 50.
        device: `cpu`; `gpu`, where agents plan on the GPU while environments with a known model step on the host; or
            `auto`, a GPU where JAX has one, but the CPU where plans are light: those of PSRL and MMBI with few states,
            and of agents that plan nothing, for up to ten runs at once. Results of two devices differ in rounding.
        readings: steps at which to read the curves, besides the usual ones.
        longest_gap: plan at least every so many steps. The paper's updates come ever more rarely; where an agent can
            repeat itself without moving, at a wall or by a refused pick-up, it learns one thing an update.
        progress: called with the finished fraction from time to time.

    >>> import bellief
    >>> result = bellief.run("nchain", "q-learning", steps=30, runs=2)
    >>> result.total.shape[0], result.policies.shape
    (2, (2, 5, 2))
    """
    if not 1 <= steps < 2**31:
        raise UserError(f"steps must lie between 1 and {2**31 - 1}, not {steps}.")
    if runs < 1:
        raise UserError(f"runs must be at least 1, not {runs}.")
    if not half_life > 0:
        raise UserError(f"half_life must be positive, not {half_life}.")
    if width is not None and width < 1:
        raise UserError(f"width must be at least 1, not {width}.")
    if longest_gap is not None and longest_gap < 1:
        raise UserError(f"longest_gap must be at least 1, not {longest_gap}.")
    if not 0 <= seed < 2**32:
        raise UserError(f"seed must lie between 0 and {2**32 - 1}, not {seed}.")
    entry = find(AGENTS, "agent", agent)
    box = None if table or bins is not None else open_box(env, env_settings or {})
    if box is not None:
        width = width or default_width(device, runs)
        return run_box(
            box, entry, steps, runs, seed, settings or {}, half_life, width, readings, progress, 0, device, longest_gap
        )
    world = open_world(env, env_settings or {}, table, bins)
    module = entry.load_for(DISCRETE, world.name)
    light = plans_lightly(module, world, width)
    told_width = width is not None
    width = width or default_width(device, runs, light)
    places = find_places(device, width, light)
    wake(places)
    config = inform(module, build_config(module.Config, agent, settings or {}), agent, world)
    if asked.asks(config) and not told_width:
        # Runs share nothing, so their number is free: as many groups as there are threads.
        width = 1 if world.real else min(loop.CHUNK_WIDTH, -(-runs // cores()))
    began = time.perf_counter()
    reading = sorted({*reading_steps(steps), *(step for step in readings if 0 < step <= steps)})
    if asked.asks(config):
        if longest_gap is not None:
            raise UserError("longest_gap goes with the schedule triangular: leave it out, or set schedule=triangular.")
        plans = reading  # of all plans, those before a reading are reported
    else:
        plans = steps_of(module, steps, longest_gap)

    def events(numbers: range) -> Generator[Any]:
        keys = chunk_keys(seed, world.name, agent, numbers)
        return world.run_chunk(keys, numbers, seed, module, config, plans, reading, half_life, None, places)

    chunks = [range(first, first + width) for first in range(0, runs, width)]
    gathered = run_chunks(chunks, events, len(plans), progress, places)
    with at_work(places):
        policies = np.concatenate([one.policies(module, config) for one in gathered])[:runs]
    return RunResult(
        env=world.name,
        agent=agent,
        steps=steps,
        runs=runs,
        seed=seed,
        settings=dataclasses.asdict(config),
        half_life=half_life,
        step=np.asarray(reading),
        total=np.concatenate([one.total() for one in gathered])[:runs],
        smoothed=np.concatenate([one.smoothed() for one in gathered])[:runs],
        policies=policies,
        gain=np.array([world.gain(policy) for policy in policies]),
        episodes=by_run([one.episode_columns() for one in gathered], width, runs) if world.real else None,
        info=by_run([one.plan_columns() for one in gathered], width, runs),
        updates=len(plans),
        seconds=time.perf_counter() - began,
    )


class _Tabular:
    """An environment with a known model, stepped by the compiled loop."""

    real = False
    kind = DISCRETE

    def __init__(self, environment: Environment):
        self.environment, self.name, self.model = environment, environment.name, environment.mdp()
        self.spaces = environment.spaces()
        self.tables = loop.make_tables(environment.outcomes, environment.time_limit)

    def gain(self, policy: np.ndarray) -> float:
        """Exact long-run reward per step; a time limit makes the process depend on more than the state."""
        return np.nan if self.environment.time_limit is not None else long_run_average(self.model, policy)

    def run_chunk(
        self, keys, numbers, seed, module, config, plans, readings, half_life, resume=None, places=None
    ) -> Generator[Any]:
        """The events of one chunk, or those after a snapshot."""
        del numbers, seed
        if asked.asks(config):
            return asked.run_chunk(keys, self.tables, module, config, self.spaces, readings, half_life, resume)
        return loop.run_chunk(
            keys, self.tables, module, config, self.spaces, plans, readings, half_life, resume, places
        )

    def shapes(self, keys: loop.RunKeys, module: Any, config: Any) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        if asked.asks(config):
            return asked.run_shapes(keys, self.tables, module, config, self.spaces)
        return loop.run_shapes(keys, self.tables, module, config, self.spaces)


class _Real:
    """A Gymnasium environment, made anew for every run and stepped as it is."""

    real = True
    kind = DISCRETE
    model = None

    def __init__(self, name: str, parameters: dict[str, Any], bins: int | None):
        # Gymnasium is imported only where it is used: the compiled loop runs on machines without it.
        from bellief.envs import discrete

        self.name, self.parameters, self.bins, self.discrete = name, parameters, bins, discrete
        env = discrete.make_gymnasium(name, bins, **parameters)
        self.spaces: Spaces = discrete.gymnasium_spaces(env, name)
        env.close()

    def gain(self, policy: np.ndarray) -> float:
        """Not known."""
        del policy
        return np.nan

    def _simulator(self) -> stepped.Simulator:
        env = self.discrete.make_gymnasium(self.name, self.bins, **self.parameters)
        observation, action = self.discrete.indices(env, self.name)

        def step(number: int) -> tuple[int, float, bool, bool]:
            element, reward, terminated, truncated, _ = env.step(action.decode(number))
            return observation.encode(element), float(reward), bool(terminated), bool(truncated)

        return stepped.Simulator(lambda seed: observation.encode(env.reset(seed=seed)[0]), step, env.close)

    def shapes(self, keys: loop.RunKeys, module: Any, config: Any) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        if asked.asks(config):
            return asked_gymnasium.run_shapes(keys, module, config, self.spaces)
        return stepped.run_shapes(keys, module, config, self.spaces)

    def run_chunk(
        self, keys, numbers, seed, module, config, plans, readings, half_life, resume=None, places=None
    ) -> Generator[Any]:
        """The events of one chunk, or those after a snapshot."""
        simulators = [self._simulator() for _ in numbers]
        seeds = [stepped.environment_seed(seed, self.name, number) for number in numbers]
        common = (keys, simulators, seeds, module, config, self.spaces)
        try:
            if asked.asks(config):
                yield from asked_gymnasium.run_chunk(*common, readings, half_life, resume)
                return
            yield from stepped.run_chunk(*common, plans, readings, half_life, resume, places)
        finally:
            for one in simulators:
                one.close()


World = _Tabular | _Real | Compiled | Real


def open_world(env: Any, parameters: dict[str, Any], table: bool, bins: int | None) -> _Tabular | _Real:
    """An environment and the loop that steps it: the one place that knows which loop belongs to which environment."""
    if isinstance(env, Environment) or not looks_like_gymnasium(env):
        if table or bins is not None:
            raise UserError("table and bins are for Gymnasium environments; leave them out for this one.")
        return _Tabular(env if isinstance(env, Environment) else make(env, **parameters))
    if table:
        if bins is not None:
            raise UserError("A transition table has states already; leave out either table or bins.")
        from bellief.envs.discrete import read_table

        return _Tabular(read_table(env, **parameters))
    return _Real(env, parameters, bins)


def open_any(env: Any, parameters: dict[str, Any], table: bool, bins: int | None) -> World:
    """The same for states of every kind."""
    box = None if table or bins is not None else open_box(env, parameters)
    return open_world(env, parameters, table, bins) if box is None else box


def inform(module: Any, config: Any, agent: str, world: Any) -> Any:
    """The settings an agent runs with: those of an agent that is told the model hold the model."""
    if not hasattr(module, "informed"):
        return config
    if world.model is None:
        raise UserError(f"Agent '{agent}' must be told the model, and '{world.name}' has none to tell.")
    return module.informed(config, world.model)


def plans_lightly(module: Any, world: _Tabular | _Real, width: int | None) -> bool:
    """Whether a processor has done an agent's plans before a GPU has begun; agents say up to how many states.

    But many runs whose steps are not light step sooner in several groups, as they do beside a GPU.
    """
    few = width is None or width <= loop.CHUNK_WIDTH or getattr(module, "LIGHT_STEPS", False)
    return few and world.spaces.states <= getattr(module, "LIGHT_PLANS", 0)


def default_width(device: str, runs: int, light: bool = False) -> int:
    """Runs side by side: on a CPU always as many, so that no run depends on how many there are."""
    if find_places(device, 1, light).plan.devices.flat[0].platform == "cpu":
        return loop.CHUNK_WIDTH
    chunks = -(-runs // GPU_WIDTH)
    return -(-runs // chunks)
