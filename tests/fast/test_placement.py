"""Where runs step and plan: one device, two, or the host and a GPU, with the same keys and the same results."""

import inspect
import os
import re
import subprocess
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bellief
from bellief.cli import jax_setup
from bellief.errors import UserError
from bellief.experiments import compiled_steps, gpu_planning
from bellief.experiments.compiled_steps import batch_keys
from bellief.experiments.event_loop import Plan
from bellief.experiments.task import open_task
from bellief.fast import placement
from bellief.fast.placement import plans_lightly
from bellief.registry import AGENTS

pytestmark = pytest.mark.long

try:
    HAS_GPU = bool(jax.devices("gpu"))
except RuntimeError:
    HAS_GPU = False

# Runs in a process of its own, which pretends to have two devices: on one of them, split over both, stepping on the
# first while planning on the second, as with a GPU, and the same in two waves, as large runs do.
TWO_DEVICES = """
import jax, numpy as np
from jax.sharding import Mesh
import sys
from bellief.envs import make
from bellief.experiments import compiled_environments, compiled_loop, event_loop, gpu_planning
from bellief.experiments.compiled_steps import batch_keys
from bellief.fast import placement
from bellief.registry import AGENTS

agent = AGENTS[sys.argv[1]].load()
environment = make("nchain")
tables = compiled_environments.make_tables(environment.outcomes)
first, second = (Mesh(np.array([device]), ("runs",)) for device in jax.devices())
both = placement.find_places("cpu", 4)
assert both.step.size == 2 and placement.find_places("cpu", 3).step.size == 1

def events(places, resume=None):
    keys = batch_keys(0, "nchain", "agent", range(4))
    config, spaces = agent.Config(), environment.spaces()
    return list(compiled_loop.run_batch(keys, tables, agent, config, spaces, [1, 3, 6], [5, 10], 5.0, resume, places))

def tell(*parts):
    *_, last = parts[-1]
    learned = last.agent[0] if sys.argv[1] == "q-learning" else last.agent.belief.counts
    told = [event for part in parts for event in part if isinstance(event, (event_loop.Plan, event_loop.Reading))]
    numbers = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(told)]
    print(np.asarray(learned).tolist(), [type(event).__name__ for event in told], numbers)

for places in (placement.Places(first, first), both, placement.Places(first, second)):
    tell(events(places))
gpu_planning.LARGE_PAUSE = placement.LARGE_RUN = 0
in_waves = events(places)
tell(in_waves)
# Begun anew from what there was after five steps.
place = next(n for n, event in enumerate(in_waves) if isinstance(event, event_loop.Snapshot) and event.event == 5)
assert jax.tree.leaves(in_waves[place].runs)[0].shape[0] == 4
tell(in_waves[:place], events(places, in_waves[place]))
assert placement.wave_count(4, True) == 2 and placement.wave_count(5, True) == placement.wave_count(4, False) == 1
"""


@pytest.mark.parametrize("agent", ["q-learning", pytest.param("psrl-paper", marks=pytest.mark.slow)])
def test_results_do_not_depend_on_where_runs_step_and_plan(agent):
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    environment = os.environ | {"XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu"}
    told = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES, agent], env=environment, capture_output=True, text=True, timeout=300
    )
    assert told.returncode == 0, told.stderr
    one, split, away, in_waves, resumed = told.stdout.splitlines()
    assert "1" in one
    assert one == split == away
    assert in_waves == resumed
    # Programs for fewer runs round differently.
    number = r"-?\d+\.?\d*(?:e-?\d+)?"
    assert re.sub(number, "", one) == re.sub(number, "", in_waves)
    pairs = zip(re.findall(number, one), re.findall(number, in_waves), strict=True)
    assert all(float(first) == pytest.approx(float(second), rel=1e-6) for first, second in pairs)


