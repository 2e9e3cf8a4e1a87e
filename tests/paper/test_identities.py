"""The computations behind the statements beside the figures, against what is known of them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.envs import make
from bellief.induction import evaluate, method1
from bellief.paper import identities
from bellief.paper.computations import data_set

POLICY = np.tile((0.8, 0.2), (5, 1))
WORLDS = [make("nchain", slip=slip).mdp(discount=identities.DISCOUNT) for slip in (0.1, 0.2, 0.3)]
MDPS = jax.tree.map(lambda *leaves: np.float32(leaves), *WORLDS)


@pytest.mark.parametrize("distribution", [None, np.full(5, 0.2)])
def test_one_mdp_leaves_nothing_uncertain(distribution):
    transition, reward = (part[:1] for part in identities.chains_of(MDPS, POLICY))
    mean, sd = identities.induction(np.random.default_rng(0), transition, reward, distribution)
    np.testing.assert_allclose(mean, identities.finite_values(transition, reward)[0], rtol=1e-9)
    np.testing.assert_allclose(sd, 0.0, atol=1e-4)


def test_a_uniform_q_is_method_1():
    """Means and spreads over 20 runs of each; tolerance at a rate of 1e-5 for ten numbers."""
    transition, reward = identities.chains_of(MDPS, POLICY)
    own = np.array(
        [identities.induction(np.random.default_rng(n), transition, reward, np.full(5, 0.2)) for n in range(20)]
    )
    settings = method1.Settings(samples=identities.SAMPLES, utility_samples=identities.UTILITY_SAMPLES)
    span = jnp.array(100 * identities.SIGMA)

    def run(key):
        belief = evaluate.by_method1(key, settings, MDPS, np.float32(POLICY), identities.HORIZON, span).belief.belief
        return jnp.stack([belief.mean, jnp.sqrt(jnp.sum(belief.factor**2, axis=0))])

    theirs = np.asarray(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), 20)))
    error = np.sqrt((own.var(0, ddof=1) + theirs.var(0, ddof=1)) / 20)
    assert (np.abs(own.mean(0) - theirs.mean(0)) < 5.8 * error + 1e-4).all()


def test_information_states_by_brute_force():
    """All paths of three steps, equal counts once."""
    found = set()
    for path in itertools.product(itertools.product(range(2), range(5)), repeat=3):
        state, seen = 0, []
        for action, following in path:
            seen.append((state, action, following))
            state = following
        found.add((state, tuple(sorted(seen))))
    assert identities.information_states(3).tolist() == [1, 10, 99, len(found)]


def test_sampled_mdps_come_from_the_posterior():
    """With a thousand transitions the mean of draws is near the empirical frequencies."""
    data = data_set("back-heavy", 1000, 0)
    mdps = identities.drawn(data, 200, 0)
    first = (data.state == 0) & (data.action == 0)
    share = np.mean(data.next_state[first] == 0)
    assert np.asarray(mdps.transition)[:, 0, 0, 0].mean() == pytest.approx(share, abs=0.02)
