import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief.beliefs import dirichlet

COUNTS = jnp.asarray([0, 3, 0, 1, 12, 0], jnp.int32)
DRAWS = 20_000
# Prior and support: the general sampler, the fast path exactly as wide as needed, a wider one, one over the number of
# outcomes (where the fast path must not be taken).
PATHS = {"general": (0.5, None), "support": (0.5, 3), "wide": (0.5, 5), "full": (0.5, 6), "sparse": (1 / 6, 3)}


def sampler(prior, support, dtype=jnp.float32, counts=COUNTS):
    return jax.jit(jax.vmap(lambda key: dirichlet.sample(key, prior, counts, dtype, support)))


@pytest.fixture(scope="module")
def samplers():
    return {name: sampler(*path) for name, path in PATHS.items()}


def moments(concentration):
    total = concentration.sum()
    mean = concentration / total
    return mean, (np.diag(mean) - np.outer(mean, mean)) / (total + 1)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("prior", [0.5, 1 / 6, 2.0])
def test_log_density(prior):
    rows = np.random.default_rng(0).dirichlet(np.ones(6), (2, 3))
    counts = np.random.default_rng(1).integers(0, 9, (2, 3, 6))
    densities = dirichlet.log_density(prior, jnp.asarray(counts), jnp.asarray(rows))
    for index in np.ndindex(2, 3):
        assert densities[index] == pytest.approx(stats.dirichlet(prior + counts[index]).logpdf(rows[index]), rel=1e-10)


def test_mean_by_hand():
    counts = jnp.asarray([[0, 1, 3], [0, 0, 0]])
    np.testing.assert_allclose(
        dirichlet.mean(0.5, counts), [[0.5 / 5.5, 1.5 / 5.5, 3.5 / 5.5], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6
    )


@pytest.mark.parametrize("path", PATHS)
def test_mean_and_covariance_of_samples(key, check, samplers, path):
    draws = np.asarray(samplers[path](jax.random.split(key, DRAWS)), np.float64)
    np.testing.assert_allclose(draws.sum(1), 1, rtol=1e-5)
    mean, covariance = moments(PATHS[path][0] + np.asarray(COUNTS))
    check.mean(draws, mean)
    centred = draws - mean
    check.mean(centred[:, :, None] * centred[:, None, :], covariance)


@pytest.mark.parametrize("path", PATHS)
def test_marginals_of_samples_are_beta(key, check, samplers, path):
    draws = np.asarray(samplers[path](jax.random.split(key, DRAWS)))
    concentration = PATHS[path][0] + np.asarray(COUNTS)
    for column, shape in enumerate(concentration):
        check.same_law(draws[:, column], stats.beta(shape, concentration.sum() - shape))


def test_fast_and_general_path_have_one_law(key, check, samplers):
    first, second = jax.random.split(key)
    general = np.asarray(samplers["general"](jax.random.split(first, DRAWS)))
    fast = np.asarray(samplers["support"](jax.random.split(second, DRAWS)))
    for column in range(6):
        check.same_laws(general[:, column], fast[:, column])
    # A function of several columns at once.
    check.same_laws(general[:, 0] / general[:, :3].sum(1), fast[:, 0] / fast[:, :3].sum(1))


@pytest.mark.parametrize("support", [None, 2])
def test_every_row_is_drawn_by_itself(key, support):
    counts = jnp.asarray([[[0, 900, 0, 100]], [[100, 0, 0, 900]], [[0, 0, 0, 0]], [[0, 0, 0, 0]]])
    rows = np.asarray(jax.jit(lambda one: dirichlet.sample(one, 0.5, counts, support=support))(key))
    # Standard deviation of the largest entry is below 0.01.
    np.testing.assert_allclose(rows[:2, 0].max(1), 0.9, atol=0.05)
    assert rows[:2, 0].argmax(1).tolist() == [1, 3]
    assert len(np.unique(rows[2:])) == 8


def test_batch_update_counts_repetitions():
    counts = dirichlet.init((2, 2), 3)
    rows = (jnp.asarray([0, 0, 0, 1]), jnp.asarray([1, 1, 0, 1]))
    counts = dirichlet.update(counts, rows, jnp.asarray([2, 2, 0, 1]))
    np.testing.assert_array_equal(counts, [[[1, 0, 0], [0, 0, 2]], [[0, 0, 0], [0, 1, 0]]])
    counts = dirichlet.update(counts, (jnp.asarray(0), jnp.asarray(1)), jnp.asarray(2))
    assert counts[0, 1, 2] == 3


def test_counts_stay_exact_where_single_precision_does_not():
    many = 2**25
    counts = jnp.full((1, 2), many, jnp.int32)
    counts = dirichlet.update(counts, (jnp.asarray(0),), jnp.asarray(1))
    assert counts.tolist() == [[many, many + 1]]
