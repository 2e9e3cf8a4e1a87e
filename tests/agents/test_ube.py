"""The uncertainty Bellman equation against brute force where it is exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.agents import ube
from bellief.beliefs import tabular
from bellief.types import Spaces, Transition

# Without cycles: 0 leads to 1 or 2, these to 3 or 4, these end.
LAYERS = {0: (1, 2), 1: (3, 4), 2: (3, 4), 3: (), 4: ()}


def drawn_ensemble(count, seed=0):
    """Rows that are independent and only lead down; rewards of every pair."""
    generator = np.random.default_rng(seed)
    rows, reward = np.zeros((count, 5, 2, 5)), np.zeros((count, 5, 2))
    for state, below in LAYERS.items():
        for action in range(2):
            if below:
                rows[:, state, action, list(below)] = generator.dirichlet([0.6 + action, 1.3], size=count)
            reward[:, state, action] = (state + action) / 3 + (0.2 + 0.3 * action) * generator.normal(size=count)
    return rows, reward


def test_variance_is_exact_without_cycles():
    rows, reward = drawn_ensemble(40_000)
    actions, discount = np.array([0, 1, 0, 1, 0]), 0.9
    mean_rows = np.zeros((5, 2, 5))
    for state, below in LAYERS.items():
        for action in range(2):
            if below:
                alpha = np.array([0.6 + action, 1.3])
                mean_rows[state, action, list(below)] = alpha / alpha.sum()
    mean_reward = np.array([[(state + action) / 3 for action in range(2)] for state in range(5)])
    ensemble = ube.Ensemble(*(jnp.float32(part) for part in (mean_rows, mean_reward, rows, reward)))
    values, q_values, variances, pair_variances = ube.uncertainty(ensemble, jnp.asarray(actions), discount)
    # Brute force: the value in every drawn MDP, by substitution from below.
    exact = np.zeros((len(rows), 5))
    pairs = np.zeros((len(rows), 5, 2))
    for state in (4, 3, 2, 1, 0):
        pairs[:, state] = reward[:, state] + discount * np.einsum("jat,jt->ja", rows[:, state], exact)
        exact[:, state] = pairs[:, state, actions[state]]
    # Relative error of a variance from 40,000 draws: sqrt(2 / 40,000) = 0.7%, five times that.
    np.testing.assert_allclose(variances, exact.var(0), rtol=0.035)
    np.testing.assert_allclose(pair_variances, pairs.var(0), rtol=0.035)
    np.testing.assert_allclose(values, exact.mean(0), atol=0.02)
    np.testing.assert_allclose(q_values, pairs.mean(0), atol=0.02)


def test_prior_is_that_of_the_paper():
    spaces = Spaces(4, 2, True, None, None)
    config = ube.Config(repeat=3, mdps=400)
    belief = tabular.init(4, 2, True)
    belief = tabular.update(belief, Transition(*map(jnp.asarray, (0, 1, 2.0, 3, False))))
    ensemble = ube.draw(jax.random.key(0), config, belief, spaces.support)
    # Dirichlet(1/2) over five outcomes, three observations of one of them.
    np.testing.assert_allclose(ensemble.mean_rows[0, 1], np.array([0.5, 0.5, 0.5, 3.5]) / 5.5, rtol=1e-5)
    assert float(ensemble.mean_reward[0, 1]) == pytest.approx(2, abs=1e-3)
    spread = np.asarray(ensemble.reward).std(0)
    assert spread[0, 1] < 0.01
    np.testing.assert_allclose(spread[1:], 1, atol=0.2)  # 400 draws: standard error 0.035


def test_optimism_prefers_what_is_uncertain():
    """Two actions of equal mean reward; one was tried often."""
    spaces = Spaces(1, 2, True, None, None)
    config = ube.Config(mdps=20, discount=0.1)  # the recursion overstates what returns to a state
    state = ube.init(jax.random.key(0), config, spaces)
    for _ in range(5):
        state = ube.update(config, state, Transition(*map(jnp.asarray, (0, 0, 0.0, 0, True))))
    state, info = ube.plan(jax.random.key(1), config, spaces, state)
    assert state.actions.tolist() == [1]
    assert float(info.value_sd[0]) > 0.5
