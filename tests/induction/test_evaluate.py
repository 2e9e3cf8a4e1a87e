import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError
from bellief.induction import evaluate, method1
from bellief.values import gaussian, histogram, joint

STATES, ACTIONS = 3, 2
POLICIES = ("stochastic", "deterministic")
by_method1 = jax.jit(evaluate.by_method1, static_argnames=("settings", "horizon", "final"))
by_joint = jax.jit(evaluate.by_joint, static_argnames=("horizon", "final"))
by_sampled_joint = jax.jit(evaluate.by_sampled_joint, static_argnames=("horizon", "samples", "final"))


def policy_of(oracle, kind):
    return oracle.random_policy(0, STATES, ACTIONS) if kind == "stochastic" else np.eye(ACTIONS)[[1, 0, 1]]


def single(arrays):
    return jax.tree.map(lambda field: jnp.asarray(field, jnp.float32), arrays)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("utilities", "likelihood"), [("values", "mixture"), ("expected", "product"), ("sampled", "mixture")]
)
def test_one_mdp_leaves_nothing_uncertain(oracle, utilities, likelihood):
    mdps, policy = oracle.random_mdp(0, STATES, ACTIONS, ends=0.2, count=1), policy_of(oracle, "stochastic")
    settings = method1.Settings(samples=4, utility_samples=2, utilities=utilities, likelihood=likelihood)
    belief, _ = by_method1(jax.random.key(0), settings, mdps, policy, 6, jnp.asarray(10.0))
    expected = oracle.finite_values(oracle.one_of(mdps, 0), policy, 6)
    np.testing.assert_allclose(belief.belief.mean, expected, rtol=1e-10)
    np.testing.assert_allclose(gaussian.sd(belief.belief), 0, atol=1e-10)


def test_histogram_of_one_mdp(oracle):
    mdps, policy = oracle.random_mdp(0, STATES, ACTIONS, ends=0.2, count=1), policy_of(oracle, "deterministic")
    settings = method1.Settings(values="histogram", samples=4, utility_samples=2)
    found = by_method1(jax.random.key(0), settings, single(mdps), single(policy), 6, jnp.asarray(10.0)).belief
    expected = oracle.finite_values(oracle.one_of(mdps, 0), policy, 6)
    np.testing.assert_allclose(histogram.mean(found.belief), expected, rtol=1e-4)


def mean_field_moments(oracle, mdps, policy, horizon):
    """Mean and covariance of mean-field induction with infinitely many value samples."""
    chains = [oracle.chain_of(oracle.one_of(mdps, j), policy) for j in range(len(mdps.reward))]
    discount = float(mdps.discount[0])
    mean, covariance = np.zeros(STATES), np.zeros((STATES, STATES))
    for _ in range(horizon):
        images = np.array([reward + discount * transition @ mean for transition, reward in chains])
        inside = np.mean([discount**2 * transition @ covariance @ transition.T for transition, _ in chains], axis=0)
        mean = images.mean(0)
        covariance = inside + np.cov(images.T, ddof=0)
    return mean, covariance


def test_mean_field_collapses_to_the_mean_mdp(key, oracle):
    count, samples, horizon, discount = 20, 1000, 150, 0.95
    mdps, policy = (
        oracle.random_mdp(1, STATES, ACTIONS, discount=discount, count=count),
        policy_of(oracle, "stochastic"),
    )
    settings = method1.Settings(samples=samples, likelihood="mean-field")
    belief = by_method1(key, settings, single(mdps), single(policy), horizon, jnp.asarray(1.0)).belief.belief
    mean, covariance = mean_field_moments(oracle, mdps, policy, horizon)
    average = oracle.one_of(mdps, 0)._replace(transition=mdps.transition.mean(0), reward=mdps.reward.mean(0))
    # Mean-field in mean is the MDP of average transitions and rewards.
    np.testing.assert_allclose(mean, oracle.finite_values(average, policy, horizon), rtol=1e-10)
    spread = np.sqrt(np.diag(covariance))
    # Each step's draws move the mean by a standard error; the errors of all steps fade with the discount.
    error = spread.max() / np.sqrt(samples * (1 - discount**2))
    np.testing.assert_allclose(belief.mean, mean, atol=4.7 * error)
    np.testing.assert_allclose(gaussian.sd(belief), spread, rtol=0.15)
    monte_carlo = np.std([oracle.finite_values(oracle.one_of(mdps, j), policy, horizon) for j in range(count)], axis=0)
    assert (np.asarray(gaussian.sd(belief)) < 0.4 * monte_carlo).all()


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("horizon", [1, 8])
def test_joint_from_zero_is_monte_carlo(oracle, kind, horizon):
    mdps, policy = oracle.random_mdp(2, STATES, ACTIONS, ends=0.2, count=5), policy_of(oracle, kind)
    belief = by_joint(mdps, jnp.asarray(policy), horizon, "zero")
    expected = [oracle.finite_values(oracle.one_of(mdps, j), policy, horizon) for j in range(5)]
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-10)
    np.testing.assert_allclose(joint.sd(belief), np.std(expected, axis=0), rtol=1e-10)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("horizon", [1, 8])
