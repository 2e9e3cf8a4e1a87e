"""Double precision: what JAX is told by its switch holds for tables, beliefs and plans alike."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

# In a process of its own: the switch is a matter of each thread, or of the whole process. Most of the time it compiles,
# and what XLA optimises has no part in which precision a number has.
QUICK = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false"}
SCRIPT = """
import sys
import jax, numpy as np
import bellief
from bellief.experiments.event_collector import Collector

last = []
add = Collector.add
Collector.add = lambda self, event: (add(self, event), last.append(self.last))

for name in sys.argv[1:]:
    env, agent = name.split("/")
    result = bellief.run(env, agent, 12, 2)
    numbers = [leaf for leaf in jax.tree.leaves(last[-1]) if np.issubdtype(leaf.dtype, np.floating)]
    assert numbers and {leaf.dtype for leaf in numbers} == {np.dtype("float64")}, (name, last[-1])
    assert np.isfinite(result.total).all(), name
print("done")
"""

FAST = ["nchain/bbi", "nchain/q-learning", "nchain/bql"]
SLOW = ["nchain/psrl", "nchain/mmbi", "lavalake/bbi", "nchain/bss", "nchain/vdqn", "nchain/oracle"]
SLOW += [f"linear-model/{agent}" for agent in ("bbi", "psrl", "gptd", "vdqn")]
SLOW += [f"nchain/{agent}" for agent in ("bbi-paper", "psrl-paper", "ube", "beb", "rlsvi")]
SLOW += ["pendulum/bbi", "FrozenLake-v1/psrl", *(f"CartPole-v1/{agent}" for agent in ("bbi", "psrl", "gptd"))]


@pytest.mark.parametrize("names", [FAST, pytest.param(SLOW, marks=pytest.mark.slow)], ids=["few", "others"])
def test_runs_in_double_precision(names):
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names],
        env=os.environ | QUICK | {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.endswith("done\n")
