"""Check a store: everything that its description lists exists and has the hash it was written with, and some cells
give the same numbers when computed again.
"""

import random
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from bellief.sweeps import parquet_tables
from bellief.sweeps.cells import Cell
from bellief.sweeps.engines import Job
from bellief.sweeps.engines.local import Local
from bellief.sweeps.store import Damaged, Store
from bellief.sweeps.store_reader import SweepResults

Problem = dict[str, str]

# Where hardware or versions differ, rounding can change a choice between two actions, and the run differs from there.
# Then runs agree to this relative difference, or the means over the runs of the final totals agree to this many
# standard errors of their difference (five: one false alarm in about two million).
RELATIVE, STANDARD_ERRORS = 1e-5, 5.0


def verify(results: SweepResults, recompute: int = 1, seed: int | None = None) -> dict[str, Any]:
    """Compare every file of a store with its hash, look for what is missing, and compute some finished cells again.

    Args:
        results: the store.
        recompute: number of cells, drawn at random, to compute again.
        seed: of that draw; without it, another one each time.

    >>> import tempfile
    >>> from bellief.sweeps.store_reader import open_store
    >>> from bellief.sweeps.spec import Spec
    >>> from bellief.sweeps.engines.batch import Batch
    >>> from bellief.sweeps.sweep import run_sweep
    >>> from bellief.sweeps.verify import verify
    >>> spec = Spec(name="chains", steps=20, runs=2, environments=["nchain"], agents=["q-learning"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run_sweep(spec, f"{folder}/chains", engine=Batch)
    ...     found = verify(open_store(f"{folder}/chains"), recompute=0)
    >>> found["checked"], found["problems"]
    (1, [])
    """
    # First the index, then the cells: a sweep that is under way only adds to what the index says.
    problems, notes, manifest = _check_index(results.store)
    problems += [{"what": f"cell {cell}", "problem": reason} for cell, reason in _check_cells(results).items()]
    problems += _missing(results, manifest)
    if others := results.store.other_records(results.ledger.cells):
        notes.append(f"{others} finished cells are there that config.yaml does not ask for.")
    finished = [cell for cell in results.ledger.cells.values() if results.ledger.status(cell.id) == "finished"]
    chosen = random.Random(seed).sample(finished, min(recompute, len(finished)))
    compared = [again | {"cell": cell.id} for cell, again in zip(chosen, _recompute(results, chosen), strict=True)]
    problems += [{"what": f"cell {one['cell']}", "problem": one["found"]} for one in compared if not one["agrees"]]
    return {"checked": len(finished), "recomputed": compared, "problems": problems, "notes": notes}


def _check_index(store: Store) -> tuple[list[Problem], list[str], dict[str, Any]]:
    """Problems of the manifest, of the sessions, and of a description that is not the one that was computed."""
    problems, notes, manifest = [], [], {}
    try:
        manifest = store.read_manifest() or {}
        if not manifest:
            problems.append({"what": "manifest.json", "problem": "it is missing"})
    except Damaged as error:
        problems.append({"what": "manifest.json", "problem": str(error)})
    sessions = store.read_sessions()
    damaged = [name for name, session in sessions.items() if session is None]
    problems += [{"what": f"sessions/{name}", "problem": "it cannot be read"} for name in damaged]
    began = {session["began"] for session in sessions.values() if session is not None}
    told = manifest.get("sessions")
    known = [one["began"] for one in told if isinstance(one, dict) and "began" in one] if isinstance(told, list) else []
    missing = [str(one)[:40] for one in known if one not in began][len(damaged) :]
    problems += [{"what": f"the session that began at {one}", "problem": "its file is missing"} for one in missing]
    # The manifest may be gone; every session keeps the hash too.
    hashes = [one.get("config") for one in (*store.sessions(), manifest) if one]
    if hashes and hashes[-1] is None:
        notes.append("This store was written by Bellief 0.1, which kept no hash of config.yaml: it is taken as it is.")
    elif hashes and hashes[-1] != store.config_hash():
        problems.insert(0, {"what": "config.yaml", "problem": "it is not the one that the sweep was computed with"})
    return problems, notes, manifest


