"""Student's t distribution for arrays of float32 parameters: draws, tail probabilities, expected excess.

JAX has a cdf only through the incomplete beta function, which loops until it converges and loses its digits where there
are many degrees of freedom. This is a fixed, short piece of arithmetic, accurate to rounding for two degrees of freedom
and for a million, because agents call it at every step.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

# Sixteen points settle the tail integral to float32; the rest is reserve.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
# The tail integral stops where its integrand has fallen by exp(-18).
_DEPTH = 18.0


def sample(key: Key[Array, ""], degrees: Float[Array, ""], shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Independent standard draws by Bailey's polar method (1994): two uniforms each, nothing is rejected."""
    degrees = jnp.asarray(degrees)
    return from_uniforms(degrees, jax.random.uniform(key, (*shape, 2), degrees.dtype))


def from_uniforms(degrees: Float[Array, "*dims"], uniforms: Float[Array, "*dims 2"]) -> Float[Array, "*dims"]:
    """The draws that follow from two uniforms on [0, 1) each."""
    radius = jnp.sqrt(degrees * jnp.expm1(-2 / degrees * jnp.log1p(-uniforms[..., 0])))
    return radius * jnp.cos(2 * np.pi * uniforms[..., 1])


def log_density(degrees: Float[Array, "*dims"], value: Float[Array, "*dims"]) -> Float[Array, "*dims"]:
    """Log density of the standard distribution."""
    return _log_peak(degrees) - (degrees + 1) / 2 * jnp.log1p(value**2 / degrees)


def upper_tail(degrees: Float[Array, "*dims"], value: Float[Array, "*dims"]) -> Float[Array, "*dims"]:
    """P(T > value).

    With y^2 = v log(1 + t^2 / v) the density becomes exp(-y^2 / 2) sqrt(x / (1 - exp(-x))), x = y^2 / v, up to its
    constant: a normal density with a slowly growing factor, on which Gauss-Legendre quadrature is exact to rounding.
    """
    size = jnp.abs(value)
    begin = jnp.sqrt(degrees * jnp.log1p(size**2 / degrees))
    length = 2 * _DEPTH / (begin + jnp.sqrt(begin**2 + 2 * _DEPTH))
    nodes = jnp.asarray((_NODES + 1) / 2, size.dtype)
    weights = jnp.asarray(_WEIGHTS / 2, size.dtype)
    step = length[..., None] * nodes
    place = begin[..., None] + step
    ratio = place**2 / degrees[..., None]
    growth = jnp.sqrt(ratio / -jnp.expm1(-ratio))
    integral = length * jnp.sum(weights * growth * jnp.exp(-step * (begin[..., None] + step / 2)), axis=-1)
    tail = jnp.exp(_log_peak(degrees) - begin**2 / 2) * integral
    return jnp.where(value < 0, 1 - tail, tail)


def expected_excess(degrees: Float[Array, "*dims"], threshold: Float[Array, "*dims"]) -> Float[Array, "*dims"]:
    """E[max(T - threshold, 0)], for more than one degree of freedom."""
    size = jnp.abs(threshold)
    density = jnp.exp(log_density(degrees, size))
    beyond = density * (degrees + size**2) / (degrees - 1) - size * upper_tail(degrees, size)
    # E[(T - c)+] - E[(T + c)+] = -c: a negative threshold has its own size on top. Rounding must not make it negative.
    return jnp.maximum(beyond, 0) + jnp.maximum(-threshold, 0)


def _log_peak(degrees: Float[Array, "*dims"]) -> Float[Array, "*dims"]:
    """Log density at zero. The two log Gammas are as large as the degrees; their difference is expanded instead."""
    half = degrees / 2
    shifted = half + 4
    series = 0.5 * jnp.log(shifted) - (1 - (1 / 24 - 1 / (80 * shifted**2)) / shifted**2) / (8 * shifted)
    # Gamma(x + 1/2) / Gamma(x), four steps up.
    steps = sum(jnp.log1p(-0.5 / (half + number + 0.5)) for number in range(4))
    return series + steps - 0.5 * jnp.log(np.pi * degrees)
