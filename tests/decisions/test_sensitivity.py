"""The same question under several priors."""

import numpy as np
import pytest

from bellief.beliefs.tabular import Prior
from bellief.decisions import prior_sensitivity
from bellief.decisions.sensitivity import _gaps, default_grid
from bellief.errors import UserError
from bellief.evaluation import evaluate
from bellief.logs import Transitions

DRAWS = 400


def test_a_firm_conclusion_does_not_flip(data, policy):
    grid = {"logged": "logged", "paper": "paper"}
    found = prior_sensitivity(data, policy, 0.9, threshold=-100.0, priors=grid, draws=DRAWS)
    assert [row["verdict"] for row in found.rows] == ["yes", "yes"]
    assert not found.flips
    assert found.warnings == []
    assert found.rows[0]["mean"] == evaluate(data, policy, 0.9, draws=DRAWS).start_summary()["mean"]


def test_priors_that_disagree_are_told(data, policy):
    """A prior that insists on high rewards turns the answer round."""
    grid = {"logged": "logged", "stubborn": Prior(reward_mean=5.0, reward_strength=1e6)}
    found = prior_sensitivity(data, policy, 0.9, threshold=20.0, priors=grid, draws=DRAWS)
    assert [row["verdict"] for row in found.rows] == ["no", "yes"]
    assert found.flips
    assert found.disagreements == ["stubborn"]
    assert "depends on the prior" in found.warnings[0]
    assert found.to_dict()["flips"] is True


def test_policies_meet_the_same_mdps(data):
    """The difference of a policy to itself is zero in every draw, and to another one has the right mean."""
    start = data.start_distribution()
    first, second = np.array([0, 0, 0]), np.array([1, 1, 1])
    options = {"draws": DRAWS, "start": start}
    assert (_gaps(data, first, first, 0.9, "logged", options) == 0).all()
    gaps = _gaps(data, first, second, 0.9, "logged", options)
    # One step of action 0 pays two more; a horizon reaches the comparison as it does the evaluation.
    near = _gaps(data, first, second, 0.9, "logged", options | {"horizon": 1})
    assert near.mean() < gaps.mean() / 2
    means = [evaluate(data, policy, 0.9, draws=DRAWS, seed=5).start_samples for policy in (first, second)]
    error = np.sqrt((gaps.var() + means[0].var() + means[1].var()) / DRAWS)
    assert abs(gaps.mean() - (means[0].mean() - means[1].mean())) < 4.5 * error
    grid = {"logged": "logged"}
    found = prior_sensitivity(data, first, 0.9, against=second, priors=grid, draws=DRAWS)
    assert found.rows[0]["verdict"] == "yes"  # action 1 costs two of reward everywhere


def test_the_grid(data):
    grid = default_grid(data)
    assert next(iter(grid)) == "logged"
    assert len(grid) == 8
    assert len({id(prior) for prior in grid.values()}) == 8


@pytest.mark.parametrize(
    ("options", "fragment"),
    [({"threshold": 1.0, "against": "uniform"}, "Ask one question"), ({"priors": {}}, "grid of priors is empty")],
)
def test_mistakes(log, options, fragment):
    with pytest.raises(UserError, match=fragment):
        prior_sensitivity(Transitions.from_arrays(**log), **options)
