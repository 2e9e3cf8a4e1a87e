"""The code in the tutorials runs, and what the text says about its output holds."""

import importlib.util
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), flags=re.DOTALL)


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("clinic_log", ROOT / "examples" / "clinic_log.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "clinic_log", module)
    return module


def test_own_data(clinic, tmp_path, capsys):
    page = ROOT / "docs" / "tutorials" / "own-data.md"
    rows = clinic.write(tmp_path / "log.csv")
    head = (tmp_path / "log.csv").read_text().splitlines()[:4]
    assert blocks(page, "text")[0].splitlines() == head
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    text = page.read_text()
    log, best = names["log"], names["best"]
    assert len(log) == rows
    visits = log.visits()
    moderate, infusion = log.state_labels.index("moderate"), log.action_labels.index("infusion")
    assert f"gave {visits[moderate, infusion]} infusions to moderate cases" in text
    assert names["plan"].ranking()[0] == (moderate, infusion)
    truths = [clinic.true_value(names[rule], 0.97) for rule in ("late", "early", "chosen")]
    for truth in truths:
        assert f"{-truth:.1f}" in text
    rules = [dict(zip(clinic.STATES, actions, strict=True)) for actions in np.array(np.meshgrid(*[clinic.ACTIONS] * 3)).T.reshape(-1, 3)]  # noqa: E501  # fmt: skip
    assert truths[2] == pytest.approx(max(clinic.true_value(rule, 0.97) for rule in rules))
    assert best.prob_better > 0.95
    assert names["comparison"].forecasts
    for picture in ("value", "compare", "forecast", "collect"):
        assert (tmp_path / f"{picture}.png").exists()
        assert (ROOT / "docs" / "images" / f"own-data-{picture}.png").exists()
    assert "more transitions of the same kind" in capsys.readouterr().out


@pytest.mark.slow
def test_own_data_on_the_command_line(clinic, tmp_path, capsys):
    from bellief.cli import main

    clinic.write(tmp_path / "log.csv")
    for block in blocks(ROOT / "docs" / "tutorials" / "own-data.md", "sh")[1:]:
        for line in block.splitlines():
            assert main(line.split()[1:]) == 0, line
    assert {path.name for path in tmp_path.glob("*.html")} == {
        "value.html",
        "compare.html",
        "better.html",
        "collect.html",
    }


def test_bus_engines(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs" / "tutorials" / "bus-engines.md"
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    text, log = page.read_text(), names["log"]
    assert f"{len(log):,} months, {log.states} ranges" in text
    replaced = log.visits()[:, log.action_labels.index("replace")]
    assert f"taken {replaced.sum()} times" in text
    miles = [int(label.split("-")[0]) for label in log.state_labels]
    assert min(low for low, times in zip(miles, replaced, strict=True) if times) == 120
    table = names["comparison"].to_pandas()["mean"]
    costs = [table[f"from {thousand}k"] for thousand in (140, 180, 220, 260, 300)]
    assert all(1 < later - earlier < 4.5 for earlier, later in itertools.pairwise(costs))
    assert table.idxmax() == "from 300k"
    early, late = (names[name].start_summary() for name in ("early", "late"))
    assert early["high"] - early["low"] > 100
    assert late["high"] - late["low"] > 10
    state, action = names["plan"].ranking()[0]
    assert (log.state_labels[state], log.action_labels[action]) == ("340-350k miles", "replace")
    assert names["better"].prob_better > 0.9
    assert (tmp_path / "rules.png").exists()
    assert (ROOT / "docs" / "images" / "bus-engines-rules.png").exists()
    assert "ValuePosterior" in capsys.readouterr().out
