"""The paper's Method 3: the data likelihood of a pair of value functions from posterior *and* prior draws.

    P(D | V_i, V_{i+1}) = P(D) E_posterior[l(mdp)] / E_prior[l(mdp)].

Deviation: the print leaves the normaliser of P(mdp | V_i, V_{i+1}) aside. It is E_prior[l], it depends on the value
functions, and without it the answer is wrong by that factor.

>>> import jax.numpy as jnp
>>> from bellief.induction import method3
>>> from bellief.induction.bellman_likelihood import Rows
>>> chain = jnp.broadcast_to(jnp.eye(1), (3, 1, 1))
>>> prior = Rows(chain, reward=jnp.array([[0.0], [1.0], [2.0]]), log_weight=jnp.zeros((3, 1)))
>>> posterior = prior._replace(reward=jnp.ones((3, 1)))
>>> at = lambda value: method3.log_likelihood(value, value, posterior, prior, 0.5, jnp.array([0.1]))
>>> bool(at(jnp.array([2.0])) > at(jnp.array([4.0])))
True
>>> mean, covariance = method3.point_mass(chain[0], jnp.ones(1), 0.5, jnp.array([0.01]), jnp.zeros(1), prior_sd=100.0)
>>> round(mean.item(), 2), covariance.shape
(2.0, (1, 1))
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from bellief.induction.bellman_likelihood import Rows, log_ratio


def log_likelihood(
    values: Float[Array, "S"],
    next_values: Float[Array, "S"],
    posterior_draws: Rows,
    prior_draws: Rows,
    discount: Float[Array, ""] | float,
    sigma: Float[Array, "S"],
) -> Float[Array, ""]:
    """log P(D | V_i, V_{i+1}) - log P(D)."""
    return log_ratio(values, next_values, posterior_draws, prior_draws, discount, sigma)


def point_mass(
    transition: Float[Array, "S S"],
    reward: Float[Array, "S"],
    discount: Float[Array, ""] | float,
    sigma: Float[Array, "S"],
    prior_mean: Float[Array, "S"],
    prior_sd: Float[Array, ""] | float,
) -> tuple[Float[Array, "S"], Float[Array, "S S"]]:
    """Mean and covariance of V where the posterior over MDPs is one MDP and V ~ N(prior_mean, prior_sd^2) beforehand.

    The stationary case V_i = V_{i+1}, the denominator left out: a linear regression of rewards on V(s) - discount
    V(s'), which is the form of GPTD. With the empirical MDP of a deterministic log and sigma(s)^2 = noise / visits(s)
    it *is* GPTD with a table of features. All uncertainty about the MDP is gone from it, as the paper says.
    """
    identity = jnp.eye(len(reward), dtype=reward.dtype)
    design = (identity - discount * transition) / sigma[:, None]
    covariance = jnp.linalg.inv(identity / prior_sd**2 + design.T @ design)
    return covariance @ (prior_mean / prior_sd**2 + design.T @ (reward / sigma)), covariance
