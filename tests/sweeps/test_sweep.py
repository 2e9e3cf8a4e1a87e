"""Running a sweep: shards, failures, full disks, reading and verifying what came of it."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import bellief
from bellief.errors import UserError
from bellief.sweeps import open_store
from bellief.sweeps.spec import build_spec
from bellief.sweeps.store import Store
from bellief.sweeps.sweep import Wanted, run_sweep, run_sweeps
from bellief.sweeps.verify import compare, verify
from sweeps.conftest import SOURCE, TINY, Inline, contents

pytestmark = pytest.mark.long


def test_events_and_summary(tmp_path, tiny, tiny_cells):
    events, engine = [], Inline()
    summary = run_sweep(tiny, tmp_path / "a", engine=lambda: engine, listen=events.append)
    assert (summary.cells, summary.finished, summary.computed, summary.failed) == (3, 3, 3, {})
    assert engine.closed
    assert events[0]["kind"] == "sweep"
    assert events[-1]["kind"] == "end"
    assert [event["cell"] for event in events if event["kind"] == "finished"] == [cell.id for cell in tiny_cells]
    assert {event["agent"] for event in events if event["kind"] == "progress"} == {"q-learning"}
    json.dumps(events)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("rlsvi", {"horizon": 10}), pytest.param("psrl", {"most_sweeps": 20}, marks=pytest.mark.slow)],
)
def test_agents_that_decide_when_to_plan(tmp_path, name, settings):
    agent = {"name": name, "label": "own schedule", "settings": settings}
    spec = build_spec(TINY | {"bellief": "0.2", "runs": 2, "steps": 30, "agents": [agent]}, "here")
    run_sweep(spec, tmp_path / "a", engine=Inline)
    alone = bellief.run("nchain", name, steps=30, runs=2, half_life=20, settings=settings)
    result = open_store(tmp_path / "a").condition("nchain", agent["label"]).result()
    np.testing.assert_array_equal(result.total, alone.total)
    np.testing.assert_array_equal(result.policies, alone.policies)
    assert result.updates == alone.updates == len(alone.step)


def test_shards_together_make_the_whole(tmp_path, tiny):
    run_sweep(tiny, tmp_path / "whole", engine=Inline)
    engines = [Inline(), Inline()]
    for number, engine in enumerate(engines):
        run_sweep(tiny, tmp_path / "parts", engine=lambda engine=engine: engine, shard=(number + 1, 2))
    assert [len(engine.computed) for engine in engines] == [2, 1]
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert Store(tmp_path / "parts").read_manifest()["status"] == "finished"


def test_more_runs_keep_those_there_are(tmp_path, tiny):
    run_sweep(tiny.model_copy(update={"runs": 11}), tmp_path / "a", engine=Inline)
    config = tmp_path / "a" / "config.yaml"
    config.write_text(config.read_text().replace("runs: 11", "runs: 30"))
    engine = Inline()
    run_sweep(Store(tmp_path / "a").spec, tmp_path / "a", engine=lambda: engine)
    assert len(engine.computed) == 1


def test_cells_of_another_sweep_are_taken_over(tmp_path, tiny, tiny_cells):
    run_sweep(tiny, tmp_path / "first", engine=Inline)
    damaged = Store(tmp_path / "first").table_path(tiny_cells[0].id, "runs")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    engine, other = Inline(), tiny.model_copy(update={"name": "other"})
    summary = run_sweep(other, tmp_path / "second", engine=lambda: engine, reuse=[tmp_path / "first"])
    assert engine.computed == [tiny_cells[0].id]  # what is damaged there is not taken
    assert (summary.finished, summary.computed) == (3, 1)
    for cell in tiny_cells[1:]:
        assert Store(tmp_path / "second").check(cell.id) == Store(tmp_path / "first").check(cell.id)
    with pytest.raises(UserError, match="is no store"):
        run_sweep(other, tmp_path / "third", engine=Inline, reuse=[tmp_path / "nowhere"])
    assert not (tmp_path / "third").exists()


def test_several_sweeps_share_an_engine_and_their_cells(tmp_path, tiny, tiny_cells):
    fewer = tiny.model_copy(update={"name": "fewer", "runs": 20})
    engine, told = Inline(), []
    wanted = [Wanted(fewer, tmp_path / "fewer"), Wanted(tiny, tmp_path / "tiny")]
    few, all_cells = run_sweeps(wanted, engine=lambda: engine, listen=told.append)
    assert engine.computed == [cell.id for cell in tiny_cells]  # each once
    assert (few.finished, few.computed, all_cells.finished, all_cells.computed) == (2, 2, 3, 1)
    assert (told[0]["kind"], told[0]["cells"], told[0]["folder"]) == ("sweep", 3, str(tmp_path))
    for cell in tiny_cells[:2]:
        assert Store(tmp_path / "tiny").check(cell.id) == Store(tmp_path / "fewer").check(cell.id)
    assert [Store(tmp_path / name).read_manifest()["status"] for name in ("fewer", "tiny")] == ["finished"] * 2


def test_a_failed_cell_does_not_stop_the_others(tmp_path, tiny, tiny_cells):
    bad = tiny_cells[1].id
    failing = Inline(lambda cell: {"kind": "failed", "reason": "no luck"} if cell.id == bad else None)
    summary = run_sweep(tiny, tmp_path / "a", engine=lambda: failing)
    assert summary.failed == {bad: "no luck"}
    assert summary.finished == 2
    manifest = Store(tmp_path / "a").read_manifest()
    assert manifest["cells"][bad]["status"] == "failed"
    assert manifest["status"] == "failed"
    assert run_sweep(tiny, tmp_path / "a", engine=Inline).finished == 3


def test_a_full_disk_ends_it_and_keeps_what_is_there(tmp_path, tiny, tiny_cells):
    event = {"kind": "full", "errno": 28, "reason": "No space left on device", "file": "metrics/x"}
    full = Inline(lambda cell: event if cell.id == tiny_cells[1].id else None)
    with pytest.raises(OSError, match="No space left"):
        run_sweep(tiny, tmp_path / "a", engine=lambda: full)
    assert full.computed == [tiny_cells[0].id]
    assert full.closed
    assert Store(tmp_path / "a").read_manifest()["finished"] == 1
    assert not list((tmp_path / "a").glob("lock*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_segment_and_saves(tmp_path, tiny, finished, number):
    sent = []

    def tell(event):
        if event["kind"] == "progress" and not sent:
            sent.append(event)
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    summary = run_sweep(tiny, tmp_path / "a", engine=Inline, listen=tell)
    assert summary.stopped
    assert summary.finished == 0
    assert Store(tmp_path / "a").has_checkpoint(sent[0]["cell"])
    assert signal.getsignal(number) is before
    events = []
    run_sweep(tiny, tmp_path / "a", engine=Inline, listen=events.append)
    assert events[0]["started"] == 1
    made = contents(tmp_path / "a")
    for cell, whole in finished.items():
        for name, table in whole.tables.items():
            assert made[f"{cell}.{name}.parquet"] == table
    assert not list((tmp_path / "a" / "checkpoints").iterdir())


# Reading


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("read") / "tiny"
    run_sweep(build_spec(TINY | {"runs": 15}, "test"), folder, engine=Inline)
    return open_store(folder)


def test_curves(results):
    (condition,) = results
    direct = bellief.run("nchain", "q-learning", steps=60, runs=15, half_life=20.0)
    curves = condition.curves()
    np.testing.assert_array_equal(curves.run, np.arange(15))
    np.testing.assert_array_equal(curves.step, direct.step)
    np.testing.assert_array_equal(curves.total, direct.total)
    np.testing.assert_array_equal(curves.smoothed, direct.smoothed)
    assert condition.complete


def test_result_is_that_of_run(results):
    direct = bellief.run("nchain", "q-learning", steps=60, runs=15, half_life=20.0)
    result = results.condition("nchain", "q-learning").result()
    told, expected = result.to_dict(), direct.to_dict()
    del told["seconds"], expected["seconds"]
    assert told == expected
    np.testing.assert_array_equal(result.policies, direct.policies)
    pd.testing.assert_frame_equal(
        result.info.sort_values(["run", "step"], ignore_index=True),
        direct.info.sort_values(["run", "step"], ignore_index=True),
        check_dtype=False,
    )


def test_to_pandas_and_export(results, tmp_path):
    frame = results.to_pandas()
    assert list(frame.columns) == ["environment", "agent", "run", "step", "total", "smoothed"]
    assert frame["run"].nunique() == 15
    rows = results.export(tmp_path / "all.csv")
    assert rows == len(frame)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "all.csv"), frame, check_dtype=False)
    results.export(tmp_path / "all.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "all.parquet"), frame)
    with pytest.raises(UserError, match=r"must end in .csv or .parquet"):
        results.export(tmp_path / "all.xlsx")


def test_reading_damaged_curves_is_refused(tmp_path, tiny, tiny_cells):
    run_sweep(tiny, tmp_path / "a", engine=Inline)
    path = Store(tmp_path / "a").table_path(tiny_cells[0].id, "curves")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="is damaged"):
        open_store(tmp_path / "a").to_pandas()


def test_nothing_finished_yet(tmp_path, tiny):
    Store.create(tmp_path / "a", tiny)
    results = open_store(tmp_path / "a")
    assert results.to_dict()["finished"] == 0
    with pytest.raises(UserError, match="no finished cell"):
        results.to_pandas()
    with pytest.raises(UserError, match="no agent 'x'"):
        results.condition("nchain", "x")


# What verify says of two stores


@pytest.fixture
def twice(tmp_path, tiny, finished, tiny_cells):
    """The same cell in two stores; the second's totals are changed, and what it was made with."""

    def make(shift=0.0, noise=0.0, made="here"):
        from bellief.sweeps import parquet_tables

        stores = []
        for name, changed in (("old", False), ("new", True)):
            one = Store.create(tmp_path / name, tiny)
            one.prepare(alone=True)
            kept = dict(finished[tiny_cells[0].id].tables)
            if changed:
                table = parquet_tables.read_parquet(kept["curves"])
                total = table["total"].to_numpy()
                random = np.random.default_rng(0).normal(size=len(total))
                columns = {name: table[name] for name in table.column_names}
                kept["curves"] = parquet_tables.to_parquet(columns | {"total": total * (1 + shift + noise * random)})
            facts = {"seconds": 1.0, "made": [{"where": made if changed else "here"}]}
            one.commit(tiny_cells[0], kept, parquet_tables.content_hash(kept), **facts)
            stores.append(one)
        return compare(*stores, tiny_cells[0].id)

    return make


