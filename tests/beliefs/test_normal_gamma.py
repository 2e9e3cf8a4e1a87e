import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief.beliefs import dirichlet, normal_gamma
from bellief.beliefs.normal_gamma import Parameters, Statistics

PRIOR = Parameters(0.5, 2.0, 1.5, 0.7)
REWARDS = np.array([1.0, -2.0, 0.25, 4.0, 4.0])
ROW = (jnp.asarray(0),)


def statistics_of(rewards):
    return Statistics(
        jnp.asarray([len(rewards)], jnp.int32),
        jnp.asarray([np.mean(rewards)]),
        jnp.asarray([((rewards - np.mean(rewards)) ** 2).sum()]),
    )


def one_by_one(statistics, rewards):
    def step(carry, reward):
        return normal_gamma.update(carry, ROW, reward), None

    return jax.lax.scan(step, statistics, jnp.asarray(rewards))[0]


@pytest.mark.usefixtures("double")
def test_posterior_by_repeated_conjugate_updates():
    mean, strength, shape, rate = PRIOR
    for reward in REWARDS:
        rate += strength * (reward - mean) ** 2 / (2 * (strength + 1))
        mean = (strength * mean + reward) / (strength + 1)
        strength, shape = strength + 1, shape + 0.5
    posterior = normal_gamma.posterior(PRIOR, statistics_of(REWARDS))
    np.testing.assert_allclose(np.concatenate(posterior), [mean, strength, shape, rate], rtol=1e-12)
    assert normal_gamma.mean(posterior) == posterior.mean


@pytest.mark.usefixtures("double")
def test_posterior_without_data_is_the_prior():
    posterior = normal_gamma.posterior(PRIOR, normal_gamma.init((3,), jnp.float64))
    np.testing.assert_array_equal(np.stack(posterior), np.repeat(np.array(PRIOR)[:, None], 3, axis=1))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("mean", "precision"), [(0.0, 1.0), (-1.3, 0.2), (2.0, 5.0)])
def test_log_density(mean, precision):
    location, strength, shape, rate = PRIOR
    expected = stats.gamma(shape, scale=1 / rate).logpdf(precision) + stats.norm(
        location, 1 / np.sqrt(strength * precision)
    ).logpdf(mean)
    assert normal_gamma.log_density(PRIOR, jnp.asarray(mean), jnp.asarray(precision)) == pytest.approx(expected)


@pytest.mark.usefixtures("double")
def test_one_at_a_time_and_in_batches_and_combined():
    rewards = np.random.default_rng(0).normal(3, 2, 40)
    rows = np.random.default_rng(1).integers(0, 3, 40)
    expected = [(rows == row).sum() for row in range(3)]
    means = [rewards[rows == row].mean() for row in range(3)]
    squares = [((rewards[rows == row] - rewards[rows == row].mean()) ** 2).sum() for row in range(3)]

    single = empty = normal_gamma.init((4,), jnp.float64)
    update = jax.jit(normal_gamma.update)
    for row, reward in zip(rows, rewards, strict=True):
        single = update(single, (jnp.asarray(row),), jnp.asarray(reward))
    batch = normal_gamma.update_batch(empty, (jnp.asarray(rows),), jnp.asarray(rewards))
    two_batches = empty
    for part in (slice(0, 13), slice(13, 40)):
        two_batches = normal_gamma.update_batch(two_batches, (jnp.asarray(rows[part]),), jnp.asarray(rewards[part]))
    halves = [
        normal_gamma.update_batch(empty, (jnp.asarray(rows[part]),), jnp.asarray(rewards[part]))
        for part in (slice(0, 30), slice(30, 40))
    ]
    for statistics in (single, batch, two_batches, normal_gamma.combine(*halves)):
        np.testing.assert_array_equal(statistics.count, [*expected, 0])
        np.testing.assert_allclose(statistics.mean, [*means, 0], rtol=1e-12)
        np.testing.assert_allclose(statistics.squares, [*squares, 0], rtol=1e-12)


