"""Methods 2 and 3: the links, their cancellation, the regression they become for one MDP, and the stationary case."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief.errors import UserError
from bellief.induction import bellman_likelihood as shared
from bellief.induction import method2, method3, stationary
from bellief.induction.bellman_likelihood import Rows

pytestmark = pytest.mark.long

DISCOUNT = 0.8


def rows_of(oracle, seed, count, states=2, shift=0.0, spread=1.0):
    """Draws of rows: random chains whose rewards lie around `shift`."""
    mdps = oracle.random_mdp(seed, states, 1, count=count)
    reward = shift + spread * mdps.reward[..., 0]
    return Rows(jnp.asarray(mdps.transition[:, :, 0]), jnp.asarray(reward), jnp.zeros((count, states)))


def whole(rows):
    """Every combination of rows as a whole MDP."""
    count, states = rows.reward.shape
    for choice in itertools.product(range(count), repeat=states):
        index = (np.array(choice), np.arange(states))
        yield np.asarray(rows.transition)[index], np.asarray(rows.reward)[index]


def link(values, next_values, transition, reward, sigma):
    return np.exp(-(((values - reward - DISCOUNT * transition @ next_values) / sigma) ** 2).sum() / 2)


def test_the_mean_link_is_that_over_all_combinations_of_rows(double, oracle):
    rows = rows_of(oracle, 0, 6)
    values, after, sigma = np.array([0.3, -0.4]), np.array([0.1, 0.6]), np.array([0.7, 1.1])
    expected = np.mean([link(values, after, *mdp, sigma) for mdp in whole(rows)])
    found = shared.log_mean(shared.log_links(values, after, rows, DISCOUNT, sigma))
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-10)


def test_effective_sizes():
    logs = jnp.log(jnp.array([[1.0, 1.0], [1.0, 1e-12], [1.0, 1e-12], [1.0, 1e-12]]))
    np.testing.assert_allclose(shared.effective_sizes(logs), [4.0, 1.0], rtol=1e-5)


def test_with_its_own_push_forward_method_3_is_mean_field(double, oracle, check):
    """P(V | V') taken from the model cancels the denominator: what is left is posterior push-forward plus noise."""
    generator = np.random.default_rng(0)
    prior, posterior = rows_of(oracle, 1, 200, spread=2.0), rows_of(oracle, 2, 200, shift=0.5)
    after, sigma = np.array([0.2, 1.0]), np.array([0.4, 0.4])
    pushed = np.asarray(prior.reward + DISCOUNT * prior.transition @ after)
    own = pushed[generator.integers(0, 200, (15_000, 2)), np.arange(2)] + sigma * generator.normal(size=(15_000, 2))
    weight = np.exp(
        jax.vmap(lambda values: method3.log_likelihood(values, after, posterior, prior, DISCOUNT, sigma))(own)
    )
    weight = weight / weight.sum()
    backed_up = np.asarray(posterior.reward + DISCOUNT * posterior.transition @ after)
    mean = weight @ own
    error = np.sqrt((weight**2) @ (own - mean) ** 2)
    assert (np.abs(mean - backed_up.mean(0)) < 4.5 * error).all()
    variance = weight @ (own - mean) ** 2
    np.testing.assert_allclose(variance, backed_up.var(0) + sigma**2, rtol=0.12)
    # Without the denominator the answer is another one.
    wrong = np.exp(jax.vmap(lambda v: shared.log_mean(shared.log_links(v, after, posterior, DISCOUNT, sigma)))(own))
    gap = np.abs((wrong / wrong.sum()) @ own - backed_up.mean(0))
    assert (gap > 6 * error).any()


def test_method_2_is_method_3_by_another_way(double, oracle):
    """With draws of the prior weighed by the likelihood as posterior draws, both compute the same number."""
    prior = rows_of(oracle, 3, 50)
    likelihood = jnp.asarray(np.random.default_rng(1).normal(size=(50, 2)))
    weighted = method2.weigh(prior, likelihood)
    values, after, sigma = jnp.array([0.5, 0.0]), jnp.array([1.0, -1.0]), jnp.array([0.8, 0.9])
    links = np.exp(shared.log_links(values, after, prior, DISCOUNT, sigma))
    shares = np.exp(likelihood) / np.exp(likelihood).mean(0)
    expected = np.prod((links * shares).mean(0) / links.mean(0))
    found = method2.log_likelihood(values, after, weighted, prior, DISCOUNT, sigma)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-10)
    sizes = (shares.sum(0)) ** 2 / (shares**2).sum(0)
    np.testing.assert_allclose(method2.likelihood_sizes(weighted), sizes, rtol=1e-10)


