"""`store verify` finds whatever was lost or changed, says what it is, and changes nothing; hostile files are no bug."""

import hashlib
import json
import shutil
from random import Random

import pytest
import yaml

from bellief.errors import UserError
from bellief.sweeps import open_store, parquet_tables, store
from bellief.sweeps.cells import canonical
from bellief.sweeps.spec import build_spec
from bellief.sweeps.sweep import run_sweep
from bellief.sweeps.verify import verify
from sweeps.conftest import TINY, Inline

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify") / "tiny"
    run_sweep(build_spec(TINY, "test"), folder, engine=Inline)
    return folder


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


def problems_of(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = verify(open_store(folder), recompute=0)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return found


def records(folder):
    return sorted((folder / "cells").glob("*.json"))


def rewrite(path, **changes):
    """A document changed by somebody who knows how to seal it."""
    document = json.loads(path.read_bytes()) | changes
    document = {name: value for name, value in document.items() if name != "sha256" and value is not None}
    path.write_bytes(
        json.dumps(document | {"sha256": hashlib.sha256(canonical(document).encode()).hexdigest()}).encode()
    )


def change_config(folder, change):
    path = folder / "config.yaml"
    head = yaml.safe_load(path.read_text())
    change(head["sweep"])
    path.write_text(yaml.safe_dump(head))


HARM = {
    "all records deleted": (lambda folder: [path.unlink() for path in records(folder)], 3, "its record is missing"),
    "one record deleted": (lambda folder: records(folder)[0].unlink(), 1, "its record is missing"),
    "a table deleted": (lambda folder: next((folder / "metrics").glob("*.runs.parquet")).unlink(), 1, "are missing"),
    "another seed": (lambda folder: change_config(folder, lambda sweep: sweep.update(seed=1)), 2, "not the one"),
    "another agent": (
        lambda folder: change_config(folder, lambda sweep: sweep["agents"][0].update(name="psrl")),
        2,
        "not the one",
    ),
    "another label": (
        lambda folder: change_config(folder, lambda sweep: sweep["agents"][0].update(label="mine")),
        1,
        "not the one",
    ),
    "a session truncated": (
        lambda folder: [path.write_bytes(path.read_bytes()[:50]) for path in (folder / "sessions").iterdir()],
        1,
        "cannot be read",
    ),
    "sessions deleted": (lambda folder: shutil.rmtree(folder / "sessions"), 1, "its file is missing"),
    "the manifest deleted": (lambda folder: (folder / "manifest.json").unlink(), 1, "it is missing"),
    "the manifest changed": (lambda folder: (folder / "manifest.json").write_bytes(b"{}"), 1, "cannot be read"),
    "no files in a record": (lambda folder: rewrite(records(folder)[0], files={}), 1, "not one that Bellief wrote"),
    "another content": (lambda folder: rewrite(records(folder)[0], content="0"), 1, "not those of its record"),
    "a record of nothing": (lambda folder: rewrite(records(folder)[0], identity=[1]), 1, "not one that Bellief wrote"),
    "a format of letters": (lambda folder: rewrite(records(folder)[0], format="x"), 0, ""),
    "made of numbers": (lambda folder: rewrite(records(folder)[0], made=[1]), 1, "not one that Bellief wrote"),
    "files with paths": (
        lambda folder: rewrite(records(folder)[0], files={"../x": 1, "curves": {}, "runs": {}, "plans": {}}),
        1,
        "not one that Bellief wrote",
    ),
    "a list for a record": (lambda folder: records(folder)[0].write_bytes(b"[]"), 1, "cannot be read"),
    "a deep record": (lambda folder: records(folder)[0].write_bytes(b"[" * 100_000), 1, "cannot be read"),
    "a session of nothing": (
        lambda folder: [rewrite(path, began=None) for path in (folder / "sessions").iterdir()],
        1,
        "cannot be read",
    ),
}


def test_a_whole_store_has_no_problem(whole):
    found = problems_of(whole)
    assert (found["checked"], found["problems"], found["notes"]) == (3, [], [])


@pytest.mark.parametrize("name", HARM)
def test_every_harm_is_found(copied, name):
    harm, count, sentence = HARM[name]
    harm(copied)
    found = problems_of(copied)
    assert len(found["problems"]) == count, found["problems"]
    assert not count or sentence in found["problems"][0]["problem"]


# Numbers are read by `verify` alone; who changes them and seals them again has to delete the record.
@pytest.mark.parametrize("name", [name for name, (_, count, _) in HARM.items() if count and name != "another content"])
def test_resume_mends_every_harm(copied, name):
    """The cells of the present description are computed again where needed; then there is nothing to complain of."""
    HARM[name][0](copied)
    engine = Inline()
    summary = run_sweep(store.Store(copied).spec, copied, engine=lambda: engine)
    assert summary.finished == 3
    left = [one for one in problems_of(copied)["problems"] if not one["what"].startswith("session")]
    assert left == []


def replace_table(folder, content):
    """A table and a record that vouches for it."""
    path = records(folder)[0]
    target = folder / "metrics" / f"{path.stem}.curves.parquet"
    target.write_bytes(content)
    files = json.loads(path.read_bytes())["files"]
    files["curves"] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    rewrite(path, files=files)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1 no table PAR1",
        parquet_tables.to_parquet({"run": [1, 2]}),
        parquet_tables.to_parquet({"run": [0, 0], "step": [1, 2], "total": ["a", "b"], "smoothed": [1.0, 2.0]}),
        parquet_tables.to_parquet({"run": [0, 0, 1], "step": [1, 2, 1], "total": [1.0] * 3, "smoothed": [1.0] * 3}),
    ],
)
def test_a_hostile_table_is_told_in_one_sentence(copied, tmp_path, content):
    replace_table(copied, content)
    assert len(problems_of(copied)["problems"]) == 1
    results = open_store(copied)
    with pytest.raises(UserError, match="is damaged"):
        results.export(tmp_path / "all.csv")
    assert not (tmp_path / "all.csv").exists()


