"""The store and its lock: nothing half-written, nothing trusted that was damaged, one writer at a time."""

import os
import shutil
import subprocess
import sys

import pytest
import yaml

from bellief.errors import UserError
from bellief.sweeps import lock, store
from bellief.sweeps.cells import Cell
from bellief.sweeps.store import Damaged, Store
from bellief.sweeps.sweep import run_sweep
from sweeps.conftest import SOURCE, Inline, contents


@pytest.fixture
def filled(tmp_path, tiny, finished, tiny_cells):
    """A store with all cells finished."""
    made = Store.create(tmp_path / "runs" / "tiny", tiny)
    made.prepare(alone=True)
    for cell in tiny_cells:
        made.commit(cell, finished[cell.id].tables, "content", seconds=1.0, made=[])
    return made


def flip(path, place=None):
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 1
    path.write_bytes(content)


def test_a_committed_cell_is_whole(filled, tiny_cells, finished):
    for cell in tiny_cells:
        assert filled.check(cell.id)["identity"] == cell.identity
        assert filled.read(cell.id, "curves") == finished[cell.id].tables["curves"]
    assert not list(filled.folder.rglob("*.part"))


def harm_truncated(made, cell):
    path = made.table_path(cell, "curves")
    path.write_bytes(path.read_bytes()[:-10])


def harm_flipped(made, cell):
    flip(made.table_path(cell, "runs"))


def harm_missing(made, cell):
    made.table_path(cell, "plans").unlink()


def harm_record(made, cell):
    flip(made.folder / "cells" / f"{cell}.json")


def harm_exchanged(made, cell):
    """Another cell's record under this name: whole, but not this cell's."""
    other = next(path for path in (made.folder / "cells").iterdir() if path.stem != cell)
    shutil.copy(other, made.folder / "cells" / f"{cell}.json")


HARMS = [harm_truncated, harm_flipped, harm_missing, harm_record, harm_exchanged]


@pytest.mark.parametrize("harm", HARMS)
def test_damage_is_noticed_set_aside_and_computed_again(filled, tiny, tiny_cells, harm):
    before, cell = contents(filled.folder), tiny_cells[1].id
    harm(filled, cell)
    with pytest.raises(Damaged):
        filled.check(cell)
    engine, notes = Inline(), []
    summary = run_sweep(tiny, filled.folder, engine=lambda: engine, listen=notes.append)
    assert engine.computed == [cell]
    assert list(summary.set_aside) == [cell]
    assert (filled.folder / "quarantine" / f"{cell}-1" / "reason.txt").exists()
    assert any("is damaged" in note.get("text", "") for note in notes)
    assert contents(filled.folder) == before


def test_finished_cells_are_never_written_again(filled, tiny):
    before = {
        path: path.stat().st_mtime_ns for path in filled.folder.rglob("*") if path.parent.name in ("metrics", "cells")
    }
    engine = Inline()
    run_sweep(tiny, filled.folder, engine=lambda: engine)
    assert engine.computed == []
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_tables_without_a_record_are_not_finished(filled, tiny, tiny_cells):
    """Cut off between the tables and the record."""
    (filled.folder / "cells" / f"{tiny_cells[0].id}.json").unlink()
    assert filled.check(tiny_cells[0].id) is None
    engine = Inline()
    run_sweep(tiny, filled.folder, engine=lambda: engine)
    assert engine.computed == [tiny_cells[0].id]


def test_a_flipped_byte_in_the_manifest(filled, tiny):
    run_sweep(tiny, filled.folder, engine=Inline)
    path = filled.folder / "manifest.json"
    flip(path)
    with pytest.raises(Damaged):
        filled.read_manifest()
    notes = []
    run_sweep(tiny, filled.folder, engine=Inline, listen=notes.append)
    assert any("manifest.json is damaged" in note.get("text", "") for note in notes)
    manifest = filled.read_manifest()
    assert manifest["finished"] == 3
    assert manifest["status"] == "finished"


def test_manifest_says_everything(tmp_path, tiny, tiny_cells):
    run_sweep(tiny, tmp_path / "a", engine=Inline)
    manifest = Store(tmp_path / "a").read_manifest()
    assert {"jax", "numpy", "python", "bellief", "commit"} <= set(manifest["software"])
    assert {"processor", "cores", "memory_gib", "host"} <= set(manifest["hardware"])
    assert manifest["backend"] == ["cpu"]
    assert manifest["seed"] == 0
    assert list(manifest["cells"]) == [cell.id for cell in tiny_cells]
    for entry in manifest["cells"].values():
        assert entry["status"] == "finished"
        assert entry["seconds"] > 0
    (session,) = manifest["sessions"]
    assert session["began"] < session["ended"]


