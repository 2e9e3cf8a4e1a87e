"""The weights w_jk of Method 1: how likely each sampled MDP is, given a sampled next-step value function.

The paper computes sums of exponentials and mentions weights that are "numerically unstable"; `is_unstable` tells where
that form would fail in double precision. Here everything is computed as logarithms.

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
>>> weights.exponents(values, utilities, jnp.array(0.1)).shape
(1, 2, 2, 2)
"""

import math
import sys

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

LIKELIHOODS = ("mixture", "product", "mean-field")

# Logarithm of the smallest normal double: a sum whose every term is below this is zero or nearly so.
UNDERFLOW = math.log(sys.float_info.min)


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

    logs = exponents(values, utilities, sigma)
    if likelihood == "mixture":
        return logsumexp(logs, axis=(0, 1))
    return jnp.sum(logsumexp(logs, axis=0) - jnp.log(utilities.shape[1]), axis=0)


def exponents(
    values: Float[Array, "K S"], utilities: Float[Array, "J L S"], sigma: Float[Array, ""]
) -> Float[Array, "L S J K"]:
    """Logarithms of the Gaussian densities. Sums run over the two leading axes, which leaves the long contiguous axis K
    to vector instructions.
    """
    scale = math.sqrt(0.5) / sigma
    return -(((scale * values).T[None, :, None] - (scale * utilities).transpose(1, 2, 0)[..., None]) ** 2)


def normalise(log_weights: Float[Array, "J K"]) -> Float[Array, "J K"]:
    """Weights that sum to one over the MDPs, for each value sample."""
    return jax.nn.softmax(log_weights, axis=0)


def effective_sample_size(weights: Float[Array, "J K"]) -> Float[Array, "K"]:
    """How many MDPs effectively share each value sample: between 1 and J."""
    return 1 / jnp.sum(weights**2, axis=0)


def is_unstable(log_weights: Float[Array, "J K"]) -> Bool[Array, ""]:
    """Whether some value sample's sum of exponentials underflows, or its effective sample size is not finite."""
    size = effective_sample_size(normalise(log_weights))
    return jnp.any(jnp.max(log_weights, axis=0) < UNDERFLOW) | ~jnp.all(jnp.isfinite(size))
