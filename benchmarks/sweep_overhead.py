"""What a sweep costs besides computing: 1,000 tiny cells, locally and with Ray, and whether memory stays flat.

Overhead of a cell is the time of the sweep, from the first cell begun to the last one finished, times the number of
workers, less the seconds the workers spent computing, divided by the number of cells. Of each worker the peak memory is
taken after its first tenth of cells and at the end.

    python benchmarks/sweep_overhead.py --engine local --cells 1000 --workers 2 --out overhead.json
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from bellief.sweeps.engines.local import Local
from bellief.sweeps.spec import build_spec
from bellief.sweeps.store import Store
from bellief.sweeps.sweep import run_sweep


def resident() -> float:
    """Memory of this process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measure(engine: str, cells: int, settings: int, workers: int, steps: int) -> dict[str, float]:
    """Run one sweep in a temporary folder."""
    # Settings that differ in the last digits: other programs to compile, the same work.
    values = [0.9 + 1e-6 * number for number in range(settings)]
    agent = {"name": "q-learning", "grid": {"discount": values}}
    spec = build_spec(
        {"name": "tiny", "steps": steps, "runs": 10 * cells // settings, "environments": ["nchain"], "agents": [agent]},
        "benchmark",
    )
    begun, done, memory = [], [], []

    def listen(event: dict) -> None:
        if event["kind"] == "begin":
            begun.append(time.monotonic())
        elif event["kind"] == "finished":
            done.append(time.monotonic())
            memory.append(resident())

    def make():
        if engine == "local":
            return Local(workers)
        from bellief.sweeps.engines.ray import Ray

        return Ray(workers=workers)

    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        run_sweep(spec, Path(folder) / "tiny", engine=make, listen=listen)
        whole = time.monotonic() - began
        store = Store(Path(folder) / "tiny")
        records = [json.loads(path.read_text()) for path in (store.folder / "cells").iterdir()]
        size = sum(path.stat().st_size for path in store.folder.rglob("*") if path.is_file())
    records.sort(key=lambda record: record["finished"])
    computing = sum(record["seconds"] for record in records)
    working = done[-1] - begun[0]
    tenth = max(1, len(records) // 10)
    return {
        "engine": engine,
        "cells": len(records),
        "settings": settings,
        "workers": workers,
        "whole_s": round(whole, 2),
        "before_first_cell_s": round(begun[0] - began, 2),
        "computing_s": round(computing, 2),
        "overhead_ms_per_cell": round(1000 * (working * workers - computing) / len(records), 2),
        "wall_ms_per_cell": round(1000 * working / len(records), 2),
        "worker_mib_after_a_tenth": max(record["memory_mib"] for record in records[:tenth]),
        "worker_mib_at_the_end": max(record["memory_mib"] for record in records[-tenth:]),
        "driver_mib_after_a_tenth": round(memory[tenth - 1], 1),
        "driver_mib_at_the_end": round(memory[-1], 1),
        "store_kib_per_cell": round(size / 1024 / len(records), 1),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--settings", type=int, default=1, help="number of different settings, each compiled anew")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    found = measure(options.engine, options.cells, options.settings, options.workers, options.steps)
    for name, value in found.items():
        print(f"{name:26} {value}")
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