@pytest.mark.parametrize("offset", [1e4, -1e4])
def test_a_large_offset_leaves_single_precision_accurate(offset):
    rewards = (offset + np.random.default_rng(0).normal(0, 0.1, 1000)).astype(np.float32)
    exact = rewards.astype(np.float64)
    squares = ((exact - exact.mean()) ** 2).sum()
    empty = normal_gamma.init((1,))
    rows = (jnp.zeros(500, int),)
    first = normal_gamma.update_batch(empty, rows, jnp.asarray(rewards[:500]))
    both = normal_gamma.update_batch(first, rows, jnp.asarray(rewards[500:]))
    spacing = np.spacing(np.float32(abs(offset)))
    # One at a time, the running mean stands still once a change is below half the spacing of numbers of its size; with
    # a spread of 0.1 that is after some 200 rewards, when the mean is known to about seven spacings.
    for statistics, reach in ((both, 2), (one_by_one(empty, rewards), 20), (one_by_one(first, rewards[500:]), 20)):
        assert statistics.mean.dtype == np.float32
        np.testing.assert_allclose(statistics.mean[0], exact.mean(), atol=reach * spacing, rtol=0)
        np.testing.assert_allclose(statistics.squares[0], squares, rtol=0.01)


def test_counts_stay_exact_where_single_precision_does_not():
    many = 2**25
    before = Statistics(jnp.asarray([many], jnp.int32), jnp.asarray([1.0]), jnp.asarray([2.0]))
    assert normal_gamma.update(before, ROW, jnp.asarray(1.0)).count.tolist() == [many + 1]
    batch = normal_gamma.update_batch(before, (jnp.zeros(1, int),), jnp.ones(1))
    assert batch.count.tolist() == [many + 1]
    np.testing.assert_allclose(batch.mean, [1.0])


@pytest.fixture(scope="module")
def draws():
    parameters = Parameters(*(jnp.full(20_000, value) for value in PRIOR))
    return jax.jit(lambda key: normal_gamma.sample(key, parameters))


def test_sampled_means_are_student(key, check, draws):
    location, strength, shape, rate = PRIOR
    means, _ = draws(key)
    check.same_law(means, stats.t(2 * shape, location, np.sqrt(rate / (shape * strength))))


def test_sampled_spreads_are_inverse_gamma(key, check, draws):
    _, _, shape, rate = PRIOR
    _, spreads = draws(key)
    check.same_law(np.asarray(spreads) ** -2.0, stats.gamma(shape, scale=1 / rate))


def test_sampled_means_are_normal_given_the_spread(key, check, draws):
    means, spreads = map(np.asarray, draws(key))
    standard = (means - PRIOR.mean) * np.sqrt(PRIOR.strength) / spreads
    check.same_law(standard, stats.norm())
    # ... whatever the spread: small and large ones apart.
    check.same_law(standard[spreads < np.median(spreads)], stats.norm())


def test_beyond_two_to_the_24():
    """Single precision has no odd numbers there: counts go on, and mean and variance follow what is seen."""
    start, more = 2**24 + 1, 200_000
    rewards = np.where(np.arange(more) % 10 < 7, 10.0, 2.0)  # mean 7.6, variance 13.44; so far 8 and 1
    statistics = normal_gamma.Statistics(
        jnp.full(1, start, jnp.int32), jnp.full(1, 8.0, jnp.float32), jnp.full(1, float(start), jnp.float32)
    )

    def step(statistics, reward):
        return normal_gamma.update(statistics, (0,), reward), None

    after, _ = jax.lax.scan(step, statistics, jnp.asarray(rewards, jnp.float32))
    total = start + more
    mean = (8.0 * start + rewards.sum()) / total
    squares = start + ((rewards - rewards.mean()) ** 2).sum() + (8.0 - rewards.mean()) ** 2 * start * more / total
    assert int(after.count[0]) == total
    # Rounding moves the mean by less than a fiftieth of its standard error.
    assert float(after.mean[0]) == pytest.approx(mean, abs=0.02 * np.sqrt(squares / total / total))
    assert float(after.squares[0]) - start == pytest.approx(squares - start, rel=0.01)


def test_counts_beyond_two_to_the_24():
    counts = dirichlet.init((1,), 2).at[0].set(jnp.array([2**24, 2**30]))
    for _ in range(3):
        counts = dirichlet.update(counts, (0,), jnp.array(0))
    assert counts.tolist() == [[2**24 + 3, 2**30]]
    assert np.isfinite(np.asarray(dirichlet.sample(jax.random.key(0), 0.5, counts))).all()