@pytest.mark.parametrize(
    ("options", "agrees", "test"),
    [
        ({}, True, "bit for bit"),
        ({"shift": 1e-7}, False, "bit for bit"),
        ({"shift": 1e-7, "made": "there"}, True, "relative difference"),
        ({"noise": 0.05, "made": "there"}, True, "means over runs"),
        ({"shift": 10.0, "made": "there"}, False, "means over runs"),
    ],
)
def test_compare(twice, options, agrees, test):
    found = twice(**options)
    assert (found["agrees"], found["test"]) == (agrees, test)


# Exports


@pytest.fixture
def labelled(tmp_path):
    agents = [{"name": "q-learning", "label": "=1+1"}]
    run_sweep(build_spec(TINY | {"runs": 10, "agents": agents}, "test"), tmp_path / "a", engine=Inline)
    return tmp_path / "a"


def test_labels_of_a_sweep_are_no_formulas(labelled, tmp_path):
    open_store(labelled).export(tmp_path / "all.csv")
    assert set(pd.read_csv(tmp_path / "all.csv")["agent"]) == {"'=1+1"}
    open_store(labelled).export(tmp_path / "all.parquet")  # which no spreadsheet runs
    assert set(pd.read_parquet(tmp_path / "all.parquet")["agent"]) == {"=1+1"}
    assert open_store(labelled).condition("nchain", "=1+1").complete


