import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.induction import monte_carlo
from bellief.mdp.tabular_mdp import TabularMDP

STATES, ACTIONS = 3, 2


@pytest.fixture(scope="module")
def draw():
    """Some MDP for each key; which law they have does not matter here."""

    def one_mdp(key):
        row_key, reward_key = jax.random.split(key)
        rows = jax.nn.softmax(jax.random.normal(row_key, (STATES, ACTIONS, STATES + 1)))
        reward = jax.random.normal(reward_key, (STATES, ACTIONS))
        return TabularMDP(rows[..., :-1], reward, rows[..., -1], jnp.full(STATES, 1 / STATES), jnp.asarray(0.9))

    return jax.jit(one_mdp)


@pytest.fixture(scope="module")
def values():
    return jax.jit(monte_carlo.values, static_argnums=(1, 2, 4))


@pytest.fixture(scope="module")
def mdps(draw):
    keys = jax.vmap(lambda index: jax.random.fold_in(jax.random.key(7), index))(jnp.arange(6))
    return jax.tree.map(np.asarray, jax.vmap(draw)(keys))


@pytest.mark.parametrize("kind", ["stochastic", "deterministic"])
def test_values_of_every_mdp(oracle, draw, values, mdps, kind):
    policy = oracle.random_policy(0, STATES, ACTIONS) if kind == "stochastic" else np.eye(ACTIONS)[[1, 0, 1]]
    single = jnp.asarray(policy, jnp.float32)
    infinite = [oracle.exact_values(oracle.one_of(mdps, j), policy) for j in range(6)]
    finite = [oracle.finite_values(oracle.one_of(mdps, j), policy, 4) for j in range(6)]
    np.testing.assert_allclose(values(jax.random.key(7), 6, draw, single, None), infinite, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(values(jax.random.key(7), 6, draw, single, 4), finite, rtol=1e-3, atol=1e-4)
    assert np.abs(np.subtract(infinite, finite)).max() > 0.1


@pytest.mark.parametrize("mdps_at_once", [1, 2])
def test_a_longer_list_begins_with_the_shorter_one(oracle, draw, values, monkeypatch, mdps_at_once):
    policy = jnp.asarray(oracle.random_policy(1, STATES, ACTIONS), jnp.float32)
    short = values(jax.random.key(7), 3, draw, policy, 4)
    monkeypatch.setattr(monte_carlo, "BATCH_BYTES", mdps_at_once * 8 * STATES**2 * ACTIONS)
    long = jax.jit(lambda key: monte_carlo.values(key, 5, draw, policy, 4))(jax.random.key(7))
    assert long.shape == (5, STATES)
    np.testing.assert_allclose(long[:3], short, rtol=1e-5)
    assert len(np.unique(np.asarray(long))) == 15


def test_batches_are_equal_and_nothing_is_left_over(monkeypatch):
    monkeypatch.setattr(monte_carlo, "BATCH_BYTES", 40)
    for count in (1, 3, 4, 10, 11):
        program = jax.make_jaxpr(lambda count=count: monte_carlo.in_batches(lambda index: 2 * index, count, 10))()
        assert str(program).count(" scan[") <= 1
        np.testing.assert_array_equal(monte_carlo.in_batches(lambda index: 2 * index, count, 10), 2 * np.arange(count))
