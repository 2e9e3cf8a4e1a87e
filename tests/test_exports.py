"""Files that others open: spreadsheets run nothing in them, labels come back as they were, full disks are named."""

import io
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellief import files
from bellief.cli.failures import describe
from bellief.errors import UserError
from bellief.files import neutralise, restore, to_csv
from bellief.policies import save_policy

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\r=x", '=HYPERLINK("x")']
NUMBERS = ["-1", "+2.5", "-1e-5", "3", ".5", "-.5"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_neutralised(text):
    assert neutralise(text) == f"'{text}"
    assert restore(neutralise(text)) == text


@pytest.mark.parametrize("text", [*NUMBERS, "left", "", "'", "'quoted'", "a=b"])
def test_others_are_left_alone(text):
    assert neutralise(text) == text
    assert restore(text) == text


@given(st.text(alphabet="'=+-@\t\r1.ex ", max_size=8))
def test_every_text_comes_back(text):
    assert restore(neutralise(text)) == text
    assert neutralise(text)[:1] not in set("=+-@\t\r") or files._NUMBER.fullmatch(text)


def test_numbers_stay_numbers_and_names_of_columns_are_texts():
    frame = pd.DataFrame({"=label": ["=x", "-y", "-1", None], "number": [-1.5, 2.0, 3.0, -4.0], "count": [-1, 2, 3, 4]})
    content = to_csv(frame).decode()
    assert content.splitlines()[0] == "'=label,number,count"
    back = pd.read_csv(io.StringIO(content))
    assert back["number"].tolist() == [-1.5, 2.0, 3.0, -4.0]
    assert back["count"].tolist() == [-1, 2, 3, 4]
    assert back["'=label"].tolist()[:3] == ["'=x", "'-y", "-1"]
    assert frame.columns[0] == "=label"  # the caller's frame is not changed


def test_a_policy_with_hostile_labels_comes_back(tmp_path):
    from bellief.evaluation.policy_forms import read_policy
    from bellief.logs import Transitions

    states, actions = ("=x", "'=x", "-1"), ("@go", "+1")
    policy = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
    save_policy(tmp_path / "policy.csv", policy, states, actions)
    first = [line[:1] for line in (tmp_path / "policy.csv").read_text().splitlines()[1:]]
    assert set(first) <= {"'", "-"}
    rewards = np.zeros(3)
    data = Transitions.from_arrays(states, actions[:1] * 3, rewards, states, states=states, actions=actions)
    np.testing.assert_array_equal(read_policy(str(tmp_path / "policy.csv"), data), policy)


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        files.write_whole(tmp_path / "curves.csv", b"x")
    assert caught.value.filename == str(tmp_path / "curves.csv")


def test_messages_are_short():
    label = "x" * 10_000_000
    assert len(str(UserError(f"There is no state '{label}'; correct it."))) <= 2000
    sentence, code = describe(RuntimeError(label))
    assert (len(sentence) <= 2000, code) == (True, 1)
    assert str(UserError("a\nb")) == "a b"
