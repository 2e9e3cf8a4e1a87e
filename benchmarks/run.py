"""`make bench`: what a user waits for before anything is computed, as a ratio to starting Python itself.

Machines are shared and noisy, so every repetition times the commands in turn and ratios are taken within it.

    python benchmarks/run.py --repeats 7 --out startup.json
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import bellief": [sys.executable, "-c", "import bellief"],
    "bellief --help": [sys.executable, "-m", "bellief", "--help"],
    "bellief list envs": [sys.executable, "-m", "bellief", "list", "envs"],
}


def seconds(command: list[str]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    """Time all commands, several times, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(options.repeats):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    for name, found in times.items():
        ratios = [one / base for one, base in zip(found, times["python"], strict=True)]
        print(
            f"{name:18} {statistics.median(found):.3f} s (from {min(found):.3f} to {max(found):.3f}), "
            f"{statistics.median(ratios):.1f} times starting Python"
        )
    if options.out is not None:
        options.out.write_text(json.dumps(times, indent=2) + "\n")


if __name__ == "__main__":
    main()
