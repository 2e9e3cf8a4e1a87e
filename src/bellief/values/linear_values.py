"""The paper's value belief for continuous MDPs: Q(s, a) = phi(s) . omega_a, omega_a a Gaussian from weighted ridge
regression (its equation for omega_a).

Deviation: the printed mean and covariance of psi_i(a) average over samples of a feature vector and of squared values,
which do not fit together; we take the posterior of the weighted ridge, N(omega_a, sigma_a^2 (Phi^T W Phi + lambda
I)^-1) with sigma_a^2 the weighted mean squared residual.

>>> import jax, jax.numpy as jnp
>>> from bellief.values import linear_values
>>> design = linear_values.make_design(jnp.array([[1.0, 0], [1, 1], [1, 2]]), ridge=1e-6)
>>> targets = jnp.array([[[0.0, 1, 2], [5, 5, 5]]])  # one model, two actions, three states
>>> linear_values.solve(design, targets[0]).round(2).tolist()
[[0.0, 1.0], [5.0, 0.0]]
>>> belief = linear_values.fit(design, targets, weights=jnp.ones((1, 3)))
>>> isinstance(design, linear_values.Design), isinstance(belief, linear_values.LinearValue)
(True, True)
>>> here = jnp.array([1.0, 1.0])
>>> linear_values.mean(belief, here).round(2).tolist(), linear_values.quantile(belief, here, 0.5).round(2).tolist()
([1.0, 5.0], [1.0, 5.0])
>>> linear_values.sample(jax.random.key(0), belief, count=3).shape
(3, 2, 2)
>>> print(linear_values.sd(linear_values.point(2, design.root), here))
[0. 0.]
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Key


class Design(NamedTuple):
    """Features of the states that values are fitted at, and the lower root of Phi^T Phi + lambda I.

    The weights of Method 1 sum to one over the models for each state, so that this matrix does not depend on what they
    are.
    """

    features: Float[Array, "N F"]
    root: Float[Array, "F F"]


class LinearValue(NamedTuple):
    """omega_a ~ N(mean_a, sd_a^2 (root root^T)^-1) for every action."""

    mean: Float[Array, "A F"]
    sd: Float[Array, "A"]
    root: Float[Array, "F F"]


def make_design(features: Float[Array, "N F"], ridge: float) -> Design:
    """Decompose once what every fit in a plan needs."""
    size = features.shape[1]
    # Rounding of float32 sums may exceed a small ridge; without this a Cholesky root of nearly equal features fails.
    safe = jnp.maximum(ridge, 1e-6 * jnp.max(jnp.sum(features**2, axis=0)))
    return Design(features, jnp.linalg.cholesky(features.T @ features + safe * jnp.eye(size, dtype=features.dtype)))


def solve(design: Design, targets: Float[Array, "*rows N"]) -> Float[Array, "*rows F"]:
    """Ridge regression of each row of targets on the features."""
    flat = targets.reshape(-1, targets.shape[-1])
    weights = jax.scipy.linalg.cho_solve((design.root, True), design.features.T @ flat.T).T
    return weights.reshape(*targets.shape[:-1], -1)


def fit(design: Design, targets: Float[Array, "J A N"], weights: Float[Array, "J N"]) -> LinearValue:
    """The belief from one target for every model, action and state; `weights` sum to one over the models."""
    mean_weights = solve(design, jnp.einsum("jan,jn->an", targets, weights))
    residual = targets - mean_weights @ design.features.T
    variance = jnp.einsum("jan,jn->a", residual**2, weights) / targets.shape[-1]
    return LinearValue(mean_weights, jnp.sqrt(variance), design.root)


def point(actions: int, root: Float[Array, "F F"]) -> LinearValue:
    """All mass on zero."""
    size = root.shape[0]
    return LinearValue(jnp.zeros((actions, size), root.dtype), jnp.zeros(actions, root.dtype), root)


def sample(key: Key[Array, ""], belief: LinearValue, count: int) -> Float[Array, "K A F"]:
    """Independent draws of the weights of all actions."""
    actions, size = belief.mean.shape
    normals = jax.random.normal(key, (size, count * actions), belief.mean.dtype)
    spread = solve_triangular(belief.root, normals, lower=True, trans=1).T.reshape(count, actions, size)
    return belief.mean + belief.sd[:, None] * spread


def mean(belief: LinearValue, features: Float[Array, "F"]) -> Float[Array, "A"]:
    """Mean of each action's value in a state."""
    return belief.mean @ features


def sd(belief: LinearValue, features: Float[Array, "F"]) -> Float[Array, "A"]:
    """Standard deviation of each action's value in a state."""
    return belief.sd * jnp.linalg.norm(solve_triangular(belief.root, features, lower=True))


def quantile(belief: LinearValue, features: Float[Array, "F"], level: float) -> Float[Array, "A"]:
    """Quantile of each action's value in a state."""
    return mean(belief, features) + ndtri(jnp.asarray(level, features.dtype)) * sd(belief, features)