def _check_cells(results: SweepResults) -> dict[str, str]:
    """Every cell whose files are not what was written, with the reason; their numbers are read too."""
    damaged = results.ledger.scan(deep=True)
    for cell in results.ledger.cells:
        if results.ledger.status(cell) == "finished":
            try:
                record = results.store.record(cell) or {"files": {}, "content": ""}
                content = {name: results.store.read(cell, name) for name in record["files"]}
                if parquet_tables.content_hash(content) != record["content"]:
                    damaged[cell] = f"its numbers are not those of its record: delete cells/{cell}.json"
            except (Damaged, parquet_tables.UnreadableTable) as error:
                damaged[cell] = str(error)
            if cell in damaged:
                results.ledger.entries[cell] = {"status": "damaged"}
    return damaged


def _missing(results: SweepResults, manifest: dict[str, Any]) -> list[Problem]:
    """Cells that config.yaml asks for and that are not there: lost if the manifest says that they were finished."""
    ledger, told = results.ledger, manifest.get("cells")
    entries = told if isinstance(told, dict) else {}
    open_cells = [cell for cell in ledger.cells if ledger.status(cell) in ("pending", "started", "failed")]
    were_finished = {cell for cell, one in entries.items() if isinstance(one, dict) and one.get("status") == "finished"}
    lost = [cell for cell in open_cells if cell in were_finished]
    problems = [{"what": f"cell {cell}", "problem": "it was finished, and its record is missing"} for cell in lost]
    if left := len(open_cells) - len(lost):
        what = f"{left} of {len(ledger.cells)} cells"
        problems.append({"what": what, "problem": "not computed yet" if entries else "missing"})
    return problems


def _recompute(results: SweepResults, cells: list[Cell]) -> list[dict[str, Any]]:
    """Compute cells in a store of their own, which is thrown away, and compare."""
    if not cells:
        return []
    with tempfile.TemporaryDirectory(prefix="bellief-verify-") as folder:
        fresh = Store.create(Path(folder) / "store", results.spec)
        fresh.prepare(alone=True)
        engine, failed = Local(workers=min(2, len(cells))), {}
        try:
            for event in engine.run(cells, Job(lambda cell: fresh, 1e9, threading.Event())):
                if event["kind"] in ("failed", "full", "unwritable"):
                    failed[event["cell"]] = event["reason"]
        finally:
            engine.close()
        return [
            {"agrees": False, "test": "none", "found": f"it could not be computed ({failed[cell.id]})"}
            if cell.id in failed
            else compare(results.store, fresh, cell.id)
            for cell in cells
        ]


def compare(old: Store, new: Store, cell: str) -> dict[str, Any]:
    """Bit for bit where both were made with the same hardware and versions; else within the stated tolerance."""
    before, after = old.record(cell), new.record(cell)
    assert before is not None
    assert after is not None
    if before["content"] == after["content"]:
        return {"agrees": True, "test": "bit for bit", "found": "the same bits"}
    if before["made"] == after["made"]:
        return {"agrees": False, "test": "bit for bit", "found": "other numbers on the same hardware and versions"}
    first, second = (_totals(store, cell) for store in (old, new))
    if np.allclose(first, second, rtol=RELATIVE, atol=RELATIVE):
        return {"agrees": True, "test": "relative difference", "found": f"within {RELATIVE:g} of each other"}
    error = np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / len(first))
    apart = abs(first.mean() - second.mean()) / error if error > 0 else np.inf
    found = f"means {apart:.2f} standard errors apart, made with other hardware or versions"
    return {"agrees": bool(apart <= STANDARD_ERRORS), "test": "means over runs", "found": found}


def _totals(store: Store, cell: str) -> np.ndarray:
    curves = parquet_tables.read_parquet(store.read(cell, parquet_tables.CURVES)).to_pandas()
    return curves[curves["step"] == curves["step"].max()].sort_values("run")["total"].to_numpy()
