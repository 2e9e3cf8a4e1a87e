import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief.beliefs import dirichlet

COUNTS = jnp.asarray([0, 3, 0, 1, 12, 0], jnp.int32)
DRAWS = 20_000
KEY = jax.random.key(0)
# Prior and support: the general sampler; half squares for the prior, exactly as wide as needed, wider, and so wide that
# the general sampler takes over; a sparse prior by its jumps, at its usual weight and at the largest that is allowed.
PATHS = {
    "general": (0.5, None),
    "support": (0.5, 3),
    "wide": (0.5, 5),
    "full": (0.5, 6),
    "sparse": (1 / 6, 3),
    "heaviest": (1 / 3, 4),
}


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


def test_which_path_is_taken(monkeypatch):
    """The shortcuts where they are exact and worth it, the general sampler everywhere else."""
    taken = []

    def noted(name):
        def weights(key, prior, shape, dtype, observed):
            del key, prior, observed
            taken.append(name)
            return jnp.ones(shape, dtype)

        return weights

    monkeypatch.setattr(dirichlet, "_half_squares", noted("half squares"))
    monkeypatch.setattr(dirichlet, "_jumps", noted("jumps"))
    # The last prior weighs 2.4 together, more than the jumps are made for.
    for prior, support in [(0.5, 3), (1 / 6, 3), (1 / 3, 5), (0.5, 6), (1 / 6, None), (0.4, 3)]:
        before = len(taken)
        jax.eval_shape(
            lambda key, prior=prior, support=support: dirichlet.sample(key, prior, COUNTS, support=support), KEY
        )
        taken += ["general"] * (len(taken) == before)
    assert taken == ["half squares", "jumps", "jumps", "general", "general", "general"]


def test_observations_add_to_what_the_prior_gave(key, monkeypatch):
    """Without a prior's share, a seen column has Gamma(n) and an unseen one nothing: Dirichlet(n) rows."""
    monkeypatch.setattr(dirichlet, "_half_squares", lambda key, prior, shape, dtype, _: jnp.zeros(shape, dtype))
    draws = np.asarray(sampler(0.5, 4)(jax.random.split(key, 5000)), np.float64)
    seen = np.asarray(COUNTS) > 0
    assert (draws[:, ~seen] == 0).all()
    mean, covariance = moments(np.array([3.0, 1.0, 12.0]))
    centred = draws[:, seen] - mean
    reach = 6 / np.sqrt(5000)
    np.testing.assert_allclose(centred.mean(0), 0, atol=reach * np.sqrt(covariance.diagonal().max()))
    np.testing.assert_allclose(centred.T @ centred / 5000, covariance, atol=3 * reach * covariance.max())


def test_jumps_are_a_gamma_process(key, check):
    """Columns alone are Gamma(prior), sums of columns Gamma of the sum, and columns do not depend on one another."""
    many, outcomes = 20_000, 40
    weights = np.asarray(jax.jit(lambda one: dirichlet._jumps(one, 1 / 40, (many, outcomes), jnp.float32, True))(key))
    check.same_law(weights.sum(1, dtype=np.float64), stats.gamma(1.0))
    check.same_law(weights[:, :20].sum(1, dtype=np.float64), stats.gamma(0.5))
    check.same_law(weights[:, 3:13].sum(1, dtype=np.float64), stats.gamma(0.25))
    # A single column is most often smaller than anything that is kept; there only its size above that counts.
    floor = 1e-12
    alone = weights[:, 17].astype(np.float64)
    above = stats.gamma(1 / 40)
    check.frequencies([(alone > floor).sum(), (alone <= floor).sum()], [above.sf(floor), above.cdf(floor)])
    kept = alone[alone > floor]
    assert stats.kstest(kept, lambda x: (above.cdf(x) - above.cdf(floor)) / above.sf(floor)).pvalue > 1e-5
    first, second = weights[:, :20].sum(1), weights[:, 20:].sum(1)
    check.mean((first - 0.5) * (second - 0.5), np.array(0.0))


def test_rows_of_a_very_light_prior_are_probabilities(key):
    """Jumps of a prior that weighs 0.05 are often too small for float32; rows without data need them all the same."""
    counts = jnp.zeros((20_000, 9), jnp.int32).at[0, 3].set(2)
    rows = np.asarray(dirichlet.sample(key, 0.05 / 9, counts, support=1))
    np.testing.assert_allclose(rows.sum(1, dtype=np.float64), 1, atol=1e-6)
    assert rows[0, 3] > 0.9
    # One jump has nearly everything, in any column alike.
    np.testing.assert_allclose(rows[1:].mean(0), 1 / 9, atol=6 * np.sqrt(1 / 9 / 20_000))


@pytest.mark.slow
def test_jumps_and_general_path_have_one_law_in_a_large_table(key, check):
    """A row of a maze with a sparse prior: two outcomes seen of 265."""
    counts = jnp.zeros(265, jnp.int32).at[jnp.asarray([7, 200])].set(jnp.asarray([2, 1]))
    first, second = jax.random.split(key)
    general = np.asarray(sampler(1 / 265, None, counts=counts)(jax.random.split(first, 4000)))
    fast = np.asarray(sampler(1 / 265, 2, counts=counts)(jax.random.split(second, 4000)))
    for rows in (general, fast):
        np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-5)
    unseen = np.ones(265, bool)
    unseen[[7, 200]] = False
    for function in (
        lambda rows: rows[:, 7],
        lambda rows: rows[:, 200],
        lambda rows: rows[:, unseen].sum(1),
        lambda rows: rows[:, unseen].max(1),
        # A column alone is tiny as a rule; ties at zero would not be comparable.
        lambda rows: np.maximum(rows[:, unseen][:, :40].max(1), 1e-12),
    ):
        check.same_laws(function(general), function(fast))
    check.same_law(fast[:, 7], stats.beta(2 + 1 / 265, 2 - 1 / 265))


@pytest.mark.parametrize(("prior", "support"), [(0.5, None), (0.5, 2), (0.25, 2)])
def test_every_row_is_drawn_by_itself(key, prior, support):
    counts = jnp.asarray([[[0, 900, 0, 100]], [[100, 0, 0, 900]], [[0, 0, 0, 0]], [[0, 0, 0, 0]]])
    rows = np.asarray(jax.jit(lambda one: dirichlet.sample(one, prior, counts, support=support))(key))
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
