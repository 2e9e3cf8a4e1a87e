"""Ray for real: the same counts, bit for bit, though a node is killed while it folds a file."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bellief
from bellief.logs import as_tally
from logs.test_fold import random_frame, same, write

pytestmark = [
    pytest.mark.kills,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]

# Two nodes on this machine. The second is killed as soon as one of its workers has begun to fold a file.
CLUSTER = """
import json, os, sys, threading, time
from pathlib import Path
from ray.cluster_utils import Cluster
from bellief.logs import as_tally

def folding(raylet):
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == raylet and (entry / "cmdline").read_bytes().startswith(b"ray::_fold"):
                return True
        except (OSError, ValueError, IndexError):
            continue
    return False

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
raylet = second.all_processes["raylet"][0].process.pid
over, killed = threading.Event(), []

def kill():
    while not over.is_set():
        if folding(raylet):
            cluster.remove_node(second, allow_graceful=False)
            killed.append(True)
            return
        time.sleep(0.005)

killer = threading.Thread(target=kill)
killer.start()
parts = []
tally = as_tally(sys.argv[1:-1], engine="ray", address=cluster.address, progress=parts.append)
over.set()
killer.join()
tally.save(sys.argv[-1])
nodes = len(cluster.list_all_nodes())
cluster.shutdown()
print("RESULT", json.dumps({"killed": bool(killed), "nodes": nodes, "parts": len(parts)}))
"""


def test_a_node_dies(tmp_path):
    paths = [
        write(
            random_frame(150_000, seed).assign(episode=np.arange(150_000) // 50 + 3000 * seed), tmp_path / f"{seed}.csv"
        )
        for seed in range(4)
    ]
    source = Path(bellief.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(source), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    saved = tmp_path / "tally.parquet"
    command = [sys.executable, "-c", CLUSTER, *map(str, paths), str(saved)]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    found = re.search("RESULT (.*)", told.stdout)
    assert found, told.stderr
    assert json.loads(found.group(1)) == {"killed": True, "nodes": 1, "parts": 4}
    same(as_tally(saved), as_tally(paths), exact=True)
