"""Counts from files: the same as row by row, however the rows are split, in any order, with any number of threads."""

import gzip
import itertools
import multiprocessing
import threading

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellief.errors import UserError
from bellief.logs import Tally, Transitions, as_tally, as_transitions, fold, validate
from bellief.logs.tally import CELL_FIELDS

COUNTS = ("states", "actions", "state_labels", "action_labels")
WHOLE = ("cell_state", "cell_action", "cell_next", "cell_terminated", "cell_count", "start_count")
REAL = ("cell_mean", "cell_squares", "cell_low", "cell_high")


def same(first, second, exact=False):
    """Two tallies of one log; moments to 1e-12 of the rewards' size, or bit for bit."""
    for name in COUNTS:
        assert getattr(first, name) == getattr(second, name), name
    for name in WHOLE:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)
    size = max(abs(first.reward_low), abs(first.reward_high))
    for name in REAL:
        one, other = getattr(first, name), getattr(second, name)
        if exact:
            np.testing.assert_array_equal(one, other, name)
        else:
            unit = size**2 * first.cell_count if name == "cell_squares" else size
            np.testing.assert_array_less(np.abs(one - other), 1e-12 * unit + 1e-300, name)


def random_frame(rows, seed=0, episodes=False, labels=False):
    generator = np.random.default_rng(seed)
    state = generator.integers(0, 6, rows)
    frame = pd.DataFrame(
        {
            "state": state,
            "action": generator.integers(0, 3, rows),
            "reward": generator.normal(1e9, 1.0, rows),
            "next_state": np.where(generator.random(rows) < 0.6, np.roll(state, -1), generator.integers(0, 8, rows)),
            "terminated": generator.random(rows) < 0.1,
            "truncated": generator.random(rows) < 0.05,
        }
    )
    if episodes:
        frame["episode"] = np.arange(rows) // 7
        frame["step"] = np.arange(rows) % 7
    if labels:
        for column in ("state", "next_state"):
            frame[column] = "s" + frame[column].astype(str)
    return frame


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=50)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.fixture
def fast_only(monkeypatch):
    """Reading row by row would be a failure here."""

    def refuse(*arguments):
        raise AssertionError("DuckDB did not do it")

    monkeypatch.setattr(validate, "tally_of", refuse)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "csv.gz", "csv.zst"])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("episodes", [False, True])
def test_the_same_as_row_by_row(tmp_path, fast_only, suffix, labels, episodes):
    frame = random_frame(400, labels=labels, episodes=episodes)
    path = tmp_path / f"log.{suffix}"
    if suffix == "csv.zst":
        path.write_bytes(pyarrow.Codec("zstd").compress(frame.to_csv(index=False).encode(), asbytes=True))
    else:
        frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
    same(as_tally(path), Transitions.from_frame(frame).tally())


def test_json_lines(tmp_path, fast_only):
    frame = random_frame(100).assign(reward=np.arange(100) / 4)
    same(as_tally(write(frame, tmp_path / "log.jsonl")), Transitions.from_frame(frame).tally())


@pytest.mark.parametrize("episodes", [False, True])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_any_split_any_order_any_threads(tmp_path, fast_only, monkeypatch, episodes, suffix):
    """Also units smaller than a file; ends and starts must be right where units meet."""
    monkeypatch.setattr(fold, "UNIT", 100)
    frame = random_frame(1000, seed=3, episodes=episodes)
    whole = as_tally(write(frame, tmp_path / f"whole.{suffix}"), threads=1)
    same(whole, Transitions.from_frame(frame).tally())
    cuts = [0, 1, 2, 333, 340, 999, 1000]
    paths = [
        write(frame.iloc[begin:end], tmp_path / f"part-{number}.{suffix}")
        for number, (begin, end) in enumerate(itertools.pairwise(cuts))
    ]
    split = as_tally(paths, threads=1)
    same(split, whole)
    for threads, order in ((2, paths), (1, paths[::-1]), (2, [paths[3], *paths[:3], *paths[4:]])):
        same(as_tally(order, threads=threads), split, exact=True)
    if episodes:
        shuffled = frame.sample(frac=1, random_state=1)
        halves = [write(shuffled.iloc[part::2], tmp_path / f"shuffled-{part}.{suffix}") for part in (0, 1)]
        same(as_tally(halves), whole)
        same(as_transitions(halves).tally(), whole)


def test_parts_are_ordered_as_people_count(tmp_path):
    frame = random_frame(300, seed=5)
    for number, begin in enumerate(range(0, 300, 25)):
        write(frame.iloc[begin : begin + 25], tmp_path / f"part-{number}.csv")
    same(as_tally(tmp_path), Transitions.from_frame(frame).tally())
    same(as_tally(str(tmp_path / "part-*.csv")), Transitions.from_frame(frame).tally())


