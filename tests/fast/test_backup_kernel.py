"""The kernel for NVIDIA GPUs, interpreted, against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

backup_kernel = pytest.importorskip("bellief.fast.backup_kernel")


@pytest.mark.parametrize("states", [16, 70])
def test_backups_under_a_policy(states):
    rng = np.random.default_rng(0)
    transition = rng.dirichlet(np.ones(states), (2, states, 3))
    reward = rng.normal(size=(2, states, 3))
    actions, values = rng.integers(0, 3, states), rng.normal(size=(5, states))
    found = backup_kernel.back_up(
        jnp.asarray(transition, jnp.float32),
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(actions, jnp.int32),
        jnp.asarray(values, jnp.float32),
        interpret=True,
    )
    rows = np.arange(states)
    expected = reward[:, None, rows, actions] + np.einsum("jst,kt->jks", transition[:, rows, actions], values)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_widths_cover_all_and_little_more():
    for size in range(1, 600):
        assert size <= sum(backup_kernel._widths(size)) < size + 16
