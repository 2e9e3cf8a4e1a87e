"""Continuous states in a sweep: the same store, the same bytes after an interruption, and the episodes kept."""

import numpy as np
import pytest

import bellief
from bellief.registry import CONTINUOUS
from bellief.sweeps import parquet_tables, work
from bellief.sweeps.cells import expand, kind_of
from bellief.sweeps.spec import build_spec
from bellief.sweeps.store_reader import open_store
from bellief.sweeps.sweep import run_sweep
from sweeps.conftest import TINY, Inline

PENDULUM = TINY | {"runs": 7, "environments": ["pendulum"], "agents": ["gptd"]}
CARTPOLE = {"environments": [{"name": "CartPole-v1", "continuous": True}]}
SMALL = {"horizon": 2, "states": 20, "mdps": 2}


def cell_of(**changes):
    return expand(build_spec(PENDULUM | changes, "test"))[0].cells[0]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param(CARTPOLE, marks=pytest.mark.slow),
        pytest.param({"environments": ["linear-model"]}, marks=pytest.mark.slow),
        pytest.param({"agents": [{"name": "bbi", "settings": SMALL}]}, marks=pytest.mark.slow),
        pytest.param({"agents": [{"name": "psrl", "settings": {"horizon": 2, "states": 20}}]}, marks=pytest.mark.slow),
        pytest.param({"agents": ["vdqn"]}, marks=pytest.mark.slow),
        pytest.param(CARTPOLE | {"agents": [{"name": "bbi", "settings": SMALL}]}, marks=pytest.mark.slow),
    ],
    ids=["gptd", "gymnasium", "linear-model", "bbi", "psrl", "vdqn", "bbi in gymnasium"],
)
def test_going_on_from_any_checkpoint_gives_the_same_bytes(changes):
    cell = cell_of(**changes)
    messages = list(work.compute(cell, None, 0.0))
    saved = [message.content for message in messages if isinstance(message, work.Checkpoint)]
    assert len(saved) > 3  # one for every compiled call, which holds several events
    for number in (0, len(saved) // 2, len(saved) - 1):
        again = list(work.compute(cell, saved[number], 1e9))
        assert not any(isinstance(message, work.Restarted) for message in again)
        assert again[-1].tables == messages[-1].tables


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("continuous") / "tiny"
    run_sweep(build_spec(PENDULUM, "test"), folder, engine=Inline)
    return open_store(folder)


def test_it_is_what_run_computes_episodes_included(store):
    expected = bellief.run("pendulum", "gptd", steps=60, runs=7, half_life=20.0)
    found = store.condition("pendulum", "gptd").result()
    assert found.over is not None
    for name in ("step", "total", "smoothed", "over", "falls", "length", "survived"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.falls[:, -1].sum() > 0
    np.testing.assert_array_equal(found.final_steps_survived, expected.final_steps_survived)
    assert {**found.to_dict(), "seconds": 0} == {**expected.to_dict(), "seconds": 0}


def test_the_table_of_curves_has_the_episodes(store):
    frame = store.to_pandas()
    assert list(frame.columns) == ["environment", "agent", "run", "step", "total", "smoothed", *work_columns()]
    assert frame["run"].max() == 6
    curves = store.condition("pendulum", "gptd").curves()
    assert curves.over.shape == curves.total.shape
    assert (np.diff(curves.over, axis=1) >= 0).all()
    # The pendulum pays -1 for a fall and nothing else.
    np.testing.assert_array_equal(curves.falls, -curves.total)


def work_columns():
    return ["over", "falls", "length", "survived"]


def test_countable_and_continuous_states_in_one_sweep():
    agents = [{"name": "bbi", "label": "BBI"}, {"name": "gptd", "only": ["pendulum"]}]
    setups = expand(build_spec(PENDULUM | {"environments": ["nchain", "pendulum"], "agents": agents}, "test"))
    assert [(setup.environment, setup.agent) for setup in setups] == [
        ("nchain", "BBI"),
        ("pendulum", "BBI"),
        ("pendulum", "gptd"),
    ]
    tabular, box = (setup.cells[0].identity["agent"]["settings"] for setup in setups[:2])
    assert "mode" in box
    assert "mode" not in tabular


def test_reading_needs_no_environment():
    """The kind of states is in the spec, not found out by opening what may not be installed here."""
    spec = build_spec(PENDULUM | {"environments": [{"name": "NoSuch-v0", "continuous": True}]}, "test")
    identity = expand(spec, check=False)[0].cells[0].identity
    assert kind_of(identity["environment"]) == CONTINUOUS
    assert set(identity["agent"]["settings"]) == set(cell_of().identity["agent"]["settings"])


def test_a_gymnasium_environment_keeps_its_episodes(tmp_path):
    run_sweep(build_spec(PENDULUM | CARTPOLE, "test"), tmp_path / "cartpole", engine=Inline)
    condition = open_store(tmp_path / "cartpole").condition("CartPole-v1", "gptd")
    episodes, curves = condition.table(parquet_tables.EPISODES), condition.curves()
    np.testing.assert_array_equal(episodes.groupby("run").size(), curves.over[:, -1])
    np.testing.assert_array_equal(episodes.groupby("run")["length"].sum(), curves.length[:, -1])
    assert condition.result().episode_summary()["count"] == len(episodes)
