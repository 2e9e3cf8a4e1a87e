"""How long it takes to fold a log in Parquet into counts, beside DuckDB's own time for the same aggregate.

    python benchmarks/fold.py --rows 20000000 100000000 --rounds 3
    python benchmarks/fold.py --rows 20000000 --copies 50
    python benchmarks/fold.py --rows 20000000 100000000 --rounds 4 --out folding.json

Every measurement is a new process, imports included; the two programs take turns, and ratios are of the best of each:
of wall time, and of processor time, which other work on the machine changes less.
`--copies` names the one file so often in a list: 10^9 rows from 20 million.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGGREGATE = (
    "select state, action, next_state, terminated, count(*), avg(reward), var_pop(reward) * count(*), min(reward), "
    "max(reward) from read_parquet({files}) group by all"
)


def make(path: Path, rows: int, episodes: bool) -> None:
    """16 states and 4 actions; rewards on a grid of a thousand values; episodes of a hundred steps."""
    import duckdb

    names = ", i // 100 as episode, i % 100 as step" if episodes else ""
    duckdb.execute(
        f"copy (select (hash(i * 11 + 5) % 16)::int as state, (hash(i * 7) % 4)::int as action, "
        f"(hash(i) % 1000) / 100.0::double as reward, (hash(i * 3 + 1) % 16)::int as next_state, "
        f"hash(i * 5 + 3) % 50 = 0 as terminated{names} from range({rows}) rows(i)) to '{path}' (format parquet)"
    )


def child(program: str, files: list[str]) -> None:
    """Fold the files and print the number of rows and the largest resident size in MB."""
    if program == "duckdb":
        import duckdb

        found = duckdb.execute(AGGREGATE.format(files=files)).fetchnumpy()
        rows = int(found["count_star()"].sum())
    else:
        from bellief.logs.read import as_tally

        rows = len(as_tally(files))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"rows": rows, "mb": used.ru_maxrss // 1024, "cpu": used.ru_utime + used.ru_stime}))


def measure(program: str, files: list[str]) -> dict:
    """Wall time of a new process."""
    began = time.perf_counter()
    command = [sys.executable, __file__, "--child", program, *files]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {"s": time.perf_counter() - began, **json.loads(told)}


def compare(files: list[str], rounds: int) -> dict:
    """Best of some rounds of each program, in turn."""
    runs: dict[str, list[dict]] = {"duckdb": [], "bellief": []}
    for _ in range(rounds):
        for program, found in runs.items():
            found.append(measure(program, files))
    best = {program: min(run["s"] for run in found) for program, found in runs.items()}
    cpu = {program: min(run["cpu"] for run in found) for program, found in runs.items()}
    return {
        "rows": runs["bellief"][0]["rows"],
        "duckdb_s": round(best["duckdb"], 2),
        "bellief_s": round(best["bellief"], 2),
        "ratio": round(best["bellief"] / best["duckdb"], 2),
        "duckdb_cpu_s": round(cpu["duckdb"], 2),
        "bellief_cpu_s": round(cpu["bellief"], 2),
        "cpu_ratio": round(cpu["bellief"] / cpu["duckdb"], 2),
        "duckdb_mb": max(run["mb"] for run in runs["duckdb"]),
        "bellief_mb": max(run["mb"] for run in runs["bellief"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file for what is printed, as a JSON list")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], options.child[1:])
        return
    found = []
    for rows in options.rows:
        for episodes in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "log.parquet"
                make(path, rows, episodes)
                files = [str(path)] * options.copies
                found.append({"episodes": episodes} | compare(files, options.rounds))
                print(json.dumps(found[-1]), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
