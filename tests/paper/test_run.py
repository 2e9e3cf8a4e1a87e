"""From a folder with cells to files: the same bytes every time, cells shared, nothing lost."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bellief.paper import computations, run_paper
from bellief.paper.agents import DISCRETE
from bellief.paper.computed_results import Folder
from bellief.paper.documentation_pages import BEGIN, END, fill_readme, write_pages
from bellief.paper.items import ITEMS, STATEMENTS, choose
from bellief.paper.summary import summarise
from bellief.paper.tasks import SCALES, TASKS, Size
from bellief.sweeps.sweep import Wanted, run_sweeps
from sweeps.conftest import Inline

pytestmark = pytest.mark.long


def go(wanted):
    return run_sweeps([Wanted(*one) for one in wanted], engine=Inline)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a small sweep of two agents that hardly need compiling, and one small computation."""
    out = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        few = {"PSRL": DISCRETE["Q-learning"], "optimal": DISCRETE["optimal"]}
        patch.setitem(TASKS, "nchain", TASKS["nchain"]._replace(agents=few))
        request = run_paper.Request(choose("fig:full_chain,fig:ci_chain"), "tiny", out, [], {})
        run_paper.run_sweeps(request, go)
        path = run_paper.Folder(request.folder).computation("wasserstein")
        path.parent.mkdir()
        rng = np.random.default_rng(0)
        methods = ("mean MDP", "inferential induction", "joint (ours), 100 MDPs")
        arrays = {
            f"{reading}/{steps}/{method}": rng.uniform(5, 6, 3)
            for reading in computations.READINGS
            for steps in computations.SIZES
            for method in methods
        }
        settings = {"settings": np.array('{"data_sets": 3}'), "key": np.array("k")}
        np.savez(path, **arrays, **settings)
        yield request


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_report_and_all_files_are_functions_of_the_store(made):
    everything = made._replace(items=list(ITEMS.values()))
    run_paper.write_everything(everything)
    first = contents(made.folder), contents(made.folder / "items")
    run_paper.run_sweeps(made, go)  # nothing to do, but one more session in the store
    run_paper.write_everything(everything)
    assert (contents(made.folder), contents(made.folder / "items")) == first
    names = set(first[1])
    for stem in ("fig-full_chain", "fig-ci_chain"):
        assert {f"{stem}.{ending}" for ending in ("pdf", "png", "svg", "csv")} <= names
    assert {"tab-wasserstein.csv", "tab-wasserstein.md", "tab-wasserstein.tex", "fig-full_chain-table.md"} <= names
    assert b"22.80" in first[1]["tab-wasserstein.md"]
    assert b"PSRL" in first[0]["report.html"]


def test_verdicts_cover_every_claim(made):
    run_paper.write_everything(made)
    rows = json.loads((made.folder / "verdicts.json").read_text())["claims"]
    assert len(rows) == sum(len(item.claims) for item in ITEMS.values())
    # The distances of the made-up computation are there, and what they are worth is left open.
    assert {row["verdict"] for row in rows} == {"too small to judge", "under-specified"}
    assert all(row["quote"] and row["place"] for row in rows)


def test_csv_has_what_the_figure_shows(made):
    run_paper.write_everything(made)
    lines = (made.folder / "items" / "fig-full_chain.csv").read_text().splitlines()
    curve = run_paper.Folder(made.folder).runs("nchain", "PSRL")
    last = next(line for line in reversed(lines) if ",PSRL," in line).split(",")
    assert int(last[-5]) == curve.step[-1] == 200
    assert float(last[-4]) == pytest.approx(curve.smoothed[:, -1].mean(), rel=1e-5)


def test_pages_and_readme(made, tmp_path):
    docs, readme = tmp_path / "docs", tmp_path / "README.md"
    summary = summarise(Folder(made.folder), "tiny")
    write_pages(summary, docs)
    page = (docs / "index.md").read_text()
    assert all(f"## {item.title}\n\nThe paper's `{item.label}`." in page for item in ITEMS.values())
    assert page.count("<details>") == page.count("</details>") > 0
    assert "fig-full_chain.png)" in page
    assert (docs / "fig-full_chain.png").exists()
    assert "Not computed at this scale." in page
    readme.write_text(f"before\n{BEGIN}\nOUTDATED\n{END}\nafter\n")
    fill_readme(summary, readme)
    text = readme.read_text()
    assert "OUTDATED" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| claim | reproduced |" in text


