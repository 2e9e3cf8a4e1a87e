"""`--dry-run`: what a sweep would compute, how long that may take and how much memory it may need."""

from pathlib import Path
from typing import Any

from bellief.errors import UserError, require
from bellief.processors import cores
from bellief.sweeps.calibrate import Costs
from bellief.sweeps.cells import Setup, agent_name, expand, plan_steps, same_work
from bellief.sweeps.engines import settings_of
from bellief.sweeps.engines.local import Local
from bellief.sweeps.ledger import Ledger
from bellief.sweeps.spec import Spec
from bellief.sweeps.store import Store


def dry_run(
    spec: Spec, folder: str | Path, workers: int | None = None, elsewhere: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The conditions of a sweep with their cells, those still missing, and measured estimates. Writes nothing.

    One condition is measured for each pair of environment and agent; conditions that differ in settings only are taken
    to cost the same. Cells that are computed `elsewhere` are not missing.
    """
    setups, folder = expand(spec), Path(folder)
    missing = {cell.id for setup in setups for cell in setup.cells} - _finished(spec, folder, setups) - elsewhere
    workers = min(workers or cores(), max(1, len(missing)))
    engine, rows = Local(workers=1), []
    measured: dict[str, Costs] = {}
    try:
        for setup in setups:
            left = sum(cell.id in missing for cell in setup.cells)
            costs = _costs(engine, setup, measured) if left else None
            rows.append(_row(setup, left, costs))
    finally:
        engine.close()
    seconds = sum(row["seconds"] for row in rows) / workers
    memory = max((row["memory_mib"] for row in rows), default=0.0) * workers
    cells = len({cell.id for setup in setups for cell in setup.cells})
    return {
        "name": spec.name,
        "folder": str(folder),
        "cells": cells,
        "missing": len(missing),
        "workers": workers,
        "seconds": round(seconds, 1),
        "memory_mib": round(memory),
        "conditions": rows,
    }


def _finished(spec: Spec, folder: Path, setups: list[Setup]) -> set[str]:
    if not (folder / "config.yaml").exists():
        return set()
    store = Store(folder)
    require(store.spec == spec or same_work(store.spec, spec), f"{folder} holds another sweep; choose another name.")
    ledger = Ledger(store, setups)
    ledger.scan(deep=True)
    return {cell for cell in ledger.cells if ledger.status(cell) == "finished"}


def _costs(engine: Local, setup: Setup, measured: dict[str, Costs]) -> Costs:
    cell = setup.cells[0]
    pair = f"{cell.identity['environment']['name']} {agent_name(cell.identity)}"
    if pair not in measured:
        answer = engine.ask(kind="calibrate", id=cell.id, identity=cell.identity, settings=settings_of(cell))
        if answer["kind"] != "calibrated":
            raise UserError(f"{setup.agent} in {setup.environment} cannot be run: {answer['reason'].rstrip('.')}.")
        measured[pair] = Costs(**{name: answer[name] for name in Costs._fields})
    return measured[pair]


def _row(setup: Setup, left: int, costs: Costs | None) -> dict[str, Any]:
    plans = len(plan_steps(setup.cells[0].identity)) if costs else 0
    one = costs.seconds(plans, setup.steps) if costs else 0.0
    return {
        "environment": setup.environment,
        "agent": setup.agent,
        "steps": setup.steps,
        "runs": setup.runs,
        "cells": len(setup.cells),
        "missing": left,
        "seconds_per_cell": round(one, 2),
        "seconds": round(left * one + (costs.ready if costs else 0.0), 2),
        "memory_mib": costs.memory if costs else 0.0,
    }
