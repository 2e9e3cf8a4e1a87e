"""Whatever a person has at hand goes in, or gets a sentence; columns by their usual names; hostile inputs."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import duckdb
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from bellief.errors import UserError
from bellief.files import DamagedArchive, read_archive
from bellief.logs import FeatureTransitions, Transitions, as_log, as_tally, as_transitions
from bellief.logs.columns import take
from logs.test_fold import random_frame, same, write


def polars_frame(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        polars = pytest.importorskip("polars", exc_type=ImportError)
    if not hasattr(polars, "__version__") or importlib.util.find_spec("_polars_runtime_32") is None:
        pytest.skip("Polars is installed without its compiled part")
    return polars.DataFrame(rows)


ROWS = {"state": [0, 1, 0], "action": [0, 1, 1], "reward": [1.0, 2.0, 3.0], "next_state": [1, 0, 1]}


@pytest.fixture
def expected():
    return Transitions.from_arrays(**ROWS).tally()


WAYS = {
    "pandas": pd.DataFrame,
    "polars": polars_frame,
    "polars lazy": lambda rows: polars_frame(rows).lazy(),
    "arrow": pyarrow.table,
    "relation": lambda rows: duckdb.connect().from_arrow(pyarrow.table(rows)),
    "transitions": lambda rows: Transitions.from_arrays(**rows),
    "tally": lambda rows: Transitions.from_arrays(**rows).tally(),
}


@pytest.mark.parametrize("way", WAYS)
def test_tables_in_memory(way, expected):
    data = WAYS[way](ROWS)
    same(as_tally(data), expected)
    if way != "tally":
        same(as_transitions(data).tally(), expected)


@pytest.mark.parametrize("data", [3, None, object(), [], [1, 2], {"state": [0]}, np.zeros(3)])
def test_anything_else_gets_a_sentence(data):
    with pytest.raises(UserError, match=r"A log is a path|no files"):
        as_tally(data)


def test_a_tally_has_no_rows(expected):
    with pytest.raises(UserError, match="keeps no rows"):
        as_transitions(expected)


def test_reading_options_after_reading(expected):
    with pytest.raises(UserError, match="has been read"):
        as_tally(expected, states=5)


def test_queries(tmp_path, expected):
    pd.DataFrame(ROWS | {"keep": [1, 1, 1]}).to_parquet(tmp_path / "log.parquet")
    query = f"select * exclude (keep) from '{tmp_path}/log.parquet' where keep = 1"
    same(as_tally(None, query=query), expected)
    with duckdb.connect(str(tmp_path / "base.duckdb")) as base:
        base.execute(f"create table log as {query}")
    before = (tmp_path / "base.duckdb").read_bytes()
    same(as_tally(None, query="select * from log;", database=tmp_path / "base.duckdb"), expected)
    assert (tmp_path / "base.duckdb").read_bytes() == before


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("drop table log", "one SELECT"),
        ("select 1; select 2", "one SELECT"),
        ("copy (select 1) to 'x.csv'", "one SELECT"),
        ("selec", "query failed"),
        ("select * from nothing", "query failed"),
        ("select * from 'https://example.invalid/log.parquet'", "query failed"),
        ("install httpfs", "one SELECT"),
        ("select 1 as state", "there is no column 'action'"),
        ("select 0 as state, date 'infinity' as action, 1.0 as reward, 0 as next_state", "what Python cannot hold"),
        ("select 0 as state, 0 as action, 1.0 as reward, 0 as next_state where false", "no transitions"),
    ],
)
def test_queries_that_are_refused(tmp_path, monkeypatch, query, expected):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=expected):
        as_tally(None, query=query)
    assert list(tmp_path.iterdir()) == []


def test_vectors(tmp_path):
    states = np.arange(6.0).reshape(3, 2)
    log = Transitions.from_arrays(states, [0, 1, 0], [0.0, 1.0, 2.0], states + 1)
    frame = pd.DataFrame(
        {f"state_{n}": states[:, n] for n in (0, 1)} | {f"next_state_{n}": states[:, n] + 1 for n in (0, 1)}
    )
    path = write(frame.assign(action=log.action, reward=log.reward), tmp_path / "log.csv")
    found = as_log(path)
    assert isinstance(found, FeatureTransitions)
    np.testing.assert_array_equal(found.state, states)
    with pytest.raises(UserError, match="are vectors"):
        as_tally(path)


SPELLINGS = {
    "Stable-Baselines3": ["observations", "actions", "rewards", "next_observations", "dones", "timeouts"],
    "d3rlpy": ["observations", "actions", "rewards", "next_observations", "terminals", "timeouts"],
    "Minari": ["observations", "actions", "rewards", "next_observations", "terminations", "truncations"],
    "RLDS": ["observation", "action", "reward", "next_observation", "is_terminal", "truncated"],
    "d3rlpy 1": ["observations", "actions", "rewards", "next_observations", "terminals", "episode_terminals"],
    "RLDS with is_last": ["observation", "action", "reward", "next_observation", "is_terminal", "is_last"],
    "Gymnasium 0.21": ["obs", "action", "reward", "next_obs", "done", "TimeLimit.truncated"],
    "Java": ["state", "action", "reward", "nextState", "isTerminal", "isTruncated"],
    "shouting": ["STATE", "ACTION", "REWARD", "NEXT STATE", "TERMINATED", "TRUNCATED"],
}


@pytest.mark.parametrize("library", SPELLINGS)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_spellings(tmp_path, library, suffix):
    names = SPELLINGS[library]
    # A step in the middle, one that terminates, and one at which the log was cut off.
    both = {"d3rlpy 1", "RLDS with is_last"}
    rows = [[0, 0, 1.0, 1, 0, 0], [1, 0, 2.0, 1, 1, int(library in both)]]
    rows += [[1, 0, 3.0, 0, int(names[4].startswith("done")), 1], [0, 0, 1.0, 1, 0, 0]]
    tally = as_tally(write(pd.DataFrame(rows, columns=names), tmp_path / f"log.{suffix}"))
    # Without a step that was only cut off: done less truncated. The last row begins where the one before it led to.
    assert (tally.ends, tally.episodes) == (1, 3)
    assert tally.origin.columns["state"] == names[0]
    assert tally.origin.notes == ()
    same(tally, as_transitions(tmp_path / f"log.{suffix}").tally())


def test_done_alone_is_termination_and_says_so():
    tally = as_tally(pd.DataFrame(ROWS | {"Done": [0, 1, 0], "color": "x"}))
    assert tally.ends == 1
    assert "'Done' is taken for termination" in tally.origin.notes[0]
    assert tally.origin.unused == ("color",)


@pytest.mark.parametrize("name", ["done", "isDone", "Is Last", "is_terminal", "ABSORBING", "episode-end"])
def test_an_end_under_any_name_is_an_end(name):
    assert as_tally(pd.DataFrame(ROWS | {name: [0, 1, 0]})).ends == 1


@pytest.mark.parametrize("name", ["game_over", "end", "terminal_state", "wasTruncated"])
def test_a_column_that_may_be_an_end_is_not_passed_over_in_silence(name):
    origin = as_tally(pd.DataFrame(ROWS | {name: [0, 1, 0], "colour": "x"})).origin
    assert origin.unused == (name, "colour")
    (note,) = origin.notes
    assert f"no column says where episodes end; if '{name}' does" in note
    assert f"--columns terminated={name}" in note
    assert as_tally(pd.DataFrame(ROWS | {name: [0, 1, 0]}), columns={"terminated": name}).ends == 1


def test_two_columns_that_could_both_be_meant():
    frame = pd.DataFrame(ROWS | {"obs": [5, 5, 5]})
    with pytest.raises(UserError, match=r"'state' and 'obs' could both be the state; rename one, or choose"):
        as_tally(frame)
    assert as_tally(frame, columns={"state": "obs"}).states == 6
    with pytest.raises(UserError, match=r"'obs' is chosen for state and for reward; choose one of them"):
        as_tally(frame, columns={"state": "obs", "reward": "obs"})
    with pytest.raises(UserError, match=r"no role 'colour'"):
        as_tally(frame, columns={"colour": "obs"})
    with pytest.raises(UserError, match=r"no column 'nothing'"):
        as_tally(frame, columns={"state": "nothing"})


@pytest.mark.parametrize("labels", [None, True])
def test_padded_numbers_are_not_other_numbers(tmp_path, labels):
    (tmp_path / "log.csv").write_text("state,action,reward,next_state\n0,01,1,0\n0,1,2,0\n")
    if labels is None:
        with pytest.raises(UserError, match=r"row 1 has action '01'; .*--labels"):
            as_tally(tmp_path / "log.csv")
    else:
        assert sorted(as_tally(tmp_path / "log.csv", labels=True).action_labels) == ["01", "1"]


def test_messages_are_capped(tmp_path):
    with pytest.raises(UserError, match=r"no column 'state'; the columns are c0, .* and 199988 more") as mistake:
        take([f"c{number}" for number in range(200_000)])
    assert len(str(mistake.value)) < 300
    label = "x" * 10_000_000
    table = pyarrow.table({"state": [label], "action": [0], "reward": ["?"], "next_state": [label]})
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(UserError) as mistake:
        as_tally(tmp_path / "log.parquet")
    assert len(str(mistake.value)) < 500


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_devices_are_refused(device):
    for read in (as_tally, as_transitions):
        with pytest.raises(UserError, match="is a device"):
            read(device)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_pipes_are_read_once(tmp_path, expected, suffix):
    content = write(pd.DataFrame(ROWS), tmp_path / f"log.{suffix}").read_bytes()
    for read in (as_tally, as_log, as_transitions):
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(content), daemon=True)
        writer.start()
        same(read(tmp_path / "pipe").tally(), expected)
        writer.join(timeout=120)
        (tmp_path / "pipe").unlink()


def test_standard_input(tmp_path, expected):
    path = write(pd.DataFrame(ROWS), tmp_path / "log.csv")
    code = "from bellief.logs import as_tally; print(len(as_tally('/dev/stdin')))"
    for given in (path.read_bytes(), None):
        with open(path) as file:
            source = {"stdin": file} if given is None else {"input": given}
            told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, **source)
        assert told.stdout.strip() == b"3"


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    as_tally(pyarrow.table(ROWS))
    with pytest.raises(UserError):
        as_tally(pyarrow.table(ROWS | {"reward": ["a", "b", "c"]}))
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("name", ["log[1].csv", "a*b.csv", "what?.csv", "it's.csv", "key=value.csv", "ü.csv"])
@pytest.mark.parametrize("suffix", ["", ".parquet"])
def test_names_that_look_like_patterns(tmp_path, expected, name, suffix):
    path = tmp_path / (name + suffix)
    pd.DataFrame(ROWS).to_parquet(path) if suffix else pd.DataFrame(ROWS).to_csv(path, index=False)
    same(as_tally(path), expected)


def test_an_interrupt_ends_the_reading(tmp_path, monkeypatch):
    """Ctrl-C in the middle of many files: the pool ends, the temporary folder goes, nothing is half-written."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    paths = [write(random_frame(50, seed), tmp_path / f"{seed}.csv") for seed in range(8)]

    def press(fraction):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        as_tally(paths, threads=2, progress=press)
    assert threading.active_count() == before
    assert list((tmp_path / "scratch").iterdir()) == []


