"""Closed forms and improved laws are calibrated: ranks of the truth are uniform where the prior is known."""

import numpy as np
import pytest
from scipy import stats

from bellief import evaluate
from bellief.decisions.certificates import calibrate, draw_world, simulate, true_values
from bellief.priors import Prior

PRIOR = Prior(sparse=True, reward_shape=3.0)
STATES, ACTIONS, TRANSITIONS = 3, 2, 200


def laws(simulations: int) -> np.ndarray:
    """Where the truth lies in the improved law of each simulated log."""
    rng, shares = np.random.default_rng(0), []
    for number in range(simulations):
        world = draw_world(rng, PRIOR, STATES, ACTIONS, False)
        policy = rng.dirichlet(np.ones(ACTIONS), size=STATES)
        data = simulate(rng, world, np.full((STATES, ACTIONS), 1 / ACTIONS), TRANSITIONS)
        value = evaluate(data, policy, 0.9, prior=PRIOR, start=0, draws=100, seed=number)
        truth = true_values(world, policy, 0.9)[0]
        shares.append(value.prob(lambda values, truth=truth: values < truth))
    return np.array(shares)


@pytest.mark.slow
def test_laws_from_few_draws_are_calibrated():
    assert stats.kstest(laws(1000), "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_moments_are_calibrated():
    found = calibrate(
        STATES, ACTIONS, TRANSITIONS, simulations=1000, draws=199, method="moments", prior=PRIOR, discount=0.9
    )
    assert found.uniformity() > 1e-3
    assert found.coverage[0.9] == pytest.approx(0.9, abs=0.04)
