"""compare, improve and collect on the command line; labels; pages."""

import json
import os
import re

import numpy as np
import pytest

import bellief
from bellief.logs import LogStatistics
from cli.conftest import assert_one_sentence
from plots.test_cards import Balance

NASTY = "<script>alert(1)</script>&"
ROWS = [
    ("mild", "wait", "-1.0", "mild", "0"),
    ("mild", "wait", "-1.2", "bad", "0"),
    ("bad", "treat", "-6.0", "mild", "0"),
    ("mild", "treat", "-3.1", "mild", "0"),
    ("mild", "treat", "-3.0", "cured", "1"),
    ("bad", "wait", "-4.0", "bad", "0"),
    ("bad", "treat", "-6.2", "cured", "1"),
]


@pytest.fixture
def clinic(table):
    return table(clinic_text("bad"))


def clinic_text(bad):
    lines = [",".join(row) for row in ROWS * 3]
    return ("state,action,reward,next_state,terminated\n" + "\n".join(lines) + "\n").replace("bad", bad)


def test_evaluate_with_labels(call, clinic, tmp_path):
    saved = tmp_path / "value.npz"
    arguments = ["--policy", "always:treat", "--start", "bad", "--method", "mean-mdp", "--json", "--save", saved]
    document = json.loads(call("evaluate", clinic, *arguments).out)
    assert [row["state"] for row in document["per_state"]] == ["bad", "mild"]
    assert document["ends"] == ["cured"]
    log = LogStatistics.from_file(clinic)
    expected = bellief.evaluate(log, "always:treat", method="mean-mdp", start="bad")
    assert document == expected.to_dict() | {"variance": None}
    assert bellief.ValuePosterior.load(saved).to_dict() == expected.to_dict()
    shown = call("evaluate", clinic, "--method", "mean-mdp", "--policy", "always:treat")
    assert any(line.split()[:1] == ["mild"] for line in shown.out.splitlines())


def test_numbers_as_labels(call, table):
    log = table("state,action,reward,next_state\n1001,7,1,2002\n2002,7,0,1001\n")
    document = json.loads(call("evaluate", log, "--labels", "--method", "mean-mdp", "--json").out)
    assert [row["state"] for row in document["per_state"]] == ["1001", "2002"]
    announced = ["--states", "2002,1001,5", "--method", "mean-mdp", "--json"]
    document = json.loads(call("evaluate", log, *announced, "--actions", "7,8").out)
    assert [row["state"] for row in document["per_state"]] == ["2002", "1001", "5"]


def test_compare(call, clinic):
    arguments = [
        "compare",
        clinic,
        "always:treat",
        "always:wait",
        "behaviour",
        "--discount",
        "0.9",
        "--simulations",
        "4",
    ]
    result = call(*arguments, "--json")
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    expected = bellief.compare(
        LogStatistics.from_file(clinic), ["always:treat", "always:wait", "behaviour"], 0.9, simulations=4
    )
    assert document == expected.to_dict()
    shown = call(*arguments).out
    assert "is worth more than" in shown
    assert f"{expected.prob_best[0]:.1%}" in shown


def test_improve_writes_a_policy_that_evaluate_reads(call, clinic, tmp_path):
    out = tmp_path / "policy.csv"
    result = call("improve", clinic, "--discount", "0.9", "--out", out, "--json", "--mdps", "30", "--draws", "50",
                  "--mode", "free")  # fmt: skip
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    chosen = {row["state"]: row["action"] for row in document["policy"]}
    assert out.read_text().splitlines()[1:] == [f"{state},{action},1.0" for state, action in chosen.items()]
    again = call("evaluate", clinic, "--policy", out, "--method", "mean-mdp", "--discount", "0.9", "--json")
    assert np.isfinite(json.loads(again.out)["start"]["mean"])
    assert "more than what the log did with probability" in call("improve", clinic, "--mdps", "5", "--draws", "9").out


