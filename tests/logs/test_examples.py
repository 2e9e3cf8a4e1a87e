"""The logs in the package: there, readable by every reader, what their makers make."""

import importlib.util
from pathlib import Path

import pytest

import bellief
from bellief.errors import UserError
from bellief.logs.examples import EXAMPLES, example_path

EXAMPLES_FOLDER = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_counts_and_rows_are_the_same(name):
    tally = bellief.as_tally(f"example:{name}")
    rows = bellief.as_transitions(f"example:{name}")
    assert tally.transitions == len(rows) >= 3_000
    assert tally.state_labels == rows.state_labels
    assert tally.origin.files == (f"example:{name}",)
    assert Path(example_path(name)).stat().st_size < 200_000


def test_sizes():
    buses = bellief.as_tally("example:bus-engines")
    # Rust's groups 1 to 4: 104 buses, 8,156 months.
    assert (buses.transitions, buses.episodes, buses.ends) == (8_156, 104, 0)
    assert buses.action_labels == ("keep", "replace")
    assert int(buses.visits()[:, 1].sum()) == 60
    lake = bellief.as_tally("example:frozen-lake")
    assert (lake.states, lake.actions, lake.reward_low, lake.reward_high) == (16, 4, 0.0, 1.0)


def test_an_unknown_name_is_told_and_a_near_one_offered():
    with pytest.raises(UserError, match="did you mean 'example:clinic'"):
        bellief.as_tally("example:clinc")
    with pytest.raises(UserError, match="choose one of"):
        bellief.as_tally("example:zzz")


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES_FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_clinic_is_what_its_maker_makes(tmp_path):
    load("clinic_log").write(tmp_path / "clinic.csv", patients=400)
    made = (tmp_path / "clinic.csv").read_text().splitlines()
    assert made == Path(example_path("clinic")).read_text().splitlines()


def test_the_lake_is_what_its_maker_makes():
    import pandas as pd

    made = list(load("frozen_lake_log").walks(3_000, 0))
    kept = pd.read_parquet(example_path("frozen-lake"))
    assert [tuple(row) for row in kept.itertuples(index=False)] == made


def test_bus_engines_cost_what_rust_estimated():
    maker = load("bus_engine_log")
    assert maker.state("220657") == "220-230k miles"
    assert maker.reward("50000", "keep") == pytest.approx(-0.0023 * 10)
    assert maker.reward("220657", "replace") == pytest.approx(-10.0)
    row = {"group": "3", "bus": "1", "month": "2", "miles": "9999", "action": "keep", "next_miles": "10000"}
    (made,) = maker.convert([row, row | {"group": "5"}])
    assert (made["state"], made["next_state"], made["episode"]) == ("0-10k miles", "10-20k miles", "1")
