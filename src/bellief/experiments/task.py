"""What a run needs of an environment, for tables and continuous states, compiled or stepped by Gymnasium.

`open_task` is the one place that decides which loop belongs to which environment, and a task's `events` the one that
decides it for an agent: those with a schedule of their own (`agents.agenda`) have loops of their own. A `Case` is an
agent with its settings in a task.
"""

import contextlib
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np

from bellief.agents.agenda import is_self_scheduled
from bellief.envs import Environment, make_any
from bellief.envs.box import BoxEnvironment
from bellief.errors import UserError
from bellief.experiments import compiled_loop, gymnasium_loop, self_scheduled_loop
from bellief.experiments.compiled_environments import make_box, make_tables
from bellief.experiments.compiled_steps import RunKeys, batch_keys
from bellief.experiments.event_loop import Snapshot
from bellief.experiments.gymnasium_agents import ScheduledAgents, SelfScheduledAgents
from bellief.fast import placement
from bellief.mdp.bellman import long_run_average
from bellief.registry import CONTINUOUS, DISCRETE, looks_like_gymnasium
from bellief.types import BoxSpaces, default_precision


class Case(NamedTuple):
    """What decides the numbers of runs: a task, an agent with its settings, the seed, and when the agent plans and the
    curves are read. `name` is the agent's, which its random numbers depend on.
    """

    task: "Task"
    name: str
    agent: Any
    config: Any
    seed: int
    plans: list[int]
    readings: list[int]
    half_life: float
    places: placement.Places

    def keys(self, numbers: range) -> RunKeys:
        """The keys of the runs with these numbers."""
        return batch_keys(self.seed, self.task.name, self.name, numbers)

    def events(self, numbers: range, resume: Snapshot | None = None) -> Generator[Any]:
        """The events of one batch, or those after a snapshot."""
        return self.task.events(self, numbers, resume)

    def shapes(self, numbers: range) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        return self.task.shapes(self, numbers)


class Task:
    """An environment and the loop that steps it.

    `kind` tells discrete from continuous states; `real` whether Gymnasium steps it; `model` is the MDP where it is
    known.
    """

    real = False
    model: Any = None

    def __init__(self, name: str, spaces: Any):
        self.name, self.spaces = name, spaces
        self.kind = CONTINUOUS if isinstance(spaces, BoxSpaces) else DISCRETE

    def gain(self, policy: np.ndarray) -> float:
        """Exact long-run reward per step of a policy, NaN where it is not known."""
        del policy
        return np.nan

    def places(self, device: str, width: int, agent: Any, config: Any = None) -> placement.Places:
        """Devices for a batch. Continuous states step where they plan: stepping costs little compared with fitting.
        Agents that schedule their plans themselves step and plan on one CPU device.
        """
        if is_self_scheduled(config):
            if device == "gpu":
                raise UserError(
                    f"With the schedule '{config.schedule}' runs are computed on the CPU: choose the device cpu or "
                    "auto, or set schedule=triangular."
                )
            return placement.find_places("cpu" if device == "auto" else device, 1)
        if self.kind == CONTINUOUS:
            place = placement.find_places(device, 1).plan
            return placement.Places(place, place)
        return placement.find_places(device, width, placement.plans_lightly(agent, self.spaces, width))

    def default_width(self, device: str, runs: int, agent: Any, config: Any = None) -> int:
        """Runs in a batch, where the user does not say."""
        if is_self_scheduled(config):
            return 1  # runs of a batch are computed one after the other, and batches concurrently
        light = self.kind == DISCRETE and placement.plans_lightly(agent, self.spaces, None)
        return placement.default_width(device, runs, agent, self.spaces, light)

    def events(self, case: Case, numbers: range, resume: Snapshot | None) -> Generator[Any]:
        """The events of the runs with these numbers, or those after a snapshot."""
        raise NotImplementedError

    def shapes(self, case: Case, numbers: range) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        raise NotImplementedError


class CompiledTask(Task):
    """One of our environments, stepped by the compiled loop."""

    def __init__(self, environment: Environment | BoxEnvironment):
        self.environment = environment
        if isinstance(environment, BoxEnvironment):
            super().__init__(environment.name, environment.spaces)
        else:
            super().__init__(environment.name, environment.spaces())
            self.model = environment.mdp()

    def gain(self, policy: np.ndarray) -> float:
        """Exact long-run reward per step; a time limit makes the process depend on more than the state."""
        unknown = self.model is None or self.environment.time_limit is not None
        return np.nan if unknown else long_run_average(self.model, policy)

    def _compiled(self, numbers: range) -> Any:
        if isinstance(self.environment, BoxEnvironment):
            return make_box(self.environment, numbers)
        return make_tables(self.environment.outcomes, self.environment.time_limit)

    def events(self, case: Case, numbers: range, resume: Snapshot | None) -> Generator[Any]:
        """The events of one batch, or those after a snapshot."""
        common = (case.keys(numbers), self._compiled(numbers), case.agent, case.config, self.spaces)
        if is_self_scheduled(case.config):
            return self_scheduled_loop.run_batch(*common, case.readings, case.half_life, resume)
        return compiled_loop.run_batch(*common, case.plans, case.readings, case.half_life, resume, case.places)

    def shapes(self, case: Case, numbers: range) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        loop = self_scheduled_loop if is_self_scheduled(case.config) else compiled_loop
        return loop.run_shapes(case.keys(numbers), self._compiled(numbers), case.agent, case.config, self.spaces)


