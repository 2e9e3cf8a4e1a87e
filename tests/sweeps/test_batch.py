"""The batch engine: all runs of a condition at once, the numbers of the cells computed alone."""

import numpy as np
import pytest

from bellief.sweeps import open_store
from bellief.sweeps.engines.batch import Batch, together
from bellief.sweeps.spec import build_spec
from bellief.sweeps.store import Store
from bellief.sweeps.sweep import run_sweep
from sweeps.conftest import TINY, Inline

pytestmark = pytest.mark.long


def test_a_batch_makes_the_cells_that_single_ones_are(tmp_path, tiny):
    run_sweep(tiny, tmp_path / "single", engine=Inline)
    # One of three is there already: the two others are not neighbours, so that both a lone cell and its place count.
    run_sweep(tiny.model_copy(update={"runs": 10}), tmp_path / "one", engine=Inline)
    summary = run_sweep(tiny, tmp_path / "batch", engine=Batch, reuse=[tmp_path / "one"])
    assert (summary.finished, summary.computed, summary.failed) == (3, 2, {})
    alone, batch = (open_store(tmp_path / name).conditions[0].result() for name in ("single", "batch"))
    np.testing.assert_array_equal(alone.step, batch.step)
    np.testing.assert_allclose(alone.total, batch.total, rtol=1e-5)
    np.testing.assert_allclose(alone.smoothed, batch.smoothed, rtol=1e-4)
    np.testing.assert_array_equal(alone.gain, batch.gain)
    records = [Store(tmp_path / "batch").record(cell) for cell in Store(tmp_path / "batch").read_manifest()["cells"]]
    assert all(record["seconds"] > 0 for record in records)


def test_cells_that_belong_together(tiny_cells):
    assert [[cell.first for cell in group] for group in together(tiny_cells)] == [[0, 10, 20]]
    assert [[cell.first for cell in group] for group in together([tiny_cells[2], tiny_cells[0]])] == [[0], [20]]


def test_a_stopped_batch_leaves_its_cells_unfinished(tmp_path):
    two = build_spec({**TINY, "agents": ["q-learning", "oracle"]}, "two")
    news = []

    class StopAfterFirst(Batch):
        def run(self, cells, job):
            for event in super().run(cells, job):
                news.append(event["kind"])
                if event["kind"] == "finished":
                    job.stop.set()
                yield event

    summary = run_sweep(two, tmp_path / "a", engine=StopAfterFirst)
    assert summary.stopped
    assert summary.finished == 3
    assert run_sweep(two, tmp_path / "a", engine=Batch).finished == 6


def test_more_runs_at_once_than_fit_into_memory(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr("bellief.processors.available_memory", lambda: 10_000)
    summary = run_sweep(tiny, tmp_path / "batch", engine=Batch)
    assert summary.finished == 0
    assert len(summary.failed) == 3
    assert all("30 runs of 60 steps need about" in reason for reason in summary.failed.values())
