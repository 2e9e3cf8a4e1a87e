"""Tallies in files: out and in again, merged, made by SQL, and refused where they are wrong."""

import duckdb
import pandas as pd
import pytest

from bellief.errors import UserError
from bellief.logs import Transitions, as_tally, as_transitions
from logs.test_fold import random_frame, same, write

SQL = """
select state, action, next_state, terminated, count(*) as n, avg(reward) as reward_mean,
       var_pop(reward) * count(*) as reward_squares, min(reward) as reward_low, max(reward) as reward_high
from log group by state, action, next_state, terminated
union all
select state, null, null, null, count(*), null, null, null, null
from log where step = 0 group by state
"""


@pytest.mark.parametrize("labels", [False, True])
def test_out_and_in(tmp_path, labels):
    tally = Transitions.from_frame(random_frame(300, labels=labels)).tally()
    tally.save(tmp_path / "tally.parquet")
    same(as_tally(tmp_path / "tally.parquet"), tally, exact=True)
    with pytest.raises(UserError, match="keeps no rows"):
        as_transitions(tmp_path / "tally.parquet")


def test_ends_without_a_state(tmp_path):
    tally = Transitions.from_arrays([0, 0], [0, 0], [1.0, 2.0], [None, 0], [1, 1]).tally()
    tally.save(tmp_path / "tally.parquet")
    assert as_tally(tmp_path / "tally.parquet").cell_next.tolist() == [-1, 0]


def test_merged(tmp_path):
    frame = random_frame(300, labels=True, episodes=True)
    halves = []
    for number, part in enumerate((frame.iloc[:140], frame.iloc[140:])):
        Transitions.from_frame(part).tally().save(tmp_path / f"{number}.parquet")
        halves.append(tmp_path / f"{number}.parquet")
    merged = as_tally(halves)
    same(merged, Transitions.from_frame(frame).tally())
    same(as_tally(halves[::-1]), merged, exact=True)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_made_by_sql(tmp_path, suffix):
    log = random_frame(350, episodes=True)  # DuckDB finds it by its name
    table = duckdb.sql(SQL).df()
    table.to_parquet(tmp_path / "t.parquet") if suffix == "parquet" else table.to_csv(tmp_path / "t.csv", index=False)
    found, expected = as_tally(tmp_path / f"t.{suffix}"), Transitions.from_frame(log).tally()
    assert found.start_count.tolist() == expected.start_count.tolist()
    assert found.cell_count.tolist() == expected.cell_count.tolist()
    assert found.cell_mean == pytest.approx(expected.cell_mean, rel=1e-12)


def test_a_tally_without_starts(tmp_path):
    tally = Transitions.from_arrays([0, 1], [0, 0], [1.0, 2.0], [1, 0]).tally()
    tally.save(tmp_path / "tally.parquet")
    frame = pd.read_parquet(tmp_path / "tally.parquet")
    frame[frame["action"].notna()].to_parquet(tmp_path / "tally.parquet")
    with pytest.raises(UserError, match="does not say where episodes begin"):
        as_tally(tmp_path / "tally.parquet").start_distribution()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("n", 0, r"row 1 has n '0'"),
        ("n", -3, r"row 1 has n '-3'"),
        ("reward_mean", 1e9, r"row 1 has reward_mean '1e\+09'"),
        ("reward_mean", None, r"row 1 has reward_mean 'nan'"),
        ("reward_squares", -1.0, r"row 1 has reward_squares '-1'"),
        ("reward_low", float("-inf"), r"row 1 has reward_low '-inf'"),
        ("state", -1, r"whole numbers from 0"),
        ("next_state", 3_000_000, r"whole numbers from 0"),
    ],
)
def test_what_is_no_tally(tmp_path, column, value, message):
    Transitions.from_arrays([0, 1], [0, 0], [1.0, 2.0], [1, 0]).tally().save(tmp_path / "tally.parquet")
    frame = pd.read_parquet(tmp_path / "tally.parquet")
    frame.loc[0, column] = value
    frame.to_parquet(tmp_path / "tally.parquet")
    with pytest.raises(UserError, match=f"tally.parquet: .*{message}"):
        as_tally(tmp_path / "tally.parquet")


def test_logs_and_tallies_together(tmp_path):
    write(random_frame(10), tmp_path / "log.csv")
    as_tally(tmp_path / "log.csv").save(tmp_path / "tally.parquet")
    with pytest.raises(UserError, match="this is a tally, and other files here are logs"):
        as_tally(tmp_path)
    with pytest.raises(UserError, match=r"ends in .parquet"):
        as_tally(tmp_path / "log.csv").save(tmp_path / "tally.csv")


def test_a_tally_of_starts_alone_has_no_transitions(tmp_path):
    header = "state,action,next_state,terminated,n,reward_mean,reward_squares,reward_low,reward_high\n"
    (tmp_path / "tally.csv").write_text(header + "0, ,1,false,3,0.5,0.5,2,1\n0,,,,2,,,,\n")
    with pytest.raises(UserError, match="there are no transitions"):
        as_tally(tmp_path / "tally.csv")
