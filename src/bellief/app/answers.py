"""Answers to questions about a log: the library's results as documents that the page draws.

Nothing is computed here that the command line does not compute: every answer is a result of `bellief.evaluate`,
`compare`, `improve`, `collect_next` or `check`, with the command and the Python that give it.
"""

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellief.app.opened_log import OpenedLog, names, rows_of
from bellief.app.questions import DRAWS, Settings, command, snippet
from bellief.decisions import check, collect_next, compare, improve
from bellief.evaluation import evaluate
from bellief.plots.density import common_window, finite, is_point, outline

MOST_STATES = 400
MOST_PAIRS = 10
MOST_OUTCOMES = 4
MOST_ACTIONS = 60


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """A result of the library, the document that the page gets, and the command that gives the result."""

    result: Any
    document: dict[str, Any]
    command: str


def _answered(result: Any, told: dict[str, Any], said: str, python: str, began: float) -> Answer:
    told |= {"command": said, "python": python, "seconds": time.perf_counter() - began}
    return Answer(result, _plain(told), said)


def _plain(value: Any) -> Any:
    """The same with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def curve(samples: np.ndarray, limits: tuple[float, float] | None = None) -> dict[str, list[float]]:
    """A density as points of a line, its highest value one; a single number is a spike."""
    kept = finite(samples)
    limits = common_window([kept]) if limits is None else limits
    if is_point(kept):
        place = float(kept[0]) if len(kept) else 0.0
        return {"x": [limits[0], place, place, place, limits[1]], "y": [0, 0, 1, 0, 0]}
    grid, height = outline(kept, limits)
    return {"x": _rounded(grid), "y": _rounded(height, 4)}


def _rounded(values: np.ndarray, digits: int = 7) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]


def ask_value(log: OpenedLog, policy: tuple[str, Any], settings: Settings, draws: int = DRAWS) -> Answer:
    """What a policy is worth."""
    began, (name, given) = time.perf_counter(), policy
    options = settings.options("level", "horizon", "prior", "reward_range")
    posterior = evaluate(log.tally, given, settings.discount, draws=draws, **options)
    told: dict[str, Any] = {
        "start": posterior.start_summary(),
        "level": posterior.level,
        "discount": posterior.discount,
        "density": curve(posterior.start_samples),
        "states": state_rows(log, posterior),
        "more_states": max(0, int(log.tally.acting.sum()) - MOST_STATES),
        "warnings": posterior.diagnostics["warnings"],
        "time_in_unvisited": posterior.diagnostics["time_in_unvisited_pairs"],
        "sentences": posterior.explain(),
        "draws": draws,
        "policy": name,
        "supported": posterior.supported,
        "bounds": posterior.bounds,
        "cannot_tell": posterior.cannot_tell,
    }
    word = given if isinstance(given, str) else f"{name}.csv"
    said = command("evaluate", log, [], {"policy": word, "discount": settings.discount, **options})
    python = snippet(
        "evaluate", log, [word, settings.discount], options, "print(answer.start_summary(), answer.explain())"
    )
    return _answered(posterior, told, said, python, began)


def state_rows(log: OpenedLog, posterior: Any) -> list[dict[str, Any]]:
    """States in which actions were taken, the most visited ones where there are many, in their own order."""
    visits = log.tally.visits().sum(-1)
    chosen = np.flatnonzero(log.tally.acting)
    chosen = np.sort(chosen[np.argsort(-visits[chosen], kind="stable")][:MOST_STATES])
    low, high = posterior.interval()
    mean, labels = posterior.mean, posterior.state_names
    return [
        {
            "state": str(labels[state]),
            "index": int(state),
            "mean": float(mean[state]),
            "low": float(low[state]),
            "high": float(high[state]),
            "visits": int(visits[state]),
        }
        for state in chosen
    ]


def show_state(log: OpenedLog, posterior: Any, policy: Any, state: int) -> dict[str, Any]:
    """One state: its density, and its actions with what happened after them."""
    from bellief.evaluation.policy_forms import read_policy

    tally, table = log.tally, read_policy(policy, log.tally)
    states, actions = names(tally.states, tally.state_labels), names(tally.actions, tally.action_labels)
    samples = posterior.samples[:, state]
    low, high = posterior.interval()
    pairs = []
    seen_in_state = tally.visits()[state]
    for action in np.sort(np.lexsort((-seen_in_state, -table[state]))[:MOST_ACTIONS]):
        cells = np.flatnonzero((tally.cell_state == state) & (tally.cell_action == action))
        seen = int(tally.cell_count[cells].sum())
        ordered = cells[np.argsort(-tally.cell_count[cells], kind="stable")]
        pairs.append(
            {
                "action": str(actions[action]),
                "share": float(table[state, action]),
                "seen": seen,
                "reward": float(tally.cell_count[cells] @ tally.cell_mean[cells]) / seen if seen else None,
                "leads_to": [
                    {
                        "state": "the end" if tally.cell_next[cell] < 0 else str(states[tally.cell_next[cell]]),
                        "ends": bool(tally.cell_terminated[cell]),
                        "times": int(tally.cell_count[cell]),
                    }
                    for cell in ordered[:MOST_OUTCOMES]
                ],
                "more": max(0, len(ordered) - MOST_OUTCOMES),
            }
        )
    return {
        "state": str(states[state]),
        "mean": float(samples.mean()),
        "low": float(low[state]),
        "high": float(high[state]),
        "level": posterior.level,
        "density": curve(samples),
        "pairs": pairs,
    }


def ask_collect(log: OpenedLog, policy: tuple[str, Any], settings: Settings) -> Answer:
    """Which pairs the interval comes from."""
    began, (name, given) = time.perf_counter(), policy
    options = settings.options("prior", "reward_range")
    plan = collect_next(log.tally, given, settings.discount, **options)
    told = plan.to_dict(MOST_PAIRS)
    told["pairs"] = [pair | {"state": str(pair["state"]), "action": str(pair["action"])} for pair in told["pairs"]]
    word = given if isinstance(given, str) else f"{name}.csv"
    said = command("collect", log, [], {"policy": word, "discount": settings.discount, **options})
    python = snippet("collect_next", log, [word, settings.discount], options, "print(answer.to_pandas(10))")
    return _answered(plan, told, said, python, began)


def ask_compare(log: OpenedLog, policies: Sequence[tuple[str, Any]], settings: Settings, target: float) -> Answer:
    """Which policy is the best."""
    began = time.perf_counter()
    options = settings.options("level", "horizon", "prior", "reward_range") | (
        {} if target == 0.95 else {"target": target}
    )
    comparison = compare(log.tally, dict(policies), settings.discount, **options)
    limits = common_window([finite(comparison.samples[:, number]) for number in range(len(policies))])
    told = comparison.to_dict()
    for number, row in enumerate(told["policies"]):
        row["density"] = curve(comparison.samples[:, number], limits)
    words = [given if isinstance(given, str) else f"{name}.csv" for name, given in policies]
    said = command("compare", log, words, {"discount": settings.discount, **options})
    python = snippet("compare", log, [words, settings.discount], options, "print(answer.to_pandas(), answer.notes)")
    return _answered(comparison, told, said, python, began)


def ask_improve(log: OpenedLog, settings: Settings, objective: str) -> Answer:
    """A policy that the data recommend."""
    began = time.perf_counter()
    options = settings.options("level", "prior", "reward_range") | (
        {} if objective == "mean" else {"objective": objective}
    )
    improvement = improve(log.tally, settings.discount, **options)
    told = improvement.to_dict()
    # States in which no action was ever taken are left out.
    acts = log.tally.acting[improvement.listed]
    acting = [row for row, does in zip(told["policy"], acts, strict=True) if does]
    told = {
        "policy": [row | {"state": str(row["state"])} for row in acting[:MOST_STATES]],
        "changed": sum(row["action"] != row["usual_action"] for row in acting),
        "prob_better": improvement.prob_better,
        "objective": objective,
        "start": improvement.posterior.start_summary(),
        "cannot_tell": improvement.posterior.cannot_tell,
    }
    said = command("improve", log, [], {"discount": settings.discount, **options, "out": "improved.csv"})
    python = snippet("improve", log, [settings.discount], options, "print(answer.to_pandas(), answer.prob_better)")
    return _answered(improvement, told, said, python, began)


def ask_check(log: OpenedLog) -> Answer:
    """Check that the log meets the assumptions of evaluation."""
    began = time.perf_counter()
    found = check(rows_of(log))
    told = found.to_dict() | {"outliers": found.to_dict()["outliers"][:MOST_PAIRS]}
    said = command("check", log, [], {})
    columns: Mapping[str, str] = log.columns
    how = f"bellief.as_transitions({log.name!r}{f', columns={dict(columns)!r}' if columns else ''})"
    python = f"import bellief\n\nanswer = bellief.check({how})\nprint(answer.warnings)"
    return _answered(found, told, said, python, began)
