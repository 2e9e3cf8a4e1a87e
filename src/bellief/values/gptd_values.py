"""Gaussian-process temporal differences (Engel, Mannor and Meir 2003): a posterior over values from rewards alone.

The model is r = V(x) - discount V(x') + N(0, noise^2) with a Gaussian process over V; where an episode ends V(x') is
zero. Two forms: `Features`, V(x) = phi(x) . w with w ~ N(0, I) (what the paper compares with), and `Dictionary`, a
kernel with an online sparse dictionary. x is the argument of V: a state, or a state and an action for
control.

Both keep constant memory, and the feature form a triangular root that observations are rotated into, so that the
posterior stays positive definite in single precision.

>>> import jax, jax.numpy as jnp
>>> from bellief.values import gptd_values
>>> form = gptd_values.init_features(size=2)
>>> for _ in range(3):
...     form = gptd_values.update_features(form, jnp.array([1.0, 0.0]), jnp.array(3.0), noise=0.1)
>>> posterior = gptd_values.weights(form)
>>> isinstance(form, gptd_values.FeatureForm), isinstance(posterior, gptd_values.Weights)
(True, True)
>>> mean, variance = gptd_values.predict_features(posterior, jnp.array([1.0, 0.0]))
>>> round(mean.item(), 2), round(variance.item(), 3)
(2.99, 0.003)
>>> gptd_values.sample_weights(jax.random.key(0), posterior).shape
(2,)

The same with a kernel and a dictionary of points:

>>> kernel, place = gptd_values.gaussian_kernel(jnp.array([0.5])), jnp.array([0.0])
>>> seen = gptd_values.init_dictionary(most=4, shape=(1,))
>>> seen = gptd_values.admit(kernel, seen, place, threshold=0.1)
>>> gptd_values.similarity(kernel, seen.points, seen.size, place).tolist()
[1.0, 0.0, 0.0, 0.0]
>>> seen = gptd_values.update_dictionary(kernel, seen, place, place, jnp.array(True), jnp.array(1.0), 0.9, 0.1, 0.1)
>>> posterior = gptd_values.process(seen)
>>> isinstance(seen, gptd_values.Dictionary), isinstance(posterior, gptd_values.Process), seen.size.item()
(True, True, 1)
>>> mean, variance = gptd_values.predict_process(kernel, posterior, place)
>>> round(mean.item(), 2), gptd_values.sample_process(jax.random.key(0), posterior).shape
(0.99, (4,))
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.roots import rotate_in

# Two points of the dictionary that are the same to rounding would make the kernel matrix singular.
JITTER = 1e-5


class FeatureForm(NamedTuple):
    """Upper triangular root of [h r]^T [h r] / noise^2 and the prior's identity, h = phi - discount phi'."""

    root: Float[Array, "F+1 F+1"]


class Weights(NamedTuple):
    """The posterior N(mean, (root^T root)^-1) of the weights."""

    mean: Float[Array, "F"]
    root: Float[Array, "F F"]


def init_features(size: int) -> FeatureForm:
    """The prior w ~ N(0, I)."""
    return FeatureForm(jnp.eye(size + 1, dtype=float))


def update_features(
    form: FeatureForm, difference: Float[Array, "F"], reward: Float[Array, ""], noise: float
) -> FeatureForm:
    """Account for one reward; `difference` is phi(x) - discount phi(x'), or phi(x) at an end."""
    row = jnp.concatenate([difference, reward[None]]) / noise
    return FeatureForm(rotate_in(form.root, row))


def weights(form: FeatureForm) -> Weights:
    """The posterior of the weights."""
    size = form.root.shape[0] - 1
    inner = form.root[:size, :size]
    return Weights(solve_triangular(inner, form.root[:size, size]), inner)


def sample_weights(key: Key[Array, ""], posterior: Weights) -> Float[Array, "F"]:
    """One draw of the weights."""
    normals = jax.random.normal(key, posterior.mean.shape, posterior.mean.dtype)
    return posterior.mean + solve_triangular(posterior.root, normals)


def predict_features(posterior: Weights, features: Float[Array, "F"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Mean and variance of a value."""
    return posterior.mean @ features, jnp.sum(solve_triangular(posterior.root, features, trans=1) ** 2)


Kernel = Callable[[Float[Array, "*x"], Float[Array, "*x"]], Float[Array, ""]]


class Dictionary(NamedTuple):
    """Points that the process is expressed by, and sums of what was seen in terms of their values v.

    With a(x) = K^-1 k(x) the coefficients of x, a reward is r = (a - discount a') . v + noise, and v ~ N(0, K). Points
    beyond `size` are empty. `inverse` is K^-1 of the points in use and zero elsewhere.
    """

    points: Float[Array, "M *x"]
    size: Int[Array, ""]
    kernel: Float[Array, "M M"]
    inverse: Float[Array, "M M"]
    information: Float[Array, "M M"]
    projected: Float[Array, "M"]


class Process(NamedTuple):
    """The posterior over values: of v its mean and covariance, with what the coefficients of a new point need."""

    points: Float[Array, "M *x"]
    size: Int[Array, ""]
    inverse: Float[Array, "M M"]
    mean: Float[Array, "M"]
    covariance: Float[Array, "M M"]


def init_dictionary(most: int, shape: tuple[int, ...], dtype: Any = float) -> Dictionary:
    """An empty dictionary with room for `most` points."""
    square = jnp.zeros((most, most), dtype)
    return Dictionary(
        jnp.zeros((most, *shape), dtype), jnp.array(0, jnp.int32), square, square, square, jnp.zeros(most, dtype)
    )


def similarity(
    kernel: Kernel, points: Float[Array, "M *x"], size: Int[Array, ""], x: Float[Array, "*x"]
) -> Float[Array, "M"]:
    """The kernel between a point and each of the dictionary's, zero for empty places."""
    close = jax.vmap(lambda point: kernel(point, x))(points)
    return jnp.where(jnp.arange(points.shape[0]) < size, close, 0)


def admit(kernel: Kernel, dictionary: Dictionary, x: Float[Array, "*x"], threshold: float) -> Dictionary:
    """Add a point unless the others explain all but `threshold` of its variance (approximate linear dependence), or
    there is no room. What was seen before keeps its coefficients: the new point had no part in it.
    """
    close = similarity(kernel, dictionary.points, dictionary.size, x)
    coefficients = dictionary.inverse @ close
    own = kernel(x, x) + JITTER
    unexplained = own - close @ coefficients
    place = dictionary.size
    wanted = (unexplained > jnp.maximum(threshold, JITTER)) & (place < dictionary.points.shape[0])
    column = close.at[place].set(own, mode="drop")
    grown_kernel = dictionary.kernel.at[place].set(column, mode="drop").at[:, place].set(column, mode="drop")
    # Inverse of a bordered matrix.
    border = (-coefficients).at[place].set(1.0, mode="drop")
    grown_inverse = dictionary.inverse + jnp.outer(border, border) / jnp.maximum(unexplained, JITTER)
    grown = dictionary._replace(
        points=dictionary.points.at[place].set(x, mode="drop"),
        size=place + 1,
        kernel=grown_kernel,
        inverse=grown_inverse,
    )
    return jax.tree.map(lambda new, old: jnp.where(wanted, new, old), grown, dictionary)


def update_dictionary(
    kernel: Kernel,
    dictionary: Dictionary,
    x: Float[Array, "*x"],
    following: Float[Array, "*x"],
    ended: Bool[Array, ""],
    reward: Float[Array, ""],
    discount: float,
    noise: float,
    threshold: float,
) -> Dictionary:
    """Account for one reward: admit both points, then add the observation in terms of their values."""
    dictionary = admit(kernel, dictionary, x, threshold)
    grown = admit(kernel, dictionary, following, threshold)
    dictionary = jax.tree.map(lambda new, old: jnp.where(ended, old, new), grown, dictionary)

    def coefficients(point):
        return dictionary.inverse @ similarity(kernel, dictionary.points, dictionary.size, point)

    difference = coefficients(x) - jnp.where(ended, 0, discount) * coefficients(following)
    return dictionary._replace(
        information=dictionary.information + jnp.outer(difference, difference) / noise**2,
        projected=dictionary.projected + difference * reward / noise**2,
    )


def process(dictionary: Dictionary) -> Process:
    """The posterior of the values v at the dictionary's points: precision K^-1 + information."""
    size = dictionary.points.shape[0]
    used = jnp.arange(size) < dictionary.size
    eye = jnp.eye(size, dtype=dictionary.kernel.dtype)
    filled = jnp.where(used[:, None] & used, dictionary.kernel, eye)
    root = jnp.linalg.cholesky(filled)
    inner = jnp.linalg.cholesky(eye + root.T @ dictionary.information @ root)
    half = solve_triangular(inner, root.T, lower=True)
    covariance = half.T @ half
    covariance = jnp.where(used[:, None] & used, covariance, 0)
    return Process(
        dictionary.points, dictionary.size, dictionary.inverse, covariance @ dictionary.projected, covariance
    )


def sample_process(key: Key[Array, ""], posterior: Process) -> Float[Array, "M"]:
    """A draw of the values at the dictionary's points, less their mean; rounding is kept off by a little jitter."""
    jittered = posterior.covariance + JITTER * jnp.eye(posterior.mean.shape[0], dtype=posterior.mean.dtype)
    return jnp.linalg.cholesky(jittered) @ jax.random.normal(key, posterior.mean.shape, posterior.mean.dtype)


def predict_process(kernel: Kernel, posterior: Process, x: Float[Array, "*x"]) -> tuple[Array, Array]:
    """Mean and variance of a value, the variance that the dictionary cannot express included."""
    close = similarity(kernel, posterior.points, posterior.size, x)
    coefficients = posterior.inverse @ close
    unexplained = jnp.maximum(kernel(x, x) - close @ coefficients, 0)
    return coefficients @ posterior.mean, coefficients @ posterior.covariance @ coefficients + unexplained


def gaussian_kernel(width: Float[Array, "D"], scale: float = 1.0) -> Kernel:
    """`scale^2 exp(-|x - y|^2 / (2 width^2))`, dimension by dimension."""

    def kernel(x, y):
        return scale**2 * jnp.exp(-0.5 * jnp.sum(((x - y) / width) ** 2))

    return kernel
