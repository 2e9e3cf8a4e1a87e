"""Sweeps, stores and saved agents of version 0.1, in which `bbi` and `psrl` were the paper's agents for tables."""

import json
import warnings

import jax
import numpy as np
import pytest
from tests.sweeps.conftest import Inline

import bellief
from bellief import errors
from bellief.agents import bbi, psrl_paper
from bellief.errors import Notice
from bellief.sweeps import cells, run_sweep
from bellief.sweeps.spec import build_spec
from bellief.sweeps.store import Store
from bellief.sweeps.store_reader import open_store

AGENTS = ["psrl", "bbi", {"name": "bbi", "label": "ours", "settings": {"rule": "optimistic"}}, "mmbi", "q-learning"]
TABLES = {"name": "old", "steps": 30, "runs": 10, "environments": ["nchain"], "agents": AGENTS}
PRINTED = {"name": "bbi", "label": "printed", "settings": {"mode": "paper"}}
BOX = {"name": "old", "steps": 30, "runs": 10, "environments": ["pendulum"], "agents": ["psrl", "bbi", PRINTED]}
# As version 0.1 computed them.
TABLE_CELLS = [
    "58e66c3017089b0e8a89",
    "963a637d0aed757e9127",
    "3cf0c7fecd2c7cb5ab42",
    "9077732927bebfee40ce",
    "c6ed555d321e171a2dd7",
]
BOX_CELLS = ["cfa48651704a3f38bbd5", "faaf79da548506510987", "8a1f9a805799a94d2f98"]


def first_cells(document):
    return [setup.cells[0] for setup in cells.expand(build_spec(document, "test"))]


@pytest.mark.parametrize(("document", "wanted"), [(TABLES, TABLE_CELLS), (BOX, BOX_CELLS)], ids=["tables", "box"])
def test_cells_of_version_0_1_stay(document, wanted):
    reason = "cells of finished sweeps got other names: a new setting of an agent needs metadata={OMIT_DEFAULT: True}"
    assert [cell.id for cell in first_cells(document)] == wanted, reason
    assert [cell.id for cell in first_cells(document | {"bellief": 0.1})] == wanted


def test_the_papers_agents_have_the_same_cells():
    named = ["psrl-paper", "bbi-paper", {"name": "bbi-paper", "label": "ours", "settings": {"rule": "optimistic"}}]
    for version in ({}, {"bellief": "0.2"}):
        found = first_cells(TABLES | version | {"agents": named})
        assert [cell.id for cell in found] == TABLE_CELLS[:3]
        assert [cells.agent_name(cell.identity) for cell in found] == ["psrl-paper", "bbi-paper", "bbi-paper"]
    found = first_cells(BOX | {"bellief": "0.2", "agents": ["psrl", "bbi", "bbi-paper"]})
    assert [cell.id for cell in found] == BOX_CELLS


def test_a_sweep_of_the_present_means_the_present_agents():
    found = first_cells(TABLES | {"bellief": 0.2, "agents": ["psrl", "bbi"]})
    assert not {cell.id for cell in found} & set(TABLE_CELLS)
    assert [cells.agent_name(cell.identity) for cell in found] == ["psrl", "bbi"]
    assert cells.agent_module(found[1].identity) is bbi


def test_settings_that_version_0_1_had_not_are_told_only_where_they_are_changed():
    (cell,) = first_cells(TABLES | {"agents": [{"name": "mmbi", "settings": {"schedule": "triangular"}}]})
    assert cell.id == TABLE_CELLS[3]
    (cell,) = first_cells(TABLES | {"agents": [{"name": "mmbi", "settings": {"schedule": "doubling"}}]})
    assert cell.identity["agent"]["settings"]["schedule"] == "doubling"


def test_an_old_store_is_resumed_under_either_name(tmp_path):
    old = {"name": "old", "steps": 30, "runs": 10, "environments": ["nchain"], "agents": [{"name": "psrl"}]}
    named = [{"name": "psrl-paper", "label": "psrl"}]
    engine = Inline()
    run_sweep(build_spec(old, "test"), tmp_path / "old", engine=lambda: engine)
    assert engine.computed == TABLE_CELLS[:1]
    again = Inline()
    run_sweep(build_spec(old | {"agents": named}, "test"), tmp_path / "old", engine=lambda: again)
    assert again.computed == [], "the cell is there"
    result = open_store(tmp_path / "old").condition("nchain", "psrl").result()
    assert result.agent == "psrl-paper"
    np.testing.assert_array_equal(result.total, bellief.run("nchain", "psrl-paper", 30, 10).total)
    with pytest.raises(bellief.UserError, match="holds another sweep"):
        Store.create(tmp_path / "old", build_spec(old | {"bellief": "0.2"}, "test"))


def test_version_is_text_or_number():
    assert build_spec(TABLES | {"bellief": 0.2}, "test").bellief == "0.2"
    assert build_spec(TABLES | {"bellief": "0.1.0"}, "test").bellief is None
    with pytest.raises(bellief.UserError, match="bellief"):
        build_spec(TABLES | {"bellief": "latest"}, "test")


def test_a_saved_agent_of_the_paper_is_as_version_0_1_wrote_it(tmp_path):
    spaces, config = bellief.make("nchain").spaces(), psrl_paper.Config()
    state = psrl_paper.init(jax.random.key(0), config, spaces)
    path = bellief.save_agent(tmp_path / "agent.npz", "psrl-paper", config, spaces, state)
    header = json.loads(np.load(path)["header"].tobytes())
    assert (header["format"], header["agent"]) == (1, "psrl")
    assert set(header["config"]) == {"discount", "tolerance", "prior"}
    assert bellief.load_agent(path).agent is psrl_paper


def test_a_saved_agent_with_a_new_meaning_says_so(tmp_path):
    spaces, config = bellief.make("nchain").spaces(), bbi.Config()
    state = bbi.init(jax.random.key(0), config, spaces)
    path = bellief.save_agent(tmp_path / "agent.npz", "bbi", config, spaces, state)
    header = json.loads(np.load(path)["header"].tobytes())
    assert (header["format"], header["agent"]) == (2, "bbi")
    assert bellief.load_agent(path).agent is bbi


def test_new_meanings_are_announced_once(monkeypatch):
    monkeypatch.setattr(errors, "_notified", set())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        first_cells(TABLES)
        first_cells(TABLES)
        first_cells(BOX)
        bellief.run("nchain", "q-learning", 5, 1)
    notices = [str(one.message) for one in seen if one.category is Notice]
    assert len(notices) == 2
    assert "'psrl-paper'" in notices[0]
    assert "'bbi-paper'" in notices[1]
