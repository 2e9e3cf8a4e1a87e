"""Policies from names, files and arrays."""

import os
import threading

import numpy as np
import pytest

from bellief.errors import UserError
from bellief.evaluation.policy_forms import read_policy
from bellief.logs import Transitions
from bellief.policies import save_policy

DATA = Transitions.from_arrays([0, 0, 1], [0, 1, 1], [0.0] * 3, [1, 0, 0], states=3)


def test_names():
    np.testing.assert_allclose(read_policy("uniform", DATA), np.full((3, 2), 0.5))
    np.testing.assert_allclose(read_policy("behaviour", DATA), [[0.5, 0.5], [0, 1], [0.5, 0.5]])


def test_one_action_per_state():
    np.testing.assert_array_equal(read_policy([1, 0, 1], DATA), [[0, 1], [1, 0], [0, 1]])


def test_saved_policies_come_back(tmp_path):
    policy = np.array([[0.1, 0.9], [1.0, 0.0], [1 / 3, 2 / 3]])
    save_policy(tmp_path / "policy.csv", policy)
    np.testing.assert_array_equal(read_policy(tmp_path / "policy.csv", DATA), policy)
    np.testing.assert_array_equal(read_policy(str(tmp_path / "policy.csv"), DATA), policy)


def test_pairs_left_out_have_probability_zero(tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text("probability,state,action\n1,2,0\n1,0,1\n1,1,1\n")
    np.testing.assert_array_equal(read_policy(path, DATA), [[0, 1], [0, 1], [1, 0]])


def test_rounded_probabilities_are_accepted_and_wrong_ones_are_not(tmp_path):
    path = tmp_path / "policy.csv"
    rows = "state,action,probability\n0,0,{}\n0,1,0.6666667\n1,0,1\n2,0,1\n"
    path.write_text(rows.format("0.3333333"))
    read_policy(path, DATA)
    path.write_text(rows.format("0.333"))
    with pytest.raises(UserError, match=r"state 0 sum to 0\.999667"):
        read_policy(path, DATA)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_devices_are_no_policies(device):
    with pytest.raises(UserError, match="is a device"):
        read_policy(device, Transitions.from_arrays([0, 1], [0, 1], [0.0, 1.0], [1, 0]))


def test_a_policy_from_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = "state,action,probability\n0,1,1\n1,0,1\n"
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(text), daemon=True)
    writer.start()
    data = Transitions.from_arrays([0, 1], [0, 1], [0.0, 1.0], [1, 0])
    assert read_policy(tmp_path / "pipe", data).tolist() == [[0, 1], [1, 0]]
    writer.join(timeout=60)
