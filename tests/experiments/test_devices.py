"""Where runs step and plan: one device, two, or the host and a GPU, with the same keys and the same results."""

import os
import subprocess
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bellief
from bellief.errors import UserError
from bellief.experiments import devices, loop
from bellief.experiments.run import chunk_keys

try:
    HAS_GPU = bool(jax.devices("gpu"))
except RuntimeError:
    HAS_GPU = False

# Runs in a process of its own, which pretends to have two devices: on one of them, split over both, and stepping on
# the first while planning on the second, as with a GPU.
TWO_DEVICES = """
import jax, numpy as np
from jax.sharding import Mesh
import sys
from bellief.envs import make
from bellief.experiments import devices, loop
from bellief.experiments.run import chunk_keys
from bellief.registry import AGENTS

agent = AGENTS[sys.argv[1]].load()
environment = make("nchain")
tables = loop.make_tables(environment.outcomes)
first, second = (Mesh(np.array([device]), ("runs",)) for device in jax.devices())
both = devices.find_places("cpu", 4)
assert both.step.size == 2 and devices.find_places("cpu", 3).step.size == 1
for places in (devices.Places(first, first), both, devices.Places(first, second)):
    keys = chunk_keys(0, "nchain", "agent", range(4))
    *_, last = loop.run_chunk(
        keys, tables, agent, agent.Config(), environment.spaces(), [1, 3, 6], [10], 5.0, places=places
    )
    print(np.asarray(last.agent[0] if sys.argv[1] == "q-learning" else last.agent.belief.counts).tolist())
"""


@pytest.mark.parametrize("agent", ["q-learning", pytest.param("psrl", marks=pytest.mark.slow)])
def test_results_do_not_depend_on_where_runs_step_and_plan(agent):
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    told = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES, agent], env=environment, capture_output=True, text=True, timeout=300
    )
    assert told.returncode == 0, told.stderr
    one, split, away = told.stdout.splitlines()
    assert "1" in one
    assert one == split == away


class Thinker:
    """An agent whose plans change one field of two."""

    class State(NamedTuple):
        learned: jax.Array
        actions: jax.Array

    @classmethod
    def plan(cls, key, config, spaces, state):
        del key, config, spaces
        return cls.State(state.learned, state.actions + jnp.sum(state.learned)), None


def test_planning_returns_only_what_it_changes():
    keys = chunk_keys(0, "nchain", "thinker", range(2))
    places = devices.find_places("cpu", 2)
    static = {"agent": Thinker, "config": None, "spaces": None}
    states = Thinker.State(jnp.arange(6.0).reshape(2, 3), jnp.zeros((2, 4)))
    changed, _ = loop._plan(keys, np.int32(1), states, **static)
    assert changed.learned is None
    planned, _ = loop.plan_states(keys, 1, states, places, **static)
    assert planned.learned is states.learned
    assert planned.actions.tolist() == [[3.0] * 4, [12.0] * 4]


def test_devices_that_are_not_there():
    with pytest.raises(UserError, match="no device 'tpu'"):
        bellief.run("nchain", "psrl", 10, 1, device="tpu")
    if not HAS_GPU:
        with pytest.raises(UserError, match=r"bellief\[cuda\]"):
            bellief.run("nchain", "psrl", 10, 1, device="gpu")


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
@pytest.mark.parametrize(
    ("agent", "settings"), [("psrl", {}), ("mmbi", {}), ("bbi", {}), ("bbi", {"rule": "thompson"})]
)
def test_cpu_and_gpu_agree(agent, settings):
    """Same keys: the plans' values agree to rounding that H steps amplify, and a short run earns the same."""
    here, there = (
        bellief.run("nchain", agent, 300, 10, settings=settings, device=device, width=10) for device in ("cpu", "gpu")
    )
    both = here.info.merge(there.info, on=["run", "step"])
    # Before each pair has been tried, values are sums of large rewards of either sign; their size is the scale.
    scale = 1 + both["value_mean_x"].abs() + both.get("value_sd_x", 0)
    assert ((both["value_mean_x"] - both["value_mean_y"]).abs() / scale).max() < 1e-2
    assert np.mean(here.total[:, -1] == there.total[:, -1]) >= 0.9