def test_joint_from_its_own_values_stays_there(oracle, horizon):
    mdps, policy = oracle.random_mdp(3, STATES, ACTIONS, ends=0.2, count=5), policy_of(oracle, "stochastic")
    belief = by_joint(mdps, jnp.asarray(policy), horizon, "own")
    expected = [oracle.exact_values(oracle.one_of(mdps, j), policy) for j in range(5)]
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-9)


def pooled_by_numpy(oracle, mdps, policy, horizon):
    own = np.array([oracle.exact_values(oracle.one_of(mdps, j), policy) for j in range(len(mdps.reward))])
    means, covariances = [], []
    for j in range(len(own)):
        transition, reward = oracle.chain_of(oracle.one_of(mdps, j), policy)
        mean, covariance = own.mean(0), np.cov(own.T, ddof=0)
        for _ in range(horizon):
            mean = reward + 0.9 * transition @ mean
            covariance = 0.81 * transition @ covariance @ transition.T
        means.append(mean)
        covariances.append(covariance)
    return np.array(means), np.array(covariances)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("count", [4, 9])
def test_joint_from_pooled_values_is_the_affine_image(oracle, count):
    mdps, policy = oracle.random_mdp(4, STATES, ACTIONS, ends=0.2, count=count), policy_of(oracle, "stochastic")
    belief = by_joint(mdps, jnp.asarray(policy), 3, "pooled")
    means, covariances = pooled_by_numpy(oracle, mdps, policy, 3)
    np.testing.assert_allclose(belief.mean, means, rtol=1e-9)
    np.testing.assert_allclose(np.einsum("jrs,jrt->jst", belief.factor, belief.factor), covariances, atol=1e-10)


def test_joint_with_sampling_estimates_the_exact_one(key, check, oracle):
    mdps, policy = oracle.random_mdp(5, STATES, ACTIONS, count=3), policy_of(oracle, "stochastic")
    samples = 1500
    run = functools.partial(
        evaluate.by_sampled_joint,
        mdps=single(mdps),
        policy=single(policy),
        horizon=2,
        samples=samples,
        final="pooled",
        noise_fraction=1e-4,
    )
    means, factors = jax.jit(jax.vmap(run))(jax.random.split(key, 30))
    exact_means, exact_covariances = pooled_by_numpy(oracle, mdps, policy, 2)
    scale = np.sqrt(exact_covariances.max())
    # Weighing by samples is biased by the order of one over their number.
    check.mean(means, exact_means, slack=5 * scale / samples)
    covariances = np.einsum("njrs,njrt->njst", factors, factors)
    check.mean(covariances, exact_covariances, slack=10 * scale**2 / samples)


def test_joint_with_fewer_samples_than_mdps(oracle):
    mdps, policy = oracle.random_mdp(5, 4, ACTIONS, count=8), oracle.random_policy(0, 4, ACTIONS)
    with pytest.raises(UserError, match="8 MDPs needs at least one sample"):
        by_sampled_joint(jax.random.key(0), single(mdps), single(policy), horizon=1, samples=4)


def test_sampled_joint_from_zero_is_monte_carlo(oracle):
    mdps, policy = oracle.random_mdp(2, STATES, ACTIONS, count=3), policy_of(oracle, "stochastic")
    belief = by_sampled_joint(jax.random.key(0), single(mdps), single(policy), 3, 12, final="zero")
    expected = [oracle.finite_values(oracle.one_of(mdps, j), policy, 3) for j in range(3)]
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-3)


def test_method1_from_its_own_values(oracle):
    mdps, policy = oracle.random_mdp(3, STATES, ACTIONS, count=5), policy_of(oracle, "stochastic")
    settings = method1.Settings(samples=6, utility_samples=2, utilities="expected")
    progress, diagnostics = by_method1(
        jax.random.key(0), settings, single(mdps), single(policy), 4, jnp.asarray(20.0), final="own"
    )
    expected = [oracle.exact_values(oracle.one_of(mdps, j), policy) for j in range(5)]
    np.testing.assert_allclose(progress.utilities[:, 0], expected, rtol=1e-3)
    assert diagnostics.effective_sample_size.shape == (4,)
    assert diagnostics.effective_sample_size[0] == pytest.approx(5), "the first step has even weights"
    assert (np.asarray(diagnostics.effective_sample_size) >= 1 - 1e-5).all()


def test_sigma_grows_within_a_plan_and_starts_afresh_in_the_next(oracle):
    mdps, policy = oracle.random_mdp(6, STATES, ACTIONS, count=3), policy_of(oracle, "stochastic")
    settings = method1.Settings(samples=6, utility_samples=2, sigma_fraction=1e-4)
    run = functools.partial(
        by_method1,
        settings=settings,
        mdps=single(mdps),
        policy=single(policy),
        horizon=5,
        value_span=jnp.asarray(1.0),
    )
    for seed in (0, 1):
        progress, diagnostics = run(jax.random.key(seed))
        doublings = int(diagnostics.doublings.sum())
        assert doublings > 0
        assert float(progress.sigma) == pytest.approx(1e-4 * 2.0**doublings)
        assert int(diagnostics.doublings[0]) == 0
