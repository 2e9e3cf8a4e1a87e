"""Ray for real, in processes of its own: the same numbers as here, a node that dies, nothing left running."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweeps.conftest import SOURCE, contents

pytestmark = [
    pytest.mark.kills,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]

OPTIONS = ("--out", "out", "--engine", "ray", "--json")
# Cells of several seconds, with a checkpoint after every segment.
LONG = {"steps": 1_000_000, "agents": ["psrl"]}


def ray_processes():
    """Servers of Ray on this machine."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"raylet/raylet" in command or b"gcs_server" in command:
                found.add(int(entry.name))
    return found


def listening(process):
    """Addresses other than the loopback address on which a program and its children listen."""
    told = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True).stdout
    session = {entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_of(entry, process.pid)}
    lines = [line for line in told.splitlines() if session & set(re.findall(r"pid=(\d+)", line))]
    assert lines, "no server of Ray was found"
    return [line for line in lines if "127.0.0.1" not in line.split()[3]]


def _is_of(entry, ancestor):
    """Whether a process descends from another, or belongs to its session."""
    number = int(entry.name)
    try:
        while number > 1:
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            if ancestor in (number, int(fields[3])):
                return True
            number = int(fields[1])
    except (OSError, IndexError):
        pass
    return False


def gone(before, seconds=120):
    end = time.monotonic() + seconds
    while ray_processes() - before and time.monotonic() < end:
        time.sleep(0.2)
    return not ray_processes() - before


def test_the_same_bytes_as_here(program, write_spec, tmp_path, finished):
    """Also: a private cluster listens on the loopback address only, and is gone afterwards."""
    before = ray_processes()
    process = program.start("sweep", write_spec(), *OPTIONS, "--workers", "1")
    while '"kind": "begin"' not in process.stdout.readline():
        assert process.poll() is None
    has_ss = subprocess.run(["which", "ss"], capture_output=True).returncode == 0
    outside = listening(process) if has_ss else []
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert outside == []
    made = contents(tmp_path / "out" / "tiny")
    for cell, whole in finished.items():
        for name, table in whole.tables.items():
            assert made[f"{cell}.{name}.parquet"] == table
    assert gone(before)


# Two nodes on this machine; the second is killed when the sweep is under way.
CLUSTER = """
import json, pathlib, subprocess, sys, time
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
sweep = subprocess.Popen(
    [sys.executable, "-m", "bellief", *sys.argv[1:], "--address", cluster.address], stdout=subprocess.PIPE, text=True
)
kinds, killed = [], False
for line in sweep.stdout:
    kinds.append(json.loads(line)["kind"])
    if not killed and kinds.count("begin") >= 2:
        # One cell on each node: the second node goes once both have a checkpoint.
        while len(list(pathlib.Path("out/tiny/checkpoints").glob("*.npz"))) < 2 and sweep.poll() is None:
            time.sleep(0.01)
        killed = sweep.poll() is None
        cluster.remove_node(second, allow_graceful=False)
code = sweep.wait()
nodes = len(cluster.list_all_nodes())
cluster.shutdown()
print("RESULT", json.dumps({"code": code, "kinds": kinds, "killed": killed, "nodes": nodes}))
"""


@pytest.mark.slow
def test_a_node_dies(program, write_spec, tmp_path):
    before = ray_processes()
    study = write_spec(runs=40, **LONG)
    local = program.call("sweep", study, "--out", "out", "--set", "name=local", "--json", timeout=600)
    assert local.code == 0, local.err
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    arguments = ("sweep", study, *OPTIONS, "--checkpoint-every", "0")
    told = subprocess.run(
        [sys.executable, "-c", CLUSTER, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=600,
    )
    result = json.loads(re.search("RESULT (.*)", told.stdout).group(1))
    assert result["code"] == 0, told.stderr
    assert result["killed"]
    assert "lost" in result["kinds"]
    assert result["kinds"].count("finished") == 4
    assert contents(tmp_path / "out" / "tiny") == contents(tmp_path / "out" / "local")
    assert gone(before)


@pytest.mark.slow
def test_an_interrupt_saves(program, write_spec, tmp_path):
    before = ray_processes()
    study = write_spec(runs=20, **LONG)
    process = program.start("sweep", study, *OPTIONS, "--workers", "1", "--checkpoint-every", "0")
    checkpoints = tmp_path / "out" / "tiny" / "checkpoints"
    while not list(checkpoints.glob("*.npz")):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "continue with 'bellief resume out/tiny'" in err
    assert list(checkpoints.glob("*.npz"))
    assert gone(before)
    whole = program.call("sweep", study, "--out", "out", "--set", "name=local", "--json", timeout=600)
    assert whole.code == 0
    assert program.call("resume", "out/tiny", "--engine", "ray", "--json", timeout=600).code == 0
    assert contents(tmp_path / "out" / "tiny") == contents(tmp_path / "out" / "local")
    assert gone(before)


def test_no_cluster_at_the_address(program, write_spec):
    result = program.call("sweep", write_spec(), *OPTIONS, "--address", "auto")
    assert result.code == 2
    assert "Ray cannot be reached at 'auto'" in result.err
    assert result.err.count("\n") == 1