def test_rewards_far_from_zero_and_close_to_it(tmp_path):
    rewards = np.tile([0.0, 1.0, 2.0, 3.0], 50)
    rewards[::2] += 1e9
    frame = pd.DataFrame({"state": 0, "action": np.tile([0, 1], 100), "reward": rewards, "next_state": 0})
    tally = as_tally(write(frame, tmp_path / "log.csv"))
    np.testing.assert_allclose(tally.cell_squares, [100.0, 100.0], rtol=1e-14)
    assert tally.cell_mean.tolist() == [1e9 + 1, 2.0]
    sizes = [as_tally(write(frame.assign(reward=tiny), tmp_path / "log.csv")) for tiny in (1e-200, 1e-300)]
    assert [tally.cell_mean[0] for tally in sizes] == [1e-200, 1e-300]
    assert [tally.typical_reward() for tally in sizes] == [1e-200, 1e-300]
    equal = as_tally(write(frame.assign(reward=0.1), tmp_path / "log.csv"))
    assert (equal.cell_mean[0], equal.cell_squares[0]) == (0.1, 0.0)


def test_ends_are_outcomes_by_their_state(tmp_path):
    (tmp_path / "log.csv").write_text(
        "state,action,reward,next_state,terminated\nill,wait,0,dead,1\nill,wait,1,well,1\nill,wait,1,,1\nill,wait,1,ill,0\n"
    )
    tally = as_tally(tmp_path / "log.csv")
    assert tally.state_labels == ("dead", "ill", "well")
    assert tally.cell_next.tolist() == [1, -1, 0, 2]
    assert tally.cell_terminated.tolist() == [False, True, True, True]
    assert tally.acting.tolist() == [False, True, False]
    assert tally.pair_of_cell.tolist() == [0, 0, 0, 0]
    assert (tally.pair_count.tolist(), tally.ends, tally.episodes) == ([4], 3, 4)
    assert tally.cell_outcome.tolist() == [1, 3, 3, 3]


cells = st.one_of(
    st.integers(-1, 3).map(str),
    st.floats().map(str),
    st.text(max_size=4),
    st.sampled_from(['"', "01", "1.0", " 2", "a", "b ", "true", "", "nan", "1_0", "1e0", "+1", '"a"', "a\tb"]),
)


junk = given(
    header=st.sampled_from(["", ",terminated", ",terminated,episode", ",done,truncated", ",truncated,episode,step"]),
    rows=st.lists(st.lists(cells, min_size=4, max_size=7), min_size=1, max_size=4),
    labels=st.sampled_from([None, True, False]),
    ending=st.sampled_from(["\n", "\r\n", "\n\n"]),
)


def agree(tmp_path_factory, header, rows, labels, ending):
    """What is taken without a look at the rows must be what a look at the rows gives, and nothing else may be taken."""
    path = tmp_path_factory.getbasetemp() / "junk.csv"
    text = ending.join(["state,action,reward,next_state" + header, *(",".join(row) for row in rows)])
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    found, message = [], []
    for load in (as_tally, lambda one, **options: as_transitions(one, **options).tally()):
        try:
            found.append(load(path, labels=labels))
        except UserError as mistake:
            message.append(str(mistake))
    assert len(found) in (0, 2), message
    if found:
        same(*found)
    else:
        assert message[0] == message[1]


@settings(deadline=None, max_examples=60)
@junk
def test_duckdb_never_disagrees_with_the_rows(tmp_path_factory, header, rows, labels, ending):
    agree(tmp_path_factory, header, rows, labels, ending)


@pytest.mark.slow
@settings(deadline=None, max_examples=1000)
@junk
def test_duckdb_never_disagrees_with_the_rows_of_many_files(tmp_path_factory, header, rows, labels, ending):
    agree(tmp_path_factory, header, rows, labels, ending)


@pytest.mark.parametrize("flags", ["00,1", "00,0", "1,00", "0,00", "2,1", "x,1", "1,x"])
def test_a_flag_that_is_no_flag_is_refused_beside_one_that_is(tmp_path, flags):
    """In SQL what is unknown and false is false, so that one column can hide what another one holds."""
    (tmp_path / "log.csv").write_text(f"state,action,reward,next_state,done,truncated\n0,0,1,0,{flags}\n0,0,1,0,0,0\n")
    for load in (as_tally, as_transitions):
        with pytest.raises(UserError, match=r"row 1 has (done|truncated) .*; it must be true or false"):
            load(tmp_path / "log.csv")