def test_an_export_overwrites_nothing_of_the_store(labelled, tmp_path):
    before = contents(labelled)
    (tmp_path / "link").symlink_to(labelled)
    for place in (next((labelled / "metrics").iterdir()), labelled / "new.csv", tmp_path / "link" / "new.csv"):
        with pytest.raises(UserError, match="lies in the store"):
            open_store(labelled).export(place)
    assert contents(labelled) == before


def test_an_export_that_is_cut_off_leaves_the_old_file(labelled, tmp_path, monkeypatch):
    """Killed before the new file has its name, whatever the moment."""
    target = tmp_path / "all.csv"
    target.write_text("old")

    def killed(source, name):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bellief.files.os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            open_store(labelled).export(target)
    assert target.read_text() == "old"
    assert not list(tmp_path.glob(".*part"))


def test_reading_while_it_is_written(tmp_path, tiny, tiny_cells):
    """After every event of a sweep its store can be listed, read and verified; nothing that is there is damaged."""
    seen = []

    def look(event):
        results = open_store(tmp_path / "a")
        assert results.damaged == {}
        finished = [condition for condition in results if condition.cells]
        seen.append(len(finished[0].curves().run) if finished else 0)
        problems = {one["problem"] for one in verify(results, recompute=0)["problems"]}
        assert problems <= {"not computed yet"}

    run_sweep(tiny, tmp_path / "a", engine=Inline, listen=look)
    assert seen[0] == 0
    assert seen[-1] == 30
    assert seen == sorted(seen)


