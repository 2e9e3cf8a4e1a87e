import base64
import itertools
import os
import re

import numpy as np
import pandas as pd
import pytest

from bellief.demo import POLICIES, SHOWN, Size, run_demo, simulate
from bellief.envs import make
from bellief.errors import UserError
from bellief.experiments.compare import best_average
from bellief.report.build import render
from bellief.report.document import Document, Picture, Section, Table

pytestmark = pytest.mark.long

# Chosen so that both logs, and reference and joint belief, share their compiled functions.
SMALL = Size(logs=(50, 60), reference_mdps=100, joint_mdps=100, repeats=2, lookahead=20, steps=120, runs=2)
FILES = {"index.html", "wasserstein.csv"} | {
    f"{stem}.{kind}" for stem in ("posterior", "curves") for kind in ("png", "svg", "pdf", "csv")
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One small demo: its folder, its messages and the fractions it reported."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "out"
    messages, fractions = [], []
    page = run_demo(folder, seed=3, echo=messages.append, progress=fractions.append, size=SMALL)
    assert page == folder / "index.html"
    return folder, messages, fractions


def test_the_folder_holds_page_pictures_and_tables(demo):
    folder, messages, fractions = demo
    assert {path.name for path in folder.iterdir()} == FILES
    assert messages[-1] == f"Open {folder / 'index.html'}"
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


@pytest.mark.slow
def test_the_same_seed_gives_the_same_files_and_spares_others(demo, tmp_path):
    folder, _, _ = demo
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "index.html").write_text("an older page")
    run_demo(tmp_path, seed=3, echo=lambda line: None, size=SMALL)
    assert {path.name for path in tmp_path.iterdir()} == FILES | {"notes.txt"}
    assert (tmp_path / "notes.txt").read_text() == "mine"
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_the_page_stands_by_itself(demo):
    page = (demo[0] / "index.html").read_text()
    assert "://" not in page
    assert "<script" not in page
    images = re.findall(r'(?:src|srcset)="([^"]*)"', page)
    assert len(images) == 4
    for image in images:
        kind, _, data = image.partition(",")
        assert kind == "data:image/svg+xml;base64"
        drawing = re.sub(r'xmlns(:\w+)?="[^"]*"', "", base64.b64decode(data).decode().partition("<svg")[2])
        assert "<image" not in drawing
        assert not re.search(r'href="(?!#)', drawing)
    alternatives = re.findall(r'alt="([^"]*)"', page)
    assert len(alternatives) == 2
    assert all(len(text) > 60 for text in alternatives)
    links = set(re.findall(r'href="([^"]*)"', page))
    assert links == FILES - {"index.html"}


def test_headings_are_in_order(demo):
    levels = [int(level) for level in re.findall(r"<h(\d)", (demo[0] / "index.html").read_text())]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_distances_are_measured_against_the_reference(demo):
    table = pd.read_csv(demo[0] / "wasserstein.csv")
    own = table[table["policy"] != "paper"]
    assert set(own["policy"]) == set(POLICIES)
    assert len(own) == len(POLICIES) * len(SMALL.logs) * 4
    assert (own["distance"] > 0).all()
    means = own[own["method"] == "mean-mdp"]
    assert np.allclose(means["ratio_to_mean_mdp"], 1)
    printed = table[(table["policy"] == "paper") & (table["method"] == "gaussian")]
    assert printed["distance"].tolist() == [22.80, 16.41, 4.18]
    assert np.allclose(printed["ratio_to_mean_mdp"], [0.743, 0.917, 0.979], atol=1e-3)


def test_curves_hold_every_run(demo):
    table = pd.read_csv(demo[0] / "curves.csv")
    assert set(table["rule"]) == {"mean", "optimistic"}
    assert set(table["run"]) == {0, 1}
    assert table["step"].max() == SMALL.steps


def test_the_picture_has_its_numbers_beside_it(demo):
    table = pd.read_csv(demo[0] / "posterior.csv")
    assert set(table["policy"]) == {SHOWN}
    assert set(table["method"]) == {"monte-carlo", "mean-mdp", "gaussian", "joint"}
    assert (table["q5"] <= table["q50"]).all()
    assert (table["q50"] <= table["q95"]).all()


def test_simulated_steps_follow_the_chain():
    environment = make("nchain")
    state, action, reward, after = simulate(environment, (0.2, 0.8), 4000, np.random.default_rng(0))
    assert state[0] == 0
    assert (state[1:] == after[:-1]).all()
    back = after == 0
    # Walking back pays 2; a step forward pays only at the far end.
    assert (reward[back] == 2).all()
    assert (reward[~back] == np.where(state[~back] == 4, 10, 0)).all()
    assert abs(action.mean() - 0.8) < 4.5 * np.sqrt(0.16 / 4000)
    assert abs((back == (action == 0)).mean() - 0.8) < 4.5 * np.sqrt(0.16 / 4000)


def test_the_best_average_reward_is_known():
    assert best_average(make("nchain")) == pytest.approx(3.6768)


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UserError, match="is a file"):
        run_demo(tmp_path / "out", echo=lambda line: None)
    with pytest.raises(UserError, match="cannot be written"):
        run_demo(tmp_path / "out" / "below", echo=lambda line: None)
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot be written"):
        run_demo(tmp_path, echo=lambda line: None)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_out_of_range_are_refused(tmp_path, seed):
    with pytest.raises(UserError, match="seed"):
        run_demo(tmp_path / "out", seed=seed)
    assert not (tmp_path / "out").exists()


def test_nothing_from_outside_becomes_markup_on_a_page():
    nasty = "<script>alert('x')</script>\"><img src=x>"
    picture = Picture(nasty, nasty, address=nasty, narrow=nasty, files=[nasty])
    table = Table(nasty, [nasty], [[nasty, nasty]], [nasty], [nasty])
    section = Section(nasty, nasty, [nasty], [picture, table])
    html = render(Document(nasty, [nasty], [], [section], commands=[(nasty, nasty)], footer=nasty))
    assert "<script" not in html
    assert html.count("<img") == 1
    # Twice the title (in the head and on the page) and each file (address and text), once everything else.
    assert html.count("&lt;script&gt;") == 21
