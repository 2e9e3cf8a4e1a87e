"""Fitted Q-iteration over sampled models against rollouts of the same models, and its parts against numbers by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.beliefs import linear
from bellief.features import parse
from bellief.induction import continuous, evaluate_box
from bellief.mdp.linear_mdp import Form, LinearGaussianMDP
from bellief.types import BoxSpaces, Transition
from bellief.values import linear_values

SPACES = BoxSpaces(1, 2, (-2.0,), (2.0,), True, -1.0, 1.0)
BOUNDS = jnp.array([[-2.0], [2.0]])
FORM = Form("difference", parse("constant+raw", 1), parse("constant+raw", 1))


def outside(state):
    return (jnp.abs(state[0]) > 2).astype(state.dtype)


def lean(state):
    """A policy that mostly pushes back."""
    right = jax.nn.sigmoid(-3 * state[0])
    return jnp.stack([1 - right, right])


@pytest.fixture(scope="module")
def models():
    """Models from the posterior after a short walk: action 0 pushes left, action 1 right; being near 0 pays."""
    generator = np.random.default_rng(0)
    belief = linear.init(linear.OWN_PRIOR, FORM, SPACES)
    learn = jax.jit(lambda now, seen: linear.update(FORM, now, seen))
    state = 0.0
    for _ in range(14):
        action = int(generator.integers(2))
        following = state + (0.3 if action else -0.3) + 0.1 * generator.normal()
        ended = abs(following) > 2
        seen = (np.float32([state]), np.int32(action), np.float32(0.2 * state), np.float32([following]), ended)
        belief = learn(belief, Transition(*(jnp.asarray(part) for part in seen)))
        state = 0.0 if ended else following
    return jax.jit(jax.vmap(lambda key: linear.sample(key, belief)))(jax.random.split(jax.random.key(1), 6))


QUERIES = jnp.array([[-1.0], [0.0], [0.7]])
STATES = jnp.linspace(-2, 2, 600)[:, None]
SETTINGS = evaluate_box.Settings(parse("constant+rbf:9", 1), horizon=15, discount=0.9)


@pytest.fixture(scope="module")
def oracle(models):
    """Values of the queries in each model, by 400 rollouts."""
    roll_out = jax.jit(
        lambda models: evaluate_box.by_roll_outs(jax.random.key(3), SETTINGS, FORM, models, lean, outside, QUERIES, 400)
    )
    return np.asarray(roll_out(models))


def by_induction(models, settings):
    problem = evaluate_box.Problem(models, BOUNDS, STATES)
    return jax.jit(
        lambda problem: evaluate_box.evaluate(jax.random.key(2), settings, FORM, problem, lean, outside, QUERIES)
    )(problem)


def test_values_are_those_of_rollouts(models, oracle):
    """The joint belief's draws, model by model, within what 400 rollouts and a fit with few features leave open."""
    found = by_induction(models, SETTINGS)
    assert found.shape == oracle.shape == (6, 3)
    # The models differ by far more than the two ways of evaluating each of them.
    assert np.abs(found - oracle).max() < 0.25 * oracle.std(0).max() + 0.05
    assert np.corrcoef(np.ravel(found - oracle.mean(0)), np.ravel(oracle - oracle.mean(0)))[0, 1] > 0.8


@pytest.mark.slow
def test_the_papers_gaussian_is_near_the_rollouts(models, oracle):
    paper = by_induction(models, dataclasses.replace(SETTINGS, values="gaussian", sigma=0.1))
    assert paper.shape == (50, 3)
    assert np.abs(paper.mean(0) - oracle.mean(0)).max() < 3 * oracle.std(0).max() + 0.05


def look(models=2, actions=2, count=5, reward=1.0, end=0.0, end_reward=None):
    features = jnp.ones((models, actions, count, 1))
    shape = (models, actions, count)
    paid = None if end_reward is None else jnp.full(models, end_reward)
    return continuous.LookAhead(features, jnp.full(shape, reward), jnp.full(shape, end), paid)


def design(count=5):
    return linear_values.Design(jnp.ones((count, 1)), jnp.sqrt(jnp.full((1, 1), float(count))))


