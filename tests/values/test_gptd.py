"""GPTD against exact Gaussian-process regression."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.values import gptd_values

DISCOUNT, NOISE = 0.9, 0.3


def trajectory(count, seed=0):
    """A walk on a line in two episodes, with a reward for being on the right."""
    generator = np.random.default_rng(seed)
    x = np.cumsum(generator.normal(size=count + 1) * 0.4)
    ended = np.zeros(count, bool)
    ended[[count // 2, count - 1]] = True
    return x[:, None], np.tanh(x[:-1]), ended


def exact(features, x, rewards, ended, at):
    """r = H v + noise, v a Gaussian process with the given covariance function: mean and variance at some points."""
    count = len(rewards)
    difference = np.zeros((count, count + 1))
    difference[np.arange(count), np.arange(count)] = 1
    difference[np.arange(count), np.arange(1, count + 1)] = np.where(ended, 0, -DISCOUNT)
    gram = difference @ features(x, x) @ difference.T + NOISE**2 * np.eye(count)
    cross = features(at, x) @ difference.T
    mean = cross @ np.linalg.solve(gram, rewards)
    return mean, np.diagonal(features(at, at) - cross @ np.linalg.solve(gram, cross.T))


def radial(a, b):
    return np.exp(-0.5 * ((a[:, None, 0] - b[None, :, 0]) / 0.7) ** 2)


KERNEL = gptd_values.gaussian_kernel(jnp.array([0.7]))
POINTS = np.linspace(-2, 2, 7)[:, None]


def run_dictionary(x, rewards, ended, threshold, most):
    dictionary = gptd_values.init_dictionary(most, (1,), jnp.float64)
    learn = jax.jit(lambda now, *seen: gptd_values.update_dictionary(KERNEL, now, *seen, DISCOUNT, NOISE, threshold))
    for number, reward in enumerate(rewards):
        dictionary = learn(dictionary, x[number], x[number + 1], jnp.array(ended[number]), reward)
    posterior = gptd_values.process(dictionary)
    mean, variance = jax.jit(jax.vmap(lambda point: gptd_values.predict_process(KERNEL, posterior, point)))(
        jnp.asarray(POINTS)
    )
    return np.array(mean), np.array(variance), int(dictionary.size)


def test_features_are_exact_regression(double):
    x, rewards, ended = trajectory(15)

    def phi(points):
        return np.concatenate([np.ones_like(points), points, points**2], axis=1)

    form, learn = gptd_values.FeatureForm(jnp.eye(4)), jax.jit(gptd_values.update_features)
    for number, reward in enumerate(rewards):
        later = 0 if ended[number] else DISCOUNT
        row = (phi(x[number : number + 1]) - later * phi(x[number + 1 : number + 2]))[0]
        form = learn(form, jnp.asarray(row), jnp.asarray(reward), NOISE)
    posterior = gptd_values.weights(form)
    mean, variance = exact(lambda a, b: phi(a) @ phi(b).T, x, rewards, ended, POINTS)
    found = [gptd_values.predict_features(posterior, jnp.asarray(row)) for row in phi(POINTS)]
    np.testing.assert_allclose([one[0] for one in found], mean, rtol=1e-8)
    np.testing.assert_allclose([one[1] for one in found], variance, rtol=1e-8)


@pytest.fixture(scope="module")
def gaps():
    with jax.enable_x64(True):
        x, rewards, ended = trajectory(24)
        mean, variance = exact(radial, x, rewards, ended, POINTS)
        found = [run_dictionary(x, rewards, ended, threshold, 30) for threshold in (0.3, 0.03, 0.0)]
        return [(np.abs(one[0] - mean).max(), np.abs(one[1] - variance).max(), one[2]) for one in found]


def test_a_fine_dictionary_is_exact(gaps):
    """All 25 points but none twice; a little jitter on each keeps their matrix invertible, hence the tolerance."""
    assert gaps[-1][0] < 1e-2
    assert gaps[-1][1] < 1e-2


def test_the_dictionary_converges_as_it_grows(gaps):
    assert gaps[0][2] < gaps[1][2] < gaps[2][2]
    assert gaps[0][0] > gaps[1][0] > gaps[2][0]


def test_a_full_dictionary_takes_no_more(double):
    x, rewards, ended = trajectory(10)
    mean, variance, size = run_dictionary(x, rewards, ended, 0.01, 3)
    assert size == 3
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()
