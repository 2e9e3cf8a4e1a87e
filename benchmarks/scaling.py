"""How time and memory of one BBI update grow with states, MDPs, value samples and runs, and those of reading a log with
its transitions: measured at several sizes, with the exponent of a fitted power law.

Memory of an update is what the compiler reserves for it (temporaries and results), that of reading a log what NumPy and
Python hold at most beside the log's own columns: neither is disturbed by other processes.

    python benchmarks/scaling.py --out docs/results/scaling.json

draws docs/images/scaling.png from it, too; with another file the picture lies beside that.
"""

import argparse
import json
import sys
import time
import tracemalloc
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).with_name("speed")))
import ours
from picture import draw_growth

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS, PICTURE = DOCS / "results" / "scaling.json", DOCS / "images" / "scaling.png"
AXES = {
    "states": [8, 16, 32, 64, 128],
    "MDPs": [5, 10, 20, 40],
    "value samples": [25, 50, 100, 200],
    "runs": [1, 5, 10, 20, 40],
    "transitions": [10_000, 100_000, 1_000_000],
}


def update(axis: str, size: int):
    """A BBI update whose size on one axis is given; the others are those of NChain."""
    given = {"states": 5, "MDPs": 10, "value samples": 50, "runs": 10} | {axis: size}
    return ours.induction(
        given["states"], given["runs"], mdps=given["MDPs"], samples=given["value samples"], horizon=20
    )


def measure(axis: str, size: int, repeats: int) -> tuple[float, float]:
    """Seconds (the least of several) and MiB."""
    if axis == "transitions":
        import bellief

        columns = ours.textbook.log(size, 100, 2)

        def call(seed):
            data = bellief.Transitions.from_arrays(*columns, states=100, actions=2)
            return bellief.evaluate(data, np.full((100, 2), 0.5), 0.99, mdps=10, seed=seed).samples
    else:
        call = update(axis, size)
        with jax.default_matmul_precision("highest"):
            found = call.lower().compile().memory_analysis()
        memory = (found.temp_size_in_bytes + found.output_size_in_bytes) / 2**20
    jax.block_until_ready(call(0))
    if axis == "transitions":
        tracemalloc.start()
        jax.block_until_ready(call(0))
        memory = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    times = []
    for seed in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(call(seed))
        times.append(time.perf_counter() - began)
    return min(times), memory


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main() -> None:
    """Measure all axes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--axis", action="append", choices=tuple(AXES))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    for axis in options.axis or AXES:
        sizes = AXES[axis]
        seconds, memory = zip(*(measure(axis, size, options.repeats) for size in sizes), strict=True)
        line = {"sizes": sizes, "seconds": seconds, "time_exponent": round(exponent(sizes, list(seconds)), 2)}
        line |= {"MiB": memory, "memory_exponent": round(exponent(sizes, list(memory)), 2)}
        results[axis] = line
        print(axis, json.dumps(line), flush=True)
        if options.out:
            options.out.write_text(json.dumps(results, indent=1) + "\n")
    if options.out:
        draw_growth(results, PICTURE if options.out.resolve() == RESULTS else options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
