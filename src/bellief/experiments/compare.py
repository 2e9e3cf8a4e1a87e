"""`bellief.compare_agents`: several agents in one environment, on paired seeds, with honest intervals."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bellief.agents import oracle
from bellief.envs import Environment, make_any
from bellief.errors import UserError, require
from bellief.experiments.results import RunResult
from bellief.experiments.run import run
from bellief.mdp.bellman import long_run_average
from bellief.plots import statistics
from bellief.registry import AGENTS, find, looks_like_gymnasium

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclasses.dataclass(frozen=True, eq=False)
class AgentComparison:
    """Results by label, the first one being what the others are compared with; `optimum` where the model is known.

    >>> import bellief
    >>> found = bellief.compare_agents("nchain", ["q-learning", "eager=q-learning:epsilon=0"], steps=30, runs=2)
    >>> isinstance(found, bellief.AgentComparison), list(found.to_pandas().columns)[:3]
    (True, ['final_average_reward', 'final_average_reward_low', 'final_average_reward_high'])
    """

    results: dict[str, RunResult]
    optimum: float | None

    def to_pandas(self) -> "pd.DataFrame":
        """One row per agent; the columns are those of `to_dict`, with intervals as `_low` and `_high`."""
        rows = []
        for entry in self.to_dict()["agents"]:
            flat: dict[str, Any] = {}
            for name, value in entry.items():
                if isinstance(value, dict):
                    flat |= {name: value["value"], f"{name}_low": value["low"], f"{name}_high": value["high"]}
                else:
                    flat[name] = value
            rows.append(flat)
        import pandas as pd

        return pd.DataFrame(rows).set_index("agent")

    def to_dict(self) -> dict[str, Any]:
        """The reward of the last tenth (mean, interquartile mean), the paired difference to the first agent and the
        probability to beat it, and the average regret of the whole run and of the last tenth, each with a 95% bootstrap
        interval over runs.
        """
        first = next(iter(self.results.values()))
        base = first.final_average_reward
        agents = []
        for label, result in self.results.items():
            final = result.final_average_reward
            entry: dict[str, Any] = {
                "agent": label,
                "final_average_reward": statistics.bootstrap(final)._asdict(),
                "interquartile_mean": statistics.bootstrap(final, statistics.interquartile_mean)._asdict(),
                "average_reward": statistics.bootstrap(result.average_reward)._asdict(),
            }
            if result is not first:
                entry["difference"] = statistics.paired_difference(final, base)._asdict()
                entry["probability_of_improvement"] = statistics.probability_of_improvement(final, base)._asdict()
            if self.optimum is not None:
                entry["regret"] = statistics.bootstrap(self.optimum - result.average_reward)._asdict()
                entry["final_regret"] = statistics.bootstrap(self.optimum - final)._asdict()
            agents.append(entry)
        return {
            "env": first.env,
            "steps": first.steps,
            "runs": first.runs,
            "seed": first.seed,
            "optimum": self.optimum,
            "baseline": next(iter(self.results)),
            "agents": agents,
        }

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """All curves on one axis, with the optimum as a line."""
        reference = {} if self.optimum is None else {"optimum": self.optimum}
        for label, result in self.results.items():
            ax = result.plot(ax=ax, label=label, reference=reference)
            reference = {}
        assert ax is not None
        ax.legend()
        return ax


def best_average(environment: Environment) -> float:
    """The largest long-run average reward that any policy has."""
    model = environment.mdp()
    actions = oracle.informed(oracle.Config(), model).actions
    return long_run_average(model, np.eye(environment.actions)[list(actions)])


def parse_agent(text: str) -> tuple[str, str, dict[str, str]]:
    """`bbi:rule=optimistic,horizon=50` as label, agent and settings; `mine=bbi:rule=optimistic` is labelled `mine`."""
    head, _, tail = text.partition(":")
    label, equals, name = head.partition("=")
    if not equals:
        label, name = text, head
    settings = {}
    for item in filter(None, tail.split(",")):
        key, equals, value = item.partition("=")
        require(equals and key, f"'{item}' in agent '{text}' is no setting; write agent:name=value,name=value.")
        settings[key] = value
    find(AGENTS, "agent", name)
    return label, name, settings


def compare_agents(
    env: str | Environment,
    agents: list[str],
    steps: int = 10_000,
    runs: int = 10,
    seed: int = 0,
    *,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> AgentComparison:
    """Run several agents, given as `name` or `name:setting=value,...`; the first is the baseline of differences.

    Run n of every agent has the same random numbers in the environment, so differences are taken run by run. `options`
    are those of `bellief.run`.

    >>> import bellief
    >>> found = bellief.compare_agents("nchain", ["q-learning", "eager=q-learning:epsilon=0"], steps=30, runs=2)
    >>> list(found.results), round(found.optimum, 3)
    (['q-learning', 'eager'], 3.677)
    """
    require(agents, "Name at least one agent to compare.")
    parsed = [parse_agent(text) for text in agents]
    if len({label for label, _, _ in parsed}) < len(parsed):
        raise UserError("Two agents have the same name; tell them apart as label=agent:settings.")
    results = {}
    for number, (label, agent, settings) in enumerate(parsed):

        def part(fraction: float, number: int = number) -> None:
            if progress is not None:
                progress((number + fraction) / len(parsed))

        results[label] = run(env, agent, steps, runs, seed, settings=settings, progress=part, **options)
    known = not isinstance(env, str) or not looks_like_gymnasium(env)
    optimum = None
    if known:
        environment = make_any(env, **(options.get("env_settings") or {})) if isinstance(env, str) else env
        optimum = best_average(environment) if isinstance(environment, Environment) else None
    return AgentComparison(results, optimum)