def test_constant_rewards_sum_up():
    """With one constant feature and no ridge, H steps of reward 1 are worth (1 - g^H) / (1 - g) in every model."""
    weights = continuous.by_joint(design(), look(), continuous.greedy, 7, 0.9, None)
    np.testing.assert_allclose(weights, (1 - 0.9**7) / 0.1, rtol=1e-5)


def test_the_gaussian_agrees_where_nothing_is_uncertain():
    belief, diagnostics = continuous.by_gaussian(
        jax.random.key(0), design(), look(), continuous.greedy, 7, 0.9, None, jnp.array(1.0), 4, 2, 3
    )
    np.testing.assert_allclose(belief.mean, (1 - 0.9**7) / 0.1, rtol=1e-4)
    # Equal models share every sample.
    np.testing.assert_allclose(diagnostics.effective_sample_size, 2.0, rtol=1e-4)


def test_ends_pay_what_they_pay():
    certain = look(end=1.0, end_reward=-3.0)
    np.testing.assert_allclose(continuous.by_joint(design(), certain, continuous.greedy, 5, 0.9, None), -3.0, rtol=1e-5)
    plain = look(end=1.0)
    np.testing.assert_allclose(continuous.by_joint(design(), plain, continuous.greedy, 5, 0.9, None), 1.0, rtol=1e-5)


def test_clipping_keeps_values_possible():
    """Steps pay at most 0 and ends -1: values stay in [-1, 0] though the models claim rewards of 1."""
    limits = continuous.RewardRange(jnp.array([0.0, 0.0]), jnp.array([-1.0, -1.0]))
    ahead = continuous.limit_rewards(look(end=0.5, end_reward=-5.0), limits)
    weights = continuous.by_joint(design(), ahead, continuous.greedy, 30, 1.0, limits)
    assert float(weights.min()) >= -1.001
    assert float(weights.max()) <= 1e-3


def test_ridge_is_the_textbooks(double):
    generator = np.random.default_rng(3)
    features, targets = generator.normal(size=(30, 4)), generator.normal(size=(2, 3, 30))
    raw = generator.random((2, 30))
    weights = raw / raw.sum(0)
    made = linear_values.make_design(jnp.asarray(features), 0.5)
    belief = linear_values.fit(made, jnp.asarray(targets), jnp.asarray(weights))
    for action in range(3):
        # All rows of both models, weighted, as printed.
        stacked, mass = np.tile(features, (2, 1)), weights.ravel()
        expected = np.linalg.solve(
            stacked.T @ (mass[:, None] * stacked) + 0.5 * np.eye(4), stacked.T @ (mass * targets[:, action].ravel())
        )
        np.testing.assert_allclose(belief.mean[action], expected, rtol=1e-8)
        residual = targets[:, action].ravel() - stacked @ expected
        np.testing.assert_allclose(belief.sd[action] ** 2, mass @ residual**2 / 30, rtol=1e-8)
    at = jnp.asarray(generator.normal(size=4))
    variance = at @ np.linalg.solve(features.T @ features + 0.5 * np.eye(4), at)
    np.testing.assert_allclose(linear_values.sd(belief, at), belief.sd * np.sqrt(variance), rtol=1e-8)
    draws = linear_values.sample(jax.random.key(0), belief, 4000) @ at
    np.testing.assert_allclose(draws.std(0), linear_values.sd(belief, at), rtol=0.08)


def test_direct_and_difference_are_two_readings_of_one_model():
    model = LinearGaussianMDP(
        jnp.array([[[0.1], [0.5]]]), jnp.zeros((1, 1, 1)), jnp.zeros((1, 2)), jnp.array(0.0), BOUNDS
    )
    state, action, still = jnp.array([1.0]), jnp.array(0), jnp.zeros(1)
    direct = Form("direct", FORM.features, FORM.reward_features)
    assert float(continuous.linear_mdp.next_state(direct, model, state, action, still)[0]) == pytest.approx(0.6)
    assert float(continuous.linear_mdp.next_state(FORM, model, state, action, still)[0]) == pytest.approx(1.6)
