"""Labels, pieces, Parquet and Minari: every way in tells the same story."""

import gymnasium
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellief.errors import UserError
from bellief.evaluation import evaluate
from bellief.evaluation.policy_forms import read_policy
from bellief.logs import LogStatistics, Transitions
from bellief.logs import tables as reading
from bellief.policies import save_policy

CLINIC = pd.DataFrame(
    {
        "state": ["mild", "bad", "mild", "s10", "s2"],
        "action": ["wait", "treat", "treat", "wait", "wait"],
        "reward": [1.0, -2.0, 3.0, 0.0, 0.5],
        "next_state": ["bad", "recovered", "s10", "s2", "s2"],
        "terminated": [False, True, False, False, False],
        "truncated": [False, False, False, False, True],
    }
)


def same(first, second):
    """Two statistics of one log."""
    for name in set(LogStatistics.__dataclass_fields__) - {"origin"}:
        one, other = getattr(first, name), getattr(second, name)
        if isinstance(one, np.ndarray) and one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other, name


def test_labels_are_sorted_and_kept():
    data = Transitions.from_frame(CLINIC)
    assert data.state_labels == ("bad", "mild", "recovered", "s2", "s10")
    assert data.action_labels == ("treat", "wait")
    assert [data.state_labels[state] for state in data.state] == CLINIC["state"].tolist()
    # A state in which episodes only end is a state, and none to act in.
    assert data.tally().acting.tolist() == [True, True, False, True, True]
    assert data.first.tolist() == [True, False, True, False, False]


def test_announced_labels_fix_the_order():
    data = Transitions.from_frame(CLINIC, states=["s2", "s10", "mild", "bad", "new"], actions=["wait", "treat"])
    assert data.state.tolist() == [2, 3, 2, 1, 0]
    assert data.states == 5
    with pytest.raises(UserError, match=r"row 1 has state 'mild'; it is not among"):
        Transitions.from_frame(CLINIC, states=["s2", "s10", "bad"])
    with pytest.raises(UserError, match=r"name 5 states and 7 were announced"):
        Transitions.from_frame(CLINIC, states=7)
    with pytest.raises(UserError, match=r"all different"):
        Transitions.from_frame(CLINIC, states=["a", "a"])
    with pytest.raises(UserError, match=r"not the text 'mild'"):
        Transitions.from_frame(CLINIC, states="mild")


def test_numbers_as_labels():
    data = Transitions.from_arrays([1001, 77], [5, 9], [0.0, 1.0], [77, 1001], labels=True)
    assert data.state_labels == ("77", "1001")
    assert data.action_labels == ("5", "9")
    posterior = evaluate(data, {77: 9, 1001: 5}, 0.9, method="mean-mdp", start=1001)
    assert posterior.to_pandas().index.tolist() == ["77", "1001"]
    assert posterior.start.tolist() == [0, 1]


def test_a_typo_does_not_turn_numbers_into_labels():
    with pytest.raises(UserError, match=r"row 2 has state '1x'.*--labels"):
        Transitions.from_arrays(["0", "1x"], [0, 0], [0.0, 0.0], [0, 0])


def test_the_next_state_after_an_end_may_be_missing(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("state,action,reward,next_state,terminated\n0,0,1,1,0\n1,0,1,,1\n")
    assert Transitions.from_csv(path).next_state.tolist() == [1, -1]
    path.write_text("state,action,reward,next_state,terminated\n0,0,1,,0\n")
    with pytest.raises(UserError, match=r"row 1 has next_state ''"):
        Transitions.from_csv(path)


def test_truncation_ends_the_episode_but_not_the_world():
    data = Transitions.from_arrays([0, 0, 0], [0, 0, 0], [0.0] * 3, [0, 0, 0], truncated=[0, 1, 0])
    assert data.first.tolist() == [True, False, True]
    assert not data.terminated.any()
    assert data.statistics().cell_outcome.tolist() == [0]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_pieces_add_up(tmp_path, monkeypatch, suffix, rows):
    path = tmp_path / f"log.{suffix}"
    CLINIC.to_csv(path, index=False) if suffix == "csv" else CLINIC.to_parquet(path)
    whole = Transitions.from_frame(CLINIC)
    monkeypatch.setattr(reading, "PIECE", rows)
    same(LogStatistics.from_file(path), whole.statistics())
    again = Transitions.from_file(path)
    np.testing.assert_array_equal(again.first, whole.first)
    np.testing.assert_array_equal(again.next_state, whole.next_state)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.floats(-5, 5), st.integers(0, 3), st.integers(0, 2)),
             min_size=1, max_size=30),
    st.integers(1, 7),
    st.booleans(),
)  # fmt: skip
def test_any_pieces_add_up(tmp_path_factory, rows, size, episodes):
    frame = pd.DataFrame(rows, columns=["state", "action", "reward", "next_state", "episode"])
    frame["terminated"] = frame["episode"] == 2
    frame = frame if episodes else frame.drop(columns="episode")
    path = tmp_path_factory.getbasetemp() / "pieces.parquet"
    frame.to_parquet(path)
    before, reading.PIECE = reading.PIECE, size
    try:
        same(LogStatistics.from_file(path), Transitions.from_frame(frame).statistics())
    finally:
        reading.PIECE = before


