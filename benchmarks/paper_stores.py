"""The paper's experiments at full size within a given time, where JAX has a GPU and few other packages are installed.

Every agent of every sweep is a process of its own; those that plan on the GPU and those that compute on processor cores
wait in two queues, the most important first. When the time is over, whatever still runs is ended. What is finished is
packed as stores and computations, with the summary that is made from them.

    python benchmarks/paper_stores.py compute --work DIR --out DIR --seconds 540
    python benchmarks/paper_stores.py compute --work DIR --out DIR --scale tiny --seconds 200      # a trial
    python benchmarks/paper_stores.py publish stores-*.tar.gz    # package's summary, docs/paper and README from stores
"""

import argparse
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from bellief.paper import agents, tasks

ROOT = Path(__file__).parents[1]
OURS = agents.OURS
# Sweep and agent, the most important first. Agents whose plans are heavy use the GPU.
ON_GPU = (
    ("lavalake", "BBI"),
    ("maze", "BBI"),
    ("lavalake10", "BBI"),
    ("nchain", "BBI"),
    ("doubleloop", "BBI"),
    ("lavalake", "MMBI"),
    ("lavalake", "PSRL"),
    ("lavalake10", "MMBI"),
    ("lavalake10", "PSRL"),
    ("maze", "MMBI"),
    ("maze", "PSRL"),
    *(("nchain-horizons", f"BBI, H = {horizon}") for horizon in (10, 20, 50)),
    ("nchain-rollouts", "BBI, formula 1"),
    ("nchain-rollouts", "BBI, formula 2"),
    ("nchain", OURS),
    ("doubleloop", OURS),
    *(("maze-horizons", f"BBI, H = {horizon}") for horizon in (10, 20, 50)),
    ("lavalake", OURS),
    ("lavalake10", OURS),
    ("maze", OURS),
    ("nchain-horizons", f"{OURS}, H = 10"),
    ("maze-horizons", f"{OURS}, H = 10"),
)
ON_CORES = (
    ("lavalake", "VDQN"),
    ("lavalake10", "VDQN"),
    *((sweep, agent) for agent in ("PSRL", "MMBI", "BQL") for sweep in ("nchain", "doubleloop")),
    ("nchain", "VDQN"),
    ("lavalake", "BQL"),
    ("lavalake10", "BQL"),
    ("doubleloop", "VDQN"),
    ("nchain", "BSS"),
    ("doubleloop", "BSS"),
    ("maze", "VDQN"),
    ("", "identities"),
    ("", "posteriors"),
    ("", "wasserstein"),
    ("", "bounds"),
    *(
        (sweep, label)
        for sweep in ("doubleloop", "nchain", "lavalake", "lavalake10")
        for label in agents.BQL_VARIANTS
        if label != "BQL"
    ),
    *(("pendulum", agent) for agent in tasks.TASKS["pendulum"].agents),
    *(("linear-model", agent) for agent in tasks.TASKS["linear-model"].agents),
    *(
        (sweep, agent)
        for sweep in ("nchain", "doubleloop", "lavalake", "lavalake10", "maze")
        for agent in ("optimal", "Q-learning")
    ),
)


class Job(NamedTuple):
    """One agent of a sweep, or a computation (without a sweep)."""

    sweep: str
    agent: str
    gpu: bool

    @property
    def name(self) -> str:
        """A name for files."""
        return re.sub(r"\W+", "-", f"{self.sweep} {self.agent}").strip("-").lower()


def run_job(job: Job, scale: str, work: Path) -> None:
    """In a process of its own: compute an agent's runs, or a computation."""
    if not job.sweep:
        from bellief.paper.computations import compute

        compute(job.agent, scale, work / "computed" / f"{job.agent}.npz", [], print)
        return
    from bellief.sweeps import sweep
    from bellief.sweeps.engines.batch import Batch
    from bellief.sweeps.engines.local import Local
    from bellief.sweeps.spec import build_spec

    whole = tasks.sweep_document(job.sweep, scale)
    (entry,) = [agent for agent in whole["agents"] if agent["label"] == job.agent]
    spec = build_spec({**whole, "name": job.name, "agents": [entry]}, job.name)
    found = sweep.run_sweep(spec, work / "stores" / job.name, engine=Batch if job.gpu else lambda: Local(workers=1))
    if found.failed:
        raise SystemExit(str(found.failed))


