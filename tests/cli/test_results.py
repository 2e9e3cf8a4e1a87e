"""What the commands print and write when all goes well."""

import json

import numpy as np
import pytest

import bellief
from bellief.logs import Transitions
from cli.conftest import HEADER, ROWS, RUN

SUMMARY = {"mean", "sd", "low", "high"}
RUN_SUMMARY = {"mean", "se", "p05", "p95"}


def number(text):
    raise AssertionError(f"{text} is not JSON")


def parse(text):
    """Strict JSON: Python alone would also read NaN and Infinity."""
    return json.loads(text, parse_constant=number)


def test_evaluate_json(call, data):
    result = call("evaluate", data, "--json", "--discount", "0.9", "--level", "0.8", "--seed", "4")
    assert (result.code, result.err) == (0, "")
    document = parse(result.out)
    assert set(document) == {
        "method", "states", "actions", "transitions", "discount", "level", "start", "monte_carlo_error", "per_state",
        "ends", "diagnostics", "variance",
    }  # fmt: skip
    assert set(document["start"]) == SUMMARY
    assert [row["state"] for row in document["per_state"]] == [0, 1]
    assert all(set(row) == SUMMARY | {"state"} for row in document["per_state"])
    expected = bellief.evaluate(Transitions.from_csv(data), discount=0.9, level=0.8, seed=4)
    assert {name: part for name, part in document.items() if name != "variance"} == expected.to_dict()


def test_evaluate_without_a_variance_has_no_sd(call, table):
    log = table(HEADER + "0,0,1.0,1\n1,1,0.5,0\n")
    document = parse(call("evaluate", log, "--json", "--prior", "paper").out)
    assert document["start"]["sd"] is None
    assert document["variance"]["start"]["epistemic"] is None
    assert [row["sd"] for row in document["per_state"]] == [None, None]
    assert document["start"]["low"] < document["start"]["mean"] < document["start"]["high"]
    assert document["diagnostics"]["unvisited_pairs"] == 2
    shown = call("evaluate", log, "--prior", "paper").out
    assert "none" in shown
    assert "no finite variance" in shown
    assert "never tried: (0, 1), (1, 0)" in shown


def test_evaluate_table(call, data):
    result = call("evaluate", data, "--method", "mean-mdp", "--quiet")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    posterior = bellief.evaluate(Transitions.from_csv(data), method="mean-mdp")
    first = next(line for line in lines if line.split()[:1] == ["start"])
    assert first.split()[1] == f"{posterior.start_summary()['mean']:.5g}"
    for state, value in enumerate(posterior.mean):
        assert any(line.split()[:2] == [str(state), f"{value:.5g}"] for line in lines)
    assert "one number and no uncertainty" in result.out


def test_evaluate_table_of_many_states_is_cut(call, table):
    rows = "".join(f"{state},0,1,{(state + 1) % 33}\n" for state in range(33))
    shown = call("evaluate", table(HEADER + rows), "--method", "mean-mdp").out
    states = [int(line.split()[0]) for line in shown.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    assert [state for state in states if state < 33][:20] == list(range(20))
    assert "and 13 more states" in shown


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + (HEADER + ROWS).encode(),
        (HEADER + ROWS).replace("\n", "\r\n").encode(),
        (HEADER + ROWS).replace(",", " , ").encode(),
        "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in (HEADER + ROWS).split()).encode(),
        (HEADER + ROWS).replace("\n", ",note\n").replace("next_state,note", "next_state,remark").encode(),
        (HEADER + ROWS.replace("\n", "\n\n")).encode(),
    ],
    ids=["byte order mark", "carriage returns", "spaces", "quotes", "another column", "blank lines"],
)
def test_ways_to_write_the_same_table(call, data, table, content):
    plain = call("evaluate", data, "--json", "--method", "mean-mdp")
    other = call("evaluate", table(content, "other.csv"), "--json", "--method", "mean-mdp")
    assert plain.code == other.code == 0, other.err
    assert plain.out == other.out


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "PNG"])
def test_evaluate_plot(call, data, tmp_path, suffix):
    picture = tmp_path / f"values.{suffix}"
    picture.write_text("an older one")
    result = call("evaluate", data, "--method", "mean-mdp", "--plot", picture)
    assert (result.code, result.err) == (0, "")
    beginning = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix.lower()]
    assert picture.read_bytes().startswith(beginning)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", f"values.{suffix}"]


def test_run_json(call):
    result = call(*RUN, "--runs", "2", "--seed", "5", "--json", "--set", "env.slip=0.1")
    assert (result.code, result.err) == (0, "")
    document = parse(result.out)
    assert set(document) == {
        "env", "agent", "steps", "runs", "seed", "settings", "average_reward", "final_average_reward",
        "final_policy_gain", "updates", "seconds",
    }  # fmt: skip
    for name in ("average_reward", "final_average_reward", "final_policy_gain"):
        assert set(document[name]) == RUN_SUMMARY
    assert (document["env"], document["agent"], document["steps"], document["runs"]) == ("nchain", "bbi-paper", 30, 2)
    assert document["updates"] == 7  # at steps 1, 3, 6, 10, 15, 21, 28
    assert document["settings"]["horizon"] == 3
    settings = {"mdps": 2, "horizon": 3, "rule": "optimistic"}
    expected = bellief.run(
        "nchain", "bbi-paper", steps=30, runs=2, seed=5, settings=settings, env_settings={"slip": 0.1}
    ).to_dict()
    assert {**document, "seconds": 0} == {**expected, "seconds": 0}


def test_a_single_run_has_no_standard_error(call):
    assert parse(call(*RUN, "--runs", "1", "--json").out)["average_reward"]["se"] is None
    assert "none" in call(*RUN, "--runs", "1").out


def test_run_saves_and_evaluate_reads_the_policy(call, tmp_path, table):
    out = tmp_path / "made" / "here"
    result = call(*RUN, "--runs", "2", "--out", out)
    assert (result.code, result.err) == (0, "")
    assert f"Saved in {out}" in result.out
    saved = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert saved == [
        "curve.png", "curves.csv", "plans.csv", "policies/run-000.csv", "policies/run-001.csv", "policy.csv",
        "result.json",
    ]  # fmt: skip
    assert [path.name for path in out.parent.iterdir()] == ["here"]
    assert parse((out / "result.json").read_text())["runs"] == 2
    log = table(HEADER + "".join(f"{state},{action},1,{state}\n" for state in range(5) for action in range(2)))
    evaluated = call("evaluate", log, "--policy", out / "policy.csv", "--method", "mean-mdp", "--json")
    assert evaluated.code == 0, evaluated.err
    assert np.isfinite(parse(evaluated.out)["start"]["mean"])


def test_results_are_shown_even_where_they_cannot_be_saved(call, tmp_path, monkeypatch):
    def full(self, *arguments, **options):
        raise OSError(28, "No space left on device", "curves.csv")

    monkeypatch.setattr("pandas.DataFrame.to_csv", full)
    result = call(*RUN, "--runs", "2", "--out", tmp_path / "new", "--json")
    assert result.code == 1
    assert parse(result.out)["runs"] == 2
    assert result.err.count("\n") == 1
    assert "No space left on device" in result.err
    assert list(tmp_path.iterdir()) == []


def test_run_plot(call, tmp_path):
    assert call(*RUN, "--runs", "2", "--plot", tmp_path / "curve.svg").code == 0
    assert (tmp_path / "curve.svg").read_bytes().startswith(b"<?xml")
