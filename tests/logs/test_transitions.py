"""Logs that are fine, and logs that are not."""

import datetime
import decimal
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellief.errors import UserError
from bellief.logs import Transitions
from bellief.logs.columns import OPTIONAL, REQUIRED

HEADER = "state,action,reward,next_state"


def from_text(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text)
    return Transitions.from_csv(path)


def test_from_arrays():
    data = Transitions.from_arrays([0, 2], [1, 0], [0.5, -1], [2, 1])
    assert (data.states, data.actions, len(data)) == (3, 2, 2)
    assert data.state.tolist() == [0, 2]
    assert data.reward.tolist() == [0.5, -1.0]
    assert data.terminated.tolist() == [False, False]
    assert data.visits().tolist() == [[0, 1], [0, 0], [1, 0]]


def test_from_csv_keeps_every_digit(tmp_path):
    rewards = np.random.default_rng(0).normal(size=200) * 10.0 ** np.arange(-100, 100)
    rewards = rewards[np.abs(rewards) < 1e99]
    rows = "\n".join(f"0,0,{reward!r},0" for reward in rewards.tolist())
    np.testing.assert_array_equal(from_text(tmp_path, f"{HEADER}\n{rows}\n").reward, rewards)


def test_from_frame_accepts_any_order_and_other_columns():
    frame = pd.DataFrame({"note": ["a"], "next_state": [1], "reward": [2], "action": [0], "state": [0]}, index=[17])
    data = Transitions.from_frame(frame)
    assert (data.state[0], data.next_state[0], data.reward[0]) == (0, 1, 2.0)


def test_columns_of_different_lengths():
    with pytest.raises(UserError, match=r"action \(2,\)"):
        Transitions.from_arrays([0], [0, 1], [0.0], [0])


def test_arrays_of_more_than_one_axis():
    with pytest.raises(UserError, match="one-dimensional"):
        Transitions.from_arrays([[0]], [[0]], [[0.0]], [[0]])


@pytest.mark.parametrize("missing", REQUIRED)
def test_frame_without_a_column(missing):
    frame = pd.DataFrame({name: [0] for name in REQUIRED if name != missing})
    with pytest.raises(UserError, match=f"no column '{missing}'"):
        Transitions.from_frame(frame)


def test_frame_with_a_column_twice():
    with pytest.raises(UserError, match="'state' is there more than once"):
        Transitions.from_frame(pd.DataFrame([[0] * 5], columns=[*REQUIRED, "state"]))


TRUE, FALSE = (
    ["true", "True", "TRUE", " true ", "1", "1.0", "yes", "T", "y"],
    ["false", "False", "0", "0.0", "no", "F", ""],
)


def test_spellings_of_true_and_false(tmp_path):
    rows = "\n".join(f"0,0,1,0,{flag}" for flag in [*TRUE, *FALSE])
    data = from_text(tmp_path, f"{HEADER},terminated\n{rows}\n")
    assert data.terminated.tolist() == [True] * len(TRUE) + [False] * len(FALSE)


@pytest.mark.parametrize("flags", [[True, False], [1, 0], [1.0, 0.0], np.array([True, False], dtype=object)])
def test_flags_of_every_type(flags):
    assert Transitions.from_arrays([0, 0], [0, 0], [0, 0], [0, 0], flags).terminated.tolist() == [True, False]


@pytest.mark.parametrize("flag", ["2", "-1", "nope", "nan"])
def test_what_is_not_a_flag(tmp_path, flag):
    with pytest.raises(UserError, match=f"row 2 has terminated '{flag}'"):
        from_text(tmp_path, f"{HEADER},terminated\n0,0,1,0,1\n0,0,1,0,{flag}\n")


def test_first_steps_without_episodes():
    """The first step; after an end; where a step does not begin where the last one led."""
    data = Transitions.from_arrays(
        state=[0, 1, 2, 2, 0], action=[0] * 5, reward=[0.0] * 5, next_state=[1, 2, 2, 1, 0], terminated=[0, 0, 1, 0, 0]
    )
    assert data.first.tolist() == [True, False, False, True, True]
    np.testing.assert_allclose(data.start_distribution(), [2 / 3, 0, 1 / 3])


def test_first_steps_with_episodes():
    """Named episodes may be interleaved; only their own first rows count."""
    data = Transitions.from_arrays([0, 1, 2, 1], [0] * 4, [0.0] * 4, [2, 2, 0, 0], episode=["a", "b", "a", "b"])
    assert data.first.tolist() == [True, True, False, False]
    np.testing.assert_allclose(data.start_distribution(), [0.5, 0.5, 0])


def test_behaviour_is_uniform_where_nothing_was_seen():
    data = Transitions.from_arrays([0, 0, 0, 0], [0, 0, 0, 1], [0.0] * 4, [1] * 4)
    np.testing.assert_allclose(data.behaviour(), [[0.75, 0.25], [0.5, 0.5]])


@pytest.mark.parametrize(("states", "actions"), [(1, None), (None, 1)])
def test_sizes_smaller_than_the_data(states, actions):
    with pytest.raises(UserError, match=r"row 2 has .* 1, outside the 1"):
        Transitions.from_arrays([0, 1], [0, 1], [0.0, 0.0], [0, 0], states=states, actions=actions)


def attempt(load, source):
    """What was loaded and no message, or nothing and the message."""
    try:
        return load(source), None
    except UserError as mistake:
        return None, str(mistake)


