import jax.numpy as jnp
import numpy as np
import pytest

from bellief.fast import gaussian_induction
from bellief.induction import weights

MDPS, SAMPLES, UTILITIES, STATES = 3, 5, 4, 2


def case(seed=0):
    generator = np.random.default_rng(seed)
    values = generator.normal(0, 2, (SAMPLES, STATES))
    return values, generator.normal(0, 2, (MDPS, UTILITIES, STATES))


def plain_weights(values, utilities, sigma, likelihood="mixture"):
    """The paper's w_jk (mixture) by loops over plain exponentials, and the denominator."""
    mdps, draws, states = utilities.shape
    table = np.zeros((mdps, len(values)))
    for j in range(mdps):
        for k in range(len(values)):
            terms = np.array(
                [
                    [np.exp(-(abs(values[k, s] - utilities[j, m, s]) ** 2) / (2 * sigma**2)) for s in range(states)]
                    for m in range(draws)
                ]
            )
            table[j, k] = terms.sum() if likelihood == "mixture" else np.prod(terms.mean(0))
    total = table.sum(0)
    return table / np.where(total > 0, total, 1), total


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("likelihood", ["mixture", "product"])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.0])
def test_weights_against_plain_sums(likelihood, sigma):
    values, utilities = case()
    logs = weights.log_likelihood(jnp.asarray(values), jnp.asarray(utilities), jnp.asarray(sigma), likelihood)
    expected, _ = plain_weights(values, utilities, sigma, likelihood)
    np.testing.assert_allclose(weights.normalise(logs), expected, rtol=1e-9)


def test_mixture_and_product_differ():
    values, utilities = case()
    mixture, product = (plain_weights(values, utilities, 1.0, name)[0] for name in ("mixture", "product"))
    assert np.abs(mixture - product).max() > 0.1


def test_mean_field_ignores_the_values():
    values, utilities = case()
    logs = weights.log_likelihood(jnp.asarray(values), jnp.asarray(utilities), jnp.asarray(1.0), "mean-field")
    np.testing.assert_allclose(weights.normalise(logs), np.full((MDPS, SAMPLES), 1 / 3), rtol=1e-6)


@pytest.mark.parametrize("likelihood", weights.LIKELIHOODS)
def test_weights_sum_to_one_over_the_mdps_even_far_out(likelihood):
    values, utilities = case()
    logs = weights.log_likelihood(
        jnp.asarray(values, jnp.float32), jnp.asarray(100 * utilities, jnp.float32), jnp.asarray(0.5), likelihood
    )
    np.testing.assert_allclose(weights.normalise(logs).sum(0), np.ones(SAMPLES), rtol=1e-6)


def test_effective_sample_size_by_hand():
    table = jnp.asarray([[0.25, 1.0, 0.5], [0.25, 0.0, 0.5], [0.25, 0.0, 0.0], [0.25, 0.0, 0.0]])
    np.testing.assert_allclose(weights.effective_sample_size(table), [4.0, 1.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize("distance", [0.0, 10.0, 30.0, 37.0, 37.4, 38.7, 50.0, 1e3, 1e6])
def test_unstable_is_where_the_plain_form_underflows(distance):
    values, utilities = np.zeros((2, 1)), np.full((MDPS, 1, 1), distance)
    values[1] = distance
    logs = weights.log_likelihood(
        jnp.asarray(values, jnp.float32), jnp.asarray(utilities, jnp.float32), jnp.asarray(1.0), "mixture"
    )
    _, total = plain_weights(values, utilities, 1.0)
    # Below the smallest normal number doubles lose digits; from 38.7 standard deviations on nothing is left.
    assert bool(weights.is_unstable(logs)) == bool((total < np.finfo(np.float64).smallest_normal).any())


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), float("inf")])
def test_weights_that_are_no_numbers_are_unstable(bad):
    assert weights.is_unstable(jnp.full((MDPS, SAMPLES), 0.0).at[:, 2].set(bad))
    assert not weights.is_unstable(jnp.zeros((MDPS, SAMPLES)).at[1].set(-jnp.inf))


@pytest.mark.parametrize("likelihood", weights.LIKELIHOODS)
def test_one_pass_gives_the_same_weights_where_it_can_be_trusted(likelihood):
    values, utilities = (jnp.asarray(part, jnp.float32) for part in case())
    found, trusted = gaussian_induction.direct_weights(values, utilities, jnp.asarray(1.0), likelihood)
    expected = weights.normalise(weights.log_likelihood(values, utilities, jnp.asarray(1.0), likelihood))
    assert trusted.all()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_one_pass_is_trusted_as_long_as_one_mdp_explains_each_value():
    values = jnp.asarray([[0.0], [8.0]])
    near, far = jnp.zeros((1, 1, 1)), jnp.full((1, 1, 1), 100.0)
    found, trusted = gaussian_induction.direct_weights(
        values, jnp.concatenate([near, far]), jnp.asarray(1.0), "mixture"
    )
    assert trusted.all()  # 8 standard deviations are e^-32
    np.testing.assert_array_equal(found, [[1, 1], [0, 0]])
    # 11 of them, e^-60.5, are held by float32 too, but terms that count could have been lost.
    assert not gaussian_induction.direct_weights(values + 3.0, near, jnp.asarray(1.0), "mixture")[1].all()
    assert not gaussian_induction.direct_weights(values, far, jnp.asarray(1.0), "mixture")[1].all()
    assert not gaussian_induction.direct_weights(values * jnp.nan, near, jnp.asarray(1.0), "mixture")[1].all()
