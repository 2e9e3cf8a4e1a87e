"""The paper's full-size discrete curves where JAX has a GPU: every one of its five figures but VDQN's and BSS's.

Each curve is a process of its own, timed from its start to its end, with nothing compiled before; but for a first one
that does not count, so that reading software from disk for the first time is not timed. Those of `--alone` come first,
one at a time; the others follow, several at once, the largest first. What is computed is kept as sweeps, from which
`bellief paper --scale full --reuse DIR` draws its figures.

    python benchmarks/gpu.py --out runs/gpu                      # writes runs/gpu/times.json
    python benchmarks/gpu.py --out runs/gpu --curves maze/BBI    # one of them
    python benchmarks/gpu.py --out runs/gpu --steps 2000         # a trial
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import jax
import numpy as np
import yaml

from bellief.sweeps.store_reader import open_store

TASKS = ("nchain", "doubleloop", "lavalake", "lavalake10", "maze")
AGENTS = ("BBI", "PSRL", "MMBI", "BQL")
BELLIEF = (sys.executable, "-m", "bellief")
COMPILED = re.compile(r"Finished XLA compilation of jit\(_plan_parcel\) in ([\d.]+) sec")


def specs(folder: Path, chosen: list[str] | None, steps: int | None) -> list[Path]:
    """One sweep for each curve, called TASK-AGENT."""
    subprocess.run(
        [*BELLIEF, "paper", "--scale", "full", "--write-spec", folder, "--quiet"], check=True, stdout=subprocess.DEVNULL
    )
    found = []
    for task in dict.fromkeys(name.split("/")[0] for name in chosen or TASKS):
        whole = yaml.safe_load((folder / f"{task}.yaml").read_text())
        for agent in whole["agents"]:
            label = agent["label"]
            if f"{task}/{label}" in chosen if chosen else label in AGENTS:
                name = re.sub(r"\W+", "-", f"{task}-{label}").strip("-").lower()
                spec = whole | {"name": name, "agents": [agent], "steps": steps or whole["steps"]}
                found.append(folder / f"{name}.yaml")
                found[-1].write_text(yaml.safe_dump(spec))
    if chosen and len(found) != len(set(chosen)):
        sys.exit(f"Not all of {', '.join(chosen)} are curves of the paper's sweeps; 'bellief paper --list' has them.")
    return found


def compute(spec: Path, out: Path) -> dict:
    """Run one sweep; seconds and memory of its process, seconds of compiling its plan, and what its runs earned."""
    name = spec.stem
    log = out / f"{name}.log"
    environment = os.environ | {"BELLIEF_COMPILATION_CACHE": "off", "JAX_LOG_COMPILES": "1"}
    began = time.monotonic()
    with log.open("w") as told:
        command = [*BELLIEF, "sweep", spec, "--engine", "batch", "--out", out, "--quiet"]
        child = subprocess.Popen(command, env=environment, stdout=told, stderr=told)
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    if child.returncode:
        raise RuntimeError(f"{name} ended with exit code {child.returncode}; {log} says why.")
    compiled = [float(one) for one in COMPILED.findall(log.read_text())]
    found = {
        "seconds": round(seconds, 2),
        "plans_on": place_of(out / name),
        "compiling": round(max(compiled), 2) if compiled else None,
        "gibibytes": round(used.ru_maxrss / 2**20, 2),
        "reward": last_half(out / name),
    }
    print(name, json.dumps(found), flush=True)
    return found


def place_of(store: Path) -> str:
    """Where plans were made, as the store's cells say."""
    cell = next((store / "cells").glob("*.json"))
    return json.loads(cell.read_text())["made"][-1]["backend"]


def last_half(store: Path) -> tuple[float, float]:
    """Mean reward per step in the last half of the runs, and its standard error."""
    (condition,) = open_store(store).conditions
    curves = condition.curves()
    half = np.searchsorted(curves.step, curves.step[-1] // 2)
    earned = (curves.total[:, -1] - curves.total[:, half]) / (curves.step[-1] - curves.step[half])
    return round(float(earned.mean()), 4), round(float(earned.std(ddof=1) / len(earned) ** 0.5), 4)


def main() -> None:
    """Compute, tell, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="an empty folder")
    parser.add_argument("--curves", nargs="+", metavar="TASK/LABEL", help="only these, of any of the paper's sweeps")
    parser.add_argument("--alone", nargs="*", default=["nchain-bbi", "maze-bbi"], help="measured one at a time")
    parser.add_argument("--processes", type=int, default=6, help="of the others at once")
    parser.add_argument("--steps", type=int, help="instead of the paper's")
    options = parser.parse_args()
    if options.out.exists() and any(options.out.iterdir()):
        parser.error(f"{options.out} is not empty: what is there would be found finished, and not timed.")
    options.out.mkdir(parents=True, exist_ok=True)
    device = subprocess.run(
        [sys.executable, "-c", "import jax; print(jax.devices()[0].device_kind)"], capture_output=True, text=True
    ).stdout.strip()
    todo = specs(options.out / "specs", options.curves, options.steps)
    (trial,) = specs(options.out / "warm-up" / "specs", ["nchain/BBI"], 100)
    compute(trial, options.out / "warm-up")
    apart = [spec for spec in todo if spec.stem in options.alone]
    others = [spec for spec in reversed(todo) if spec not in apart]
    curves, failed = {}, []

    def one(spec: Path, alone: bool) -> None:
        try:
            curves[spec.stem] = compute(spec, options.out) | {"alone": alone}
        except RuntimeError as error:
            failed.append(str(error))

    for spec in apart:
        one(spec, alone=True)
    began = time.monotonic()
    with ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(lambda spec: one(spec, alone=False), others))
    together = time.monotonic() - began
    summary = {
        "date": str(date.today()),
        "device": device,
        "jax": jax.__version__,
        "processes": options.processes,
        "others_seconds": round(together, 1),
        "total_seconds": round(together + sum(found["seconds"] for found in curves.values() if found["alone"]), 1),
        "curves": {spec.stem: curves[spec.stem] for spec in todo if spec.stem in curves},
        "failed": failed,
    }
    (options.out / "times.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(f"{len(curves)} curves in {summary['total_seconds']} s", *failed, sep="\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
