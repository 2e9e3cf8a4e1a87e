import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief import UserError
from bellief.induction import method1
from bellief.values import gaussian

STATES, MDPS = 3, 4
SMALL = method1.Settings(samples=6, utility_samples=2)


draw_once = method1.draw
draw = jax.jit(draw_once, static_argnums=1)


def single(mdps):
    return jax.tree.map(lambda field: jnp.asarray(field, jnp.float32), mdps)


def chains(mdps, policy):
    return jnp.einsum("sa,jsat->jst", policy, mdps.transition), jnp.einsum("sa,jsa->js", policy, mdps.reward)


def push(key, settings, progress, mdps, policy, values, weight):
    """Back up, and refit."""
    transition, reward = chains(mdps, policy)
    samples = reward[:, None] + mdps.discount[0] * jnp.einsum("jst,kt->jks", transition, values)
    return method1.refit(key, settings, progress, mdps, policy, samples, weight)


def run(key, settings, mdps, policy, final, steps, sigma=1.0):
    """Several steps of Method 1, without the library's own loop."""

    def step(progress, step_key):
        draw_key, push_key = jax.random.split(step_key)
        values, weight, progress, _ = draw_once(draw_key, settings, progress)
        return push(push_key, settings, progress, mdps, policy, values, weight), None

    @jax.jit
    def all_steps(keys):
        return jax.lax.scan(step, method1.start(settings, final, jnp.asarray(sigma)), keys)[0]

    return all_steps(jax.random.split(key, steps))


@pytest.mark.parametrize(("values", "likelihood"), [("gaussian", "mixture"), ("histogram", "product")])
def test_constant_values_stay_constant_without_reward_and_discount(oracle, values, likelihood):
    # The printed factor 1 / (N_V N_mu) would divide the values by the number of MDPs at every step.
    mdps = single(
        oracle.random_mdp(0, STATES, 2, discount=1.0, count=MDPS)._replace(reward=np.zeros((MDPS, STATES, 2)))
    )
    settings = method1.Settings(values=values, samples=6, utility_samples=2, likelihood=likelihood)
    policy = jnp.asarray(oracle.random_policy(0, STATES, 2), jnp.float32)
    progress = run(jax.random.key(0), settings, mdps, policy, jnp.full((MDPS, STATES), 7.0), steps=5)
    module = method1.BELIEFS[values]
    np.testing.assert_allclose(module.mean(progress.belief), 7.0, rtol=1e-5)
    np.testing.assert_allclose(module.sd(progress.belief), 0.0, atol=1e-4)
    np.testing.assert_allclose(progress.utilities, 7.0, rtol=1e-5)


def test_the_first_weights_are_even():
    final = jnp.asarray(np.random.default_rng(0).normal(0, 100, (MDPS, STATES)), jnp.float32)
    _, weight, _, diagnostics = draw(jax.random.key(0), SMALL, method1.start(SMALL, final, jnp.asarray(1e-3)))
    np.testing.assert_allclose(weight, np.full((MDPS, 6), 1 / MDPS), rtol=1e-6)
    assert diagnostics.effective_sample_size == pytest.approx(MDPS)
    assert (int(diagnostics.resamples), int(diagnostics.doublings)) == (0, 0)


def test_start_is_fitted_to_the_final_values():
    final = jnp.asarray(np.random.default_rng(0).normal(0, 1, (MDPS, STATES)), jnp.float32)
    progress = method1.start(SMALL, final, jnp.asarray(1.0))
    np.testing.assert_allclose(progress.belief.mean, np.mean(final, axis=0), atol=1e-6)
    np.testing.assert_allclose(gaussian.sd(progress.belief), np.std(final, axis=0), rtol=1e-4)