def test_a_point_mass_is_gptd(double):
    """On a deterministic log: regression of rewards on V(s) - discount V(s'), transition by transition."""
    state, following = np.array([0, 1, 2, 0, 1, 0]), np.array([1, 2, 0, 1, 2, 1])
    reward = np.random.default_rng(2).normal(size=6)
    noise, prior_sd = 0.3, 2.0
    design = np.zeros((6, 3))
    np.add.at(design, (np.arange(6), state), 1.0)
    np.add.at(design, (np.arange(6), following), -DISCOUNT)
    covariance = np.linalg.inv(np.eye(3) / prior_sd**2 + design.T @ design / noise**2)
    mean = covariance @ (design.T @ reward / noise**2)
    visits = np.bincount(state)
    transition = np.zeros((3, 3))
    transition[state, following] = 1
    averages = np.bincount(state, weights=reward) / visits
    found = method3.point_mass(
        jnp.asarray(transition),
        jnp.asarray(averages),
        DISCOUNT,
        jnp.asarray(noise / np.sqrt(visits)),
        jnp.zeros(3),
        prior_sd,
    )
    np.testing.assert_allclose(found[0], mean, rtol=1e-10)
    np.testing.assert_allclose(found[1], covariance, rtol=1e-10)


def test_equal_draws_give_the_regression(double, check, key, oracle):
    """The sampler of value functions, with every posterior draw the same MDP and a prior without preference."""
    one = rows_of(oracle, 4, 1)
    sigma, prior_sd = jnp.array([0.3, 0.5]), 1.5
    mean, covariance = method3.point_mass(one.transition[0], one.reward[0], DISCOUNT, sigma, jnp.zeros(2), prior_sd)

    def target(values):
        return -jnp.sum((values / prior_sd) ** 2) / 2 + shared.log_mean(
            shared.log_links(values, values, one, DISCOUNT, sigma)
        )

    first = np.random.default_rng(3).normal(0, 3, (600, 2))
    chains = shared.sample_values(key, jax.vmap(target), jnp.asarray(first), 150)
    for state in range(2):
        check.same_law(chains.values[:, state], stats.norm(mean[state], np.sqrt(covariance[state, state])))
    assert 0.1 < float(chains.acceptance) < 0.9


def test_the_stationary_case_is_monte_carlo_weighted_by_the_determinant(double, key, oracle):
    """With the model's own prior over V and a small sigma: mass 1 / det(I - discount P) on combinations of rows."""
    rows = rows_of(oracle, 5, 40, spread=0.6)
    solved = [(np.eye(2) - DISCOUNT * transition, reward) for transition, reward in whole(rows)]
    values = np.array([np.linalg.solve(system, reward) for system, reward in solved])
    mass = np.array([1 / np.linalg.det(system) for system, _ in solved])
    mass /= mass.sum()
    first = values[np.random.default_rng(4).integers(0, len(values), 1500)]
    settings = stationary.Settings(bandwidth=0.1, steps=100)
    result = stationary.infer(key, settings, rows, rows, jnp.asarray(first), DISCOUNT, 0.0, 10.0)
    expected = mass @ values
    error = np.asarray(result.values).std(0) / np.sqrt(1500)
    assert (np.abs(np.asarray(result.values).mean(0) - expected) < 5 * error).all()
    # Unweighted Monte Carlo is somewhere else, or this test would show nothing.
    spread = np.sqrt(mass @ (values - expected) ** 2)
    np.testing.assert_allclose(np.asarray(result.values).std(0), spread, rtol=0.12)
    assert 1 <= float(result.posterior_size) <= 40


def test_settings():
    with pytest.raises(UserError, match="no value prior 'magic'"):
        stationary.Settings(value_prior="magic")
    with pytest.raises(UserError, match="bandwidth must be positive"):
        stationary.Settings(bandwidth=0.0)
