"""Agents in MDPs from the prior: never above the exact Bayes-optimal value, and as good where nothing is unknown."""

import numpy as np
import pytest

from bellief.errors import UserError
from bellief.experiments.bayesian import bayesian_returns
from bellief.induction import bayes_optimal

pytestmark = pytest.mark.long

PROBLEM = bayes_optimal.from_rewards([[0.0, 0.2], [1.0, 0.5]], concentration=0.5, discount=0.95)


@pytest.mark.parametrize("agent", ["psrl-paper", "mmbi", "q-learning", "bql"])
def test_no_agent_beats_the_optimum(agent):
    """One-sided at a rate of 1e-5 for the largest of six."""
    found = bayesian_returns(PROBLEM, agent, horizon=6, runs=1_000)
    optimum = bayes_optimal.values_by_horizon(PROBLEM, 6)
    error = found.std(0, ddof=1) / np.sqrt(len(found))
    assert (found.mean(0) <= optimum + 4.7 * error).all()
    assert found.mean(0)[-1] > 0.5 * optimum[-1]


def test_known_transitions_leave_nothing_to_learn():
    """With certain transitions and known rewards PSRL's plan is optimal for ever."""
    sure = PROBLEM._replace(concentration=np.full((2, 2, 2), 1e4))
    found = bayesian_returns(sure, "psrl-paper", horizon=6, runs=2_000)
    value = bayes_optimal.backward_induction(sure, sure.mean, 6)[0][0]
    error = found[:, -1].std(ddof=1) / np.sqrt(len(found))
    # All actions lead to both states evenly: the best action is the one that pays more now.
    assert found[:, -1].mean() == pytest.approx(value, abs=4.4 * error)


def test_the_same_seed_the_same_returns():
    one, again = (bayesian_returns(PROBLEM, "q-learning", horizon=3, runs=20, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one, again)


def test_other_problems_are_refused():
    with pytest.raises(UserError, match="from_rewards"):
        bayesian_returns(bayes_optimal.bandit_chain(3), "psrl-paper", horizon=3, runs=2)
