"""A tiny sweep, an engine that computes in the test's own process, and the program itself as a process."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import bellief
from bellief.sweeps import work
from bellief.sweeps.cells import expand
from bellief.sweeps.spec import build_spec
from bellief.sweeps.worker import finished_event

SOURCE = Path(bellief.__file__).parents[1]

# Three cells of one condition: one compilation serves all tests.
TINY = {
    "name": "tiny",
    "steps": 60,
    "runs": 30,
    "half_life": 20,
    "environments": ["nchain"],
    "agents": ["q-learning"],
}


class Inline:
    """Computes one cell after another, here."""

    name = "inline"

    def __init__(self, act=lambda cell: None):
        self.act, self.closed, self.computed = act, False, []

    def run(self, cells, job):
        for cell in cells:
            if job.stop.is_set():
                return
            yield {"kind": "begin", "cell": cell.id}
            event = self.act(cell)
            if event is not None:
                yield {"cell": cell.id, **event}
                continue
            for message in work.compute(cell, job.home(cell.id).read_checkpoint(cell.id), job.every, job.stop.is_set):
                if isinstance(message, work.Checkpoint):
                    job.home(cell.id).write_checkpoint(cell.id, message.content)
                elif isinstance(message, work.Finished):
                    event = finished_event(message)
                    facts = {"seconds": message.seconds, "made": message.made}
                    job.home(cell.id).commit(cell, message.tables, event["content"], **facts)
                    self.computed.append(cell.id)
                    yield {"cell": cell.id, **event}
                else:
                    kind = type(message).__name__.lower()
                    yield {"kind": kind, "cell": cell.id, **message._asdict()}

    def close(self):
        self.closed = True


@pytest.fixture
def tiny():
    return build_spec(TINY, "test")


@pytest.fixture(scope="session")
def tiny_cells():
    return expand(build_spec(TINY, "test"))[0].cells


@pytest.fixture(scope="session")
def finished(tiny_cells):
    """The tables of each cell, computed without interruption, by its id."""
    made = {}
    for cell in tiny_cells:
        *_, last = work.compute(cell, None, 1e9)
        made[cell.id] = last
    return made


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Programs compiled once are found again by the processes of later tests."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def program(compiled, tmp_path):
    """Start `bellief` as a process of its own, in a folder of its own."""
    environment = os.environ | {
        "PYTHONPATH": str(SOURCE),
        "COLUMNS": "100",
        "JAX_COMPILATION_CACHE_DIR": str(compiled),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    started = []

    def start(*arguments, prefix=(), **extra):
        command = [*prefix, sys.executable, "-m", "bellief", *map(str, arguments)]
        # A session of its own, so that a test can kill it with all that it has started.
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | extra,
            cwd=tmp_path,
            start_new_session=True,
        )
        started.append(process)
        return process

    def call(*arguments, timeout=240, **options):
        process = start(*arguments, **options)
        out, err = process.communicate(timeout=timeout)
        return SimpleNamespace(code=process.returncode, out=out, err=err)

    yield SimpleNamespace(start=start, call=call)
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def write_spec(tmp_path):
    """Write a sweep's description and return its path."""

    def write(**changes):
        path = tmp_path / "sweep.yaml"
        path.write_text(json.dumps(TINY | changes))  # JSON is YAML
        return path

    return write


class Content(bytes):
    """A file's bytes, shown by their digest: pytest would take hours to tell how the bytes themselves differ."""

    def __repr__(self):
        return hashlib.sha256(self).hexdigest()


def contents(folder):
    """Every Parquet file of a store, by name."""
    return {path.name: Content(path.read_bytes()) for path in sorted((Path(folder) / "metrics").glob("*.parquet"))}
