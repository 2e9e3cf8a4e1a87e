"""What the page is told is what the library says, and the command beside it is the right one."""

import json
import shlex
import subprocess
import sys

import numpy as np
import pytest

import bellief
from bellief.app import answers, opened_log
from bellief.app.questions import Settings, command, read_policy_name, read_settings, snippet
from bellief.errors import UserError

PLAIN = {"discount": 0.9, "level": 0.9, "horizon": None, "prior_weight": 0.1, "reward_range": None}


@pytest.fixture(scope="module")
def clinic():
    return opened_log.open_log(*opened_log.example_source("clinic"), {})


def test_a_value_is_that_of_evaluate(clinic):
    settings = Settings(0.9, 0.8, 12, 0.5)
    answer = answers.ask_value(clinic, ("always:pill", "always:pill"), settings)
    expected = bellief.evaluate("example:clinic", "always:pill", 0.9, level=0.8, horizon=12, prior="logged:0.5")
    assert answer.document["start"] == expected.start_summary()
    assert [row["state"] for row in answer.document["states"]] == [
        "mild",
        "moderate",
        "severe",
    ]  # nobody acts when well
    low, _ = expected.interval()
    assert answer.document["states"][1]["low"] == low[1]
    assert answer.command == (
        "bellief evaluate example:clinic --policy always:pill --discount 0.9 --level 0.8 --horizon 12 "
        "--prior logged:0.5"
    )


def test_a_reward_range_is_that_of_evaluate(clinic, tmp_path):
    settings = Settings(0.9, reward_range=(-20.0, 1.5))
    answer = answers.ask_value(clinic, ("uniform", "uniform"), settings)
    expected = bellief.evaluate("example:clinic", "uniform", 0.9, reward_range=(-20, 1.5))
    assert answer.document["start"] == expected.start_summary()
    words = shlex.split(answer.command)
    assert words[-3:] == ["--reward-range", "-20", "1.5"]
    done = subprocess.run(
        [sys.executable, "-m", *words, "--json", "--quiet"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["start"] == expected.start_summary()
    with pytest.raises(UserError, match="outside the range"):
        answers.ask_value(clinic, ("uniform", "uniform"), Settings(0.9, reward_range=(-1.0, 1.5)))


def test_the_python_that_is_shown_runs(clinic, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = Settings(0.9, 0.8, None, 0.5)
    policy = ("behaviour", "behaviour")
    asked = [
        answers.ask_value(clinic, policy, settings),
        answers.ask_collect(clinic, policy, settings),
        answers.ask_compare(clinic, [policy, ("uniform", "uniform")], settings, 0.9),
        answers.ask_improve(clinic, settings, "quantile"),
    ]
    for answer in asked:
        names = {}
        exec(answer.document["python"], names)
        assert type(names["answer"]) is type(answer.result)
        if hasattr(answer.result, "samples"):
            np.testing.assert_array_equal(names["answer"].samples, answer.result.samples)
    capsys.readouterr()


@pytest.mark.parametrize("kind", ["collect", "compare", "improve"])
def test_the_commands_that_are_shown_run(clinic, kind, tmp_path):
    settings, policy = Settings(0.9, 0.8, None, 0.5), ("behaviour", "behaviour")
    ask = {
        "collect": lambda: answers.ask_collect(clinic, policy, settings),
        "compare": lambda: answers.ask_compare(clinic, [policy, ("always:pill", "always:pill")], settings, 0.9),
        "improve": lambda: answers.ask_improve(clinic, settings, "cvar"),
    }
    words = shlex.split(ask[kind]().command)
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_one_state_shows_what_was_tried(clinic):
    answer = answers.ask_value(clinic, ("behaviour", "behaviour"), Settings(0.95))
    shown = answers.show_state(clinic, answer.result, "behaviour", 0)
    tally = clinic.tally
    assert [pair["seen"] for pair in shown["pairs"]] == tally.visits()[0].tolist()
    assert sum(pair["share"] for pair in shown["pairs"]) == pytest.approx(1)
    rows = bellief.as_transitions("example:clinic")
    taken = (rows.state == 0) & (rows.action == 0)
    assert shown["pairs"][0]["reward"] == pytest.approx(rows.reward[taken].mean())
    assert sum(one["times"] for one in shown["pairs"][0]["leads_to"]) == taken.sum()


def test_a_density_has_its_range_and_a_point_is_a_spike():
    drawn = answers.curve(np.random.default_rng(0).normal(size=1000))
    assert max(drawn["y"]) == 1
    assert drawn["x"] == sorted(drawn["x"])
    spike = answers.curve(np.full(10, 3.0))
    assert spike["x"][2] == 3
    assert max(spike["y"]) == 1


WRONG = {
    "discount": (0, 1.1, "x", True, float("nan"), None),
    "level": (0, 1, None),
    "horizon": (0, 1e9, "5"),
    "prior_weight": (0, -1, float("inf")),
    "reward_range": ([1], ["a", 2], 3),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_settings_that_mean_nothing_are_refused(name, value):
    with pytest.raises(UserError):
        read_settings(PLAIN | {name: value})


def test_settings_are_read():
    assert read_settings(PLAIN | {"horizon": 5, "reward_range": [-1, 2]}) == Settings(0.9, 0.9, 5, 0.1, (-1.0, 2.0))
    assert read_settings(PLAIN).options("level", "horizon", "prior", "reward_range") == {}


def test_words_of_a_command_are_quoted(clinic):
    odd = opened_log.OpenedLog(clinic.path, "my log;rm -rf $HOME.csv", {"state": "the state"}, clinic.tally)
    text = command("evaluate", odd, [], {"policy": "always:it's", "reward_range": (-1.5, 2.0)})
    assert shlex.split(text) == [
        "bellief", "evaluate", "my log;rm -rf $HOME.csv", "--columns", "state=the state", "--policy", "always:it's",
        "--reward-range", "-1.5", "2",
    ]  # fmt: skip
    assert "columns={'state': 'the state'}" in snippet("evaluate", odd, ["uniform", 0.9], {}, "")


@pytest.mark.parametrize("name", ["/etc/passwd", "saved:x", "", "always:nothing", "behaviour.csv"])
def test_only_policies_of_the_page_are_known(clinic, name):
    with pytest.raises(UserError):
        read_policy_name(name, clinic, {"mine": np.eye(3)})


def test_a_log_of_vectors_is_sent_to_the_command_line(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_text("state_heat,action,reward,next_state_heat\n0.5,0,1,0.25\n")
    with pytest.raises(UserError, match="the states of this log are vectors"):
        opened_log.open_log(path, "plant.csv", {})


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_rows_around_a_place_are_shown(tmp_path, kind):
    import pandas as pd

    frame = pd.DataFrame({"state": range(100), "action": 0, "reward": 1.0, "next_state": 0})
    path = tmp_path / f"log.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        path.write_text(frame.to_csv(index=False) if kind == "csv" else frame.to_json(orient="records", lines=True))
    shown = opened_log.preview(path, 97)
    assert [row[0] for row in shown["preview"]] == ["97", "98", "99"]
    assert shown["columns"] == ["state", "action", "reward", "next_state"]