def test_a_table_that_would_fill_the_memory(monkeypatch):
    """A megabyte of Parquet can stand for gigabytes of zeros."""
    content = parquet_tables.to_parquet({"run": [0] * 1000})
    monkeypatch.setattr(parquet_tables, "LARGEST", 7999)
    with pytest.raises(parquet_tables.UnreadableTable, match="1000 rows is too large"):
        parquet_tables.read_parquet(content)


@pytest.mark.parametrize(("name", "limit"), [("cells", "LARGEST_RECORD"), ("config.yaml", "LARGEST_CONFIG")])
def test_a_file_larger_than_any_of_ours_is_not_read(copied, monkeypatch, name, limit):
    monkeypatch.setattr(store, limit, 100)
    if name == "cells":
        assert {one["problem"] for one in problems_of(copied)["problems"]} >= {"it is larger than 100 bytes"}
    else:
        with pytest.raises(UserError, match="is damaged"):
            open_store(copied)


def test_a_store_of_version_0_1_is_taken_as_it_is(copied):
    """It has no hash of the description: that is said, and is no problem."""
    for path in (copied / "sessions").iterdir():
        rewrite(path, config=None)
    rewrite(copied / "manifest.json", config=None)
    found = problems_of(copied)
    assert found["problems"] == []
    assert "kept no hash of config.yaml" in found["notes"][0]


def test_an_unfinished_sweep(tmp_path, tiny, tiny_cells):
    failing = Inline(lambda cell: {"kind": "failed", "reason": "no"} if cell == tiny_cells[0] else None)
    run_sweep(tiny, tmp_path / "a", engine=lambda: failing)
    assert problems_of(tmp_path / "a")["problems"] == [{"what": "1 of 3 cells", "problem": "not computed yet"}]


