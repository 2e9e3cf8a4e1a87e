"""All psi_i on request: those of every shorter horizon, and the last one is the usual answer."""

import jax
import jax.numpy as jnp
import numpy as np

from bellief.envs import make
from bellief.induction import evaluate, method1
from bellief.mdp import bellman

WORLDS = [make("nchain", slip=slip).mdp(discount=0.9) for slip in (0.1, 0.2, 0.3)]
MDPS = jax.tree.map(lambda *leaves: np.float32(leaves), *WORLDS)
POLICY = np.full((5, 2), 0.5, np.float32)


def test_joint_beliefs_of_all_steps_are_the_values_of_shorter_horizons():
    found = evaluate.every_joint(MDPS, POLICY, horizon=6)
    for steps in range(1, 7):
        expected = jax.vmap(bellman.evaluate_finite, in_axes=(0, None, None))(MDPS, POLICY, steps)
        np.testing.assert_allclose(found.mean[steps - 1], expected, rtol=1e-5)


def test_method1_beliefs_of_all_steps_end_in_the_usual_one():
    settings = method1.Settings(samples=8, utility_samples=2)
    given = (jax.random.key(0), settings, MDPS, POLICY, 5, jnp.array(100.0))
    plain, whole = evaluate.by_method1(*given), evaluate.every_method1(*given)
    assert whole.mean.shape == (5, 5)
    np.testing.assert_array_equal(whole.mean[-1], plain.belief.belief.mean)
    # From zero, one step of reward: the same in every sample, so psi_{H-1} is the average over the MDPs.
    _, reward = jax.vmap(bellman.under_policy, in_axes=(0, None))(MDPS, POLICY)
    np.testing.assert_allclose(whole.mean[0], np.asarray(reward).mean(0), rtol=1e-5)
