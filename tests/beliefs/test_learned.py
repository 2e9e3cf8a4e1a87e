"""The learned prior against closed forms of the marginal likelihood, and its draws against its means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import beta as beta_function
from scipy.special import gammaln
from scipy.stats import beta

from bellief.beliefs import learned, learned_noise, learned_rows
from bellief.types import Spaces, Transition

STATES, ACTIONS = 3, 2
SPACES = Spaces(STATES, ACTIONS, True, None, None)


def some_data(count=60, seed=0):
    generator = np.random.default_rng(seed)
    state, action = generator.integers(STATES, size=count), generator.integers(ACTIONS, size=count)
    following = np.where(
        generator.random(count) < 0.8, (state + action) % STATES, generator.integers(STATES, size=count)
    )
    ended = generator.random(count) < 0.1
    reward = 2 + state + generator.normal(size=count) * 0.3
    return state, action, reward, following, ended


def after(data, spaces=SPACES):
    update = jax.jit(learned.update)
    belief = learned.init(spaces)
    for state, action, reward, following, ended in zip(*data, strict=True):
        belief = update(
            belief,
            Transition(np.int32(state), np.int32(action), np.float32(reward), np.int32(following), np.bool_(ended)),
        )
    return belief


def dense_counts(data):
    counts = np.zeros((STATES, ACTIONS, STATES + 1))
    state, action, _, following, ended = data
    np.add.at(counts, (state, action, np.where(ended, STATES, following)), 1)
    return counts


def test_weights_have_the_dirichlet_multinomial_likelihood():
    data = some_data()
    counts, belief = dense_counts(data), after(data)
    log_likelihood = []
    for weight in learned_rows.GRID:
        alpha = weight / (STATES + 1)
        log_likelihood.append(
            np.sum(
                gammaln(weight)
                - gammaln(weight + counts.sum(-1))
                + np.sum(gammaln(alpha + counts) - gammaln(alpha), -1)
            )
        )
    expected = np.exp(np.array(log_likelihood) - max(log_likelihood))
    np.testing.assert_allclose(learned_rows.weight_posterior(belief.rows), expected / expected.sum(), atol=1e-4)


def test_slots_hold_the_counts():
    data = some_data()
    rows = after(data).rows
    table = np.zeros((STATES, ACTIONS, STATES + 1))
    for place in np.ndindex(*rows.count.shape):
        table[(*place[:2], int(rows.outcome[place]))] += int(rows.count[place])
    np.testing.assert_array_equal(table, dense_counts(data))
    np.testing.assert_array_equal(rows.visits, dense_counts(data).sum(-1))


def test_mean_rows_average_over_the_weight():
    data = some_data()
    rows, counts = after(data).rows, dense_counts(data)
    posterior = np.asarray(learned_rows.weight_posterior(rows), dtype=float)
    expected = sum(
        mass * (counts + weight / (STATES + 1)) / (counts.sum(-1, keepdims=True) + weight)
        for mass, weight in zip(posterior, learned_rows.GRID, strict=True)
    )
    np.testing.assert_allclose(learned_rows.mean_table(rows, STATES + 1), expected, atol=1e-5)


def squared_stay(stay, leave, discount):
    """E[(discount x / (1 - discount x))^2] for x ~ Beta(stay, leave), by numerical integration over -log(1 - x)."""

    def integrand(depth):
        x = -np.expm1(-depth)
        return (discount / (1 - discount * x)) ** 2 * x ** (stay + 1) * np.exp(-leave * depth)

    # From there on x is one.
    depth = 60.0
    value, _ = quad(integrand, 0, depth, epsabs=0, epsrel=1e-10, limit=500)
    return (value + integrand(depth) / leave) / beta_function(stay, leave)


@pytest.mark.parametrize("discount", [0.5, 0.99])
def test_later_payments_of_a_self_loop_are_an_integral(discount):
    # Pair (0, 0) leads to 0 or 1, so it was seen to stay; (1, 0) was tried twice, (1, 1) a hundred times, (0, 1) never.
    states = np.array([0] * 6 + [1] * 102)
    actions = np.array([0] * 6 + [0] * 2 + [1] * 100)
    following = np.array([0, 1] * 3 + [2] * 2 + [0, 2] * 50)
    data = (states, actions, np.zeros(108), following, np.zeros(108, bool))
    rows = after(data, Spaces(3, 2, False, None, None)).rows
    posterior = np.asarray(learned_rows.weight_posterior(rows), dtype=float)
    assert posterior.max() < 0.6  # the average over the weight matters
    found = np.asarray(learned_rows.self_loops(rows, 3, discount), dtype=float)
    assert found[0, 0] == 0

    def exact(visits):
        own = learned_rows.GRID / 3
        return posterior @ [squared_stay(a, visits + 2 * a, discount) for a in own]

    assert found[1, 0] == pytest.approx(exact(2), rel=1e-4)
    assert found[0, 1] == pytest.approx(exact(0), rel=1e-4)
    # Beyond the table an approximation.
    assert found[1, 1] == pytest.approx(
        exact(learned_rows.MOST_VISITS) * (learned_rows.MOST_VISITS / 100) ** 2, rel=1e-4
    )
    assert found[1, 1] == pytest.approx(exact(100), rel=0.1)


def test_the_share_of_unseen_outcomes_has_the_moments_of_its_beta():
    data = some_data(20)
    rows, counts = after(data).rows, dense_counts(data)
    posterior = np.asarray(learned_rows.weight_posterior(rows), dtype=float)
    found = np.asarray(learned_rows.unseen_squares(rows, STATES + 1), dtype=float)
    for pair in np.ndindex(STATES, ACTIONS):
        shown = counts[pair] > 0
        assert 0 < shown.sum() < STATES + 1
        squares = []
        for weight in learned_rows.GRID:
            alpha = counts[pair] + weight / (STATES + 1)
            law = beta(alpha[~shown].sum(), alpha[shown].sum())
            squares.append(law.var() + law.mean() ** 2)
        assert found[pair] == pytest.approx(posterior @ squares, rel=1e-4)


def test_deterministic_rows_make_the_weight_small_and_even_rows_large():
    steps = np.arange(200)
    always = (steps % 3, steps % 2, np.zeros(200), (steps + 1) % 3, np.zeros(200, bool))
    anything = (*always[:3], np.random.default_rng(0).integers(3, size=200), np.zeros(200, bool))
    small, large = (learned_rows.weight_posterior(after(data).rows) @ learned_rows.GRID for data in (always, anything))
    assert small < 0.2 < 2 < large


def test_noise_has_the_likelihood_of_an_inverse_gamma_variance():
    data = some_data()
    rewards = after(data).rewards
    log_likelihood = np.zeros(len(learned_noise.GRID))
    for pair in np.ndindex(STATES, ACTIONS):
        own = data[2][(data[0] == pair[0]) & (data[1] == pair[1])]
        if len(own) > 1:
            freedom, squares = (len(own) - 1) / 2, np.sum((own - own.mean()) ** 2)
            rate, shape = learned_noise.GRID, learned_noise.SHAPE
            log_likelihood += shape * np.log(rate) - (shape + freedom) * np.log(rate + squares / 2)
    found = np.asarray(learned_noise.rate_posterior(rewards))
    possible = found > 0
    expected = np.where(possible, np.exp(log_likelihood - log_likelihood[possible].max()), 0)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=2e-3)
    # Noise of 0.3 in every pair.
    noise = np.asarray(learned_noise.noise_variance(rewards))
    assert 0.05 < np.median(noise) < 0.2


def test_a_pair_never_tried_may_pay_anything_and_a_sure_one_is_known():
    steps = 30
    data = (
        np.zeros(steps, int),
        np.zeros(steps, int),
        np.full(steps, 0.005),
        np.zeros(steps, int),
        np.zeros(steps, bool),
    )
    mean, variance = learned_noise.posterior(after(data).rewards)
    assert float(mean[0, 0]) == pytest.approx(0.005, abs=1e-4)
    assert float(variance[0, 0]) < 1e-4
    assert float(variance[1, 1]) == pytest.approx(1)  # not 0.005 squared


def test_draws_average_to_the_mean_rows():
    belief = after(some_data())
    keys = jax.random.split(jax.random.key(0), 4000)
    draws = jax.jit(jax.vmap(lambda key: learned.sample(key, belief, STATES + 1)))(keys)

    def written_out(draw):
        table = jnp.broadcast_to(draw.even[..., None], (STATES, ACTIONS, STATES + 1))
        state, action, _ = np.indices(draw.mass.shape)
        return table.at[state, action, draw.outcome].add(draw.mass)

    tables = np.asarray(jax.jit(jax.vmap(written_out))(draws), dtype=float)
    np.testing.assert_allclose(tables.sum(-1), 1, atol=1e-4)
    # Atoms of the rest may fall on outcomes that were seen, which moves a row by less than the rest weighs.
    rest = np.asarray(learned_rows.shares(belief.rows).prior)[..., None]
    error = tables.std(0) / np.sqrt(len(keys))
    gap = np.abs(tables.mean(0) - np.asarray(learned_rows.mean_table(belief.rows, STATES + 1)))
    assert (gap < 5 * error + 0.8 * rest).all()
    reward = np.asarray(draws.reward, dtype=float)
    mean, variance = (np.asarray(part, dtype=float) for part in learned_noise.posterior(belief.rewards))
    tried = np.asarray(belief.rows.visits) > 0
    assert (np.abs(reward.mean(0) - mean) < 5 * np.sqrt(variance / len(keys)))[tried].all()
    np.testing.assert_allclose(reward.std(0)[tried], np.sqrt(variance)[tried], rtol=0.06)