def test_config_from_a_newer_version(filled):
    path = filled.folder / "config.yaml"
    head = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(head | {"format": store.FORMAT + 1, "bellief": "9.0"}))
    with pytest.raises(UserError, match=r"newer Bellief \(9.0\)"):
        Store(filled.folder)


@pytest.mark.parametrize("content", [b"", b"a: [", b"\xff", b"just text", b"format: 1"])
def test_config_that_is_none(filled, content):
    (filled.folder / "config.yaml").write_bytes(content)
    with pytest.raises(UserError, match=r"config.yaml"):
        Store(filled.folder)


def test_folders_that_are_no_stores(tmp_path, tiny):
    with pytest.raises(UserError, match=r"has no config\.yaml"):
        Store(tmp_path / "none")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("")
    with pytest.raises(UserError, match="is no store"):
        Store.create(tmp_path / "photos", tiny)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is no store"):
        Store.create(tmp_path / "file", tiny)


def test_another_sweep_of_the_same_name(filled, tiny):
    with pytest.raises(UserError, match=r"another sweep .it differs in 'steps'"):
        Store.create(filled.folder, tiny.model_copy(update={"steps": 61}))


def test_half_written_files_of_a_killed_process_are_cleared(filled, tiny):
    left = filled.folder / "metrics" / ".x.parquet.999.part"
    left.write_text("half")
    run_sweep(tiny, filled.folder, engine=Inline)
    assert not left.exists()


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    store.write_whole(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


# The lock


def test_a_second_writer_is_refused(tmp_path):
    with lock.hold(tmp_path) as stale:
        assert not stale
        with pytest.raises(UserError, match=rf"written by process {os.getpid()} on"), lock.hold(tmp_path):
            pass
        assert (tmp_path / "lock.json").exists()
    assert not (tmp_path / "lock.json").exists()


def test_a_lock_is_freed_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), lock.hold(tmp_path):
        raise RuntimeError
    with lock.hold(tmp_path) as stale:
        assert not stale


HOLDER = """
import pathlib, sys, time
from bellief.sweeps import lock
with lock.hold(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_killed_process_is_stale(tmp_path):
    """The operating system frees it at once; only then is the folder free."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=f"written by process {process.pid} on"), lock.hold(tmp_path):
            pass
        process.kill()
        process.wait()
    assert (tmp_path / "lock.json").exists()
    with lock.hold(tmp_path) as stale:
        assert stale
    with lock.hold(tmp_path) as stale:
        assert not stale


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 100_000, b'{"pid": "abc", "host": 3}', b'{"pid": 1}'])
def test_a_description_of_a_holder_that_cannot_be_read(tmp_path, content):
    with lock.hold(tmp_path):
        (tmp_path / "lock.json").write_bytes(content)
        with pytest.raises(UserError, match="is being written by another process;"), lock.hold(tmp_path):
            pass
    (tmp_path / "lock.json").write_bytes(content)
    with lock.hold(tmp_path) as stale:
        assert stale


def test_without_the_package_filelock(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "filelock", None)
    with lock.hold(tmp_path), pytest.raises(UserError, match="is being written"), lock.hold(tmp_path):
        pass
    with lock.hold(tmp_path) as stale:
        assert not stale


def test_one_that_waits_while_it_starts_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "PATIENCE", 0.1)
    release = lock.acquire(tmp_path / ".starting.lock", 0.0)
    with pytest.raises(UserError, match="about to write"), lock.hold(tmp_path):
        pass
    release()


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ((1, 3), (2, 3), True),
        ((1, 3), (1, 3), False),
        ((1, 3), (2, 4), False),
        ((1, 3), None, False),
        (None, (1, 3), False),
    ],
)
def test_shards_and_locks(tmp_path, first, second, together):
    with lock.hold(tmp_path, first):
        if together:
            with lock.hold(tmp_path, second):
                assert len(list(tmp_path.glob("lock*.json"))) == 2
        else:
            with pytest.raises(UserError, match="is being written"), lock.hold(tmp_path, second):
                pass


def test_cells_of_a_store_know_themselves(filled, tiny_cells):
    assert Cell(id=tiny_cells[0].id, identity=filled.record(tiny_cells[0].id)["identity"]) == tiny_cells[0]