def test_rows_are_counted_over_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "PIECE", 2)
    path = tmp_path / "log.csv"
    path.write_text("state,action,reward,next_state\n" + "0,0,1,0\n" * 6 + "0,0,oops,0\n")
    with pytest.raises(UserError, match=r"log.csv: row 7 has reward 'oops'"):
        LogStatistics.from_file(path)


def test_files_that_are_not_parquet(tmp_path):
    path = tmp_path / "log.parquet"
    with pytest.raises(UserError, match=r"does not exist"):
        Transitions.from_parquet(path)
    path.write_text("state,action\n")
    with pytest.raises(UserError, match=r"is not a readable Parquet file"):
        Transitions.from_parquet(path)
    CLINIC.drop(columns="reward").to_parquet(path)
    with pytest.raises(UserError, match=r"no column 'reward'"):
        Transitions.from_parquet(path)
    CLINIC.iloc[:0].to_parquet(path)
    with pytest.raises(UserError, match=r"no transitions"):
        Transitions.from_parquet(path)


def test_policies_by_label(tmp_path):
    data = Transitions.from_frame(CLINIC)
    expected = np.array([[1, 0], [0, 1], [0.5, 0.5], [0, 1], [1, 0]])
    by_name = {"bad": "treat", "mild": "wait", "s2": {"wait": 1.0}, "s10": "treat"}
    np.testing.assert_array_equal(read_policy(by_name, data), expected)
    chosen = read_policy(["treat", "wait", "wait", "wait", "treat"], data)
    np.testing.assert_array_equal(chosen[[0, 1, 3, 4]], expected[[0, 1, 3, 4]])
    np.testing.assert_array_equal(read_policy("always:wait", data)[:, 1], 1)
    save_policy(tmp_path / "policy.csv", expected, data.state_labels, data.action_labels)
    np.testing.assert_array_equal(read_policy(tmp_path / "policy.csv", data), expected)
    (tmp_path / "policy.csv").write_text("state,action,probability\nbad,sing,1\n")
    with pytest.raises(UserError, match=r"row 1 has action 'sing'"):
        read_policy(tmp_path / "policy.csv", data)
    with pytest.raises(UserError, match=r"no state 'good' in the data; the states are bad, mild"):
        read_policy({"good": "wait"}, data)


class Corridor(gymnasium.Env):
    """Five cells, the last of which ends the episode; after seven steps it is cut off."""

    observation_space = gymnasium.spaces.Discrete(5, start=1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = 1, 0
        return self.cell, {}

    def step(self, action):
        self.steps += 1
        self.cell = min(self.cell + 1, 5) if action == 1 else max(self.cell - 1, 1)
        return self.cell, float(self.cell == 5), self.cell == 5, self.steps == 7, {}


@pytest.mark.filterwarnings("ignore")
def test_minari(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    collector = minari.DataCollector(Corridor())
    generator = np.random.default_rng(0)
    rows = []
    for episode in range(6):
        state, _ = collector.reset(seed=episode)
        ended = False
        while not ended:
            action = int(generator.random() < 0.8)
            after, reward, terminated, truncated, _ = collector.step(action)
            rows.append((state - 1, action, reward, after - 1, terminated, truncated, episode))
            state, ended = after, terminated or truncated
    collector.create_dataset("bellief/corridor-v0", algorithm_name="random", eval_env=None)
    names = ["state", "action", "reward", "next_state", "terminated", "truncated", "episode"]
    expected = Transitions.from_frame(pd.DataFrame(rows, columns=names))
    assert expected.terminated.sum() not in (0, 6)
    same(LogStatistics.from_file("minari:bellief/corridor-v0"), expected.statistics())
    by_object = Transitions.from_minari(minari.load_dataset("bellief/corridor-v0"))
    np.testing.assert_array_equal(by_object.first, expected.first)
    with pytest.raises(UserError, match=r"no Minari dataset 'bellief/other-v0'.*corridor"):
        Transitions.from_minari("bellief/other-v0")


def test_minari_with_pictures():
    class Continuous:
        observation_space = gymnasium.spaces.Box(-1, 1, (3, 2))
        action_space = gymnasium.spaces.Discrete(2)

    with pytest.raises(UserError, match=r"observation space .* is Box.*one dimension"):
        Transitions.from_minari(Continuous())
