"""`bellief report`: a page of any sweep, finished or not, whole or damaged."""

import json
import re

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from bellief.cli.app import app
from bellief.errors import UserError
from bellief.experiments.results import reading_steps
from bellief.report.document import Chart, Table
from bellief.report.sweep_page import sweep_document, write_sweep_report
from bellief.sweeps import parquet_tables
from bellief.sweeps.cells import expand, kind_of
from bellief.sweeps.spec import build_spec
from bellief.sweeps.store import Store
from bellief.sweeps.store_reader import open_store

pytestmark = pytest.mark.long

SPEC = {
    "name": "tiny",
    "steps": 100,
    "runs": 15,
    "environments": ["nchain", "pendulum"],
    "agents": [
        {"name": "psrl"},
        {"name": "q-learning", "label": "<b>Q & A<b>", "only": ["nchain"]},
        {"name": "gptd", "only": ["pendulum"]},
    ],
}
MADE = [{"bellief": "0.1.0", "python": "3.11.0", "backend": "cpu", "processor": "some"}]


def commit(store, cell, gain):
    """A finished cell with numbers that are easy to check: run r earns `gain` + r / 100 a step."""
    step = np.array(reading_steps(cell.identity["steps"]))
    rate = gain + (cell.first + np.arange(10))[:, None] / 100
    columns = {"total": rate * step, "smoothed": np.broadcast_to(rate, (10, len(step)))}
    if kind_of(cell.identity["environment"]) == "continuous":
        counts = np.broadcast_to(step // 5, (10, len(step)))
        columns |= {"over": counts, "falls": counts // 2, "length": counts * 5.0, "survived": counts * 1.0}
    found = {parquet_tables.CURVES: parquet_tables.to_parquet(parquet_tables.curves(cell.first, step, columns))}
    store.commit(cell, found, parquet_tables.content_hash(found), seconds=2.5, made=MADE)


def make(folder, leave=0):
    spec = build_spec(SPEC, "test")
    store = Store.create(folder, spec)
    store.prepare(alone=True)
    setups = expand(spec)
    pairs = [(cell, number) for number, setup in enumerate(setups) for cell in setup.cells]
    for cell, number in pairs[: len(pairs) - leave]:
        commit(store, cell, float(number))
    return open_store(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make(tmp_path_factory.mktemp("sweep") / "tiny")


@pytest.fixture(scope="module")
def document(whole):
    return sweep_document(whole)


def blocks(document, kind, title):
    section = next(section for section in document.sections if section.title == title)
    return [block for block in section.blocks if isinstance(block, kind)]


def test_curves_are_those_of_the_store(document):
    (chart,) = blocks(document, Chart, "nchain")
    assert [curve.label for curve in chart.curves] == ["psrl", "<b>Q & A<b>"]
    second = chart.curves[1]
    rates = 1 + np.arange(15) / 100
    np.testing.assert_allclose(second.mean, rates.mean())
    np.testing.assert_allclose(second.error, rates.std(ddof=1) / np.sqrt(15))
    np.testing.assert_allclose(second.low, np.quantile(rates, 0.05))
    assert chart.lines[0][0] == "best possible"
    assert chart.lines[0][1] == pytest.approx(3.677, abs=1e-3)


def test_tables_of_rewards_and_differences(document):
    final, paired = blocks(document, Table, "nchain")
    assert final.rows[0][:3] == ["psrl", "0.07", "0.012"]
    assert final.rows[1][-1] == "15 of 15"
    # The same runs on both sides: the difference is 1 in each of them.
    assert paired.rows == [["<b>Q & A<b>", "1", "1 to 1", "1.00", 15]]
    assert "compared with psrl" in paired.caption


def test_episodes_where_states_are_continuous(document):
    reward, length = blocks(document, Chart, "pendulum")
    assert reward.lines == ()
    assert length.curves[0].mean[-1] == 20
    episodes = blocks(document, Table, "pendulum")[1]
    assert episodes.rows[0] == ["psrl", "300", "10", "0", "5", "0", "5 to 5"]


def test_what_it_was_made_with(document):
    facts = dict(document.facts)
    assert facts["Cells"] == "8 of 8 finished"
    assert facts["Computing time"].startswith("20 s")
    assert (facts["bellief"], facts["backend"], facts["processor"]) == ("0.1.0", "cpu", "some")
    assert len(document.summary) == 1
    assert [section.anchor for section in document.sections] == ["environment-1", "environment-2", "spec"]


def test_the_sweep_can_be_pasted(document):
    command = document.sections[-1].command
    text = re.search(r"<<'END'\n(.*)END\nbellief sweep tiny.yaml$", command, re.DOTALL).group(1)
    assert build_spec(yaml.safe_load(text), "test") == build_spec(SPEC, "test")


def test_the_page_is_a_function_of_the_folder(whole, tmp_path):
    first, state = write_sweep_report(whole.folder)
    second, _ = write_sweep_report(whole.folder, tmp_path / "again.html")
    assert first == whole.folder / "report.html"
    assert first.read_bytes() == second.read_bytes()
    assert state["finished"] == 8
    assert "<b>" not in first.read_text()
    assert open_store(whole.folder).to_dict() == state  # a page in the folder does not disturb the store


def test_an_unfinished_sweep_says_what_is_missing(tmp_path):
    found = sweep_document(make(tmp_path / "half", leave=3))
    assert "3 of 8 cells are missing" in found.summary[1]
    missing = found.sections[0]
    assert missing.command == f"bellief resume {tmp_path / 'half'}"
    assert missing.blocks[0].rows == [["pendulum", "psrl", 2, 1, 0, 0, 1], ["pendulum", "gptd", 2, 0, 0, 0, 2]]
    # Ten of psrl's fifteen runs are there, and none of the other agent's.
    (final, *_) = blocks(found, Table, "pendulum")
    assert [row[-1] for row in final.rows] == ["10 of 15"]


def test_a_sweep_without_a_finished_cell_has_a_page_too(tmp_path):
    found = sweep_document(make(tmp_path / "none", leave=8))
    assert [section.paragraphs for section in found.sections[1:3]] == [["No cell is finished yet."]] * 2
    assert write_sweep_report(tmp_path / "none")[0].exists()


def test_damaged_cells_are_left_out_and_named(tmp_path):
    results = make(tmp_path / "damaged")
    cell = expand(results.spec)[0].cells[0]
    path = results.store.table_path(cell.id, parquet_tables.CURVES)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    found = sweep_document(open_store(tmp_path / "damaged"))
    assert found.sections[0].blocks[0].rows == [["nchain", "psrl", 2, 1, 1, 0, 0]]
    final, paired = blocks(found, Table, "nchain")
    assert final.rows[0][-1] == "5 of 15"
    assert paired.rows[0][-1] == 5  # compared over the runs that both have


def call(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_command(whole, tmp_path):
    out = tmp_path / "page.html"
    answer = call(whole.folder, "--out", out)
    assert (answer.exit_code, answer.output.split()) == (0, ["Open", str(out)])
    assert out.read_text().startswith("<!DOCTYPE html>")
    told = json.loads(call(whole.folder, "--out", out, "--json").output)
    assert told == {"file": str(out), "cells": 8, "finished": 8}


def test_command_says_what_is_missing(tmp_path):
    make(tmp_path / "half", leave=1)
    answer = call(tmp_path / "half")
    assert answer.exit_code == 0
    assert "1 of 8 cells are missing" in " ".join(answer.output.split())


@pytest.mark.parametrize(("folder", "message"), [("nowhere", "no store of a sweep"), (".", "no store of a sweep")])
def test_a_folder_that_is_no_sweep(tmp_path, folder, message):
    with pytest.raises(UserError, match=message):
        write_sweep_report(tmp_path / folder)
    assert list(tmp_path.iterdir()) == []
