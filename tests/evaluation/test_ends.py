"""States in which episodes only ever end: worth nothing, never listed, never asked for."""

import json

import numpy as np
import pandas as pd
import pytest

import bellief
from bellief import Transitions, UserError
from bellief.evaluation.problem import prepare
from bellief.evaluation.sampled import SampledMDPs
from bellief.policies import save_policy

LABELS = ("ill", "well", "dead", "home")


@pytest.fixture
def log():
    """Patients are ill or well, go home or die; nobody acts at home."""
    rng = np.random.default_rng(2)
    count = 200
    state, action = rng.integers(0, 2, count), rng.integers(0, 2, count)
    ended = rng.random(count) < 0.4
    following = np.where(ended, 2 + (rng.random(count) < 0.5 + 0.2 * action), rng.integers(0, 2, count))
    reward = np.where(ended & (following == 3), 1.0, -0.1)
    names, actions = np.array(LABELS), np.array(["a", "b"])
    columns = {"state": names[state], "action": actions[action], "reward": reward, "next_state": names[following]}
    frame = pd.DataFrame(columns | {"terminated": ended})
    return bellief.as_transitions(frame, states=list(LABELS), actions=["a", "b"])


@pytest.mark.parametrize("options", [{}, {"prior": "logged-0.1"}, {"method": "bootstrap"}, {"method": "mean-mdp"}])
def test_ends_are_worth_nothing_and_left_out(log, options, tmp_path):
    value = bellief.evaluate(log, discount=0.9, draws=30, **options)
    assert (value.samples[:, 2:] == 0).all()
    document = value.to_dict()
    assert [row["state"] for row in document["per_state"]] == ["ill", "well"]
    assert document["ends"] == ["dead", "home"]
    assert value.to_pandas().index.tolist() == ["ill", "well"]
    assert not any(name in said for name in ("dead", "home") for said in value.explain())
    assert document["diagnostics"]["unvisited_pairs"] == 0
    again = bellief.ValuePosterior.load(value.save(tmp_path / "value.npz"))
    assert again.to_dict() == document
    shown = [label.get_text() for label in value.plot().get_yticklabels()]
    assert shown == ["well", "ill"]
    card = value._repr_html_()
    assert "ill" in card
    assert "home" not in card


def test_ends_for_other_libraries(log):
    arviz = pytest.importorskip("arviz")
    del arviz
    found = bellief.evaluate(log, discount=0.9, draws=30).to_arviz()
    assert found["posterior"]["value"].coords["state"].values.tolist() == ["ill", "well"]


def test_no_sampled_mdp_goes_on_where_episodes_end(log):
    """The base measure leaves such outcomes out, so that a state's made-up actions change no other value."""
    problem = prepare(log, 0.9)
    base = problem.rows.base
    assert base is not None
    assert (base.share[2:4] == 0).all()
    policies = np.zeros((2, 4, 2))
    policies[:, :2] = 0.5
    policies[0, 2:, 0] = policies[1, 2:, 1] = 1
    found = SampledMDPs(problem, 0, 50).values(policies)
    np.testing.assert_allclose(found[:, 0, :2], found[:, 1, :2], rtol=1e-12)


def test_policies_need_say_nothing_about_ends(log, tmp_path):
    whole = bellief.evaluate(log, {"ill": "a", "well": "b"}, 0.9, draws=10).samples
    table = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(bellief.evaluate(log, table, 0.9, draws=10).samples, whole)
    save_policy(tmp_path / "policy.csv", table, LABELS, ("a", "b"))
    np.testing.assert_array_equal(bellief.evaluate(log, str(tmp_path / "policy.csv"), 0.9, draws=10).samples, whole)


def test_decisions_leave_ends_out(log):
    better = bellief.improve(log, 0.9, draws=30, mdps=10)
    assert better.to_pandas().index.tolist() == ["ill", "well"]
    assert [row["state"] for row in better.to_dict()["policy"]] == ["ill", "well"]
    assert "home" not in better._repr_html_()
    plan = bellief.collect_next(log, discount=0.9, draws=20)
    assert {pair["state"] for pair in plan.to_dict()["pairs"]} == {"ill", "well"}
    compared = bellief.compare(log, ["uniform", "behaviour"], 0.9, draws=30, simulations=0)
    assert not any("home" in text for texts in compared.warnings.values() for text in texts)
    split = bellief.variance_split(log, discount=0.9, draws=20)
    assert [row["state"] for row in split.to_dict()["per_state"]] == ["ill", "well"]
    assert (split.total[2:] == 0).all()
    json.dumps([better.to_dict(), plan.to_dict(), compared.to_dict(), split.to_dict()], allow_nan=False)


def test_no_episode_starts_where_it_ends(log):
    with pytest.raises(UserError, match="only ever end in state home"):
        bellief.evaluate(log, start="home")


def test_a_reward_range_holds_for_the_split_and_for_collecting():
    """One reward near the top of its range: its chance, and what more visits would tell, are bounded by the range."""
    data = Transitions.from_arrays([0, 0, 1], [0, 0, 0], [0.0, 1.0, 1.0], [0, 1, 0])
    free, kept = (
        bellief.variance_split(data, discount=0.5, draws=400, reward_range=limits) for limits in (None, (0, 1))
    )
    # Returns lie between 0 and 2, so that no part of their variance exceeds 1.
    assert free.total.max() > 1
    assert kept.total.max() <= 1
    assert kept.epistemic.min() > 0
    wide, narrow = (
        bellief.collect_next(data, discount=0.5, draws=400, reward_range=limits) for limits in (None, (0, 1))
    )
    assert narrow.variance is not None
    assert wide.variance is not None
    assert narrow.variance < wide.variance
    assert narrow.variance <= 1