@pytest.mark.parametrize("commas", [1, 2, 4])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_commas_at_the_end_of_a_line_are_no_cells(tmp_path, commas, ending):
    """DuckDB takes such lines; read row by row they are the same, and every other long line is refused."""
    rows = ["state,action,reward,next_state", "0,0,1,1", "1,0,2,0" + "," * commas, "0,0,1,1"]
    (tmp_path / "log.csv").write_bytes(ending.join(rows).encode())
    tally = as_tally(tmp_path / "log.csv")
    assert len(tally) == 3
    same(tally, as_transitions(tmp_path / "log.csv").tally())
    (tmp_path / "log.csv").write_bytes(ending.join([*rows, "0,0,1,1" + "," * commas + "7"]).encode())
    for load in (as_tally, as_transitions):
        with pytest.raises(UserError, match=rf"Expected 4 fields in line 5, saw {4 + commas}"):
            load(tmp_path / "log.csv")


BROKEN = {
    "reward": ("0,0,1,1\n1,1,x,0\n", r"part-3.csv: row 2 has reward 'x'"),
    "state": ("0,0,1,1\n-1,1,1,0\n", r"part-3.csv: row 2 has state '-1'"),
    "ragged": ("0,0,1,1\n1,1,1,0,5,6\n", r"part-3.csv is not a well-formed CSV file"),
    "label": ("a,0,1,1\n", r"part-3.csv: row 1 has state 'a'"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_one_broken_file_of_five_is_named(tmp_path, kind):
    rows, expected = BROKEN[kind]
    for number in range(1, 6):
        body = rows if number == 3 else "0,0,1,1\n1,1,1,0\n"
        (tmp_path / f"part-{number}.csv").write_text(f"state,action,reward,next_state\n{body}")
    with pytest.raises(UserError, match=expected):
        as_tally(tmp_path)


def test_only_the_broken_file_is_read_again(tmp_path, fast_only, monkeypatch):
    """Of many, or of a large one: from the doubtful unit on."""
    monkeypatch.setattr(fold, "UNIT", 100)
    for number in range(5):
        write(random_frame(300, number), tmp_path / f"{number}.parquet")
    frame = random_frame(300, 9).astype({"reward": str})
    frame.loc[220, "reward"] = "much"
    write(frame, tmp_path / "3.parquet")
    with pytest.raises(UserError, match=r"3.parquet: row 221 has reward 'much'"):
        as_tally(tmp_path)


def test_a_file_named_twice_counts_twice(tmp_path):
    path = write(random_frame(30), tmp_path / "log.csv")
    tally = as_tally([path, path])
    assert len(tally) == 60
    assert tally.origin.notes == (f"{path} is named 2 times, and counts as often.",)


def test_a_row_written_twice_counts_twice(tmp_path):
    frame = random_frame(200)
    once = as_tally(write(frame, tmp_path / "once.csv"))
    twice = as_tally(write(pd.concat([frame, frame]), tmp_path / "twice.csv"))
    np.testing.assert_array_equal(twice.cell_count, 2 * once.cell_count)
    np.testing.assert_allclose(twice.cell_mean, once.cell_mean, rtol=1e-12)


def test_broken_compressed_files(tmp_path):
    good = gzip.compress(b"state,action,reward,next_state\n" + b"0,0,1,0\n" * 5000)
    (tmp_path / "log.csv.gz").write_bytes(good[: len(good) // 2])
    with pytest.raises(UserError, match=r"log.csv.gz cannot be decompressed"):
        as_tally(tmp_path / "log.csv.gz")


def test_threads_and_processes(tmp_path):
    """Any number of threads, forked and spawned processes; each has its own connection."""
    paths = [write(random_frame(200, seed), tmp_path / f"{seed}.csv") for seed in range(4)]
    alone = [as_tally(path) for path in paths]
    found = {}

    def read_all(thread):
        found[thread] = [as_tally(path) for path in paths]

    threads = [threading.Thread(target=read_all, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
    assert len(found) == 4
    for one in found.values():
        for first, second in zip(alone, one, strict=True):
            same(first, second, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork:RuntimeWarning")  # JAX's, if it is loaded
def test_other_processes(tmp_path, method):
    path = write(random_frame(200), tmp_path / "log.parquet")
    alone = as_tally(path)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for other in pool.map_async(as_tally, [path] * 4).get(timeout=120):
            same(alone, other, exact=True)


def test_no_jax_and_no_pandas(tmp_path):
    """A CSV file is counted without either; they take longer to import than the file to read."""
    import subprocess
    import sys

    path = write(random_frame(100), tmp_path / "log.csv")
    code = (
        "import sys; from bellief.logs import as_tally; as_tally(sys.argv[1]); "
        "print([name for name in ('jax', 'pandas', 'matplotlib', 'pyarrow') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_every_field_is_sorted_and_of_one_length(tmp_path):
    tally = as_tally(write(random_frame(500, labels=True), tmp_path / "log.parquet"))
    assert isinstance(tally, Tally)
    assert len({len(getattr(tally, name)) for name in CELL_FIELDS}) == 1
    keys = list(zip(tally.cell_state, tally.cell_action, tally.cell_terminated, tally.cell_next, strict=True))
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
