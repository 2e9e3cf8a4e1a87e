"""Comparing agents: the same random numbers for all, differences run by run, regret against the exact optimum."""

import numpy as np
import pytest

import bellief
from bellief.errors import UserError
from bellief.experiments.compare import best_average, parse_agent

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def comparison():
    return bellief.compare_agents("doubleloop", ["q-learning", "oracle", "wild=q-learning:epsilon=1.0"], 200, 3)


def test_document(comparison):
    document = comparison.to_dict()
    assert document["baseline"] == "q-learning"
    assert document["optimum"] == pytest.approx(0.4)
    labels = [entry["agent"] for entry in document["agents"]]
    assert labels == ["q-learning", "oracle", "wild"]
    assert "difference" not in document["agents"][0]
    oracle = document["agents"][1]
    first, second = comparison.results["q-learning"], comparison.results["oracle"]
    expected = np.mean(second.final_average_reward - first.final_average_reward)
    assert oracle["difference"]["value"] == pytest.approx(expected)
    assert oracle["regret"]["value"] == pytest.approx(0.4 - second.average_reward.mean())


def test_table_and_picture(comparison):
    table = comparison.to_pandas()
    assert list(table.index) == ["q-learning", "oracle", "wild"]
    assert {"regret", "regret_low", "regret_high"} <= set(table.columns)
    legend = [text.get_text() for text in comparison.plot().get_legend().get_texts()]
    assert {"q-learning", "oracle", "wild"} <= set(legend)


@pytest.mark.parametrize(
    ("name", "optimum"),
    [("nchain", 3.6768), ("doubleloop", 0.4), ("lavalake", 2.6774), ("lavalake10", 1.3880), ("maze", 0.09422)],
)
def test_best_average(name, optimum):
    assert best_average(bellief.make(name)) == pytest.approx(optimum, abs=5e-5)


def test_parse_agent():
    assert parse_agent("psrl") == ("psrl", "psrl", {})
    assert parse_agent("bbi:rule=optimistic,horizon=5")[1:] == ("bbi", {"rule": "optimistic", "horizon": "5"})
    assert parse_agent("ours=bbi:rule=optimistic") == ("ours", "bbi", {"rule": "optimistic"})


@pytest.mark.parametrize(
    ("agents", "fragment"),
    [
        ([], "at least one agent"),
        (["psrl", "psrl"], "same name"),
        (["psrll"], "did you mean 'psrl'"),
        (["bbi:rule"], "'rule' in agent"),
    ],
)
def test_mistakes(agents, fragment):
    with pytest.raises(UserError, match=fragment):
        bellief.compare_agents("nchain", agents)
