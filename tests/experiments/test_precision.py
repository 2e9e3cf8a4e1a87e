"""Double precision: what JAX is told by its switch holds for tables, beliefs and plans alike."""

import os
import subprocess
import sys

import pytest

# In a process of its own: the switch is a matter of each thread, or of the whole process.
SCRIPT = """
import sys
import jax, numpy as np
import bellief
from bellief.envs import make
from bellief.experiments import loop
from bellief.experiments.chunks import chunk_keys
from bellief.registry import AGENTS

for name in sys.argv[1:]:
    env, agent = name.split("/")
    if env == "linear-model":
        print(bellief.run(env, agent, 12, 2).total.tolist())
        continue
    module, environment = AGENTS[agent].load(), make(env)
    keys, tables = chunk_keys(0, env, agent, range(2)), loop.make_tables(environment.outcomes)
    run = loop.run_chunk(keys, tables, module, module.Config(), environment.spaces(), [1, 3, 6], [12], 5.0)
    *_, last = run
    kinds = {leaf.dtype for leaf in jax.tree.leaves(last) if np.issubdtype(leaf.dtype, np.floating)}
    assert kinds == {np.dtype("float64")}, (name, kinds)
    assert jax.tree.all(jax.tree.map(lambda leaf: bool(np.isfinite(np.asarray(leaf, float)).all()), last)), name
print("done")
"""

FAST = ["nchain/bbi", "nchain/q-learning", "nchain/bql"]
SLOW = ["nchain/psrl", "nchain/mmbi", "lavalake/bbi", "nchain/bss", "nchain/vdqn"]
SLOW += [f"linear-model/{agent}" for agent in ("bbi", "psrl", "gptd", "vdqn")]


@pytest.mark.parametrize("names", [FAST, pytest.param(SLOW, marks=pytest.mark.slow)], ids=["few", "others"])
def test_runs_in_double_precision(names):
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names],
        env=os.environ | {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.endswith("done\n")
