"""Real Gymnasium environments with agents that plan when something has happened (`agents.agenda`).

Lanes plan at different steps, so each has a state of its own and is called on its own: one compiled call learns from a
step, says whether a plan is due, and gives the next action if not. Events, seeds and replays are those of `stepped`.
"""

import functools
from collections.abc import Generator
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bellief.agents import agenda
from bellief.experiments import devices
from bellief.experiments.asked import Asked
from bellief.experiments.drive import Plan, Reading, Snapshot
from bellief.experiments.segments import ACT_STREAM, INIT_STREAM, PLAN_STREAM, Run, RunKeys
from bellief.experiments.stepped import Episode, ReplayError, Simulator
from bellief.types import Spaces, Transition, default_precision


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"))
def begin(key: RunKeys, *, agent: ModuleType, config, spaces: Spaces) -> Asked:
    """One lane's agent as it begins."""
    state = agent.init(jax.random.fold_in(key.agent, INIT_STREAM), config, spaces)
    return Asked(state, agenda.init(spaces))


@functools.partial(jax.jit, static_argnames=("agent", "config", "spaces"), donate_argnames=("asked",))
def plan(key: RunKeys, step, asked: Asked, observation, *, agent: ModuleType, config, spaces: Spaces):
    """Plan before the step of that number (counted from 1) and choose its action."""
    plan_key = jax.random.fold_in(jax.random.fold_in(key.agent, PLAN_STREAM), step)
    state, info = agent.plan(plan_key, config, spaces, asked.state)
    asked = Asked(state, agenda.planned(asked.agenda, observation))
    return asked, _act(key, step, asked, observation, agent, config), info


@functools.partial(jax.jit, static_argnames=("agent", "config"), donate_argnames=("asked",))
def learn(key: RunKeys, step, asked: Asked, transition: Transition, observation, *, agent: ModuleType, config):
    """Learn from a transition; whether to plan before the next step, of number `step`, and its action if not."""
    asked = Asked(agent.update(config, asked.state, transition), agenda.observe(asked.agenda, transition))
    due = agenda.due(agenda.schedule_of(config), asked.agenda, observation)
    return asked, due, _act(key, step, asked, observation, agent, config)


def _act(key: RunKeys, step, asked: Asked, observation, agent: ModuleType, config):
    act_key = jax.random.fold_in(jax.random.fold_in(key.agent, ACT_STREAM), step - 1)
    return agent.act(act_key, config, asked.state, observation)


class _Lane:
    """One run: its environment, its agent, and what it has earned."""

    def __init__(self, key: RunKeys, simulator: Simulator, seed: int, static: dict[str, Any], asked: Asked):
        self.key, self.simulator, self.static, self.asked = key, simulator, static, asked
        self.brief = {name: value for name, value in static.items() if name != "spaces"}
        self.observation = np.int32(simulator.reset(seed))
        self.total, self.recent, self.earned, self.length = 0.0, 0.0, 0.0, 0
        self.due, self.action, self.info = True, 0, None

    def choose(self, step: int) -> int:
        """The action of the step of that number."""
        if self.due:
            self.asked, action, self.info = plan(self.key, np.int32(step), self.asked, self.observation, **self.static)
            self.action = int(action)
        return self.action

    def take(self, step: int, action: int, decay: float, learns: bool) -> tuple[float, bool] | None:
        """One step of the environment, and of the agent if it learns; what the episode paid and whether the MDP ended
        it, if it is over.
        """
        before = self.observation
        following, reward, ended, cut = self.simulator.step(action)
        self.total += reward
        self.recent = decay * self.recent + (1 - decay) * reward
        self.earned, self.length = self.earned + reward, self.length + 1
        over = ended or cut
        self.observation = np.int32(self.simulator.reset(None) if over else following)
        if learns:
            seen: tuple[Any, ...] = (
                before,
                np.int32(action),
                default_precision().type(reward),
                np.int32(following),
                np.bool_(ended),
            )
            transition = Transition(*seen)
            self.asked, due, chosen = learn(
                self.key, np.int32(step + 1), self.asked, transition, self.observation, **self.brief
            )
            self.due, self.action = bool(due), int(chosen)
        return (self.earned, ended) if over else None