def test_collect(call, clinic):
    arguments = ["collect", clinic, "--policy", "always:treat", "--discount", "0.9", "--top", "1", "--draws", "60"]
    document = json.loads(call(*arguments, "--json").out)
    (pair,) = document["pairs"]
    expected = bellief.collect_next(LogStatistics.from_file(clinic), "always:treat", 0.9, draws=60)
    assert document == expected.to_dict(1)
    assert pair["state"] in call(*arguments).out


COMMANDS = {
    "evaluate": ["--method", "mean-mdp"],
    "compare": ["always:treat", "always:wait", "--simulations", "3", "--draws", "50"],
    "improve": ["--mdps", "10", "--draws", "30"],
    "collect": ["--draws", "30"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_pages_and_pictures(call, table, tmp_path, command):
    log = table(clinic_text(NASTY))
    page, picture = tmp_path / "page.html", tmp_path / "picture.png"
    result = call(command, log, *COMMANDS[command], "--discount", "0.9", "--report", page, "--plot", picture)
    assert (result.code, result.err) == (0, "")
    assert picture.read_bytes().startswith(b"\x89PNG")
    content = page.read_text()
    parser = Balance()
    parser.handle_starttag = lambda tag, attributes: parser.names.add(tag)
    parser.handle_endtag = lambda tag: None
    parser.feed(content)
    assert "script" not in parser.names
    assert NASTY in parser.text
    # Nothing is loaded from anywhere: pictures are in the page, and there are no other addresses.
    addresses = re.findall(r'(?:src|srcset|href)="([^"]*)"', content)
    assert addresses
    assert all(address.startswith("data:image/svg+xml;base64,") for address in addresses)
    assert "url(" not in content


MISTAKES = {
    "one policy": (["compare", "DATA", "uniform"], ["two or more policies"]),
    "no policy": (["compare", "DATA"], ["POLICY"]),
    "unknown policy": (["compare", "DATA", "uniform", "best"], ["no policy 'best'"]),
    "unknown action": (["compare", "DATA", "uniform", "always:sing"], ["no action 'sing'", "treat, wait"]),
    "unknown state": (["evaluate", "DATA", "--start", "dead"], ["no state 'dead'", "bad, cured, mild"]),
    "target": (["compare", "DATA", "uniform", "behaviour", "--target", "0.2"], ["--target must lie in (0.5, 1)"]),
    "objective": (["improve", "DATA", "--objective", "max"], ["no objective 'max'"]),
    "tail": (["improve", "DATA", "--tail", "1"], ["--tail must lie in (0, 1)"]),
    "scale": (["evaluate", "DATA", "--reward-scale", "big"], ["--reward-scale needs a number, not 'big'"]),
    "page": (["collect", "DATA", "--report", "page.pdf"], ["--report needs a file name that ends in .html"]),
    "saving": (["evaluate", "DATA", "--save", "x.pkl", "--method", "mean-mdp"], ["ends in .npz"]),
    "states": (["evaluate", "DATA", "--states", "bad,good"], ["row 1 has state 'mild'"]),
    "support": (["evaluate", "DATA", "--support", "none.csv"], ["none.csv does not exist"]),
    "minari": (["evaluate", "minari:no/such-v0"], ["no Minari dataset 'no/such-v0'"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(call, clinic, mistake, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    before = sorted(tmp_path.iterdir())
    arguments, fragments = MISTAKES[mistake]
    assert_one_sentence(call(*(clinic if argument == "DATA" else argument for argument in arguments)), *fragments)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_help(call, command):
    result = call(command, "--help")
    assert result.code == 0
    for option in ("--json", "--report", "--labels", "--prior", "--discount"):
        assert option in result.out


def test_tally_of_standard_input(call, clinic):
    before = os.dup(0)
    with open(clinic) as file:
        os.dup2(file.fileno(), 0)
    try:
        piped = call("tally", "-", "--json")
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert piped.code == 0
    assert piped.out == call("tally", clinic, "--json").out
