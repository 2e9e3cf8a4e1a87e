"""A cell that is cut off and taken up again gives the same bytes; it is what `bellief.run` computes."""

import numpy as np
import pytest

import bellief
from bellief.sweeps import parquet_tables, work
from bellief.sweeps.cells import expand
from bellief.sweeps.checkpoint import CheckpointError, decode
from bellief.sweeps.spec import build_spec
from sweeps.conftest import TINY


def checkpoints_of(cell):
    messages = list(work.compute(cell, None, 0.0))
    return [message.content for message in messages if isinstance(message, work.Checkpoint)], messages[-1]


def cell_of(**changes):
    return expand(build_spec(TINY | {"runs": 10} | changes, "test"))[0].cells[0]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"environments": [{"name": "FrozenLake-v1", "settings": {"is_slippery": True}}]},
        pytest.param({"agents": ["psrl"], "environments": ["doubleloop"]}, marks=pytest.mark.slow),
        pytest.param({"agents": ["bbi"]}, marks=pytest.mark.slow),
        pytest.param({"agents": ["vdqn"]}, marks=pytest.mark.slow),
    ],
    ids=["compiled", "stepped", "psrl", "bbi", "vdqn"],
)
def test_going_on_from_any_checkpoint_gives_the_same_bytes(changes, monkeypatch):
    cell = cell_of(**changes)
    with monkeypatch.context() as impatient:
        # One event a call, so that there is a checkpoint after each; afterwards several share a call.
        impatient.setattr("bellief.experiments.event_loop.REPORT_SECONDS", 0.0)
        saved, whole = checkpoints_of(cell)
    assert len(saved) > 30
    for number in (0, len(saved) // 3, len(saved) - 2, len(saved) - 1):
        messages = list(work.compute(cell, saved[number], 1e9))
        assert not any(isinstance(message, work.Restarted) for message in messages)
        assert messages[-1].tables == whole.tables


def test_it_is_what_run_computes(finished, tiny_cells):
    result = bellief.run("nchain", "q-learning", steps=60, runs=30, half_life=20.0)
    for cell in tiny_cells:
        frame = parquet_tables.read_parquet(finished[cell.id].tables[parquet_tables.CURVES]).to_pandas()
        runs = range(cell.first, cell.first + 10)
        assert frame["run"].unique().tolist() == list(runs)
        np.testing.assert_array_equal(frame["total"].to_numpy().reshape(10, -1), result.total[cell.first :][:10])
        np.testing.assert_array_equal(frame["smoothed"].to_numpy().reshape(10, -1), result.smoothed[cell.first :][:10])
        ended = parquet_tables.read_parquet(finished[cell.id].tables[parquet_tables.RUNS]).to_pandas()
        np.testing.assert_array_equal(ended["gain"], result.gain[cell.first :][:10])


def test_stop_saves_and_leaves(tiny_cells, finished):
    cell, seen = tiny_cells[0], []

    def stop():
        seen.append(None)
        return len(seen) == 2

    *_, checkpoint, last = work.compute(cell, None, 1e9, stop)
    assert isinstance(last, work.Stopped)
    *_, whole = work.compute(cell, checkpoint.content, 1e9)
    assert whole.tables == finished[cell.id].tables


@pytest.mark.parametrize("harm", ["truncated", "flipped", "empty", "foreign", "other cell", "other version"])
def test_a_bad_checkpoint_is_not_trusted(tiny_cells, finished, harm, monkeypatch):
    cell = tiny_cells[0]
    saved, _ = checkpoints_of(cell)
    content = saved[-1]
    if harm == "truncated":
        content = content[: len(content) // 2]
    elif harm == "flipped":
        # In the middle of the stored numbers, where only a checksum notices.
        place = content.index(b"reading.total") + 200
        content = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    elif harm in ("empty", "foreign"):
        content = b"" if harm == "empty" else b"PK\x03\x04 nonsense"
    elif harm == "other cell":
        content = checkpoints_of(tiny_cells[1])[0][-1]
    else:
        monkeypatch.setattr("bellief.sweeps.checkpoint.software", lambda: {"bellief": "9.9"})
    messages = list(work.compute(cell, content, 1e9))
    assert isinstance(messages[0], work.Restarted)
    assert messages[-1].tables == finished[cell.id].tables


def test_checkpoint_of_another_agent_does_not_fit(tiny_cells):
    saved, _ = checkpoints_of(tiny_cells[0])
    other = work.Chunk(cell_of(agents=["psrl"]).identity)
    with pytest.raises(CheckpointError, match="do not fit"):
        decode(saved[0], tiny_cells[0].id, other.shapes())


def test_an_environment_that_does_not_repeat_itself_begins_again(monkeypatch):
    cell = cell_of(environments=["FrozenLake-v1"])
    saved, whole = checkpoints_of(cell)
    calls = []

    class Moody:
        """Other observations in the first attempt."""

        def __init__(self, chunk):
            self.chunk = chunk

        def __getattr__(self, name):
            return getattr(self.chunk, name)

        def events(self, resume):
            calls.append(resume)
            if resume is not None:
                resume.host["observations"][:] += 1
            return self.chunk.events(resume)

    genuine = work.Chunk
    monkeypatch.setattr(work, "Chunk", lambda identity: Moody(genuine(identity)))
    messages = list(work.compute(cell, saved[-3], 1e9))
    assert "not where it was" in next(one.reason for one in messages if isinstance(one, work.Restarted))
    assert messages[-1].tables == whole.tables
    assert calls[1] is None


def test_content_hash_sees_every_number(finished, tiny_cells):
    cell = finished[tiny_cells[0].id].tables
    curves = parquet_tables.read_parquet(cell[parquet_tables.CURVES])
    smoothed = curves["smoothed"].to_numpy().copy()
    for change in (0.0, 1e-12):
        smoothed[-1] += change
        columns = {name: curves[name] for name in curves.column_names} | {"smoothed": smoothed}
        changed = cell | {parquet_tables.CURVES: parquet_tables.to_parquet(columns)}
        assert (parquet_tables.content_hash(cell) == parquet_tables.content_hash(changed)) == (change == 0)
    runs = parquet_tables.read_parquet(cell[parquet_tables.RUNS])
    repacked = cell | {parquet_tables.RUNS: parquet_tables.to_parquet({name: runs[name] for name in runs.column_names})}
    assert parquet_tables.content_hash(cell) == parquet_tables.content_hash(repacked)