def test_cells_are_taken_over_from_another_folder(made, tmp_path):
    told = []
    again = made._replace(out=tmp_path, reuse=[made.out])
    run_paper.run_sweeps(again, lambda wanted: told.extend(go(wanted)))
    assert [summary.computed for summary in told] == [0]


def test_what_another_folder_lacks_stays_missing_when_only_drawn(made, tmp_path):
    sizes = {"nchain": Size(12, 200)}  # one cell of each agent is there, the runs from 10 on are not
    run_paper.take_over(made._replace(out=tmp_path, reuse=[made.out], sizes=sizes))
    conditions = list(run_paper.Folder(tmp_path / "tiny").stores["nchain"])
    assert [(len(condition.cells), condition.complete) for condition in conditions] == [(1, False)] * 2


def test_a_computation_goes_on_where_it_was_cut_off(tmp_path, monkeypatch):
    calls = []

    def parts(settings):
        for name in ("one", "two"):

            def part(name=name):
                calls.append(name)
                if name == "two" and len(calls) == 2:
                    raise KeyboardInterrupt
                return {name: np.ones(2)}

            yield name, part

    made_up = computations.Computation("made up", {scale: {"n": 1} for scale in SCALES}, parts)
    monkeypatch.setitem(computations.COMPUTATIONS, "made-up", made_up)
    path = tmp_path / "computed" / "made-up.npz"
    with pytest.raises(KeyboardInterrupt):
        computations.compute("made-up", "tiny", path, [], lambda text: None)
    assert not path.exists()
    assert computations.compute("made-up", "tiny", path, [], lambda text: None)
    assert calls == ["one", "two", "two"]
    assert not computations.compute("made-up", "tiny", path, [], lambda text: None)
    assert [file.name for file in path.parent.iterdir()] == ["made-up.npz"]
    elsewhere = tmp_path / "elsewhere" / "made-up.npz"
    assert not computations.compute("made-up", "tiny", elsewhere, [path.parent], lambda text: None)
    assert elsewhere.read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_every_item_end_to_end(tmp_path):
    environment = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    command = [sys.executable, "-m", "bellief", "paper", "--scale", "tiny", "--out", str(tmp_path), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stems = {path.name.partition(".")[0] for path in (tmp_path / "tiny" / "items").iterdir()}
    # Statements have claims alone, all others a picture or a table.
    without = {item.kind for item in ITEMS.values() if not any(stem.startswith(item.stem) for stem in stems)}
    assert without == {STATEMENTS}
    rows = json.loads(done.stdout)["claims"]
    # At this scale weights have no later part to be compared with.
    notes = {row["note"] for row in rows if "not computed" in row["note"]}
    assert notes == {"not computed: no run is longer than 1,000 steps"}


def test_interrupted_and_resumed(made, tmp_path):
    """Stopped after the first cell, then the same request again: every file as if nothing had happened."""
    begun = []

    def stop_second(cell):
        begun.append(cell.id)
        if len(begun) == 2:
            raise KeyboardInterrupt

    request = made._replace(out=tmp_path, reuse=[])
    with pytest.raises(KeyboardInterrupt):
        run_paper.run_sweeps(
            request,
            lambda wanted: run_sweeps([Wanted(*one) for one in wanted], engine=lambda: Inline(stop_second)),
        )
    told = []
    run_paper.run_sweeps(request, lambda wanted: told.extend(go(wanted)))
    assert [summary.computed for summary in told] == [1]
    for one in (made, request):
        run_paper.write_everything(one)
    for name in ("fig-full_chain.csv", "fig-full_chain.svg", "fig-full_chain-table.md"):
        assert (request.folder / "items" / name).read_bytes() == (made.folder / "items" / name).read_bytes()
