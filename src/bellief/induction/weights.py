"""The weights w_jk of Method 1: how likely each sampled MDP is, given a sampled next-step value function.

The paper computes plain sums of exponentials and speaks of weights that are "numerically unstable"; `is_unstable` says
where that form would have failed in double precision. `plain` is that form, for where it does not fail in ours;
everything else is computed as logarithms.

>>> import jax.numpy as jnp
>>> from bellief.induction import weights
>>> values = jnp.array([[0.0, 0.0], [1.0, 1.0]])  # two value functions of two states
>>> utilities = jnp.array([[[0.0, 0.1]], [[1.0, 0.9]]])  # one utility sample of each of two MDPs
>>> log_weights = weights.log_likelihood(values, utilities, jnp.array(0.1), "mixture")
>>> shares = weights.normalise(log_weights)
>>> print(shares.round(2), weights.effective_sample_size(shares).round(2))
[[1. 0.]
 [0. 1.]] [1. 1.]
>>> bool(weights.is_unstable(log_weights))
False
>>> sums, trusted = weights.plain(values, utilities, jnp.array(0.1), "mixture")
>>> bool(trusted.all()), bool(jnp.allclose(sums, shares))
(True, True)
"""

import math
import sys

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

LIKELIHOODS = ("mixture", "product", "mean-field")

# Logarithm of the smallest normal double: a plain sum whose every term is below this is zero or nearly so.
UNDERFLOW = math.log(sys.float_info.min)

# Float32 holds numbers that are 10^18 times smaller.
SAFE = 1e-20


def log_likelihood(
    values: Float[Array, "K S"], utilities: Float[Array, "J L S"], sigma: Float[Array, ""], likelihood: str
) -> Float[Array, "J K"]:
    """log P_mdp_j(V_k), up to a constant, from utility samples of that MDP.

    `mixture` is the paper's choice, a sum over states and utility samples (its equation for w_jk); `product` asks
    every state to be explained: the product over states of sums over samples. `mean-field` ignores the values.

    Deviation: the printed Gaussian density lacks 1 / sigma, which cancels in the weights.
    """
    if likelihood == "mean-field":
        return jnp.zeros((utilities.shape[0], values.shape[0]), values.dtype)

    exponents = _exponents(values, utilities, sigma)
    if likelihood == "mixture":
        return logsumexp(exponents, axis=(0, 1))
    return jnp.sum(logsumexp(exponents, axis=0) - jnp.log(utilities.shape[1]), axis=0)


def _exponents(
    values: Float[Array, "K S"], utilities: Float[Array, "J L S"], sigma: Float[Array, ""]
) -> Float[Array, "L S J K"]:
    """Logarithms of the Gaussian densities. Sums run over the two leading axes, which leaves the long contiguous axis K
    to vector instructions.
    """
    scale = math.sqrt(0.5) / sigma
    return -(((scale * values).T[None, :, None] - (scale * utilities).transpose(1, 2, 0)[..., None]) ** 2)


def plain(
    values: Float[Array, "K S"], utilities: Float[Array, "J L S"], sigma: Float[Array, ""], likelihood: str
) -> tuple[Float[Array, "J K"], Bool[Array, "*K"]]:
    """The weights as the paper computes them, and whether they can be trusted (those of each value sample, or all).

    A plain sum of exponentials needs one pass over them, a sum of logarithms two. What underflows in it is lost in
    rounding anyway if another MDP explains the same values well enough.
    """
    if likelihood != "mixture":
        log_weights = log_likelihood(values, utilities, sigma, likelihood)
        return normalise(log_weights), ~is_unstable(log_weights)
    # Without the barrier XLA would sum over j from the exponentials themselves, and store them for it.
    sums = jax.lax.optimization_barrier(jnp.sum(jnp.exp(_exponents(values, utilities, sigma)), axis=(0, 1)))
    return sums / jnp.sum(sums, axis=0), jnp.max(sums, axis=0) > SAFE


def normalise(log_weights: Float[Array, "J K"]) -> Float[Array, "J K"]:
    """Weights that sum to one over the MDPs, for each value sample."""
    return jax.nn.softmax(log_weights, axis=0)


def effective_sample_size(weights: Float[Array, "J K"]) -> Float[Array, "K"]:
    """How many MDPs effectively share each value sample: between 1 and J."""
    return 1 / jnp.sum(weights**2, axis=0)


def is_unstable(log_weights: Float[Array, "J K"]) -> Bool[Array, ""]:
    """Whether some value sample's plain sum of exponentials underflows, or its effective sample size is not finite."""
    size = effective_sample_size(normalise(log_weights))
    return jnp.any(jnp.max(log_weights, axis=0) < UNDERFLOW) | ~jnp.all(jnp.isfinite(size))
