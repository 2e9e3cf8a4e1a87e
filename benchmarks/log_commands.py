"""How long answers about a log take as a user meets them: commands in new processes, beside a NumPy script.

    python benchmarks/log_commands.py --out docs/results/log-commands.json
    python benchmarks/log_commands.py --before PATH_OF_AN_OLDER_SRC   # a second column: the same with another version

Every measurement is a new process with nothing cached; the programs take turns, and ratios are of the best times. The
716-state logs are of the clinicians in ICU-Sepsis where that package is installed, and are left out where it is not.
`--only warm` times repeated calls of `bellief.evaluate` in one process at several numbers of states; `--tiny` runs all
of it on logs of no interest, to see that it works.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
WARM_STATES = (16, 100, 264, 500)
LIMITS = {"evaluate": 2, "compare": 4, "sensitivity": 6}


def write_log(path: Path, state, action, reward, after, ended) -> None:
    """A CSV file; an episode goes on as long as a step starts where the one before led."""
    lines = ["state,action,reward,next_state,terminated"]
    lines += [f"{s},{a},{r:g},{t},{int(e)}" for s, a, r, t, e in zip(state, action, reward, after, ended, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def frozen_lake(path: Path, rows: int = 3133) -> None:
    """Random play on Gymnasium's lake."""
    import gymnasium

    env, rng, log = gymnasium.make("FrozenLake-v1"), np.random.default_rng(0), []
    for episode in range(rows):
        state, done = env.reset(seed=episode)[0], False
        while not done and len(log) < rows:
            action = int(rng.integers(4))
            after, reward, terminated, truncated, _ = env.step(action)
            log.append((state, action, reward, after, terminated))
            state, done = after, terminated or truncated
    write_log(path, *zip(*log, strict=True))


def sepsis(path: Path, policy_path: Path, patients: int) -> int:
    """Patients of the clinicians, and their policy as a file; the number of rows."""
    import icu_sepsis_log

    return icu_sepsis_log.write(path, policy_path, patients)


def random_log(states: int, actions: int = 4, visits: int = 10, seed: int = 0):
    """Every pair visited so often; five possible successors."""
    rng = np.random.default_rng(seed)
    state = np.repeat(np.arange(states), actions * visits)
    action = np.tile(np.repeat(np.arange(actions), visits), states)
    after = (state + rng.integers(0, 5, len(state)) * (action + 1)) % states
    return state, action, rng.normal(np.cos(state), 0.5), after


def timed(command: list[str], source: str | None = None) -> dict[str, float]:
    """Wall and processor time in seconds and peak memory in MB of a new process with nothing cached."""
    with tempfile.TemporaryDirectory() as home, open(f"{home}/errors", "w+") as errors:
        env = os.environ | {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache"}
        if source is not None:
            env["PYTHONPATH"] = source
        began = time.perf_counter()
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=errors, cwd=home)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}: {errors.read().strip()[-500:]}")
        return {"seconds": wall, "cpu": used.ru_utime + used.ru_stime, "MB": used.ru_maxrss / 1024}


def best(programs: dict[str, tuple[list[str], str | None]], rounds: int) -> dict[str, float]:
    """Best wall time of each, taking turns."""
    found: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, (command, source) in programs.items():
            found[name].append(timed(command, source)["seconds"])
    return {name: min(times) for name, times in found.items()}


def small_commands(folder: Path, rounds: int, before: str | None) -> list[dict]:
    log = folder / "frozen_lake.csv"
    frozen_lake(log)
    bellief = [sys.executable, "-m", "bellief"]
    asked = {
        "evaluate": [*bellief, "evaluate", str(log)],
        "compare": [*bellief, "compare", str(log), "uniform", "always:1", "always:2"],
        "sensitivity": [*bellief, "sensitivity", str(log)],
    }
    programs = {"script": ([sys.executable, str(HERE / "numpy_interval.py"), str(log)], None)}
    programs |= {name: (command, None) for name, command in asked.items()}
    if before is not None:
        programs |= {f"{name} before": (command, before) for name, command in asked.items()}
    seconds = best(programs, rounds)
    return [
        {
            "what": f"bellief {name}, 3,133 rows, 16 states",
            "seconds": seconds[name],
            "script": seconds["script"],
            "ratio": seconds[name] / seconds["script"],
            "limit": LIMITS[name],
            "before": seconds.get(f"{name} before"),
        }
        for name in asked
    ]


def large_logs(folder: Path, before: str | None, tiny: bool) -> list[dict]:
    asked: dict[str, list[str]] = {}
    try:
        for patients in (20,) if tiny else (2_000, 18_000):
            log, policy = folder / f"sepsis{patients}.csv", folder / f"clinicians{patients}.csv"
            count = sepsis(log, policy, patients)
            asked[f"716 states, 25 actions, {count:,} rows, 1,000 draws"] = [
                sys.executable, "-m", "bellief", "evaluate", str(log), "--policy", str(policy), "--states", "716",
                "--actions", "25",
            ]  # fmt: skip
    except FileNotFoundError as missing:
        print(f"Left out: {missing}", file=sys.stderr)
    log, states = folder / "large.npz", 5_000 if tiny else 100_000
    np.savez(log, *random_log(states, actions=4, visits=5))
    code = (
        "import sys, numpy as np, bellief; "
        "data = bellief.Transitions.from_arrays(*np.load(sys.argv[1]).values()); "
        "print(bellief.evaluate(data, discount=0.95, draws=200))"
    )
    asked[f"{states:,} states, {20 * states:,} rows, 200 draws"] = [sys.executable, "-c", code, str(log)]
    rows = []
    for what, command in asked.items():
        rows.append({"what": what} | timed(command))
        if before is not None:
            rows[-1] |= {f"{name} before": value for name, value in timed(command, before).items()}
    return rows


WARM = """
import sys, time, numpy as np
sys.path.insert(0, {here!r})
from log_commands import random_log
import bellief
data = bellief.Transitions.from_arrays(*random_log({states}))
bellief.evaluate(data, discount=0.95)
times = []
for _ in range({rounds}):
    began = time.perf_counter(); bellief.evaluate(data, discount=0.95); times.append(time.perf_counter() - began)
print(min(times))
"""


def warm_calls(rounds: int, before: str | None, tiny: bool) -> list[dict]:
    rows = []
    for states in WARM_STATES[: 1 if tiny else None]:
        code = WARM.format(here=str(HERE), states=states, rounds=rounds)
        row = {"what": f"bellief.evaluate again, {states} states, 1,000 draws"}
        for name, source in (("seconds", None), ("before", before)):
            if name == "before" and before is None:
                continue
            env = os.environ | ({} if source is None else {"PYTHONPATH": source})
            done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
            row[name] = float(done.stdout) if done.returncode == 0 else None
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", help="the src folder of another version, measured beside this one")
    parser.add_argument("--only", nargs="*", default=["small", "large", "warm"])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if "small" in options.only:
            rows += small_commands(Path(folder), options.rounds, options.before)
        if "large" in options.only:
            rows += large_logs(Path(folder), options.before, options.tiny)
        if "warm" in options.only:
            rows += warm_calls(options.rounds, options.before, options.tiny)
    for row in rows:
        print(json.dumps(row))
    if options.out is not None:
        options.out.write_text(json.dumps({"load": os.getloadavg(), "cores": os.cpu_count(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