def test_a_clock_that_goes_back(tmp_path, tiny, monkeypatch):
    """Times are for people: sessions keep their order of writing, and no cell is computed twice or thought newer."""
    times = iter(f"2026-01-01T00:00:{59 - second:02d}.000+00:00" for second in range(60))
    for name in ("bellief.sweeps.store.now", "bellief.sweeps.ledger.now", "bellief.sweeps.sweep.now"):
        monkeypatch.setattr(name, lambda: next(times))
    fails = Inline(lambda cell: {"kind": "failed", "reason": "no"} if cell.first == 10 else None)
    run_sweep(tiny, tmp_path / "a", engine=lambda: fails)
    engine = Inline()
    assert run_sweep(tiny, tmp_path / "a", engine=lambda: engine).finished == 3
    assert len(engine.computed) == 1
    assert verify(open_store(tmp_path / "a"), recompute=0)["problems"] == []


def test_stopped_after_the_last_cell_is_finished(tmp_path, tiny):
    """A signal that comes too late changes nothing."""

    def listen(event):
        if event["kind"] == "finished" and event["first"] == 20:
            os.kill(os.getpid(), signal.SIGTERM)

    summary = run_sweep(tiny, tmp_path / "a", engine=Inline, listen=listen)
    assert (summary.stopped, summary.signal, summary.finished) == (False, None, 3)


FORK = """
import os, sys, jax
from bellief.sweeps import load_spec, run_sweep
jax.numpy.ones(3).sum()
child = os.fork()
if child == 0:
    os._exit(0 if run_sweep(load_spec(sys.argv[1]), "out").finished == 1 else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.kills
def test_a_sweep_in_a_forked_process(tmp_path, write_spec):
    """A program that has used JAX and forks: the child's workers start afresh, so the sweep is computed."""
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(write_spec(runs=10))]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert told.stdout.strip() == "0", told.stderr
