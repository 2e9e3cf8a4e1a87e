"""`make bench`: ours and the peers side by side. Ratios, not seconds, are what carries from one machine to another.

Two processes serve the two sides, each in its own environment; every repetition asks all contestants of a workload in
turn, so that whatever else the machine is doing meets all of them. Peers are installed on demand into .venv-bench.

    python benchmarks/run.py                         # everything: about fifteen minutes on two idle cores
    python benchmarks/run.py --only "psrl 100000"    # one workload; may be repeated
    python benchmarks/run.py --no-peers --repeats 3  # ours alone
    python benchmarks/run.py --first-use             # `bellief run` in new processes, with and without its cache

Writes docs/results/speed.json and docs/images/speed.png. A run of everything adds a line to benchmarks/history.jsonl,
which `python benchmarks/history.py` reads for regressions.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVE = ROOT / "benchmarks" / "speed" / "serve.py"
PEERS = ROOT / ".venv-bench"

# Installed without what it depends on: only its tables are read (`icu_sepsis_log.py`).
TABLES = "icu-sepsis==2.0.1"
HISTORY = ROOT / "benchmarks" / "history.jsonl"
RESULTS = ROOT / "docs" / "results" / "speed.json"
PICTURE = ROOT / "docs" / "images" / "speed.png"
WORKLOADS = [
    ("psrl", 100_000),
    ("mmbi", 100_000),
    *(("bbi update", states) for states in (5, 35, 100, 264)),
    *(("posterior", states) for states in (5, 100, 264)),
    ("dirichlet", 264),
    ("stepping", 1_000_000),
    ("offline", 1_000_000),
    ("full_chain quick", 10_000),
]
COMMANDS = {
    "python": ["-c", "pass"],
    "import bellief": ["-c", "import bellief"],
    "bellief --help": ["-m", "bellief", "--help"],
    "bellief list envs": ["-m", "bellief", "list", "envs"],
}

# What is kept from one process to the next, in the order in which they are measured.
CACHES = ("nothing cached", "filled cache")


class Side:
    """A process that times one side's contestants."""

    def __init__(self, name: str, python: Path | str):
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        self.process = subprocess.Popen(
            [str(python), str(SERVE), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def ask(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"The process for {order} ended; run benchmarks/speed/serve.py by hand to see why.")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def peers_python() -> Path:
    """The peers' interpreter; their environment is made on first use."""
    python, stamp = PEERS / "bin" / "python", PEERS / ".ready"
    wanted = (ROOT / "requirements" / "bench.txt").read_text() + TABLES
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"Installing the peers into {PEERS.name} (a minute or two)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEERS)], check=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(ROOT / "requirements" / "bench.txt")], check=True)
        subprocess.run([*pip, "--no-deps", TABLES], check=True)
        stamp.write_text(wanted)
    return python


def measure(sides: dict[str, Side], workload: str, size: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of every contestant in every repetition."""
    names = [(side, name) for side in sides for name in sides[side].ask(workload=workload, size=size)]
    times: dict[str, list[float]] = {name: [] for _, name in names}
    for seed in range(repeats):
        for side, name in names:
            times[name].append(sides[side].ask(workload=workload, size=size, name=name, seed=seed))
    return times


def measure_starts(repeats: int) -> dict[str, list[float]]:
    """Wall time of starting the program."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    for _ in range(repeats):
        for name, arguments in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
            times[name].append(time.perf_counter() - began)
    return times


def measure_first_use(repeats: int) -> dict[str, list[float]]:
    """Wall time of 1,000 steps on NChain by the command line, in a new process each time, with its defaults."""
    times: dict[str, list[float]] = {}
    for _ in range(repeats):
        for agent in ("psrl", "bbi"):
            command = [sys.executable, "-m", "bellief", "run", "--env", "nchain", "--agent", agent, "--steps", "1000"]
            with tempfile.TemporaryDirectory() as cache:
                environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": cache}
                environment.pop("JAX_COMPILATION_CACHE_DIR", None)
                for kept in CACHES:
                    began = time.perf_counter()
                    subprocess.run(
                        [*command, "--quiet"],
                        check=True,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=environment,
                    )
                    times.setdefault(f"bellief run, {agent}, {kept}", []).append(time.perf_counter() - began)
    return times


def measure_demo() -> dict[str, list[float]]:
    """The demonstration from start to finish, once."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "BELLIEF_COMPILATION_CACHE": "off"}
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        command = [sys.executable, "-m", "bellief", "demo", "--quiet", "--out", f"{folder}/demo"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return {"bellief demo": [time.perf_counter() - began]}


def ratios(times: dict[str, list[float]], name: str, base: str) -> tuple[float, float, float]:
    """Median, lowest and highest of another's time divided by ours in the same repetition."""
    found = [one / own for one, own in zip(times[name], times[base], strict=True)]
    return statistics.median(found), min(found), max(found)


def show(title: str, times: dict[str, list[float]]) -> None:
    print(title)
    for name, found in times.items():
        line = f"  {name:26} {statistics.median(found):10.4g} s (from {min(found):.4g} to {max(found):.4g})"
        for base in (own for own in times if own.startswith("Bellief") and not name.startswith("Bellief")):
            middle, low, high = ratios(times, name, base)
            line += f"; {middle:.2f} [{low:.2f}, {high:.2f}] times {base}"
        print(line, flush=True)


def commit() -> str:
    told = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return told.stdout.strip() or "unknown"


def about() -> dict:
    """When, what and where; the load says how much to trust the seconds."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": [round(one, 1) for one in os.getloadavg()],
    }


def remember(results: dict[str, dict[str, list[float]]]) -> None:
    """The line of the history."""
    medians = {
        title: {name: float(f"{statistics.median(found):.4g}") for name, found in times.items()}
        for title, times in results.items()
    }
    with HISTORY.open("a") as lines:
        lines.write(json.dumps({**about(), "median_seconds": medians}) + "\n")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", metavar="'WORKLOAD SIZE'", help="for example 'posterior 100'")
    parser.add_argument(
        "--first-use", action="store_true", help="only new processes of 'bellief run', printed, not kept"
    )
    parser.add_argument("--no-peers", action="store_true", help="ours alone")
    parser.add_argument("--no-demo", action="store_true", help="leave the demonstration out")
    parser.add_argument("--peers-python", type=Path, help="an interpreter that has the peers already")
    parser.add_argument("--out", type=Path, default=RESULTS, help="a file; the picture then lies beside it")
    options = parser.parse_args()
    if options.first_use:
        return show("first use", measure_first_use(options.repeats))
    chosen = [one for one in WORKLOADS if not options.only or f"{one[0]} {one[1]}" in options.only]
    if options.only and not chosen:
        known = ", ".join(f"'{name} {size}'" for name, size in WORKLOADS)
        raise SystemExit(f"There is no such workload; choose from {known}.")
    # A part measured again takes the place of the former one.
    results = json.loads(options.out.read_text())["seconds"] if options.only and options.out.exists() else {}

    def keep(title: str, times: dict[str, list[float]]) -> None:
        """Show and save at once: a benchmark that is stopped keeps what it has."""
        results[title] = times
        show(title, times)
        options.out.write_text(json.dumps({"about": about(), "seconds": results}, indent=1) + "\n")

    if not options.only:
        keep("start", measure_starts(options.repeats))
        keep("first use", measure_first_use(options.repeats))
    sides = {"ours": Side("ours", sys.executable)}
    if not options.no_peers:
        sides["peers"] = Side("peers", options.peers_python or peers_python())
    for workload, size in chosen:
        keep(f"{workload} {size}", measure(sides, workload, size, options.repeats))
    for side in sides.values():
        side.close()
    if not options.only and not options.no_demo:
        keep("demo", measure_demo())
    if options.out == RESULTS and not (options.only or options.no_peers or options.no_demo):
        remember(results)
    from speed.picture import draw

    draw(results, PICTURE if options.out == RESULTS else options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
