"""A spec taken apart: conditions (an agent in an environment, with its settings) and cells (a condition's runs, ten at
a time).

A cell is a work unit: plain data, the same on every machine, never a pickled object. Its identity holds everything that
decides its numbers and nothing else: no label, no engine, no folder, and not how many other runs there are.
"""

import dataclasses
import hashlib
import itertools
import json
import math
from collections import Counter
from typing import Any, NamedTuple

from bellief.agents.agenda import SELF_SCHEDULED
from bellief.agents.saved_agent import encode_config
from bellief.agents.schedule import steps_of
from bellief.envs import make_any
from bellief.errors import UserError, notify_once, require
from bellief.experiments.results import reading_steps
from bellief.experiments.settings import build_config
from bellief.experiments.task import open_task
from bellief.fast.placement import CPU_WIDTH
from bellief.registry import (
    AGENTS,
    CONTINUOUS,
    DISCRETE,
    ENVIRONMENTS,
    find,
    looks_like_gymnasium,
    restored_name,
    stored_name,
)
from bellief.sweeps.spec import MOST_CELLS, AgentEntry, EnvironmentEntry, Spec


class Cell(NamedTuple):
    """Ten runs of one condition; `identity` is JSON data."""

    id: str
    identity: dict[str, Any]

    @property
    def first(self) -> int:
        """Number of its first run."""
        return self.identity["first"]


@dataclasses.dataclass(frozen=True)
class Setup:
    """An agent in an environment, with settings, as the spec asks for it; the labels are for people."""

    environment: str
    agent: str
    environment_settings: dict[str, Any]
    agent_settings: dict[str, Any]
    steps: int
    runs: int
    half_life: float
    cells: tuple[Cell, ...]


class _Choice(NamedTuple):
    """One combination of an entry's grid: label, settings as given, and in the form that decides numbers."""

    entry: Any
    label: str
    settings: dict[str, Any]
    resolved: Any


def canonical(document: Any) -> str:
    """JSON in the one form that is hashed."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def cell_id(identity: dict[str, Any]) -> str:
    """Twenty hexadecimal digits that stand for the identity."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()[:20]


def kind_of(environment: dict[str, Any]) -> str:
    """Which kind of states a described environment has; known without opening it."""
    name = environment["name"]
    if looks_like_gymnasium(name):
        return CONTINUOUS if environment.get("continuous") else DISCRETE
    return find(ENVIRONMENTS, "environment", name).kinds[0]


def agent_module(identity: dict[str, Any]) -> Any:
    """The agent of a cell, in its form for the states of the cell's environment."""
    environment = identity["environment"]
    return find(AGENTS, "agent", agent_name(identity)).load_for(kind_of(environment), environment["name"])


def agent_name(identity: dict[str, Any]) -> str:
    """The registered name of a cell's agent. Identities keep the names of version 0.1 for the work it knew, so that a
    sweep of that version has the same cells now; agents that have got a new meaning since are of generation 2.
    """
    return restored_name(identity["generation"], identity["agent"]["name"], kind_of(identity["environment"]))


def plan_steps(identity: dict[str, Any]) -> list[int]:
    """The steps at which the agent of a cell plans, or reports its last plan where it schedules them itself."""
    if identity["agent"]["settings"].get("schedule") in SELF_SCHEDULED:
        return reading_steps(identity["steps"], identity["readings"])
    return steps_of(agent_module(identity), identity["steps"])


def expand(spec: Spec, check: bool = True) -> list[Setup]:
    """All conditions of a spec with their cells, in the order of the spec; mistakes are found before any work.

    Without `check`, Gymnasium environments are not opened: to read results they need not be installed.
    """
    _check_size(spec)
    environments = [choice for entry in spec.environments for choice in _environment_choices(entry, check)]
    agents = [
        _Choice(entry, label, settings, None) for entry in spec.agents for label, settings in _combinations(entry)
    ]
    for entry in spec.agents:
        find(AGENTS, "agent", entry.name)
    _check_labels(spec, environments, agents)
    setups = []
    for environment, agent in itertools.product(environments, agents):
        only = agent.entry.only
        if only is not None and not set(only) & _called(environment):
            continue
        setups.append(_setup(spec, environment, _fitted(spec, environment, agent)))
    require(setups, "The sweep has no cells: 'only' leaves no environment for any agent.")
    return setups


def same_work(spec: Spec, other: Spec) -> bool:
    """Whether two specs ask for the same cells under the same labels, though they may name agents differently."""

    def asked(one: Spec) -> list[Any]:
        setups = expand(one, check=False)
        return [(setup.environment, setup.agent, setup.runs, [cell.id for cell in setup.cells]) for setup in setups]

    return spec.name == other.name and asked(spec) == asked(other)


def _setup(spec: Spec, environment: _Choice, agent: _Choice) -> Setup:
    steps = agent.entry.steps or environment.entry.steps or spec.steps
    runs = agent.entry.runs or environment.entry.runs or spec.runs
    half_life = float(environment.entry.half_life or spec.half_life)
    generation, name = stored_name(_meant(spec, environment, agent), kind_of(environment.resolved))
    shared = {
        "generation": generation,
        "environment": environment.resolved,
        "agent": {"name": name, "settings": agent.resolved},
        "steps": steps,
        "half_life": half_life,
        "readings": sorted({step for step in spec.readings if step <= steps}),
        "seed": spec.seed,
        "width": CPU_WIDTH,
    }
    identities = [shared | {"first": first} for first in range(0, runs, CPU_WIDTH)]
    return Setup(
        environment.label,
        agent.label,
        environment.settings,
        agent.settings,
        steps,
        runs,
        half_life,
        tuple(Cell(cell_id(identity), identity) for identity in identities),
    )


