"""`bellief sweep`, `resume` and `store` as typed: mistakes in one sentence, JSON, tables, estimates."""

import io
import json
import shutil

import numpy as np
import pytest

from bellief.cli import sweep_progress
from bellief.sweeps.cells import expand
from bellief.sweeps.spec import build_spec
from bellief.sweeps.store import Store
from bellief.sweeps.sweep import run_sweep
from cli.conftest import assert_one_sentence
from sweeps.conftest import TINY, Inline


@pytest.fixture
def spec(table):
    return table(json.dumps(TINY), "sweep.yaml")


@pytest.fixture
def inline(monkeypatch):
    """Compute in this process."""
    monkeypatch.setattr("bellief.cli.sweeps._engine", lambda *options: Inline())


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "tiny"
    run_sweep(build_spec(TINY, "test"), folder, engine=Inline)
    return folder


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["sweep", "none.yaml"], ["There is no file none.yaml"]),
        (["sweep", "SPEC", "--engine", "spark"], ["no engine called 'spark'", "local, ray or batch"]),
        (["sweep", "SPEC", "--address", "auto"], ["--address is for the ray engine"]),
        (["sweep", "SPEC", "--shard", "5/4"], ["--shard needs", "2/4"]),
        (["sweep", "SPEC", "--shard", "x"], ["--shard needs"]),
        (["sweep", "SPEC", "--workers", "0"], ["--workers must"]),
        (["sweep", "SPEC", "--set", "steps=0"], ["steps"]),
        (["sweep", "SPEC", "--set", "name=../x"], ["name", "not allowed"]),
        (["sweep", "SPEC", "--set", "agents=[nobody]"], ["no agent called 'nobody'"]),
        (["resume", "nowhere"], ["nowhere is no store of a sweep"]),
        (["store", "ls", "nowhere"], ["nowhere is no store of a sweep"]),
        (["store", "verify", "nowhere"], ["nowhere is no store of a sweep"]),
        (["store", "export", "STORE", "--to", "x.xls"], ["must end in .csv or .parquet"]),
    ],
)
def test_mistakes(call, spec, store, tmp_path, monkeypatch, arguments, fragments):
    monkeypatch.chdir(tmp_path)
    named = {"SPEC": spec, "STORE": store}
    assert_one_sentence(call(*(named.get(one, one) for one in arguments)), *fragments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sweep.yaml"]


def test_sweep_in_plain_lines(call, spec, tmp_path, inline):
    result = call("sweep", spec, "--out", tmp_path / "runs")
    assert result.code == 0
    assert result.out == f"3 cells finished, 3 of them now: {tmp_path / 'runs' / 'tiny'}\n"
    lines = result.err.splitlines()
    assert lines[0].endswith("3 cells, 0 finished already")
    assert len([line for line in lines if line.startswith("finished q-learning in nchain, runs ")]) == 3
    again = call("resume", tmp_path / "runs" / "tiny", "--quiet")
    assert (again.code, again.err) == (0, "")
    assert "0 of them now" in again.out


def test_sweep_as_json(call, spec, tmp_path, inline):
    result = call("sweep", spec, "--out", tmp_path / "runs", "--json", "--set", "runs=10")
    assert result.err == ""
    events = [json.loads(line) for line in result.out.splitlines()]
    assert [event["kind"] for event in events if event["kind"] != "progress"] == ["sweep", "begin", "finished", "end"]
    assert events[-1]["finished"] == 1


def test_without_ray(call, spec, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_one_sentence(call("sweep", spec, "--engine", "ray"), "pip install 'bellief[ray]'")


def test_failed_cells(call, spec, tmp_path, monkeypatch):
    failing = Inline(lambda cell: {"kind": "failed", "reason": "no luck"})
    monkeypatch.setattr("bellief.cli.sweeps._engine", lambda *options: failing)
    result = call("sweep", spec, "--out", tmp_path / "runs", "--quiet")
    assert result.code == 1
    assert "3 of 3 cells failed" in result.err.splitlines()[-1]
    assert "no luck; try them again with 'bellief resume" in result.err.splitlines()[-1]


def test_tensorboard(call, spec, tmp_path, inline):
    pytest.importorskip("tensorboardX")
    result = call("sweep", spec, "--out", tmp_path / "runs", "--tensorboard", "--quiet")
    assert result.code == 0
    files = list((tmp_path / "runs" / "tiny" / "tensorboard").glob("*/events.*"))
    assert len(files) == 3
    assert all(b"reward_per_step" in path.read_bytes() for path in files)


def test_an_export_says_what_it_leaves_out(call, store, tmp_path):
    whole = call("store", "export", store, "--to", tmp_path / "a.csv")
    assert (whole.code, whole.err) == (0, "")
    shutil.copytree(store, tmp_path / "part")
    record = sorted((tmp_path / "part" / "cells").glob("*.json"))[0]
    record.write_text(json.dumps(json.loads(record.read_text()) | {"files": {}}))
    part = call("store", "export", tmp_path / "part", "--to", tmp_path / "b.csv")
    assert part.code == 0
    assert part.err.startswith("Note: 1 of 3 cells are damaged or not finished, and are left out; 'bellief resume ")
    assert len((tmp_path / "b.csv").read_text()) < len((tmp_path / "a.csv").read_text())


def test_ls_and_export(call, store, tmp_path):
    document = json.loads(call("store", "ls", store, "--json").out)
    assert (document["finished"], document["cells"]) == (3, 3)
    shown = call("store", "ls", store).out
    assert "3 of 3 cells finished" in shown
    assert "q-learning" in shown
    assert json.loads(call("store", "export", store, "--to", tmp_path / "a.csv", "--json").out)["rows"] > 100
    assert (tmp_path / "a.csv").exists()


def test_verify_recomputes(call, store, monkeypatch):
    """In this process, so that what the store was made with is what it is compared on."""
    monkeypatch.setattr("bellief.sweeps.verify.Local", lambda workers: Inline())
    report = json.loads(call("store", "verify", store, "--recompute", "2", "--json").out)
    assert report["checked"] == 3
    assert report["problems"] == []
    assert [one["test"] for one in report["recomputed"]] == ["bit for bit"] * 2


def test_verify_finds_damage_and_changes_nothing(call, store, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    (copy / "manifest.json").write_bytes(b"{}")
    damaged = next((copy / "metrics").glob("*.curves.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    result = call("store", "verify", copy, "--recompute", "0")
    assert result.code == 1
    assert "has 2 problems" in result.err
    assert f"'bellief resume {copy}'" in result.err
    assert damaged.stat().st_size == 100
    assert "1 damaged" not in call("store", "ls", copy).out  # looks at records only, and says nothing it did not check


def test_store_alone_shows_help(call):
    result = call("store")
    assert (result.code, result.err) == (0, "")
    assert "verify" in result.out


def test_schema(call):
    assert json.loads(call("store", "schema").out)["title"] == "Spec"


def test_dry_run(call, spec, tmp_path, monkeypatch):
    from bellief.sweeps.calibrate import Costs

    asked = []

    def ask(self, **order):
        asked.append(order["identity"])
        return {"kind": "calibrated", **Costs(2.0, 0.01, 0.001, 300.0)._asdict()}

    monkeypatch.setattr("bellief.sweeps.engines.local.Local.ask", ask)
    command = ["sweep", spec, "--out", tmp_path / "runs", "--dry-run", "--workers", "2", "--set", "agents=[psrl]"]
    document = json.loads(call(*command, "--json").out)
    plans = 10  # steps 1, 3, 6, ..., 55
    one = plans * 0.01 + 60 * 0.001
    assert document["cells"] == document["missing"] == 3
    assert document["conditions"][0]["seconds_per_cell"] == pytest.approx(one)
    assert document["seconds"] == pytest.approx((3 * one + 2.0) / 2, abs=0.06)
    assert document["memory_mib"] == 600
    assert "3 of 3 cells to compute with 2 processes" in call(*command).out
    assert not (tmp_path / "runs").exists()
    assert len(asked) == 2


def test_measured_costs():
    from bellief.sweeps.calibrate import _prices, measure

    costs = measure(expand(build_spec(TINY, "test"))[0].cells[0].identity)
    assert 0 < costs.seconds(plans=10, steps=60) < 10
    assert costs.ready > costs.seconds(plans=1, steps=1)
    assert costs.memory > 50
    # Calls with so many plans and steps each tell the two apart, and neither costs less than nothing.
    counts = np.array([[2.0, 5.0], [4.0, 30.0], [8.0, 150.0]])
    assert _prices(counts, counts @ [0.3, 0.01]) == pytest.approx((0.3, 0.01))
    assert _prices(counts, counts @ [0.3, -0.001])[1] == 0


def test_live_table(monkeypatch, tmp_path):
    """What a terminal shows: a bar for each condition, rewards, the rate and the time left."""
    from rich.console import Console

    state = sweep_progress.State()
    run_sweep(build_spec(TINY, "test"), tmp_path / "a", engine=Inline, listen=state)
    console = Console(file=io.StringIO(), width=100)
    console.print(sweep_progress._table(state))
    shown = console.file.getvalue()
    assert "q-learning" in shown
    assert "3.0 / 3" in shown
    assert "3.0 of 3 cells" in shown
    assert "0:00 left" in shown


def test_damage_is_told_in_one_line(call, tmp_path, store, inline):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    path = Store(copy).table_path(next((copy / "cells").iterdir()).stem, "curves")
    path.write_bytes(b"PAR1")
    result = call("resume", copy, "--quiet")
    assert result.code == 0
    assert result.err.count("\n") == 1
    assert "is damaged (its curves are not what was written); it was moved to" in result.err
    assert "1 of them now" in result.out