class GymnasiumTask(Task):
    """A Gymnasium environment, created anew for every run and stepped as it is."""

    real = True

    def __init__(self, name: str, parameters: dict[str, Any], spaces: Any, bins: int | None = None):
        super().__init__(name, spaces)
        self.parameters, self.bins = parameters, bins

    def _simulator(self) -> gymnasium_loop.Simulator:
        # Gymnasium is imported only where it is used: the compiled loop runs on machines without it.
        from bellief.envs import discrete

        env = discrete.make_gymnasium(self.name, self.bins, **self.parameters)
        if self.kind == CONTINUOUS:
            action = discrete.Index.of(env.action_space, f"The actions of {self.name}")
            encode: Callable[[Any], Any] = _flat
        else:
            observation, action = discrete.indices(env, self.name)
            encode = observation.encode

        def step(number: int) -> tuple[Any, float, bool, bool]:
            element, reward, terminated, truncated, _ = env.step(action.decode(number))
            return encode(element), float(reward), bool(terminated), bool(truncated)

        return gymnasium_loop.Simulator(lambda seed: encode(env.reset(seed=seed)[0]), step, env.close)

    def _agents(self, case: Case, numbers: range) -> ScheduledAgents | SelfScheduledAgents:
        common = (case.keys(numbers), case.agent, case.config, self.spaces)
        if is_self_scheduled(case.config):
            return SelfScheduledAgents(*common)
        return ScheduledAgents(*common, case.plans, case.places)

    def events(self, case: Case, numbers: range, resume: Snapshot | None) -> Generator[Any]:
        """The events of one batch, or those after a snapshot."""
        with contextlib.ExitStack() as stack:
            simulators = []
            for _ in numbers:
                simulators.append(self._simulator())
                stack.callback(simulators[-1].close)
            seeds = [gymnasium_loop.environment_seed(case.seed, self.name, number) for number in numbers]
            agents = self._agents(case, numbers)
            yield from gymnasium_loop.run_batch(simulators, seeds, agents, case.readings, case.half_life, resume)

    def shapes(self, case: Case, numbers: range) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        return self._agents(case, numbers).shapes()


def _flat(observation: Any) -> np.ndarray:
    return np.ravel(observation).astype(default_precision())


def open_task(
    env: Any, parameters: dict[str, Any], table: bool = False, bins: int | None = None, kind: str | None = None
) -> Task:
    """The task for a registered name, an environment or the id of a Gymnasium environment.

    A Gymnasium environment with Box observations is continuous unless `kind` says otherwise.
    """
    if isinstance(env, Environment | BoxEnvironment) or not looks_like_gymnasium(env):
        if table or bins is not None:
            raise UserError("table and bins are for Gymnasium environments; leave them out for this one.")
        return CompiledTask(env if isinstance(env, Environment | BoxEnvironment) else make_any(env, **parameters))
    # Gymnasium is imported only where it is used: the compiled loop runs on machines without it.
    from bellief.envs import discrete, gymnasium_box

    if table:
        if bins is not None:
            raise UserError("A transition table has states already; leave out either table or bins.")
        return CompiledTask(discrete.read_table(env, **parameters))
    if bins is None and kind != DISCRETE:
        real, own, termination = gymnasium_box.open_gymnasium(env, parameters)
        with contextlib.closing(real):
            if gymnasium_box.has_box(real):
                return GymnasiumTask(env, own, gymnasium_box.box_spaces(real, env, termination))
    with contextlib.closing(discrete.make_gymnasium(env, bins, **parameters)) as real:
        return GymnasiumTask(env, parameters, discrete.gymnasium_spaces(real, env), bins)


def inform(agent: Any, config: Any, name: str, task: Task) -> Any:
    """The settings an agent runs with: those of an oracle embed the true MDP."""
    if not hasattr(agent, "informed"):
        return config
    if task.model is None:
        raise UserError(f"Agent '{name}' must be told the model, and '{task.name}' has none to tell.")
    return agent.informed(config, task.model)