def run_chunk(
    keys: RunKeys,
    simulators: list[Simulator],
    seeds: list[int],
    agent: ModuleType,
    config: Any,
    spaces: Spaces,
    reading_steps: list[int],
    half_life: float,
    resume: Snapshot | None = None,
) -> Generator[Any]:
    """Drive one chunk of runs to the last reading step; the events of `stepped.run_chunk`, with a `Plan` at every
    reading that has what each lane's last plan reported.
    """
    width, decay = len(simulators), 0.5 ** (1 / half_life)
    place = devices.find_places("cpu", 1).step.devices.flat[0]
    static = {"agent": agent, "config": config, "spaces": spaces}
    own_keys = [jax.device_put(jax.tree.map(lambda leaf, one=lane: leaf[one], keys), place) for lane in range(width)]
    states = [begin(key, **static) for key in own_keys] if resume is None else _apart(resume.runs, width)
    parts = zip(own_keys, simulators, seeds, states, strict=True)
    lanes = [_Lane(key, simulator, seed, static, state) for key, simulator, seed, state in parts]
    replayed = 0 if resume is None else resume.event
    readings = set(reading_steps)
    history = np.zeros((max(readings), width), np.min_scalar_type(spaces.actions - 1))
    if resume is not None:
        history[:replayed] = resume.host["actions"]
    for step in range(1, max(readings) + 1):
        for number, lane in enumerate(lanes):
            if step > replayed:
                history[step - 1, number] = lane.choose(step)
            done = lane.take(step, int(history[step - 1, number]), decay, step > replayed)
            if done is not None:
                if step > replayed:
                    yield Episode(number, step, lane.length, float(done[0]), bool(done[1]))
                lane.earned, lane.length = 0.0, 0
        if resume is not None and step == replayed:
            _check_replay(lanes, resume, step)
        if step in readings and step > replayed:
            weight = 1 - decay**step
            yield Reading(
                step, np.array([lane.total for lane in lanes]), np.array([lane.recent for lane in lanes]) / weight
            )
            yield Plan(step, _together([jax.device_get(lane.info) for lane in lanes]))
            host = {
                "actions": history[:step],
                "observations": np.array([lane.observation for lane in lanes]),
                "due": np.array([lane.due for lane in lanes]),
                "action": np.array([lane.action for lane in lanes]),
            }
            yield Snapshot(step, _together([lane.asked for lane in lanes]), host)
    states = _together([lane.asked.state for lane in lanes])
    yield Run(
        states, *(jnp.asarray([getattr(lane, name) for lane in lanes]) for name in ("observation", "length", "recent"))
    )


def _check_replay(lanes: list[_Lane], resume: Snapshot, step: int) -> None:
    if not np.array_equal([lane.observation for lane in lanes], resume.host["observations"]):
        raise ReplayError(f"after {step} steps the environment is not where it was")
    for lane, due, action in zip(lanes, resume.host["due"], resume.host["action"], strict=True):
        lane.due, lane.action = bool(due), int(action)


def _together(trees: list[Any]) -> Any:
    """The lanes along a first axis, in ordinary memory."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def _apart(tree: Any, width: int) -> list[Any]:
    return [jax.tree.map(lambda leaf, one=lane: jnp.asarray(leaf[one]), tree) for lane in range(width)]


def run_shapes(keys: RunKeys, agent: ModuleType, config: Any, spaces: Spaces) -> Any:
    """Shapes and dtypes of a chunk's agents, to check saved ones against; nothing is computed."""
    one = functools.partial(begin, agent=agent, config=config, spaces=spaces)
    return jax.eval_shape(jax.vmap(one), keys)