class Pool:
    """Starts processes and ends them when the time is over."""

    def __init__(self, scale: str, work: Path, end: float):
        self.scale, self.work, self.end = scale, work, end
        self.told: dict[str, dict[str, Any]] = {}
        self.running: set[subprocess.Popen[bytes]] = set()
        self.lock = threading.Lock()

    def one(self, job: Job) -> None:
        """Run a job to its end, or to the end of the time."""
        began = time.monotonic()
        if began > self.end - 5:
            self.told[job.name] = {"state": "not begun"}
            return
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        if not job.gpu:
            environment["JAX_PLATFORMS"] = "cpu"
        order = json.dumps({"job": job._asdict(), "scale": self.scale, "work": str(self.work)})
        log = self.work / "logs" / f"{job.name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, __file__, "job", order],
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        with self.lock:
            self.running.add(process)
        try:
            code: int | None = process.wait(max(1.0, self.end - time.monotonic()))
        except subprocess.TimeoutExpired:
            code = None
            self.stop(process)
        with self.lock:
            self.running.discard(process)
        seconds = round(time.monotonic() - began, 1)
        state = "finished" if code == 0 else "out of time" if code is None else f"exit {code}"
        self.told[job.name] = {"state": state, "seconds": seconds, "gpu": job.gpu}
        print(f"{job.name}: {state} after {seconds} s", flush=True)
        if code:
            print(log.read_text(errors="replace")[-1500:], flush=True)

    @staticmethod
    def stop(process: subprocess.Popen[bytes]) -> None:
        """End a process with those that it started."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def collect(work: Path, scale: str) -> Any:
    """The summary of everything that is finished so far."""
    from bellief.paper.items import ITEMS
    from bellief.paper.run import Request, take_over
    from bellief.paper.summary import summarise

    with tempfile.TemporaryDirectory(dir=work) as fresh:
        request = Request(list(ITEMS.values()), scale, Path(fresh), [work / "stores", work], {})
        take_over(request)
        from bellief.paper.results import Folder

        return summarise(Folder(request.folder), scale)


def pack(work: Path, out: Path) -> None:
    """Finished cells and computations, without checkpoints, in one file; plans only of the agent whose plans a claim
    looks at.
    """
    target = out / "stores.tar.gz"
    with tarfile.open(target.with_suffix(f".{threading.get_ident()}"), "w:gz", compresslevel=9) as archive:
        for path in sorted([*work.glob("stores/**/*"), *work.glob("computed/*.npz")]):
            inside = path.relative_to(work)
            if not path.is_file() or {"checkpoints", "quarantine", "sessions"} & set(inside.parts):
                continue
            if path.name.endswith(".lock") or path.name in ("lock.json", ".lock.lock"):
                continue
            archive.add(path, str(inside))
    target.with_suffix(f".{threading.get_ident()}").rename(target)


def write(work: Path, out: Path, scale: str, told: dict[str, Any]) -> None:
    """Files that are brought back."""
    from bellief.paper import summary

    (out / "times.json").write_text(json.dumps(told, indent=1) + "\n")
    pack(work, out)
    summary.write(collect(work, scale), out / summary.NAME)
    print(f"stores {(out / 'stores.tar.gz').stat().st_size / 2**20:.1f} MiB", flush=True)


def compute(options: argparse.Namespace) -> None:
    """Everything that fits into the time."""
    began = time.monotonic()
    os.environ["JAX_PLATFORMS"], for_children = "cpu", os.environ.get("JAX_PLATFORMS")
    work, out = options.work, options.out
    for folder in (out, work / "logs", work / "stores", work / "computed", work / "compiled"):
        folder.mkdir(parents=True, exist_ok=True)
    if for_children is None:
        del os.environ["JAX_PLATFORMS"]
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(work / "compiled")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    pool = Pool(options.scale, work, began + options.seconds - options.reserve)
    wanted = [*(Job(*pair, gpu=True) for pair in ON_GPU), *(Job(*pair, gpu=False) for pair in ON_CORES)]
    if options.only:
        wanted = [job for job in wanted if re.search(options.only, job.name)]
    done = threading.Event()
    threading.Thread(target=keep, args=(work, out, done), daemon=True).start()
    with ThreadPoolExecutor(options.gpu) as first, ThreadPoolExecutor(options.cores) as second:
        for job in wanted:
            (first if job.gpu else second).submit(pool.one, job)
    done.set()
    told = {
        "seconds": round(time.monotonic() - began, 1),
        "gpu_processes": options.gpu,
        "core_processes": options.cores,
        "jobs": pool.told,
    }
    os.environ["JAX_PLATFORMS"] = "cpu"
    write(work, out, options.scale, told)


def keep(work: Path, out: Path, done: threading.Event) -> None:
    """Pack what is finished every now and then, for the case that this process is killed."""
    while not done.wait(100):
        pack(work, out)


def stores_of(archives: list[Path], target: Path) -> Iterator[Path]:
    """Unpack archives of stores."""
    for number, path in enumerate(archives):
        folder = target / str(number)
        with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as archive:
            archive.extractall(folder, filter="data")
        yield folder


def main() -> None:
    """Compute, publish, or one job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("compute")
    one.add_argument(
        "--work", type=Path, required=True, help="a folder for stores; what is there is not computed again"
    )
    one.add_argument("--out", type=Path, required=True, help="a folder for the results")
    one.add_argument("--seconds", type=float, default=540)
    one.add_argument("--reserve", type=float, default=60, help="seconds kept for the summary")
    one.add_argument("--scale", default="full", choices=tasks.SCALES)
    one.add_argument("--gpu", type=int, default=4, help="processes that use the GPU at once")
    one.add_argument("--cores", type=int, default=3, help="processes on processor cores at once")
    one.add_argument("--only", help="jobs whose names match this expression")
    one = commands.add_parser("job")
    one.add_argument("order")
    options = parser.parse_args()
    if options.command == "job":
        order = json.loads(options.order)
        run_job(Job(**order["job"]), order["scale"], Path(order["work"]))
    else:
        compute(options)


if __name__ == "__main__":
    main()
