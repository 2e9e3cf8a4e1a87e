"""Large logs: a Parquet file of 10^7 rows in flat memory, and a policy in 100,000 states in minutes.

    python benchmarks/offline_scale.py --rows 10000000 --states 100000 --dense 500 2000

Every measurement runs in a process of its own, so that its peak memory is its own. Data are seeded.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CHUNK = 500_000


def peak_megabytes():
    """Largest resident memory of this process so far."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return kilobytes / 1024


def grid_step(rng, side, state, action):
    """A walk on a torus of side x side cells: 80% as meant, else one of the four ways at random."""
    action = np.where(rng.random(len(state)) < 0.8, action, rng.integers(0, 4, len(state)))
    row, column = state // side, state % side
    row = (row + np.array([1, -1, 0, 0])[action]) % side
    column = (column + np.array([0, 0, 1, -1])[action]) % side
    return row * side + column


def grid_rows(rng, side, count):
    """Transitions from uniformly chosen states and actions; the reward depends on the place, with noise."""
    state, action = rng.integers(0, side * side, count), rng.integers(0, 4, count)
    reward = np.cos(2 * np.pi * (state // side) / side) + rng.normal(0, 0.5, count)
    return state, action, reward, grid_step(rng, side, state, action)


def write_parquet(path, rows, side, seed=0):
    """A file of so many rows, written in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(seed), None
    for first in range(0, rows, CHUNK):
        count = min(CHUNK, rows - first)
        state, action, reward, after = grid_rows(rng, side, count)
        ended = rng.random(count) < 0.01
        episode = np.cumsum(np.append(0, ended[:-1])) + first
        table = pa.table(
            {"state": state, "action": action, "reward": reward, "next_state": after, "terminated": ended,
             "episode": episode}
        )  # fmt: skip
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def measure_stream(path):
    """Read a file into statistics, and evaluate a policy from them."""
    import bellief

    imported = time.perf_counter()
    before = peak_megabytes()
    log = bellief.LogStatistics.from_file(path)
    read = time.perf_counter()
    after = peak_megabytes()
    value = bellief.evaluate(log, "behaviour", 0.9, method="mean-mdp")
    return {
        "rows": len(log),
        "states": log.states,
        "cells": len(log.cell_count),
        "read_seconds": read - imported,
        "peak_before_mb": before,
        "peak_after_reading_mb": after,
        "evaluate_seconds": time.perf_counter() - read,
        "start_value": value.start_summary()["mean"],
    }


def measure_states(states, draws, belief, rows_per_state=20):
    """Evaluate a deterministic policy in a grid of so many states."""
    import bellief

    side = round(states**0.5)
    rng = np.random.default_rng(1)
    log = bellief.Transitions.from_arrays(*grid_rows(rng, side, rows_per_state * side * side)).statistics()
    policy = rng.integers(0, 4, side * side)
    started, processor = time.perf_counter(), time.process_time()
    value = bellief.evaluate(log, policy, 0.99, prior="sparse", belief=belief, draws=draws)
    taken, processor = time.perf_counter() - started, time.process_time() - processor
    summary = value.start_summary()
    return {
        "belief": belief,
        "states": side * side,
        "transitions": len(log),
        "draws": draws,
        "seconds": taken,
        "processor_seconds": processor,
        "peak_mb": peak_megabytes(),
        "start": summary,
    }


def in_own_process(**job):
    finished = subprocess.run(
        [sys.executable, __file__, "--job", json.dumps(job)], capture_output=True, text=True, check=True
    )
    return json.loads(finished.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--states", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--dense", type=int, nargs="*", default=[500, 2000])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        job = json.loads(options.job)
        kind = job.pop("kind")
        print(json.dumps(measure_stream(job["path"]) if kind == "stream" else measure_states(**job)))
        return
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "log.parquet")
            write_parquet(path, rows, side=30)
            size = Path(path).stat().st_size / 1e6
            print(json.dumps({"file_mb": size, **in_own_process(kind="stream", path=path)}), flush=True)
    for belief, sizes in (("sparse", options.states), ("dense", options.dense)):
        for states in sizes:
            draws = options.draws if belief == "sparse" else min(options.draws, 20)
            job = {"kind": "states", "states": states, "draws": draws, "belief": belief}
            print(json.dumps(in_own_process(**job)), flush=True)


if __name__ == "__main__":
    main()
