"""`bellief.run`: many runs of one agent in one environment."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bellief.agents.agenda import is_self_scheduled
from bellief.agents.schedule import steps_of
from bellief.envs import Environment
from bellief.envs.box import BoxEnvironment
from bellief.errors import UserError, require
from bellief.experiments.batches import Checkpoints, by_run, run_batches
from bellief.experiments.results import RunResult, check_size, reading_steps
from bellief.experiments.settings import build_config
from bellief.experiments.task import Case, inform, open_task
from bellief.fast.placement import at_work, start_gpu
from bellief.registry import AGENTS, CONTINUOUS, announce, find


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
    first_run: int = 0,
    progress: Callable[[float], None] | None = None,
    checkpoints: Checkpoints | None = None,
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
        bins: discretise Box observations of a Gymnasium environment into so many bins a dimension.
        half_life: steps after which a reward counts half in the smoothed curves.
        width: runs computed in one batch; results of different widths differ in rounding. By default 10; where plans
            are made on a GPU as many as there are, up to 50.
        device: `cpu`; `gpu`, where agents plan on the GPU while environments with a known model step on the host; or
            `auto`, a GPU where JAX has one, but the CPU where plans are light: those of PSRL and MMBI with few states,
            and of agents that plan nothing, for up to ten runs at once. Results of two devices differ in rounding.
        readings: more steps at which to read the curves, in addition to the usual ones.
        longest_gap: plan at least every so many steps. The paper's updates come ever more rarely; where an agent can
            repeat itself without moving, at a wall or by a refused pick-up, it learns one thing an update. Not for
            agents with another schedule than `triangular`.
        first_run: number of the first run, for experiments that are spread over several processes.
        progress: called with the finished fraction, several times during the computation.
        checkpoints: saves the state of the runs, as `bellief run --out` does, to continue after an interruption.

    >>> import bellief
    >>> result = bellief.run("nchain", "q-learning", steps=30, runs=2)
    >>> result.total.shape[0], result.policies.shape
    (2, (2, 5, 2))
    """
    require(1 <= steps < 2**31, f"steps must lie between 1 and {2**31 - 1}, not {steps}.")
    require(runs >= 1, f"runs must be at least 1, not {runs}.")
    require(half_life > 0, f"half_life must be positive, not {half_life}.")
    if width is not None and width < 1:
        raise UserError(f"width must be at least 1, not {width}.")
    require(first_run >= 0, f"first_run must be zero or more, not {first_run}.")
    if longest_gap is not None and longest_gap < 1:
        raise UserError(f"longest_gap must be at least 1, not {longest_gap}.")
    require(0 <= seed < 2**32, f"seed must lie between 0 and {2**32 - 1}, not {seed}.")
    entry = find(AGENTS, "agent", agent)
    task = open_task(env, env_settings or {}, table, bins)
    module = entry.load_for(task.kind, task.name)
    announce(agent, task.kind)
    config = inform(module, build_config(module.Config, agent, settings or {}), agent, task)
    if longest_gap is not None and is_self_scheduled(config):
        raise UserError("longest_gap goes with the schedule triangular: leave it out, or set schedule=triangular.")
    width = width or task.default_width(device, runs, module, config)
    places = task.places(device, width, module, config)
    start_gpu(places)
    began = time.perf_counter()
    reading = reading_steps(steps, [step for step in readings if step > 0])
    if task.kind == CONTINUOUS:
        check_size(steps, runs, 3 * len(reading), longest_gap)
    else:
        check_size(steps, runs, len(reading), longest_gap, task.spaces.states * task.spaces.actions)
    # An agent that schedules its plans itself reports the last one at each reading.
    plans = reading if is_self_scheduled(config) else steps_of(module, steps, longest_gap)
    case = Case(task, agent, module, config, seed, plans, reading, half_life, places)
    # Real environments with continuous states take so long to step that the last batch is not padded.
    padded = not (task.real and task.kind == CONTINUOUS)
    last = first_run + runs
    batches = [
        range(first, first + width if padded else min(first + width, last)) for first in range(first_run, last, width)
    ]
    collected = run_batches(case, batches, progress, checkpoints)

    curves = [one.curves() for one in collected]
    policies = np.zeros((runs, 0, 0))
    if task.kind != CONTINUOUS:
        with at_work(places):
            policies = np.concatenate([one.policies(module, config) for one in collected])[:runs]
    return RunResult(
        env=task.name,
        agent=agent,
        steps=steps,
        runs=runs,
        seed=seed,
        settings=dataclasses.asdict(config),
        half_life=half_life,
        step=np.asarray(reading),
        policies=policies,
        gain=np.array([task.gain(policy) for policy in policies]),
        episodes=by_run([one.episode_columns() for one in collected], width, runs) if task.real else None,
        info=by_run([one.plan_columns() for one in collected], width, runs),
        updates=len(plans),
        seconds=time.perf_counter() - began,
        **{name: np.concatenate([one[name] for one in curves])[:runs] for name in curves[0]},
    )
