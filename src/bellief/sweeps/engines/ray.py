"""Cells on a Ray cluster: one task a cell, results and checkpoints streamed to the driver, which alone writes files.

A task that is lost with its node is given to another node with the last checkpoint that reached the driver. Without an
address a private cluster is started on this machine, which listens on the loopback address only.
"""

import os
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from bellief.errors import UserError
from bellief.processors import cores
from bellief.ray_cluster import join
from bellief.sweeps.cells import Cell
from bellief.sweeps.engines import STOPPING, Event, Job, lost_event, settings_of
from bellief.sweeps.machine import software, worker_environment
from bellief.sweeps.store import Store
from bellief.sweeps.worker import RECORDED, writing_failed

# Tasks waiting for a core, for each core of the cluster: enough to keep it busy, few enough to keep memory flat.
AHEAD = 1
# Tasks that one process of a node computes before another takes its place.
CALLS = 200
# Messages of a task that the driver has not read yet; then the task waits.
UNREAD = 16


class Ray:
    """The Ray engine."""

    name = "ray"

    def __init__(self, address: str | None = None, workers: int | None = None):
        self.ray = _import_ray(private=address is None)
        join(self.ray, address, num_cpus=workers or cores())
        if address is None:
            _check_loopback(self.ray)
        runtime = {"env_vars": {**worker_environment(), **_inherited()}}
        options = {"num_cpus": 1, "max_retries": 0, "runtime_env": runtime}
        # A process ends after so many tasks, so that what compiled programs leave behind does not pile up.
        self.task = self.ray.remote(max_calls=CALLS)(_task).options(
            num_returns="streaming", _generator_backpressure_num_objects=UNREAD, **options
        )
        self.control: Any = None

    def close(self) -> None:
        """Leave the cluster; a private one is stopped."""
        if self.ray.is_initialized():
            self.ray.shutdown()

    def run(self, cells: list[Cell], job: Job) -> Iterator[Event]:
        """Compute the cells."""
        self.control = _make_control(self.ray)
        waiting, tries = deque(cells), dict.fromkeys((cell.id for cell in cells), 0)
        running: dict[Any, Cell] = {}
        told = False
        while waiting or running:
            if job.stop.is_set() and not told:
                told = True
                waiting.clear()
                self.ray.get(self.control.stop.remote())
                yield STOPPING
            while waiting and len(running) < self._slots():
                cell = waiting.popleft()
                running[self._submit(cell, job)] = cell
            if not running:
                continue
            ready, _ = self.ray.wait(list(running), num_returns=1, timeout=0.5)
            for stream in ready:
                cell = running[stream]
                event = self._take(stream, cell, job)
                if event is None:
                    continue
                if event["kind"] == "lost":
                    del running[stream]
                    tries[cell.id] += 1
                    event = lost_event(event, cell, tries[cell.id], told)
                    if event["kind"] == "lost":
                        waiting.appendleft(cell)
                    yield event
                    continue
                if event["kind"] not in ("begin", "progress", "restarted"):
                    del running[stream]
                yield event

    def _slots(self) -> int:
        """Tasks that may be under way: nodes come and go."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1))) * (1 + AHEAD)

    def _submit(self, cell: Cell, job: Job) -> Any:
        order = {"id": cell.id, "identity": cell.identity, "settings": settings_of(cell), "every": job.every}
        return self.task.remote(order, job.home(cell.id).read_checkpoint(cell.id), self.control, software()["bellief"])

    def _take(self, stream: Any, cell: Cell, job: Job) -> Event | None:
        """The next message of a task, its files written; nothing where there is nothing to tell."""
        try:
            event, files = self.ray.get(next(stream))
        except StopIteration:  # ended without a last word
            return {"kind": "lost", "cell": cell.id, "reason": "its task ended early"}
        except self.ray.exceptions.RayError as error:
            return {"kind": "lost", "cell": cell.id, "reason": type(error).__name__}
        try:
            return _keep(job.home(cell.id), cell, event, files)
        except OSError as error:
            self.ray.cancel(stream, force=True)
            return {"cell": cell.id, **writing_failed(error)}


def _keep(store: Store, cell: Cell, event: Event, files: dict[str, bytes]) -> Event | None:
    if event["kind"] == "checkpoint":
        store.write_checkpoint(cell.id, files["checkpoint"])
        return None
    if event["kind"] == "finished":
        store.commit(cell, files, event["content"], **{name: event[name] for name in RECORDED})
    return event


def _import_ray(private: bool) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if private:
        # Ray's switch for machines that take part in no cluster: every server binds to the loopback address.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        import ray
    except ImportError as error:
        raise UserError("The ray engine needs Ray: install it with pip install 'bellief[ray]'.") from error
    return ray


def _check_loopback(ray: Any) -> None:
    """The switch is read when Ray is imported, which may have happened before."""
    place = ray.nodes()[0]["NodeManagerAddress"]
    if place not in ("127.0.0.1", "::1"):
        ray.shutdown()
        raise UserError(
            f"Ray would listen on {place}, because it was imported before; start the sweep in a process of its own, or "
            "give the address of a cluster."
        )


def _inherited() -> dict[str, str]:
    """Settings of JAX and of its compiler that decide numbers must be those of the driver."""
    return {name: value for name, value in os.environ.items() if name.startswith("JAX_") or name == "XLA_FLAGS"}


class _Control:
    """Tells tasks that they should stop. Lives beside the driver."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True

    def is_stopped(self) -> bool:
        return self.stopped


def _make_control(ray: Any) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(_Control).options(num_cpus=0, scheduling_strategy=here).remote()


class _Stop:
    """Asks the control now and then, in a thread, so that computing does not wait for the answer."""

    def __init__(self, control: Any):
        self.flag, self.over = threading.Event(), threading.Event()
        threading.Thread(target=self._ask, args=(control,), daemon=True).start()

    def _ask(self, control: Any) -> None:
        import ray

        while not self.over.is_set():
            try:
                if ray.get(control.is_stopped.remote(), timeout=30):
                    self.flag.set()
                    return
            except Exception:  # the driver is gone, and this task soon will be
                return
            self.over.wait(0.5)


def _task(
    order: Event, checkpoint: bytes | None, control: Any, version: str
) -> Iterator[tuple[Event, dict[str, bytes]]]:
    """On the node: compute a cell and stream what happens."""
    from bellief.sweeps import work
    from bellief.sweeps.worker import finished_event, forget_other_programs, progress_event

    name = {"cell": order["id"]}
    if software()["bellief"] != version:
        reason = f"a node has Bellief {software()['bellief']}, and the driver {version}: install the same everywhere"
        yield {"kind": "failed", "reason": reason, **name}, {}
        return
    yield {"kind": "begin", **name}, {}
    forget_other_programs(order["settings"])
    stop = _Stop(control)
    try:
        for message in work.compute(Cell(order["id"], order["identity"]), checkpoint, order["every"], stop.flag.is_set):
            match message:
                case work.Checkpoint(content):
                    yield {"kind": "checkpoint", **name}, {"checkpoint": content}
                case work.Stopped():
                    yield {"kind": "stopped", **name}, {}
                case work.Finished(tables):
                    yield finished_event(message) | name, tables
                case _ if (event := progress_event(message)) is not None:
                    yield event | name, {}
    except Exception as error:
        yield {"kind": "failed", "reason": " ".join(f"{type(error).__name__}: {error}".split()), **name}, {}
    finally:
        stop.over.set()