# Whatever may turn up in a column of a data frame somebody made.
junk = st.one_of(
    st.integers(-3, 5),
    st.integers(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=5),
    st.sampled_from(["1", " 2", "1e3", "nan", "-inf", "1_0", "0x1", "True", "１", "1\n2", "\x00"]),
    st.booleans(),
    st.none(),
    st.complex_numbers(),
    st.binary(max_size=3),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just(decimal.Decimal("1.5")),
    st.just(datetime.datetime(2020, 1, 1)),
    st.just([0]),
    st.just(()),
)
whole, flags = st.integers(0, 4), st.booleans()


@st.composite
def junk_frames(draw):
    """Frames that are mostly right: most columns hold small whole numbers, some hold anything, some are missing."""
    rows = draw(st.integers(0, 4))
    further = draw(st.lists(st.sampled_from([*OPTIONAL, "other"]), unique=True))
    anything = st.lists(st.sampled_from([*REQUIRED, *OPTIONAL, "other"]), max_size=7)
    names = draw(st.sampled_from([st.just([*REQUIRED, *further])] * 5 + [anything]).flatmap(lambda kind: kind))
    fine = {"terminated": flags, "truncated": flags}
    kinds = [draw(st.sampled_from([*[fine.get(name, whole)] * 9, junk])) for name in names]
    columns = [draw(st.lists(kind, min_size=rows, max_size=rows)) for kind in kinds]
    frame = pd.DataFrame({number: pd.Series(column, dtype=object) for number, column in enumerate(columns)})
    frame.columns = pd.Index(names, dtype=object)
    return frame.infer_objects() if draw(st.booleans()) else frame


def names_a_place(message):
    """Every mistake in a table is in a row or a column, or there are no rows at all."""
    return re.search(r"row \d+ has |no column '|column '.*' is there more than once|no transitions", message)


@settings(deadline=None, max_examples=300)
@given(junk_frames(), st.sampled_from([None, True, False]))
def test_a_frame_loads_or_the_mistake_is_named(frame, labels):
    data, message = attempt(lambda one: Transitions.from_frame(one, labels=labels), frame)
    if data is None:
        assert names_a_place(message)
        assert "\n" not in message
    else:
        assert_whole(data)
        for names, size in ((data.state_labels, data.states), (data.action_labels, data.actions)):
            assert names is None or len(set(names)) == len(names) == size
        assert len(data) == len(frame) > 0
        assert 0 <= data.state.min() <= data.state.max() < data.states
        assert -1 <= data.next_state.min() <= data.next_state.max() < data.states
        assert data.next_state[~data.terminated].min(initial=0) >= 0
        assert 0 <= data.action.min() <= data.action.max() < data.actions
        assert np.isfinite(data.reward).all()
        assert data.first[0]


def assert_whole(data):
    """Statistics and rows tell the same story."""
    log = data.statistics()
    counts = np.zeros((data.states, data.actions, data.states + 1), dtype=int)
    np.add.at(counts, (data.state, data.action, np.where(data.terminated, data.states, data.next_state)), 1)
    again = np.zeros_like(counts)
    np.add.at(again, (log.cell_state, log.cell_action, log.cell_outcome), log.cell_count)
    np.testing.assert_array_equal(counts, again)
    np.testing.assert_array_equal(log.visits(), counts.sum(-1))
    np.testing.assert_array_equal(log.start_count, np.bincount(data.state[data.first], minlength=data.states))
    assert (log.transitions, log.ends) == (len(data), data.terminated.sum())
    for pair, (state, action) in enumerate(zip(log.pair_state, log.pair_action, strict=True)):
        rewards = data.reward[(data.state == state) & (data.action == action)]
        size = max(1.0, float(np.abs(rewards).max()))
        assert log.pair_mean[pair] == pytest.approx(rewards.mean(), abs=1e-9 * size)
        assert log.pair_squares[pair] == pytest.approx(((rewards - rewards.mean()) ** 2).sum(), abs=1e-6 * size**2)


cells = st.one_of(st.integers(-1, 3).map(str), st.floats().map(str), st.text(max_size=4), st.just('"'))


@settings(deadline=None, max_examples=200)
@given(
    header=st.sampled_from([HEADER, HEADER + ",terminated", HEADER.replace("reward", "gain"), ""]),
    rows=st.lists(st.lists(cells, min_size=3, max_size=6), max_size=3),
)
def test_a_file_loads_or_the_mistake_is_named(tmp_path_factory, header, rows):
    path = tmp_path_factory.getbasetemp() / "junk.csv"
    text = "\n".join([header, *(",".join(row) for row in rows)])
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    data, message = attempt(Transitions.from_csv, path)
    if data is None:
        assert "junk.csv" in message
    else:
        assert len(data) > 0
        assert all(math.isfinite(reward) for reward in data.reward)


@pytest.mark.parametrize("column", ["state", "action", "reward", "next_state"])
@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(pd.Series(["2020-01-01"])),
        pd.Series([pd.Timedelta("1s")]),
        pd.Series([1 + 2j]),
        pd.Series([pd.NA], dtype="Int64"),
        pd.Series([1.5]),
    ],
    ids=["date", "duration", "complex", "missing", "fraction"],
)
@pytest.mark.parametrize("labels", [None, True])
def test_columns_that_are_neither_numbers_nor_labels(column, values, labels):
    frame = pd.DataFrame({name: [0] for name in REQUIRED}).assign(**{column: values})
    if column == "reward" and values.dtype == float:
        return
    with pytest.raises(UserError, match=f"row 1 has {column}"):
        Transitions.from_frame(frame, labels=labels)


def test_nullable_and_category_columns_of_numbers():
    frame = pd.DataFrame({name: pd.array([0, 1], dtype="Int64") for name in REQUIRED})
    frame["state"] = pd.Series(["0", "1"], dtype="category")
    assert Transitions.from_frame(frame).state.tolist() == [0, 1]
