"""Readings: what claims are measured from, run by run, small enough to travel with the package.

A store has every reading of every run in double precision. Claims look at rewards at a few steps (`tasks.MARKS`) and,
where they are about the spread over runs, at all smoothed rewards. These readings, in single precision, with the plans
of the agents whose weights are judged and the arrays of what is no sweep, take a few megabytes. Claims are measured
from them and not from the stores, so that whoever has the file gets the same numbers to the last digit.

>>> from bellief.paper import readings, summary
>>> from bellief.paper.items import ITEMS
>>> claim = ITEMS["fig:full_chain"].claims[1]
>>> claim.test.measure(readings.published()) == summary.published().measured[claim.key]
True
"""

import functools
import io
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellief.files import read_archive, write_whole
from bellief.paper.agents import VDQN_PACES
from bellief.paper.computations import COMPUTATIONS
from bellief.paper.computed_results import Missing, Results, Runs, optimum_of
from bellief.paper.tasks import MARKS, TASKS

if TYPE_CHECKING:
    import pandas as pd

NAME = "readings.npz"
# Whose smoothed rewards claims compare, and whose plans.
SPREAD, PLANS = ("BBI", "MMBI", "PSRL", "BSS", *VDQN_PACES), ("BBI",)
_PLAN_COLUMNS = ("run", "step", "resamples", "doublings")


def keep(results: Results) -> dict[str, np.ndarray]:
    """The readings as arrays, named `SWEEP/AGENT/COLUMN` or `computed/COMPUTATION/ARRAY`."""
    arrays: dict[str, np.ndarray] = {}
    for sweep in TASKS:
        for agent in results.agents(sweep):
            runs = results.runs(sweep, agent)
            kept = np.isin(runs.step, [*MARKS, runs.size.steps // 2, runs.size.steps])
            if agent in SPREAD and runs.survived is None:
                kept[:] = True
            for name, values in runs._asdict().items():
                if values is not None:
                    arrays[f"{sweep}/{agent}/{name}"] = _narrow(values[..., kept])
            if agent in PLANS:
                arrays |= _plans(results, sweep, agent)
    for name in COMPUTATIONS:
        found = _or_none(results.computed, name) or {}
        arrays |= {f"computed/{name}/{key}": values for key, values in found.items()}
    return arrays


def _narrow(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32 if values.dtype.kind == "f" else np.int32)


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)


def _plans(results: Results, sweep: str, agent: str) -> dict[str, np.ndarray]:
    frame = _or_none(results.plans, sweep, agent)
    if frame is None or "resamples" not in frame:
        return {}
    return {f"{sweep}/{agent}/plans/{name}": frame[name].to_numpy(np.int32) for name in _PLAN_COLUMNS}


def _or_none(function: Callable[..., Any], *arguments: str) -> Any:
    try:
        return function(*arguments)
    except Missing:
        return None


def results_of(arrays: Mapping[str, np.ndarray]) -> Results:
    """What claims measure, from such arrays."""

    def part(start: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(start): values for name, values in arrays.items() if name.startswith(start)}

    def runs(sweep: str, agent: str) -> Runs:
        found = {name: values for name, values in part(f"{sweep}/{agent}/").items() if name in Runs._fields}
        if not found:
            raise Missing(f"{agent} in {sweep} was not run")
        return Runs(
            **{
                name: values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
                for name, values in found.items()
            }
        )

    def plans(sweep: str, agent: str) -> "pd.DataFrame":
        import pandas as pd

        found = part(f"{sweep}/{agent}/plans/")
        if not found:
            raise Missing(f"{agent} in {sweep} reported no plans")
        return pd.DataFrame(found)

    def computed(name: str) -> dict[str, np.ndarray]:
        found = part(f"computed/{name}/")
        if not found:
            raise Missing(f"{name} was not computed")
        return found

    def agents(sweep: str) -> list[str]:
        return list(dict.fromkeys(name.split("/")[1] for name in arrays if name.startswith(f"{sweep}/")))

    return Results(runs, plans, optimum_of, computed, agents)


def write(arrays: Mapping[str, np.ndarray], path: Path) -> Path:
    """Write a file of readings."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return write_whole(path, content.getvalue())


@functools.cache
def published() -> Results:
    """The readings of what was computed at full size, as they travel with the package."""
    file = resources.files("bellief.paper").joinpath("data", NAME)
    return results_of(read_archive(file.read_bytes()))
