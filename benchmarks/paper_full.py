"""As much of `bellief paper --scale full` as a GPU machine computes in a given time, in several calls if need be.

First NChain's and the Maze's BBI curves, one at a time on an otherwise idle machine (they are the timing promise). Then
everything else at once, the most valuable first: curves whose plans are wide on the GPU, several processes at once, and
cells that need no GPU on the cores. Each piece is a store of its own, which comes back in `stores-N.tar`; parts of the
computations that are no sweeps come back in `computed/`. `done.txt` names what is finished, and given back as `--done`
leaves it out of the next call. Of what agents report of their plans only BBI's are kept: the claims need no others.

    python benchmarks/paper_full.py --out $OUT --seconds 540
    python benchmarks/paper_full.py --out $OUT --seconds 540 --done runs/call-1/done.txt

Afterwards

    python benchmarks/paper_full.py --unpack runs/paper-full runs/call-*/stores-*.tar
    bellief paper --scale full --out runs/paper --draw-only --reuse runs/paper-full

judges and draws what is there. `--steps 40 --no-gpu` is a trial of the script itself.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bellief.paper.agents import OURS, VDQN_PACES
from bellief.paper.tasks import TASKS, sweep_document

ALONE, GPU, CPU = "alone", "gpu", "cpu"
WIDTH = 10
# A file that comes back may have 16 MiB; eight may come back.
MOST_BYTES, MOST_ARCHIVES = 15 * 2**20, 5
# Seconds kept for packing.
LEFT_FOR_PACKING = 12.0
DISCRETE = ("lavalake", "nchain", "doubleloop", "lavalake10", "maze")
HEAVY_VDQN = ("VDQN", "VDQN, scheduled policy")


class Unit(NamedTuple):
    """A piece of work for a process: a curve or one of its cells (`shard`), or a part of a computation."""

    name: str
    place: str
    order: dict[str, Any]


def curve(sweep: str, label: str, place: str, shard: tuple[int, int] | None = None) -> Unit:
    """A curve of the paper's sweeps, or ten of its runs."""
    name = re.sub(r"\W+", "-", f"{sweep}-{label}").strip("-").lower()
    order = {"sweep": sweep, "label": label, "shard": shard, "vdqn_on_gpu": place == GPU and label in VDQN_PACES}
    return Unit(name if shard is None else f"{name}.{shard[0]}", place, order)


