"""check, sensitivity and certify on the command line."""

import json

import numpy as np
import pytest

from bellief.decisions import check, variance_split
from bellief.logs import Tally, Transitions
from cli.conftest import HEADER, assert_one_sentence


@pytest.fixture
def log(table):
    """Sixty steps of two states and two actions."""
    rng = np.random.default_rng(0)
    rows = "".join(f"{s},{a},{s + rng.normal():.3f},{t}\n" for s, a, t in rng.integers(0, 2, (60, 3)))
    return table(HEADER + rows, "log.csv")


def test_check(call, log):
    result = call("check", log, "--permutations", "99", "--json")
    assert result.code == 0
    document = json.loads(result.out)
    assert document.pop("columns") == {name: name for name in HEADER.strip().split(",")}
    assert document.pop("unused_columns") == []
    assert document == check(Transitions.from_csv(log), permutations=99).to_dict()
    shown = call("check", log, "--permutations", "99")
    assert "state: column 'state'" in shown.out
    assert "next state depends on state and action only: p = " in shown.out
    assert_one_sentence(call("check", log, "--permutations", "5"), "--permutations must be at least 99")
    assert_one_sentence(call("check", "nowhere.csv"), "nowhere.csv does not exist")


@pytest.mark.slow
def test_sensitivity(call, log, monkeypatch):
    grid = {"logged": "logged", "sparse": "sparse"}
    monkeypatch.setattr("bellief.decisions.sensitivity.default_grid", lambda data: grid)
    result = call("sensitivity", log, "--discount", "0.5", "--threshold", "-50", "--draws", "50", "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert document["question"] == "above -50"
    assert [row["prior"] for row in document["priors"]] == ["logged", "sparse"]
    assert {row["verdict"] for row in document["priors"]} == {"yes"}
    assert document["flips"] is False
    shown = call("sensitivity", log, "--discount", "0.5", "--threshold", "-50", "--draws", "50")
    assert "lead to the same conclusion" in shown.out or "Note:" in shown.out


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (("--threshold", "x"), "--threshold needs a number, not 'x'"),
        (("--threshold", "1", "--against", "uniform"), "Ask one question"),
        (("--discount", "0"), "--discount must lie in (0, 1]"),
    ],
)
def test_sensitivity_mistakes(call, log, options, fragment):
    assert_one_sentence(call("sensitivity", log, *options), fragment)


def test_certify_says_which_logs_it_does_not_count(call):
    size = ("--states", "3", "--transitions", "20", "--ends", "--simulations", "20", "--quiet")
    document = json.loads(call("certify", *size, "--discount", "1", "--json").out)
    shares = document["refused"], document["refused_with_estimated_scale"]
    assert min(shares) > 0
    shown = call("certify", *size, "--discount", "1")
    assert f"Not counted: {shares[0]:.0%} ({shares[1]:.0%} with the scale from the log) of the logs drawn" in " ".join(
        shown.out.split()
    )
    assert "Not counted" not in call("certify", *size, "--discount", "0.9").out


@pytest.mark.slow
def test_certify(call):
    options = ("--states", "2", "--transitions", "10", "--simulations", "20")
    result = call("certify", *options, "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert [row["level"] for row in document["levels"]] == [0.5, 0.8, 0.9, 0.95]
    assert document["levels"][2]["error"] == pytest.approx(np.sqrt(0.9 * 0.1 / 20))
    assert document["calibrated"] is True
    shown = call("certify", *options)
    assert "holds the truth" in shown.out
    assert "Calibrated" in shown.out


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (("--states", "0", "--transitions", "10"), "--states must be at least 1"),
        (("--states", "2", "--transitions", "5", "--prior", "magic"), "no prior 'magic'"),
        (("--states", "2", "--transitions", "5", "--discount", "1"), "With discount 1"),
        (("--states", "2", "--transitions", "5", "--simulations", "3"), "--simulations must be at least 20"),
    ],
)
def test_certify_mistakes(call, options, fragment):
    assert_one_sentence(call("certify", *options), fragment)


def test_evaluate_splits_the_variance(call, log):
    document = json.loads(call("evaluate", log, "--discount", "0.5", "--draws", "50", "--json").out)
    expected = variance_split(Tally.from_file(log), discount=0.5, draws=50).to_dict()
    assert document["variance"] == expected
    with_horizon = json.loads(call("evaluate", log, "--horizon", "2", "--draws", "50", "--json").out)
    assert with_horizon["variance"] is None


@pytest.mark.slow
@pytest.mark.parametrize("method", ["method2", "method3"])
def test_methods_of_the_paper(call, log, method):
    result = call("evaluate", log, "--discount", "0.5", "--method", method, "--mdps", "50", "--draws", "20", "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert document["method"] == method
    assert document["diagnostics"]["effective_sample_sizes"]["posterior_draws"] >= 1
    refused = call("evaluate", log, "--method", method, "--horizon", "3")
    assert_one_sentence(refused, f"{method} finds the infinite-horizon value directly")
