"""`bellief paper`: what it lists, writes without computing, and refuses."""

import json

import pytest
from markupsafe import Markup

from bellief.sweeps.spec import load_spec


def test_list(call):
    rows = json.loads(call("paper", "--list", "--json").out)
    assert {"fig:full_chain", "tab:wasserstein", "fig:ci_maze"} <= {row["label"] for row in rows}
    assert all(row["claims"] for row in rows)
    shown = call("paper", "--list", "--only", "tab:wasserstein")
    assert shown.code == 0
    assert "tab:wasserstein" in shown.out
    assert "fig:full_chain" not in shown.out


def test_without_a_scale_the_published_results_are_shown(call, tmp_path, monkeypatch):
    # Pictures are drawn by the tests of the report.
    monkeypatch.setattr("bellief.report.static_chart.draw", lambda chart, looks, alt: Markup("<img>"))
    said = call("paper", "--out", tmp_path, "--only", "tab:wasserstein")
    assert said.code == 0
    first, *rest = said.out.splitlines()
    assert "report.html" in first
    told = "\n".join(rest)
    assert "claims reproduced:" in told
    assert "claims too small to judge; the report lists them." in told
    assert (tmp_path / "published" / "report.html").stat().st_size > 100_000
    assert (tmp_path / "published" / "items" / "tab-wasserstein.md").exists()
    rows = json.loads(call("paper", "--out", tmp_path, "--json").out)
    assert rows["scale"] == "full"
    assert all(row["quote"] for row in rows["claims"])


def test_specs_are_what_a_sweep_takes(call, tmp_path):
    said = call("paper", "--scale", "full", "--only", "fig:full_chain,fig:ci_chain", "--write-spec", tmp_path / "specs")
    assert said.code == 0
    assert [path.name for path in (tmp_path / "specs").iterdir()] == ["nchain.yaml"]
    spec = load_spec(tmp_path / "specs" / "nchain.yaml")
    assert (spec.runs, spec.steps, len(spec.agents)) == (50, 1_000_000, 18)


def test_other_sizes(call, tmp_path):
    sizes = ("--size", "maze=3x50", "--size", "maze/VDQN=2x20")
    call("paper", "--scale", "full", "--only", "fig:full_maze", *sizes, "--write-spec", tmp_path)
    spec = load_spec(tmp_path / "maze.yaml")
    apart = {agent.label: (agent.runs, agent.steps) for agent in spec.agents if agent.runs}
    assert (spec.runs, spec.steps, apart) == (3, 50, {"VDQN": (2, 20)})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scale", "huge"), "no scale 'huge'"),
        (("--only", "fig:none"), "no item 'fig:none'"),
        (("--only", ","), "--only needs labels"),
        (("--scale", "tiny", "--size", "maze=5"), "--size needs"),
        (("--scale", "tiny", "--size", "moon=5x5"), "no sweep 'moon'"),
        (("--scale", "tiny", "--size", "maze/BSS=5x5"), "no agent 'BSS'"),
        (("--engine", "moon"), "no engine called 'moon'"),
        (("--scale", "tiny", "--only", "fig:full_chain", "--reuse", "/nowhere"), "no folder /nowhere"),
        (("--scale", "tiny", "--draw-only"), "has nothing to draw"),
        (("--draw-only",), "--draw-only needs a --scale"),
        (("--dry-run",), "--dry-run needs a --scale"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(call, tmp_path, arguments, said):
    out = tmp_path / "out"
    answer = call("paper", "--out", out, *arguments)
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert not out.exists()