def test_waves_that_fail_are_closed():
    closed, places = [], placement.find_places("cpu", 2)

    def wave(number):
        try:
            yield Plan(1, np.array([number]))
            if number == 1:
                raise ValueError("no plan")
            yield Plan(2, np.array([number]))
        finally:
            closed.append(number)

    waves = [wave(0), wave(1)]
    events = gpu_planning._join_waves(waves, places)
    assert next(events).info.tolist() == [0, 1]
    with pytest.raises(ValueError, match="no plan"):
        next(events)
    assert sorted(closed) == [0, 1]
    assert [inspect.getgeneratorstate(one) for one in waves] == ["GEN_CLOSED"] * 2


def test_waves_that_are_given_up_are_closed():
    def wave(number):
        for step in range(100):
            yield Plan(step, np.array([number]))

    waves = [wave(0), wave(1)]
    events = gpu_planning._join_waves(waves, placement.find_places("cpu", 2))
    assert [next(events).step, next(events).step] == [0, 1]
    events.close()
    assert [inspect.getgeneratorstate(one) for one in waves] == ["GEN_CLOSED"] * 2


def test_all_waves_hear_the_same_of_snapshots(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(gpu_planning.time, "monotonic", lambda: now[0])
    due = gpu_planning._Pause(1.0)
    assert not due(1)
    now[0] = 1.5  # the other wave comes later
    assert not due(1)
    assert due(2)
    assert due(2)
    assert not due(3)


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
    keys = batch_keys(0, "nchain", "thinker", range(2))
    places = placement.find_places("cpu", 2)
    program = compiled_steps.program(Thinker, None, None)
    states = Thinker.State(jnp.arange(6.0).reshape(2, 3), jnp.zeros((2, 4)))
    changed, _ = compiled_steps.plan(keys, np.int32(1), states, program=program)
    assert changed.learned is None
    planned, _ = compiled_steps.plan_states(keys, 1, states, places, program)
    assert planned.learned is states.learned
    assert planned.actions.tolist() == [[3.0] * 4, [12.0] * 4]


@pytest.mark.parametrize(
    ("env", "agent", "width", "light"),
    [
        ("nchain", "psrl-paper", None, True),
        ("nchain", "psrl-paper", 50, True),
        ("lavalake", "psrl-paper", None, False),
        ("maze", "q-learning", 10, True),
        ("maze", "q-learning", 30, False),
        ("nchain", "bbi-paper", None, False),
    ],
)
def test_light_plans_stay_on_the_host(env, agent, width, light):
    assert plans_lightly(AGENTS[agent].load(), open_task(env, {}).spaces, width) == light


def test_auto_leaves_light_plans_to_the_processor(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "devices", lambda *kind: [f"device of {kind or 'any kind'}"])
    monkeypatch.setattr(placement, "_mesh", lambda found, width: found)
    monkeypatch.setattr(placement, "use_gpu_generator", lambda: None)
    assert placement.find_places("auto", 1, light=True).plan == ["device of ('cpu',)"]
    assert placement.find_places("auto", 1).plan == ["device of any kind"]
    assert placement.find_places("gpu", 1, light=True).plan == ["device of ('gpu',)"]
    monkeypatch.setenv(jax_setup.INSIST, "gpu")  # as `--device gpu` does
    assert placement.find_places("auto", 1, light=True).plan == ["device of any kind"]
    assert jax_setup.INSIST == placement.INSIST


def test_devices_that_are_not_there():
    with pytest.raises(UserError, match="no device 'tpu'"):
        bellief.run("nchain", "psrl-paper", 10, 1, device="tpu")
    if not HAS_GPU:
        with pytest.raises(UserError, match=r"bellief\[cuda\]"):
            bellief.run("nchain", "psrl-paper", 10, 1, device="gpu")


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
@pytest.mark.parametrize(
    ("agent", "settings"), [("psrl-paper", {}), ("mmbi", {}), ("bbi-paper", {}), ("bbi-paper", {"rule": "thompson"})]
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