@pytest.mark.usefixtures("double")
def test_push_against_loops(oracle):
    mdps, policy = oracle.random_mdp(1, STATES, 2, ends=0.2, count=MDPS), oracle.random_policy(1, STATES, 2)
    generator = np.random.default_rng(2)
    values, weight = generator.normal(size=(6, STATES)), generator.dirichlet(np.ones(MDPS), 6).T
    before = method1.start(SMALL, jnp.zeros((MDPS, STATES)), jnp.asarray(0.125))
    after = push(jax.random.key(0), SMALL, before, mdps, policy, jnp.asarray(values), jnp.asarray(weight))
    backed_up = np.zeros((MDPS, 6, STATES))
    for j in range(MDPS):
        transition, reward = oracle.chain_of(oracle.one_of(mdps, j), policy)
        for k in range(6):
            backed_up[j, k] = reward + 0.9 * transition @ values[k]
    mean = sum(weight[j, k] / 6 * backed_up[j, k] for j in range(MDPS) for k in range(6))
    covariance = sum(
        weight[j, k] / 6 * np.outer(backed_up[j, k] - mean, backed_up[j, k] - mean)
        for j in range(MDPS)
        for k in range(6)
    )
    np.testing.assert_allclose(after.belief.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(after.belief.factor.T @ after.belief.factor, covariance, atol=1e-10)
    np.testing.assert_allclose(after.utilities, backed_up[:, :2], rtol=1e-10)
    assert after.informed
    assert after.sigma == 0.125


def test_expected_utilities_are_each_mdps_own_finite_values(oracle):
    mdps, policy = oracle.random_mdp(3, STATES, 2, ends=0.2, count=MDPS), oracle.random_policy(3, STATES, 2)
    settings = method1.Settings(samples=6, utility_samples=2, utilities="expected")
    final = jnp.zeros((MDPS, STATES))
    progress = run(jax.random.key(0), settings, single(mdps), jnp.asarray(policy, jnp.float32), final, steps=4)
    for j in range(MDPS):
        expected = oracle.finite_values(oracle.one_of(mdps, j), policy, 4)
        np.testing.assert_allclose(progress.utilities[j], [expected, expected], rtol=1e-4, atol=1e-5)


def test_sampled_utilities_have_the_expected_mean(key, check, oracle):
    mdps, policy = oracle.random_mdp(3, STATES, 2, ends=0.2, count=2), oracle.random_policy(3, STATES, 2)
    settings = method1.Settings(samples=4000, utility_samples=4000, utilities="sampled", likelihood="mean-field")
    final = jnp.zeros((2, STATES))
    progress = run(key, settings, single(mdps), jnp.asarray(policy, jnp.float32), final, steps=3)
    for j in range(2):
        check.mean(progress.utilities[j], oracle.finite_values(oracle.one_of(mdps, j), policy, 3))


def test_with_one_mdp_values_are_as_good_as_expected_utilities(oracle):
    mdps, policy = oracle.random_mdp(4, STATES, 2, count=1), oracle.random_policy(4, STATES, 2)
    found = [
        run(
            jax.random.key(0),
            method1.Settings(samples=6, utility_samples=2, utilities=name),
            single(mdps),
            jnp.asarray(policy, jnp.float32),
            jnp.zeros((1, STATES)),
            steps=3,
        ).utilities
        for name in ("values", "expected")
    ]
    np.testing.assert_allclose(*found, atol=1e-5)


def far_away(distances, sigma=1.0, spread=0.0):
    """A belief around zero whose MDPs have utilities at the given distances, for one state."""
    utilities = jnp.broadcast_to(jnp.asarray(distances, jnp.float32)[:, None, None], (len(distances), 1, 1))
    belief = gaussian.Gaussian(jnp.zeros(1), jnp.full((1, 1), spread))
    return method1.Progress(belief, utilities, jnp.array(True), jnp.asarray(sigma))


ONE = method1.Settings(samples=1, utility_samples=1)


def test_sigma_is_doubled_as_little_as_possible():
    # The nearest MDP is 1000 away: exp(-1000^2 / (2 sigma^2)) is a normal double from sigma = 26.6 on, so 2^5.
    settings = method1.Settings(samples=5, utility_samples=1)
    values, weight, progress, diagnostics = draw(jax.random.key(0), settings, far_away([1000.0, 1010.0]))
    assert (int(diagnostics.resamples), int(diagnostics.doublings)) == (1, 5)
    assert float(progress.sigma) == 32.0
    np.testing.assert_array_equal(values, np.zeros((5, 1)))
    odds = np.exp(-(1010.0**2 - 1000.0**2) / (2 * 32.0**2))
    np.testing.assert_allclose(weight, np.tile([[1 / (1 + odds)], [odds / (1 + odds)]], 5), rtol=1e-3)


def test_sums_beyond_single_precision_need_no_second_draw():
    # exp(-15^2 / 2) is a fine double and nothing that float32 should be summing.
    values, weight, progress, diagnostics = draw(jax.random.key(0), ONE, far_away([15.0, 15.1]))
    assert (int(diagnostics.resamples), int(diagnostics.doublings)) == (0, 0)
    assert float(progress.sigma) == 1.0
    np.testing.assert_array_equal(values, np.zeros((1, 1)))
    odds = np.exp(-(15.1**2 - 15.0**2) / 2)
    np.testing.assert_allclose(weight[:, 0], [1 / (1 + odds), odds / (1 + odds)], rtol=1e-4)


def test_sigma_is_kept_for_later_steps(oracle):
    _, weight, progress, _ = draw(jax.random.key(0), ONE, far_away([1000.0, 1010.0]))
    mdps = single(oracle.random_mdp(0, 1, 1, count=2))
    policy = jnp.ones((1, 1))
    pushed = push(jax.random.key(1), ONE, progress, mdps, policy, jnp.zeros((1, 1)), weight)
    assert float(pushed.sigma) == 32.0
    again = pushed._replace(belief=progress.belief, utilities=progress.utilities)
    _, _, later, diagnostics = draw(jax.random.key(2), ONE, again)
    assert (int(diagnostics.resamples), int(diagnostics.doublings)) == (0, 0)
    assert float(later.sigma) == 32.0


def test_doublings_are_bounded():
    settings = method1.Settings(samples=1, utility_samples=1, max_doublings=3)
    _, weight, progress, diagnostics = draw(jax.random.key(0), settings, far_away([1000.0, 1010.0]))
    assert (int(diagnostics.resamples), int(diagnostics.doublings)) == (1, 3)
    assert float(progress.sigma) == 8.0
    np.testing.assert_allclose(weight.sum(0), 1)


def test_values_are_drawn_again_before_sigma_is_doubled(key):
    # Half of all draws lie too far from the utilities at zero, where "too far" is 37.6 sigma.
    reach = np.sqrt(2 * 708.0)
    spread = reach / stats.norm.ppf(0.75)
    keys = jax.random.split(key, 200)
    one = functools.partial(draw_once, settings=ONE, progress=far_away([0.0, 0.0], 1.0, spread))
    values, _, progress, diagnostics = jax.jit(jax.vmap(one))(keys)
    values, sigma = np.abs(np.asarray(values)[:, 0, 0]), np.asarray(progress.sigma)
    resamples, doublings = np.asarray(diagnostics.resamples), np.asarray(diagnostics.doublings)
    for count, case in ((100, (0, 0)), (50, (1, 0))):
        found = ((resamples == case[0]) & (doublings == case[1])).sum()
        assert stats.binomtest(int(found), 200, count / 200).pvalue > 1e-5
    np.testing.assert_array_equal(sigma, 2.0**doublings)
    assert (values < reach * sigma * (1 + 1e-5)).all(), "what is returned is stable"
    doubled = doublings > 0
    assert (resamples[doubled] == 1).all()
    assert (values[doubled] > reach * sigma[doubled] / 2 * (1 - 1e-5)).all(), "half the sigma would not have done"


def test_a_second_draw_is_another_draw():
    # Far from everything no draw helps, and the values are those of the second draw, whatever the number of doublings.
    near = draw(jax.random.key(3), ONE, far_away([0.0, 0.0], 1.0, 1.0))
    far = [draw(jax.random.key(3), ONE, far_away([d, d], 1.0, 1.0)) for d in (1e3, 1e5)]
    assert [int(near[3].resamples), int(far[0][3].resamples)] == [0, 1]
    assert int(far[1][3].doublings) > int(far[0][3].doublings)
    assert float(far[0][0][0, 0]) == float(far[1][0][0, 0])
    assert float(near[0][0, 0]) != float(far[0][0][0, 0])


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"values": "joint"}, "values"),
        ({"utilities": "none"}, "utilities"),
        ({"likelihood": "sum"}, "likelihood"),
        ({"utility_samples": 51}, "utility_samples"),
        ({"utility_samples": 0}, "utility_samples"),
        ({"samples": 5}, "utility_samples"),
    ],
)
def test_wrong_settings(choice, message):
    with pytest.raises(UserError, match=message):
        method1.Settings(**choice)


def test_settings_of_the_paper():
    settings = method1.Settings()
    assert (settings.samples, settings.utility_samples, settings.utilities) == (50, 10, "values")
    assert (settings.likelihood, settings.sigma_fraction**2) == ("mixture", pytest.approx(1e-4))
    assert isinstance(hash(settings), int)