def test_cells_that_nobody_asks_for(copied, tiny):
    change_config(copied, lambda sweep: sweep.update(runs=10))
    run_sweep(store.Store(copied).spec, copied, engine=Inline)
    found = problems_of(copied)
    assert (found["problems"], found["checked"]) == ([], 1)
    assert found["notes"] == ["2 finished cells are there that config.yaml does not ask for."]


def test_the_same_cell_twice(tmp_path):
    """Two labels for one condition: computed once, read twice."""
    agents = [{"name": "q-learning", "label": "one"}, {"name": "q-learning", "label": "two"}]
    engine = Inline()
    run_sweep(build_spec(TINY | {"agents": agents, "runs": 10}, "test"), tmp_path / "a", engine=lambda: engine)
    assert len(engine.computed) == 1
    frame = open_store(tmp_path / "a").to_pandas()
    assert sorted(frame["agent"].unique()) == ["one", "two"]
    assert problems_of(tmp_path / "a")["problems"] == []


def test_layout_of_the_description_is_no_change(copied):
    change_config(copied, lambda sweep: None)  # written again by another library
    assert problems_of(copied)["problems"] == []


VALUES = (None, 0, -1, 1.5, 1e300, True, "", "x", "9" * 30, [], {}, [1], {"a": 1}, [[[]]], "2026-01-01")


def mutate(document, random):
    """A document with one value, anywhere in it, put in the place of another."""
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = random.choice(keys)
        inner = place[key]
        if isinstance(inner, dict | list) and inner and random.random() < 0.7:
            place = inner
            continue
        if isinstance(place, dict) and random.random() < 0.2:
            del place[key]
        else:
            place[key] = random.choice(VALUES)
        return


def damage(folder, random):
    """One file of the store changed: cut, flipped, emptied, exchanged, or changed inside and sealed again."""
    path = random.choice(
        [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    )
    content = path.read_bytes()
    kind = random.choice(["cut", "flip", "empty", "exchange", "inside", "inside", "inside"])
    if kind == "inside" and path.suffix == ".json":
        document = json.loads(content)
        mutate(document, random)
        document.pop("sha256", None)
        path.write_bytes(json.dumps(document).encode())
        rewrite(path)
    elif kind == "inside" and path.suffix == ".yaml":
        document = yaml.safe_load(content)
        mutate(document, random)
        path.write_text(yaml.safe_dump(document))
    elif kind == "cut":
        path.write_bytes(content[: random.randrange(len(content))])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "exchange":
        others = [one for one in sorted(path.parent.iterdir()) if one.is_file()]
        path.write_bytes(random.choice(others).read_bytes())
    else:
        changed = bytearray(content)
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        path.write_bytes(bytes(changed))
    return f"{kind} {path.name}"


def use(folder, out):
    """Everything that reads a store, one after another."""
    from bellief.report.sweep_page import write_sweep_report

    yield lambda: open_store(folder).to_dict()
    yield lambda: verify(open_store(folder), recompute=0)
    yield lambda: open_store(folder).export(out / "all.csv")
    yield lambda: write_sweep_report(folder, out / "page.html")
    yield lambda: run_sweep(store.Store(folder).spec, folder, engine=lambda: Inline(skip))


@pytest.mark.parametrize("seed", [10, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10))])
def test_random_damage_is_never_a_bug(whole, tmp_path, seed):
    """Ten damaged stores a seed: listed, verified, exported, reported and resumed, or refused in one sentence."""
    random = Random(seed)
    for number in range(10):
        folder = shutil.copytree(whole, tmp_path / str(number))
        done = [damage(folder, random) for _ in range(random.choice([1, 1, 2]))]
        for step in use(folder, tmp_path):
            try:
                step()
            except UserError:
                continue
            except Exception as error:
                raise AssertionError(f"seed {seed}: {done}") from error


def skip(cell):
    """Nothing is computed."""
    return {"kind": "failed", "reason": "not here"}