def test_archives_that_expand_without_end():
    import io
    import zipfile

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("samples.npy", bytes(400_000_000))
    with pytest.raises(DamagedArchive, match="expand"):
        read_archive(content.getvalue())


def test_an_address_is_for_ray():
    table = pd.DataFrame({"state": [0], "action": [0], "reward": [1.0], "next_state": [0]})
    for data in (table, as_tally(table)):
        with pytest.raises(UserError, match="--address is for the ray engine"):
            as_tally(data, address="127.0.0.1:6379")


@pytest.mark.parametrize("place", [10, 30, -9, -6, -3])
@pytest.mark.parametrize("second", [False, True])
def test_damaged_gzip_gets_a_sentence(tmp_path, place, second):
    """At any place: in the header, in the first rows, in the checksum, in the first file or a later one."""
    import gzip

    content = b"state,action,reward,next_state\n" + b"".join(b"%d,0,%d,1\n" % (n % 7, n) for n in range(300))
    damaged = bytearray(gzip.compress(content))
    damaged[place] ^= 0xFF
    if second:
        (tmp_path / "a.csv").write_bytes(content)
    (tmp_path / "b.csv.gz").write_bytes(damaged)
    for read in (as_tally, as_log, as_transitions):
        with pytest.raises(UserError, match=r"b\.csv\.gz"):
            read(tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("column", ["state", "action", "next_state"])
def test_a_label_as_long_as_a_file_is_refused(tmp_path, suffix, column):
    """Labels are printed whole; one of a hundred megabytes fits into a Parquet file of some kilobytes."""
    rows = {"state": ["a", "b"], "action": ["l", "r"], "reward": [0.0, 1.0], "next_state": ["b", "a"]}
    rows[column] = [rows[column][0], "x" * 1001]
    for read in (as_tally, as_transitions):
        with pytest.raises(UserError, match=rf"row 2 has {column} 'x+\.\.\.'; a label has at most 1000 characters"):
            read(write(pd.DataFrame(rows), tmp_path / f"log.{suffix}"))
    rows[column][1] = "x" * 1000
    assert as_tally(write(pd.DataFrame(rows), tmp_path / f"log.{suffix}")).states >= 2


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_query_without_end_obeys_signals(tmp_path, number, code):
    query = "select i as state, 0 as action, 0.0 as reward, i as next_state from range(100000000000) t(i)"
    process = subprocess.Popen(
        [sys.executable, "-m", "bellief", "evaluate", "--query", query],
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    until = time.monotonic() + 60
    while not list(tmp_path.rglob("query.parquet")) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(2)  # DuckDB may not notice an interrupt in the instant in which a statement begins
    process.send_signal(number)
    try:
        message = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert (process.returncode, message.count(b"\n")) == (code, 1)
    assert not list(tmp_path.rglob("*.parquet"))
