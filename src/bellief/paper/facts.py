"""Sizes, dates, versions and computing time of what items stand on, from a folder's stores and computations."""

import json
from collections import Counter
from typing import Any

from bellief.paper.computed_results import Folder, Missing
from bellief.paper.items import Item
from bellief.paper.tasks import TASKS, Size


def facts_of(item: Item, folder: Folder) -> list[tuple[str, str]]:
    """Names and values, for all sweeps and computations of an item that are there."""
    facts: list[tuple[str, str]] = []
    for sweep in item.sweeps:
        if sweep in folder.stores:
            facts += _sweep_facts(sweep, folder.stores[sweep])
    for name in item.computations:
        try:
            found = folder.computed(name)
        except Missing:
            continue
        settings = json.loads(str(found["settings"]))
        facts.append((name, ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in settings.items())))
        if "day" in found:
            facts.append(("computed on", str(found["day"])))
    return facts


def sizes_of(folder: Folder, sweep: str) -> dict[str, Size]:
    """Runs and steps of each agent of a sweep with finished cells."""
    if sweep not in folder.stores:
        return {}
    return {
        condition.agent: Size(condition.runs, condition.steps) for condition in folder.stores[sweep] if condition.cells
    }


def _sweep_facts(sweep: str, store: Any) -> list[tuple[str, str]]:
    records = [store.store.record(cell.id) for condition in store for cell in condition.cells]
    if not records:
        return []
    sizes = Counter((condition.runs, condition.steps) for condition in store if condition.cells)
    facts = [(f"{TASKS[sweep].title}, sizes", ", ".join(f"{runs:,} runs x {steps:,} steps" for runs, steps in sizes))]
    cells = sum(len(condition.setup.cells) for condition in store)
    if len(records) < cells:
        facts.append(("not finished", f"{cells - len(records)} of {cells} cells"))
    seconds = sum(record.get("seconds", 0.0) for record in records)
    days = sorted({record["finished"][:10] for record in records})
    facts += [("seed", str(store.spec.seed)), ("computing time", _duration(seconds))]
    facts.append(("computed on", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"))
    made = [one for record in records for one in record.get("made", [])]
    for name in ("bellief", "jax", "backend", "device"):
        versions = sorted({str(one[name]) for one in made if one.get(name)})
        if versions:
            facts.append((name, ", ".join(versions)))
    return facts


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
