"""The page of any sweep: curves, final rewards, paired comparisons, what is missing, and what it was made with.

It is a function of the sweep's folder alone: made twice, it is the same bytes.
"""

import dataclasses
import functools
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bellief.envs import Environment, make_any
from bellief.experiments.compare import best_average
from bellief.experiments.results import last_tenth, late_reward, mean_length, summarise
from bellief.files import write_whole
from bellief.plots import statistics
from bellief.registry import looks_like_gymnasium
from bellief.report.document import Chart, Curve, Document, Section, Table
from bellief.report.interactive import render
from bellief.sweeps.cells import canonical
from bellief.sweeps.store_reader import Condition, Curves, SweepResults, open_store

REPORT = "report.html"
MISSING = ("damaged", "started", "pending")


@dataclasses.dataclass(frozen=True)
class Read:
    """A condition with what was read of it."""

    condition: Condition
    curves: Curves

    @property
    def final(self) -> np.ndarray:
        """Reward per step of every run over its last tenth."""
        return late_reward(self.curves.step, self.curves.total, self.condition.steps)

    @property
    def final_length(self) -> np.ndarray:
        """Each run's mean length of the episodes of its last tenth, as `RunResult.final_steps_survived`."""
        curves, steps = self.curves, self.condition.steps
        assert curves.over is not None
        assert curves.length is not None
        begin = last_tenth(steps)
        first = int(np.searchsorted(curves.step, begin)) + 1 if begin else 0
        return mean_length(curves.over, curves.length, first, len(curves.step), steps)


def write_sweep_report(folder: str | Path, out: str | Path | None = None) -> tuple[Path, dict[str, Any]]:
    """Make the page of a sweep's folder; returns where it is, and how the sweep stands.

    >>> import tempfile
    >>> from bellief.report.sweep_page import write_sweep_report
    >>> from bellief.sweeps import run_sweep
    >>> from bellief.sweeps.engines.batch import Batch
    >>> from bellief.sweeps.spec import Spec
    >>> spec = Spec(name="chains", steps=20, runs=2, environments=["nchain"], agents=["q-learning"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run_sweep(spec, f"{folder}/chains", engine=Batch)
    ...     path, standing = write_sweep_report(f"{folder}/chains")
    ...     print(path.name, path.stat().st_size > 10_000)
    report.html True
    """
    results = open_store(folder)
    document = sweep_document(results)
    path = Path(folder) / REPORT if out is None else Path(out)
    return write_whole(path, render(document).encode()), results.to_dict()


def sweep_document(results: SweepResults) -> Document:
    """What a sweep's page says. Damaged cells are left out and named, like those that are missing."""
    results.ledger.scan(deep=True)
    state = results.to_dict()
    read = [Read(condition, condition.curves()) for condition in results.conditions if condition.cells]
    environments = list(dict.fromkeys(condition.environment for condition in results.conditions))
    sections = [_state_section(results, state)] if state["finished"] < state["cells"] else []
    for number, environment in enumerate(environments, 1):
        here = [one for one in read if one.condition.environment == environment]
        sections.append(_environment_section(f"environment-{number}", environment, here))
    sections.append(_spec_section(results))
    return Document(f"Sweep {results.spec.name}", _summary(state, read), (), sections, _facts(results))


def _summary(state: dict[str, Any], read: Sequence[Read]) -> list[str]:
    conditions, runs = len(state["conditions"]), sum(len(one.curves.run) for one in read)
    lines = [
        f"{conditions} combinations of environment and agent, {runs:,} finished runs, seed {state['seed']}. Run n of "
        "every agent meets the same random numbers in the environment, so that agents are compared run by run."
    ]
    if state["finished"] < state["cells"]:
        missing = state["cells"] - state["finished"]
        lines.append(
            f"Not finished: {missing} of {state['cells']} cells are missing, and the page shows what there is."
        )
    return lines


def _state_section(results: SweepResults, state: dict[str, Any]) -> Section:
    rows = [
        [row["environment"], row["agent"], row["cells"], row["finished"], *(row[name] for name in MISSING)]
        for row in state["conditions"]
        if row["finished"] < row["cells"]
    ]
    table = Table("Cells of ten runs that are missing", ["environment", "agent", "cells", "finished", *MISSING], rows)
    text = "Damaged cells are set aside and computed again by the same command that computes the missing ones."
    command = f"bellief resume {shlex.quote(str(results.folder))}"
    return Section("missing", "What is missing", [text], [table], command)


def _environment_section(anchor: str, name: str, read: Sequence[Read]) -> Section:
    if not read:
        return Section(anchor, name, ["No cell is finished yet."], [])
    first = read[0].condition
    text = (
        f"Curves are smoothed run by run with a half-life of {first.half_life:,.4g} steps, then averaged: mean, 5th to "
        "95th percentile of the runs, and lines one standard error above and below the mean."
    )
    optimum = _optimum(first)
    lines = () if optimum is None else (("best possible", optimum),)
    blocks: list[Chart | Table] = [
        Chart(f"{name}: reward", "step", "reward per step, smoothed", _curves(read, "smoothed"), True, lines)
    ]
    episodic = [one for one in read if one.curves.survived is not None]
    if episodic:
        curves = _curves(episodic, "survived")
        blocks.append(Chart(f"{name}: length of episodes", "step", "steps of the last episode, smoothed", curves, True))
    blocks.append(_final_table(name, read))
    if episodic:
        blocks.append(_episode_table(name, episodic))
    if len(read) > 1:
        blocks.append(_paired_table(name, read))
    return Section(anchor, name, [text], blocks)