def _combinations(entry: EnvironmentEntry | AgentEntry) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for values in itertools.product(*entry.grid.values()):
        varied = dict(zip(entry.grid, values, strict=True))
        told = varied if entry.label is not None else entry.settings | varied
        words = [entry.label or entry.name, *(f"{name}={value}" for name, value in told.items())]
        found.append((" ".join(words)[:200], entry.settings | varied))
    return found


def _environment_choices(entry: EnvironmentEntry, check: bool) -> list[_Choice]:
    name = entry.name
    if ":" in name:
        raise UserError(
            f"Environment '{name}' would import a module, which a sweep may not do: use the id alone, and let the "
            "package register it through the entry-point group 'gymnasium.envs'."
        )
    choices = []
    for label, settings in _combinations(entry):
        world = _describe_environment(entry, settings, check)
        try:
            resolved = json.loads(canonical(world))
        except (TypeError, ValueError) as error:
            raise UserError(f"The settings of environment '{label}' hold what JSON cannot ({error}).") from error
        choices.append(_Choice(entry, label, settings, resolved))
    return choices


def _describe_environment(entry: EnvironmentEntry, settings: dict[str, Any], check: bool) -> dict[str, Any]:
    """What decides an environment: its name and every parameter with the value used. Fails where it cannot be made."""
    name, table, bins = entry.name, entry.table, entry.bins
    described = {"name": name, "settings": settings}
    if looks_like_gymnasium(name):
        if check:
            _check_gymnasium(entry, settings)
        # Said only where it is so: sweeps of earlier versions keep their identities.
        return described | {"table": table, "bins": bins} | ({"continuous": True} if entry.continuous else {})
    if table or bins is not None or entry.continuous:
        raise UserError("table, bins and continuous are for Gymnasium environments; leave them out for this one.")
    return described | {"settings": make_any(name, **settings).parameters}


def _check_gymnasium(entry: EnvironmentEntry, settings: dict[str, Any]) -> None:
    """Open the environment in the way that its entry asks for."""
    name = entry.name
    if not entry.continuous:
        open_task(name, settings, entry.table, entry.bins, DISCRETE)
        return
    if entry.table or entry.bins is not None:
        raise UserError(f"Environment '{name}' is to be continuous and cut up too; leave out table and bins.")
    if "termination" in settings:
        raise UserError(
            f"The setting 'termination' of environment '{name}' would import a module, which a sweep may not do: "
            "leave it out, and the agent learns what ends an episode."
        )
    if open_task(name, settings).kind != CONTINUOUS:
        raise UserError(f"The observations of '{name}' are no Box: leave out 'continuous'.")


def _meant(spec: Spec, environment: _Choice, agent: _Choice) -> str:
    """The registered name of what a spec calls an agent. One that does not say that it was written for version 0.2
    means by `bbi` and `psrl` what version 0.1 did.
    """
    name, kind = agent.entry.name, kind_of(environment.resolved)
    if spec.bellief is not None:
        return name
    meant = restored_name(1, name, kind)
    if meant != name:
        notify_once(
            f"A sweep without the line 'bellief: 0.2' means by '{name}' what version 0.1 did, '{meant}': add the line "
            f"for the new '{name}', or write '{meant}'."
        )
    return meant


def _fitted(spec: Spec, environment: _Choice, agent: _Choice) -> _Choice:
    """The agent with its settings for the states of this environment; `UserError` where the two do not go together."""
    name = _meant(spec, environment, agent)
    try:
        module = find(AGENTS, "agent", name).load_for(kind_of(environment.resolved), environment.resolved["name"])
    except UserError as error:
        advice = f"{str(error).rstrip('.')}, or keep '{agent.label}' out of '{environment.label}' with 'only'."
        raise UserError(advice) from error
    real = looks_like_gymnasium(environment.entry.name) and not environment.entry.table
    if real and hasattr(module, "informed"):
        raise UserError(
            f"Agent '{agent.label}' must be told the model, and '{environment.label}' has none to tell; keep it out of "
            "there with 'only'."
        )
    config = build_config(module.Config, name, agent.settings)
    return agent._replace(resolved=encode_config(config, name))


def _called(environment: _Choice) -> set[str]:
    """What `only` may call an environment: its label, or that of the whole entry where a grid makes several of it."""
    return {environment.label, environment.entry.label or environment.entry.name}


def _check_labels(spec: Spec, environments: list[_Choice], agents: list[_Choice]) -> None:
    for kind, choices in (("environment", environments), ("agent", agents)):
        twice, times = Counter(choice.label for choice in choices).most_common(1)[0]
        require(times <= 1, f"Two {kind}s of the sweep are called '{twice}'; give each a label of its own.")
    known = set().union(*(_called(choice) for choice in environments))
    for entry in spec.agents:
        for name in entry.only or []:
            if name not in known:
                raise UserError(f"Agent '{entry.label or entry.name}' is to run only in '{name}', which is not there.")


def _check_size(spec: Spec) -> None:
    def count(entries: Any) -> int:
        return sum(math.prod(len(values) for values in entry.grid.values()) for entry in entries)

    runs = max([spec.runs, *(entry.runs or 0 for entry in (*spec.environments, *spec.agents))])
    cells = count(spec.environments) * count(spec.agents) * -(-runs // CPU_WIDTH)
    require(cells <= MOST_CELLS, f"The sweep may have up to {cells} cells, and {MOST_CELLS} is the most; split it.")
