"""Settings as people write them."""

import pytest

from bellief.agents import bbi_sampled
from bellief.beliefs.tabular import PAPER_PRIOR, SPARSE_PRIOR
from bellief.errors import UserError
from bellief.experiments.settings import build_config, convert_text


def config(**settings):
    return build_config(bbi_sampled.Config, "bbi-paper", settings)


def test_defaults():
    assert config() == bbi_sampled.Config()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("horizon", "50", 50),
        ("discount", "0.9", 0.9),
        ("discount", "1", 1.0),
        ("optimism", "2", 2.0),
        ("rule", "thompson", "thompson"),
        ("values", "joint", "joint"),
        ("values", "none", None),
        ("samples", "None", None),
        ("samples", "20", 20),
        ("quantile", "0.5", 0.5),
        ("prior", "sparse", SPARSE_PRIOR),
        ("prior", "paper", PAPER_PRIOR),
    ],
)
def test_text_becomes_what_the_field_holds(name, text, value):
    held = getattr(config(**{name: text}), name)
    assert held == value
    assert type(held) is type(value)


def test_values_may_come_as_they_are():
    assert config(horizon=50, discount=1, prior=SPARSE_PRIOR) == bbi_sampled.Config(
        horizon=50, discount=1.0, prior=SPARSE_PRIOR
    )


def test_single_parameters_of_the_prior():
    prior = config(**{"prior": "sparse", "prior.reward_mean": "2", "prior.reward_rate": "0.5"}).prior
    assert (prior.sparse, prior.reward_mean, prior.reward_rate, prior.reward_shape) == (True, 2.0, 0.5, 1.0)
    assert config(**{"prior.sparse": "true"}).prior == SPARSE_PRIOR


@pytest.mark.parametrize(
    ("settings", "fragment"),
    [
        ({"depth": "3"}, "no setting 'depth'"),
        ({"horizon": "3.5"}, "'horizon' needs int, not '3.5'"),
        ({"horizon": "true"}, "'horizon' needs int"),
        ({"horizon": "none"}, "'horizon' needs int"),
        ({"discount": "high"}, "'discount' needs float, not 'high'"),
        ({"samples": "many"}, "'samples' needs int or none, not 'many'"),
        ({"optimism": "inf"}, "optimism must be a finite number"),
        ({"optimism": float("nan")}, "'optimism' needs a number"),
        ({"rule": 3}, "'rule' needs str"),
        ({"prior": "flat"}, "no prior 'flat'"),
        ({"prior.shape": "1"}, "no parameter 'shape'"),
        ({"prior.dirichlet": "0"}, "dirichlet must be positive"),
        ({"prior.dirichlet": "x"}, "'prior.dirichlet' needs float"),
        ({"rule": "greedy"}, "no action rule 'greedy'"),
        ({"horizon": "0"}, "at least 1"),
    ],
)
def test_mistakes(settings, fragment):
    with pytest.raises(UserError) as mistake:
        config(**settings)
    assert fragment in str(mistake.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("-2", -2), ("0.5", 0.5), ("1e3", 1000.0), ("True", True), ("false", False), ("none", None), ("a", "a")],
)
def test_plainest_meaning(text, value):
    converted = convert_text(text)
    assert converted == value
    assert type(converted) is type(value)
