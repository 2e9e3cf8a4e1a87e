"""One group is the paper's Gaussian, as many groups as MDPs are the joint belief, and the spread grows in between."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.beliefs import tabular
from bellief.envs import make
from bellief.errors import UserError
from bellief.induction import evaluate, grouped, method1
from bellief.types import Transition
from bellief.values import grouped_values as values
from bellief.values import joint

pytestmark = pytest.mark.long

POLICY = np.tile(np.float32([0.8, 0.2]), (5, 1))


@pytest.fixture(scope="module")
def mdps():
    """Sixteen MDPs from a posterior on NChain."""
    rng, outcomes = np.random.default_rng(0), make("nchain").outcomes
    state, rows = 0, []
    for _ in range(100):
        action = int(rng.random() < 0.2)
        outcome = int(rng.random() >= outcomes.probability[state, action, 0])
        following = int(outcomes.next_state[state, action, outcome])
        rows.append((state, action, outcomes.reward[state, action, outcome], following, False))
        state = following
    seen = Transition(*(np.array(column) for column in zip(*rows, strict=True)))
    belief = tabular.update_batch(tabular.init(5, 2), seen._replace(reward=np.float32(seen.reward)))
    keys = jax.random.split(jax.random.key(1), 16)
    return jax.vmap(lambda key: tabular.sample(key, tabular.PAPER_PRIOR, belief, 0.95))(keys)


def test_as_many_groups_as_mdps_are_the_joint_belief(mdps):
    found = grouped.by_groups(mdps, POLICY, horizon=60, count=16)
    expected = evaluate.by_joint(mdps, POLICY, horizon=60)
    np.testing.assert_allclose(values.mean(found), joint.mean(expected), rtol=1e-5)
    np.testing.assert_allclose(values.sd(found), joint.sd(expected), rtol=1e-4)
    np.testing.assert_allclose(values.quantile(found, 0.3), joint.quantile(expected, 0.3), rtol=1e-2)
    assert float(jnp.abs(found.covariance).max()) < 1e-3


def test_one_group_is_the_gaussian_of_the_paper_with_equal_weights(mdps):
    """The moments against Method 1 with 4,000 samples a step, over ten runs; tolerance at a rate of 1e-5."""
    found = grouped.by_groups(mdps, POLICY, horizon=30, count=1)
    settings = method1.Settings(samples=4_000, utility_samples=1, likelihood="mean-field")
    run = jax.jit(lambda key: evaluate.by_method1(key, settings, mdps, POLICY, 30, jnp.array(100.0)).belief.belief)
    beliefs = [run(key) for key in jax.random.split(jax.random.key(0), 10)]
    means = np.array([belief.mean for belief in beliefs])
    spreads = np.array([np.sqrt(np.sum(np.asarray(belief.factor) ** 2, axis=0)) for belief in beliefs])
    for seen, expected in ((means, values.mean(found)), (spreads, values.sd(found))):
        error = seen.std(0, ddof=1) / np.sqrt(10)
        # Student's t with nine degrees of freedom, five states.
        np.testing.assert_array_less(np.abs(seen.mean(0) - np.asarray(expected)), 9.5 * error + 1e-5)


def test_more_groups_keep_more_of_the_spread(mdps):
    spread = [float(values.sd(grouped.by_groups(mdps, POLICY, 60, count))[0]) for count in (1, 2, 4, 8, 16)]
    assert spread == sorted(spread)
    assert spread[0] < 0.5 * spread[-1]


def test_samples_have_the_moments(mdps):
    """At a rate of 1e-5 for ten numbers."""
    belief = grouped.by_groups(mdps, POLICY, 60, 3)
    drawn = np.asarray(values.sample(jax.random.key(2), belief, 20_000))
    error = drawn.std(0, ddof=1) / np.sqrt(len(drawn))
    np.testing.assert_array_less(np.abs(drawn.mean(0) - values.mean(belief)), 4.9 * error)
    np.testing.assert_allclose(drawn.std(0), values.sd(belief), rtol=0.04)


def test_groups_are_of_nearly_equal_size():
    group = values.groups_by_value(jnp.array([3.0, 1.0, 2.0, 5.0, 4.0]), 2)
    assert group.tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(UserError, match="1 to 5 groups"):
        values.groups_by_value(jnp.arange(5.0), 6)
