"""Bayesian multivariate regression (Minka 2000): y = W^T x + noise, with a matrix-normal inverse-Wishart belief.

Sigma ~ inverse-Wishart(Psi, nu) and, given it, W ~ matrix-normal(M, K^-1, Sigma). With one output this is the
normal-inverse-gamma belief: inverse-gamma(a, b) is inverse-Wishart with nu = 2 a and Psi = 2 b.

What is kept is the triangular root R of prior and data together, R^T R = prior + sum of [x y]^T [x y]:

    R = [ R_xx  R_xy ]      K = R_xx^T R_xx,  M = R_xx^-1 R_xy,  Psi = R_yy^T R_yy.
        [  0    R_yy ]

An observation is rotated into R (Givens), which takes constant memory and never subtracts one large number from
another: Psi stays positive definite in single precision after any number of observations, where the usual form
YtY - M^T K M does not.

>>> import jax, jax.numpy as jnp, numpy as np
>>> from bellief.beliefs import matrix_normal
>>> x = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
>>> prior = matrix_normal.init(features=2, outputs=1, precision=0.001, scale=0.001, degrees=1.0)
>>> belief = matrix_normal.update_batch(prior, jnp.asarray(x), jnp.asarray(x @ np.float32([[1], [2]])))
>>> belief = matrix_normal.update(belief, jnp.ones(2), jnp.array([3.0]))
>>> type(belief).__name__, matrix_normal.mean(belief, features=2).weights.round(2).tolist()
('Regression', [[1.0], [2.0]])
>>> line = matrix_normal.sample(jax.random.key(0), belief, features=2)
>>> type(line).__name__, type(matrix_normal.moments(belief, features=2)).__name__
('Line', 'Moments')
>>> matrix_normal.log_density(belief, line.weights, line.noise_root.T @ line.noise_root).shape
()
>>> near, far = (matrix_normal.log_predictive(belief, jnp.ones(2), jnp.array([y])) for y in (3.0, 9.0))
>>> bool(near > far)
True
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Key

from bellief.beliefs.gamma import sample_log_gamma
from bellief.roots import rotate_in


class Regression(NamedTuple):
    """The belief: the root R of prior and data, and the degrees of freedom nu."""

    root: Float[Array, "F+D F+D"]
    degrees: Float[Array, ""]


class Line(NamedTuple):
    """One regression function with its noise: W, and T with Sigma = T^T T."""

    weights: Float[Array, "F D"]
    noise_root: Float[Array, "D D"]


class Moments(NamedTuple):
    """The usual parameters of the belief: M, the root of K, the root of Psi, nu."""

    mean: Float[Array, "F D"]
    precision_root: Float[Array, "F F"]
    scale_root: Float[Array, "D D"]
    degrees: Float[Array, ""]


def init(features: int, outputs: int, precision: float, scale: float, degrees: float, dtype: Any = float) -> Regression:
    """The prior M = 0, K = precision I, Psi = scale I, nu = degrees."""
    diagonal = jnp.concatenate([jnp.full(features, precision, dtype), jnp.full(outputs, scale, dtype)])
    return Regression(jnp.diag(jnp.sqrt(diagonal)), jnp.asarray(degrees, dtype))


def update(belief: Regression, x: Float[Array, "F"], y: Float[Array, "D"]) -> Regression:
    """Account for one observation."""
    return Regression(rotate_in(belief.root, jnp.concatenate([x, y])), belief.degrees + 1)


def update_batch(belief: Regression, x: Float[Array, "n F"], y: Float[Array, "n D"]) -> Regression:
    """Account for many observations at once, by one QR decomposition."""
    rows = jnp.concatenate([belief.root, jnp.concatenate([x, y], axis=1)])
    root = jnp.linalg.qr(rows, mode="r")
    signs = jnp.where(jnp.diagonal(root) < 0, -1, 1).astype(root.dtype)
    return Regression(signs[:, None] * root, belief.degrees + x.shape[0])


def moments(belief: Regression, features: int) -> Moments:
    """The usual parameters; the first `features` columns of the root belong to x."""
    root = belief.root
    inner = root[:features, :features]
    return Moments(
        solve_triangular(inner, root[:features, features:]), inner, root[features:, features:], belief.degrees
    )


def mean(belief: Regression, features: int) -> Line:
    """The mean function M with the noise at the mode of what the belief expects, Psi / nu."""
    given = moments(belief, features)
    return Line(given.mean, given.scale_root / jnp.sqrt(given.degrees))


def sample(key: Key[Array, ""], belief: Regression, features: int) -> Line:
    """One draw: Sigma first, then W given it.

    Bartlett's decomposition gives a Wishart(Psi^-1, nu) matrix as R_yy^-1 A A^T R_yy^-T with A lower triangular, so
    that T = A^-1 R_yy is a root of its inverse, and W = M + R_xx^-1 Z T.
    """
    given = moments(belief, features)
    outputs = given.scale_root.shape[0]
    dtype = given.mean.dtype
    chi_key, lower_key, weight_key = jax.random.split(key, 3)
    shapes = (given.degrees - jnp.arange(outputs, dtype=dtype)) / 2
    chi = jnp.sqrt(2 * jnp.exp(sample_log_gamma(chi_key, shapes)))
    lower = jnp.tril(jax.random.normal(lower_key, (outputs, outputs), dtype), -1) + jnp.diag(chi)
    noise_root = solve_triangular(lower, given.scale_root, lower=True)
    normals = jax.random.normal(weight_key, given.mean.shape, dtype)
    return Line(given.mean + solve_triangular(given.precision_root, normals @ noise_root), noise_root)


def log_predictive(belief: Regression, x: Float[Array, "F"], y: Float[Array, "D"]) -> Float[Array, ""]:
    """Log density of the next output at `x`: a multivariate Student t with nu - D + 1 degrees of freedom."""
    features, outputs = x.shape[0], y.shape[0]
    given = moments(belief, features)
    degrees = given.degrees - outputs + 1
    stretch = 1 + jnp.sum(solve_triangular(given.precision_root, x, trans=1) ** 2)
    standard = solve_triangular(given.scale_root, y - x @ given.mean, trans=1)
    # The Student's scale matrix is Psi * stretch / degrees.
    distance = jnp.sum(standard**2) / stretch
    log_determinant = 2 * jnp.sum(jnp.log(jnp.abs(jnp.diagonal(given.scale_root)))) + outputs * jnp.log(stretch)
    return (
        gammaln((degrees + outputs) / 2)
        - gammaln(degrees / 2)
        - outputs / 2 * jnp.log(jnp.pi)
        - log_determinant / 2
        - (degrees + outputs) / 2 * jnp.log1p(distance)
    )


def log_density(belief: Regression, weights: Float[Array, "F D"], covariance: Float[Array, "D D"]) -> Float[Array, ""]:
    """Log of the joint density of W and Sigma."""
    features, outputs = weights.shape
    given = moments(belief, features)
    noise_root = jnp.linalg.cholesky(covariance)  # lower: Sigma = C C^T
    log_noise = jnp.sum(jnp.log(jnp.diagonal(noise_root)))
    gap = given.precision_root @ (weights - given.mean)
    standard = solve_triangular(noise_root, gap.T, lower=True)
    normal = (
        -0.5 * jnp.sum(standard**2)
        - features * outputs / 2 * jnp.log(2 * jnp.pi)
        + outputs * jnp.sum(jnp.log(jnp.abs(jnp.diagonal(given.precision_root))))
        - features * log_noise
    )
    degrees = given.degrees
    trace = jnp.sum(solve_triangular(noise_root, given.scale_root.T, lower=True) ** 2)
    indices = jnp.arange(outputs, dtype=weights.dtype)
    log_gamma = outputs * (outputs - 1) / 4 * jnp.log(jnp.pi) + jnp.sum(gammaln((degrees - indices) / 2))
    wishart = (
        degrees * jnp.sum(jnp.log(jnp.abs(jnp.diagonal(given.scale_root))))
        - degrees * outputs / 2 * jnp.log(2.0)
        - log_gamma
        - (degrees + outputs + 1) * log_noise
        - trace / 2
    )
    return normal + wishart
