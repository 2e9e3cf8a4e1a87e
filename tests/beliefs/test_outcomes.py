"""Rewards that depend on the next state: the posterior against dense Gaussian algebra in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.beliefs import normal_gamma, outcomes
from bellief.evaluation.dense_belief import belief_from
from bellief.logs import Transitions
from bellief.priors import Prior

PRIOR = {"mean": 1.0, "strength": 0.7, "shape": 2.0, "rate": 3.0}
OUTCOME_STRENGTH = 1.8
STATES, ACTIONS = 2, 1


@pytest.fixture
def log():
    """Twelve steps of two states and one action, with ends; the outcome (1, 0, 2) never happens."""
    generator = np.random.default_rng(0)
    return {
        "state": np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]),
        "action": np.zeros(12, int),
        "reward": generator.normal(2.0, 1.5, 12),
        "next_state": np.array([0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 1]),
        "terminated": np.array([0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0], bool),
    }


def belief_of(log, outcome_strength=OUTCOME_STRENGTH):
    mean, strength, shape, rate = PRIOR.values()
    prior = Prior(0.5, mean, strength, shape, rate, outcome_strength=outcome_strength)
    return belief_from(Transitions.from_arrays(**log, states=STATES, actions=ACTIONS).tally(), prior, True)


def dense(log, state):
    """Mean and covariance (in units of the noise variance) of (pair, mean_0, mean_1, mean_2), shape and rate."""
    here = log["state"] == state
    outcome = np.where(log["terminated"], STATES, log["next_state"])[here]
    reward = log["reward"][here]
    # Precision of the prior over (pair, outcomes), then one row of the design matrix per reward.
    precision = np.zeros((4, 4))
    precision[0, 0] = PRIOR["strength"] + 3 * OUTCOME_STRENGTH
    precision[1:, 1:] = OUTCOME_STRENGTH * np.eye(3)
    precision[0, 1:] = precision[1:, 0] = -OUTCOME_STRENGTH
    prior_mean = np.full(4, PRIOR["mean"])
    design = np.zeros((len(reward), 4))
    design[np.arange(len(reward)), 1 + outcome] = 1
    after = precision + design.T @ design
    mean = np.linalg.solve(after, precision @ prior_mean + design.T @ reward)
    rate = PRIOR["rate"] + 0.5 * (reward @ reward + prior_mean @ precision @ prior_mean - mean @ after @ mean)
    return mean, np.linalg.inv(after), PRIOR["shape"] + len(reward) / 2, rate


@pytest.mark.parametrize("state", [0, 1])
def test_posterior(double, log, state):
    belief = belief_of(log)
    mean, covariance, shape, rate = dense(log, state)
    assert belief.shape[state, 0] == shape
    np.testing.assert_allclose(belief.rate[state, 0], rate, rtol=1e-10)
    np.testing.assert_allclose(belief.pair_location[state, 0], mean[0], rtol=1e-10)
    np.testing.assert_allclose(1 / belief.pair_strength[state, 0], covariance[0, 0], rtol=1e-10)
    located = belief.location[state, 0] + belief.share[state, 0] * belief.pair_location[state, 0]
    np.testing.assert_allclose(located, mean[1:], rtol=1e-10)
    # The mean reward under any row is Gaussian with what the dense covariance says.
    row = np.array([0.2, 0.5, 0.3])
    centre, width = outcomes._row_reward(jnp.asarray(np.tile(row, (2, 1, 1))), belief)
    np.testing.assert_allclose(centre[state, 0], row @ mean[1:], rtol=1e-10)
    np.testing.assert_allclose(width[state, 0], row @ covariance[1:, 1:] @ row, rtol=1e-10)


def test_a_strong_tie_is_the_papers_belief(double, log):
    belief = belief_of(log, outcome_strength=1e9)
    statistics = normal_gamma.update_batch(
        normal_gamma.init((STATES, ACTIONS), jnp.float64), (log["state"], log["action"]), jnp.asarray(log["reward"])
    )
    prior = normal_gamma.Parameters(*(jnp.asarray(value) for value in PRIOR.values()))
    expected = normal_gamma.posterior(prior, statistics)
    np.testing.assert_allclose(belief.pair_location, expected.mean, rtol=1e-6)
    np.testing.assert_allclose(belief.pair_strength, expected.strength, rtol=1e-6)
    np.testing.assert_allclose(belief.rate, expected.rate, rtol=1e-6)


def test_draws(double, check, key, log):
    """Whole MDPs have the mean MDP as their mean; drawing outcomes' rewards one by one gives the same law."""
    belief = belief_of(log)
    keys = jax.random.split(key, 4000)
    mdps = jax.jit(jax.vmap(lambda one: outcomes.sample(one, 0.5, belief, 0.9)))(keys)
    expected = outcomes.mean(0.5, belief, 0.9)
    check.mean(mdps.transition, expected.transition)
    check.mean(mdps.reward, expected.reward)
    draw = jax.jit(jax.vmap(lambda one: outcomes.sample_rewards(one, belief)))
    rewards, noise = draw(jax.random.split(keys[0], 4000))
    rows = np.concatenate([mdps.transition, mdps.termination[..., None]], -1)
    check.same_laws((rows * rewards).sum(-1)[:, 0, 0], mdps.reward[:, 0, 0])
    check.mean(noise**2, np.asarray(belief.rate / (belief.shape - 1)))