def cells(sweep: str, label: str, runs: int) -> list[Unit]:
    """A curve's cells, each for a process."""
    count = -(-runs // WIDTH)
    return [curve(sweep, label, CPU, (number + 1, count)) for number in range(count)]


def runs_of(sweep: str, label: str) -> int:
    """Runs of an agent at full size."""
    document = sweep_document(sweep, "full")
    (entry,) = [agent for agent in document["agents"] if agent["label"] == label]
    return entry.get("runs", document["runs"])


def gpu_units(vdqn: str) -> list[Unit]:
    """What is for the GPU: those measured alone, then the long ones; few states last, which cores compute as well."""
    found = [curve("nchain", "BBI", ALONE), curve("maze", "BBI", ALONE)]
    heavy = [curve(sweep, label, GPU) for label in HEAVY_VDQN for sweep in DISCRETE] if vdqn == GPU else []
    found += [curve("maze", label, GPU) for label in ("MMBI", "PSRL", OURS)] + heavy[:4]
    found += [curve(task, label, GPU) for task in ("lavalake10", "lavalake") for label in ("BBI", "MMBI", "PSRL", OURS)]
    found += [curve("maze-horizons", f"BBI, H = {h}", GPU) for h in (50, 20, 10)]
    found += [curve("maze-horizons", f"{OURS}, H = 10", GPU), *heavy[4:]]
    found += [curve("doubleloop", label, GPU) for label in ("BBI", OURS)]
    found += [curve("nchain-rollouts", f"BBI, formula {number}", GPU) for number in (1, 2)]
    found += [curve("nchain-horizons", f"BBI, H = {h}", GPU) for h in (10, 20, 50)]
    return [*found, curve("nchain", OURS, GPU), curve("nchain-horizons", f"{OURS}, H = 10", GPU)]


def cpu_units(vdqn: str) -> list[Unit]:
    """What needs no GPU, the most valuable first; long curves cell by cell."""
    from bellief.paper.computations import COMPUTATIONS

    parts = [
        Unit(f"computed-{name}-{label}".replace(" ", "_"), CPU, {"computation": name, "part": label})
        for name in ("wasserstein", "bounds", "posteriors", "identities")
        for label, _ in COMPUTATIONS[name].parts(COMPUTATIONS[name].settings["full"])
    ]
    found = [unit for task in DISCRETE for unit in cells(task, "VDQN, scheduled learning", runs_of(task, "VDQN"))]
    found = [*parts[:6], *found]
    found += [curve(task, label, CPU) for task in ("nchain", "doubleloop") for label in ("MMBI", "PSRL")]
    found += [unit for task in ("nchain", "doubleloop") for unit in cells(task, "BSS", runs_of(task, "BSS"))]
    found += parts[6:]
    continuous = [(sweep, label) for sweep in ("pendulum", "linear-model") for label in TASKS[sweep].agents]
    found += [unit for sweep, label in continuous for unit in cells(sweep, label, runs_of(sweep, label))]
    bql = [(task, label) for task in DISCRETE for label in TASKS[task].agents if label.startswith("BQL")]
    found += [unit for task, label in bql if label == "BQL" for unit in cells(task, label, runs_of(task, label))]
    found += [curve(task, label, CPU) for task, label in bql if label != "BQL"]
    if vdqn == CPU:
        found += [
            unit for task in DISCRETE[:-1] for label in HEAVY_VDQN for unit in cells(task, label, runs_of(task, label))
        ]
    return found + [curve(task, label, CPU) for task in DISCRETE for label in ("Q-learning", "optimal")]


# In a process of its own


def work_at(order: dict[str, Any], folder: Path, steps: int | None, runs: int | None) -> None:
    """Compute one unit into a folder."""
    if "computation" in order:
        _compute_part(order["computation"], order["part"], folder, "full" if steps is None else "tiny")
        return
    from bellief.fast.compiler_options import set_process_options

    # As the command line does. Above all, a process takes what it needs of the GPU's memory: three quarters of it,
    # JAX's default, leave nothing for the others.
    set_process_options()
    from bellief.sweeps import work
    from bellief.sweeps.engines.batch import Batch
    from bellief.sweeps.spec import build_spec
    from bellief.sweeps.sweep import run_sweep

    if order["vdqn_on_gpu"]:
        _step_on_gpu()
    if order["label"] != "BBI":
        _leave_out_plans(work)
    document = sweep_document(order["sweep"], "full")
    (agent,) = [one for one in document["agents"] if one["label"] == order["label"]]
    if order.get("steps"):
        agent["steps"] = order["steps"]
    document |= {"agents": [agent]}
    if steps is not None:
        document |= {"steps": steps, "runs": runs, "readings": [steps]}
        document["agents"] = [{name: one for name, one in agent.items() if name not in ("steps", "runs")}]
    spec = build_spec(document, order["label"])
    shard = order["shard"]
    shards = [tuple(shard)] if shard else [None]
    if shard is None and os.environ.get("JAX_PLATFORMS") == "cpu":
        # Cell by cell, as everywhere else on cores; the program is compiled once.
        count = -(-(spec.agents[0].runs or spec.runs) // WIDTH)
        shards = [(number + 1, count) for number in range(count)]
    told = -10.0

    def listen(event: dict[str, Any]) -> None:
        nonlocal told
        if event["kind"] == "progress" and time.monotonic() - told > 5:
            told = time.monotonic()
            print("AT", event["step"], "OF", event["steps"], flush=True)
        if event["kind"] in ("failed", "note"):
            print(event, flush=True)

    for one in shards:
        summary = run_sweep(spec, folder, engine=Batch, shard=one, listen=listen)
        if summary.failed:
            sys.exit(1)


def _compute_part(name: str, label: str, folder: Path, scale: str) -> None:
    """One part of a computation, in the file where `bellief.paper.computations.compute` looks for it."""
    from bellief.files import write_whole
    from bellief.paper import computations

    settings = computations.COMPUTATIONS[name].settings[scale]
    for one, part in computations.COMPUTATIONS[name].parts(settings):
        if one == label:
            file = f"{name}-{computations.key_of(name, scale)}-{label.replace(' ', '_')}.npz"
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / file, computations._pack(part()))


def _step_on_gpu() -> None:
    """Let runs step where a GPU is: a step of VDQN is work enough, and takes as long for fifty runs as for one."""
    from bellief.experiments.task import Task
    from bellief.fast import placement

    def places(self: Any, device: str, width: int, agent: Any, config: Any = None) -> Any:
        del self, device, width, agent, config
        place = placement.find_places("cpu" if os.environ.get("JAX_PLATFORMS") == "cpu" else "gpu", 1).plan
        return placement.Places(place, place)

    Task.places = places  # type: ignore[method-assign]


def _leave_out_plans(work: Any) -> None:
    from bellief.sweeps.parquet_tables import PLANS

    whole = work.Chunk.tables

    def tables(self: Any, gathered: Any) -> dict[str, bytes]:
        return {name: content for name, content in whole(self, gathered).items() if name != PLANS}

    work.Chunk.tables = tables


# Here


class Machine:
    """Starts processes, measures them, and ends those that are left at the end of the time."""

    def __init__(self, out: Path, end: float, options: argparse.Namespace):
        self.scratch, self.end, self.options = options.scratch, end, options
        self.logs = out / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.facts: dict[str, dict[str, Any]] = {}
        self.running: set[subprocess.Popen] = set()
        self.lock = threading.Lock()
        self.stopped = False
        self.gpu_variables: dict[str, str] = {}

    def left(self) -> float:
        """Seconds until the end."""
        return self.end - time.monotonic()

    def run(self, unit: Unit) -> bool:
        """Compute a unit; whether it is finished."""
        folder, log = self.scratch / unit.name, self.logs / f"{unit.name}.log"
        command = [sys.executable, __file__, "--unit", json.dumps(unit.order), "--folder", str(folder)]
        for name in ("steps", "runs"):
            if getattr(self.options, name) is not None:
                command += [f"--{name}", str(getattr(self.options, name))]
        variables = os.environ | {"BELLIEF_COMPILATION_CACHE": "off"}
        if unit.place == CPU or self.options.no_gpu:
            variables |= {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "PJRT_NPROC": "1"}
            variables |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        else:
            variables |= self.gpu_variables
        began = time.monotonic()
        with log.open("w") as told:
            with self.lock:
                if self.stopped:
                    return False
                child = subprocess.Popen(command, env=variables, stdout=told, stderr=told, start_new_session=True)
                self.running.add(child)
            code = child.wait()
        with self.lock:
            self.running.discard(child)
        text = log.read_text(errors="replace")
        at = re.findall(r"^AT (\d+) OF (\d+)", text, re.M)
        self.facts[unit.name] = {
            "place": unit.place,
            "seconds": round(time.monotonic() - began, 2),
            "code": code,
            "at": at[-1] if at and code else None,
            "ended": round(self.options.seconds - self.left(), 1),
        }
        if code:
            shutil.rmtree(folder, ignore_errors=True)
            if not self.stopped:
                print(f"{unit.name} failed:", text[-600:], flush=True)
        return code == 0

    def stop(self) -> None:
        """End every process that is left."""
        with self.lock:
            self.stopped = True
            for child in self.running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)

    def work_through(self, queues: list[tuple[deque[Unit], int]], keep: Callable[[str], None]) -> None:
        """All units, so many of each queue at once, until the time is over. Who finds a queue empty helps with the
        next one.
        """

        def one(mine: list[deque[Unit]]) -> None:
            for queue in mine:
                while not self.stopped and self.left() > 5:
                    try:
                        unit = queue.popleft()
                    except IndexError:
                        break
                    if self.run(unit):
                        keep(unit.name)

        order = [queue for queue, _ in queues]
        threads = [
            threading.Thread(target=one, args=(order[place:],))
            for place, (_, count) in enumerate(queues)
            for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(self.left(), 0.0))
        self.stop()
        for thread in threads:
            thread.join()