def _curves(read: Sequence[Read], name: str) -> list[Curve]:
    found = []
    for one in read:
        values = getattr(one.curves, name)
        mean = values.mean(0)
        if len(values) == 1:
            found.append(Curve(one.condition.agent, one.curves.step, mean))
            continue
        low, high = np.quantile(values, [0.05, 0.95], axis=0)
        error = values.std(0, ddof=1) / np.sqrt(len(values))
        found.append(Curve(one.condition.agent, one.curves.step, mean, low, high, error))
    return found


def _optimum(condition: Condition) -> float | None:
    """The best long-run average reward, where the model is known and its states can be counted."""
    described = condition.cells[0].identity["environment"]
    if looks_like_gymnasium(described["name"]):
        return None
    return _best_average(described["name"], canonical(described["settings"]))


@functools.cache  # the solver would be compiled again each time
def _best_average(name: str, settings: str) -> float | None:
    environment = make_any(name, **json.loads(settings))
    return best_average(environment) if isinstance(environment, Environment) else None


def _number(value: float | None, digits: int = 4) -> str:
    """Rounded; what is left of a difference of equal numbers counts as nothing."""
    return "–" if value is None else f"{round(value, 12):.{digits}g}"


def _range(values: dict[str, float | None]) -> str:
    return f"{_number(values['p05'])} to {_number(values['p95'])}"


def _final_table(name: str, read: Sequence[Read]) -> Table:
    rows = []
    for one in read:
        final, whole = summarise(one.final), summarise(one.curves.total[:, -1] / one.condition.steps)
        runs = f"{len(one.curves.run)} of {one.condition.runs}"
        numbers = (
            _number(final["mean"]),
            _number(final["se"], 2),
            _range(final),
            _number(whole["mean"]),
            _number(whole["se"], 2),
        )
        rows.append([one.condition.agent, *numbers, f"{one.condition.steps:,}", runs])
    columns = ["agent", "last tenth", "standard error", "5–95% of runs", "whole run", "standard error", "steps", "runs"]
    return Table(f"{name}: reward per step", columns, rows)


def _episode_table(name: str, read: Sequence[Read]) -> Table:
    rows = []
    for one in read:
        curves = one.curves
        assert curves.over is not None
        assert curves.falls is not None
        falls, length = summarise(curves.falls[:, -1]), summarise(one.final_length)
        over = int(curves.over[:, -1].sum())
        numbers = (_number(falls["mean"]), _number(falls["se"], 2), _number(length["mean"]), _number(length["se"], 2))
        rows.append([one.condition.agent, f"{over:,}", *numbers, _range(length)])
    columns = ["agent", "episodes", "ended, a run", "standard error", "steps, last tenth", "standard error", "5–95%"]
    return Table(f"{name}: episodes", columns, rows)


def _paired_table(name: str, read: Sequence[Read]) -> Table:
    """Differences to the first agent, over the runs that both have."""
    base = read[0]
    rows = []
    for one in read[1:]:
        _, left, right = np.intersect1d(one.curves.run, base.curves.run, return_indices=True)
        if len(left) < 2:
            rows.append([one.condition.agent, "–", "–", "–", len(left)])
            continue
        ours, theirs = one.final[left], base.final[right]
        difference = statistics.paired_difference(ours, theirs)
        better = statistics.probability_of_improvement(ours, theirs)
        interval = f"{difference.low:.4g} to {difference.high:.4g}"
        rows.append([one.condition.agent, f"{difference.value:.4g}", interval, f"{better.value:.2f}", len(left)])
    columns = ["agent", "difference", "95% bootstrap interval", "probability to be better", "runs"]
    return Table(f"{name}: last tenth compared with {base.condition.agent}, run by run", columns, rows)


def _spec_section(results: SweepResults) -> Section:
    """The sweep as something to paste: a description written to a file, and the command that runs it."""
    text = yaml.safe_dump(results.spec.model_dump(exclude_defaults=True), sort_keys=False, allow_unicode=True)
    command = f"cat > {results.spec.name}.yaml <<'END'\n{text}END\nbellief sweep {results.spec.name}.yaml"
    return Section("spec", "The sweep", ["What was asked for, and how to compute it again."], [], command)


def _facts(results: SweepResults) -> list[tuple[str, str]]:
    records = [record for cell in results.ledger.cells if (record := _record(results, cell)) is not None]
    facts = [("Seed", str(results.spec.seed)), ("Cells", f"{len(records)} of {len(results.ledger.cells)} finished")]
    if not records:
        return facts
    seconds = sum(record.get("seconds", 0.0) for record in records)
    facts.append(("Computing time", f"{seconds:,.0f} s, added up over the processes"))
    finished = sorted(record["finished"] for record in records)
    facts.append(("Finished", f"{finished[0]} to {finished[-1]}"))
    made = [entry for record in records for entry in record.get("made", [])]
    for name in ("bellief", "python", "jax", "jaxlib", "numpy", "scipy", "backend", "device", "processor"):
        values = sorted({str(entry[name]) for entry in made if entry.get(name)})
        if values:
            facts.append((name, ", ".join(values)))
    commits = sorted(
        {str(one["software"]["commit"]) for one in results.store.sessions() if one["software"].get("commit")}
    )
    return facts + ([("commit", ", ".join(commits))] if commits else [])


def _record(results: SweepResults, cell: str) -> dict[str, Any] | None:
    return results.store.record(cell) if results.ledger.status(cell) == "finished" else None
