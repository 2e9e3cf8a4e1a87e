"""Every value belief in the registry keeps the contract of docs/guides/own-parts.md."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.errors import UserError
from bellief.induction import method1
from bellief.registry import METHOD1_VALUES, METHODS, VALUES, value_belief

MDPS, COUNT, STATES, DRAWS = 3, 40, 2, 200_000


@pytest.fixture(params=VALUES)
def values(request):
    return VALUES[request.param].load()


def samples_and_weights():
    generator = np.random.default_rng(0)
    samples = generator.normal([5.0, -20.0], [1.0, 4.0], (MDPS, COUNT, STATES))
    return jnp.asarray(samples, jnp.float32), jnp.asarray(generator.dirichlet(np.ones(MDPS), COUNT).T, jnp.float32)


def test_equal_samples_have_no_spread(values):
    constant = jnp.asarray([1.5, -20.0])
    equal, even = jnp.broadcast_to(constant, (MDPS, COUNT, STATES)), jnp.full((MDPS, COUNT), 1 / MDPS)
    belief = jax.jit(values.fit)(equal, even)
    np.testing.assert_allclose(values.mean(belief), constant, rtol=1e-5)
    np.testing.assert_allclose(values.sd(belief), 0, atol=1e-4)
    np.testing.assert_allclose(values.quantile(belief, 0.3), constant, rtol=1e-4)
    np.testing.assert_allclose(values.sample(jax.random.key(0), belief, 4), np.tile(constant, (4, 1)), rtol=1e-4)


def test_draws_have_the_mean_the_spread_and_the_quantiles(values, key, check):
    belief = values.fit(*samples_and_weights())
    draws = np.asarray(values.sample(key, belief, DRAWS))
    assert draws.shape == (DRAWS, STATES)
    assert draws.dtype == np.float32
    for state in range(STATES):
        check.mean(draws[:, state], float(values.mean(belief)[state]))
        # A histogram's sd is that of the middles of its bins: up to a bin's width over sqrt(12) apart.
        squares = (draws[:, state] - float(values.mean(belief)[state])) ** 2
        check.mean(squares, float(values.sd(belief)[state]) ** 2, slack=1e-3 * squares.mean())
        below = draws[:, state] < float(values.quantile(belief, 0.8)[state])
        check.frequencies(np.bincount(below, minlength=2), [0.2, 0.8])


def test_shapes_and_types_do_not_depend_on_the_numbers(values):
    samples, weights = samples_and_weights()
    first, second = values.fit(samples, weights), values.fit(100 * samples + 3, weights[:, ::-1])
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), first) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), second
    )


@pytest.mark.parametrize("name", METHOD1_VALUES)
def test_noise_drawn_beforehand_gives_the_same_draws(name, key):
    values = VALUES[name].load()
    if not hasattr(values, "noise"):
        pytest.skip("noise is optional")
    belief = values.fit(*samples_and_weights())
    other = values.fit(2 * samples_and_weights()[0], samples_and_weights()[1])
    noise = values.noise(key, other, 7)
    np.testing.assert_array_equal(values.sample_with(noise, belief), values.sample(key, belief, 7))


def test_one_table_names_value_beliefs():
    assert set(method1.BELIEFS) == set(METHOD1_VALUES) == set(VALUES) - {"joint"}
    assert set(VALUES) <= set(METHODS)


def test_an_incomplete_value_belief_is_named(monkeypatch):
    incomplete = SimpleNamespace(__name__="mine", fit=None, sample=None, mean=None)
    monkeypatch.setitem(VALUES, "mine", SimpleNamespace(load=lambda: incomplete))
    with pytest.raises(UserError, match=r"value belief 'mine' \(mine\) has no sd"):
        value_belief("mine")