def share_gpu(machine: Machine) -> str:
    """Let processes compute on the GPU at the same time (NVIDIA's multi-process service), where that works here."""
    if shutil.which("nvidia-cuda-mps-control") is None:
        return "not installed"
    home = Path("/tmp/bellief-mps")
    home.mkdir(exist_ok=True)
    variables = {"CUDA_MPS_PIPE_DIRECTORY": str(home), "CUDA_MPS_LOG_DIRECTORY": str(home)}
    look = "import jax; print(jax.default_backend(), float(jax.numpy.ones(3).sum()))"
    try:
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=os.environ | variables, timeout=20, check=True)
        told = subprocess.run(
            [sys.executable, "-c", look], env=os.environ | variables, timeout=60, capture_output=True, text=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"failed: {error}"
    if "gpu 3.0" not in told.stdout:
        return f"failed: {told.stdout[-200:]} {told.stderr[-300:]}"
    machine.gpu_variables = variables
    return "on"


class Archives:
    """Archives that can come back, to which each store is added when it is finished: a machine that is taken away in
    the middle of a call loses only what was unfinished.
    """

    def __init__(self, out: Path, scratch: Path):
        self.out, self.scratch = out, scratch
        self.number, self.room = 0, 0
        self.archive: tarfile.TarFile | None = None
        self.names: list[str] = []
        self.lock = threading.Lock()

    def add(self, name: str) -> None:
        """Pack the store of a unit."""
        with self.lock:
            files = [p for p in (self.scratch / name).rglob("*") if p.is_file() and p.name != "manifest.json"]
            size = sum(path.stat().st_size + 1024 for path in files) + 10_240
            if self.archive is None or size > self.room:
                self.close()
                if self.number == MOST_ARCHIVES:
                    print(f"{name} does not fit into {MOST_ARCHIVES} archives", flush=True)
                    return
                self.number, self.room = self.number + 1, MOST_BYTES
                self.archive = tarfile.open(self.out / f"stores-{self.number}.tar", "w")  # noqa: SIM115
            for path in files:
                self.archive.add(path, path.relative_to(self.scratch))
            self.archive.fileobj.flush()  # type: ignore[union-attr]
            self.room -= size
            self.names.append(name)
            with (self.out / "done.txt").open("a") as done:
                done.write(f"{name}\n")

    def close(self) -> None:
        """Finish the last archive."""
        if self.archive is not None:
            self.archive.close()
            self.archive = None


def unpack(folder: Path, archives: list[Path]) -> None:
    """The stores of all calls side by side, and computations joined where all of their parts are there."""
    from bellief.paper import computations

    for path in archives:
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    computed = folder / "computed"
    computed.mkdir(exist_ok=True)
    for part in folder.glob("computed-*/*.npz"):
        shutil.copy(part, computed / part.name)
    for name, computation in computations.COMPUTATIONS.items():
        labels = [label.replace(" ", "_") for label, _ in computation.parts(computation.settings["full"])]
        files = [computed / f"{name}-{computations.key_of(name, 'full')}-{label}.npz" for label in labels]
        if all(file.exists() for file in files):
            computations.compute(name, "full", computed / f"{name}.npz", [], print)
        else:
            print(f"{name}: {sum(not file.exists() for file in files)} parts are missing")


def main() -> None:
    """Compute, pack, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="where archives, done.txt and report.json are written")
    parser.add_argument("--seconds", type=float, default=540.0, help="to be back after")
    parser.add_argument("--done", type=Path, nargs="*", default=[], help="done.txt of earlier calls")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/bellief-paper"), help="where stores are made")
    parser.add_argument("--gpu-processes", type=int, default=6)
    parser.add_argument("--cpu-processes", type=int, default=10)
    parser.add_argument("--vdqn", choices=("none", GPU, CPU), default=GPU, help="those that learn always")
    parser.add_argument("--vdqn-steps", type=int, help="of those on all tasks but the Maze, instead of the paper's")
    parser.add_argument("--only", help="units whose names match this expression")
    parser.add_argument("--together", action="store_true", help="nothing alone: no times are promised")
    parser.add_argument("--no-mps", action="store_true")
    parser.add_argument("--no-gpu", action="store_true", help="curves as for a GPU, computed on cores: a trial")
    parser.add_argument("--cores", action="store_true", help="everything on cores, cell by cell")
    parser.add_argument("--steps", type=int, help="a trial: instead of the paper's")
    parser.add_argument("--runs", type=int, default=None)
    parser.add_argument("--unpack", type=Path, nargs="+", metavar="PATH", help="a folder, then the archives for it")
    parser.add_argument("--unit", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.unit:
        work_at(json.loads(options.unit), options.folder, options.steps, options.runs)
        return
    if options.unpack:
        unpack(options.unpack[0], options.unpack[1:])
        return
    if options.steps is not None and options.runs is None:
        options.runs = 2
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    options.scratch.mkdir(parents=True, exist_ok=True)
    machine = Machine(options.scratch / "told", began + options.seconds - LEFT_FOR_PACKING, options)
    done = {name for file in options.done for name in file.read_text().split()}

    def wanted(units: list[Unit]) -> list[Unit]:
        return [
            unit for unit in units if unit.name not in done and (not options.only or re.search(options.only, unit.name))
        ]

    if options.cores:
        curves = [(unit.order["sweep"], unit.order["label"]) for unit in gpu_units("none")]
        every = cpu_units(CPU) + [
            unit for sweep, label in curves for unit in cells(sweep, label, runs_of(sweep, label))
        ]
        on_gpu, on_cores = [], wanted(every)
    else:
        on_gpu, on_cores = wanted(gpu_units(options.vdqn)), wanted(cpu_units(options.vdqn))
    for unit in (*on_gpu, *on_cores):
        if unit.order.get("label") in HEAVY_VDQN and unit.order["sweep"] in DISCRETE[:-1]:
            unit.order["steps"] = options.vdqn_steps
    print(len(on_gpu), "curves for the GPU,", len(on_cores), "units for the cores", flush=True)
    archives = Archives(options.out, options.scratch)
    alone = [] if options.together else [unit for unit in on_gpu if unit.place == ALONE]
    if alone and options.steps is None:
        # Software is read from disk for the first time, which is not to be timed.
        order = {"sweep": "nchain", "label": "BBI", "shard": None, "vdqn_on_gpu": False}
        trial = argparse.Namespace(**{**vars(options), "steps": 100, "runs": 50})
        machine.options = trial
        machine.run(Unit("warm-up", ALONE, order))
        machine.options = options
    for unit in alone:
        if machine.run(unit):
            archives.add(unit.name)
            print(unit.name, machine.facts[unit.name], flush=True)
    shared = "off" if options.no_mps or options.no_gpu else share_gpu(machine)
    print("GPU shared:", shared, flush=True)
    queues = [
        (deque(unit for unit in on_gpu if unit not in alone), options.gpu_processes),
        (deque(on_cores), options.cpu_processes),
    ]
    machine.work_through(queues, archives.add)
    archives.close()
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "gpu_shared": shared,
        "units": machine.facts,
        "not_begun": [unit.name for queue, _ in queues for unit in queue],
    }
    (options.out / "report.json").write_text(json.dumps(report, indent=0) + "\n")
    with tarfile.open(options.out / "logs.tgz", "w:gz") as archive:
        archive.add(machine.logs, "logs")
    killed = {name: one["at"] for name, one in machine.facts.items() if one["code"]}
    print(f"{len(archives.names)} units finished in {report['seconds']} s", flush=True)
    print(f"{len(report['not_begun'])} not begun", flush=True)
    print("ended on their way:", json.dumps(killed), flush=True)
    slowest = sorted(machine.facts.items(), key=lambda pair: -pair[1]["seconds"])[:40]
    print("seconds:", ", ".join(f"{name} {one['seconds']:.0f}" for name, one in slowest), flush=True)


if __name__ == "__main__":
    main()
