"""Has anything become slower? Compares the last line of benchmarks/history.jsonl with the lines before it.

Compared is each of our contestants' time divided by a yardstick of the same line (the workload's first peer, or the
start of Python where it has none), so that a busy or a slower machine does not look like a regression.

    python benchmarks/history.py --slower 1.5    # exit code 1 where something takes 1.5 times what it took
"""

import argparse
import json
import statistics
from pathlib import Path

HISTORY = Path(__file__).with_name("history.jsonl")


def relative(line: dict) -> dict[str, float]:
    """Our times in units of the yardsticks."""
    measured = line["median_seconds"]
    start = measured.get("start", {}).get("python")
    found = {}
    for workload, times in measured.items():
        peers = [seconds for name, seconds in times.items() if not name.startswith(("Bellief", "bellief", "import"))]
        yardstick = peers[0] if peers else start
        for name, seconds in times.items():
            if name.startswith(("Bellief", "bellief", "import")) and yardstick:
                found[f"{workload}: {name}"] = seconds / yardstick
    return found


def regressions(lines: list[dict], slower: float) -> list[str]:
    """What the last line says to be slower than the median of the lines before it."""
    last, before = relative(lines[-1]), [relative(line) for line in lines[:-1]]
    told = []
    for name, value in last.items():
        former = [line[name] for line in before if name in line]
        if former and value > slower * statistics.median(former):
            told.append(f"{name}: {value / statistics.median(former):.2f} times what it was")
    return told


def main() -> None:
    """Print regressions; the exit code says whether there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slower", type=float, default=1.5)
    parser.add_argument("--file", type=Path, default=HISTORY)
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.file.read_text().splitlines()]
    told = regressions(lines, options.slower)
    print("\n".join(told) if told else f"Nothing slower in {len(lines)} lines.")
    raise SystemExit(bool(told))


if __name__ == "__main__":
    main()
