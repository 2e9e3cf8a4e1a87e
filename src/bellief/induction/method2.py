"""The paper's Method 2: the data likelihood of a pair of value functions, averaged over P(mdp | V_i, V_{i+1}).

    P(D | V_i, V_{i+1}) = integral of P(D | mdp) dP(mdp | V_i, V_{i+1})
                        = E_prior[P(D | mdp) l(mdp)] / E_prior[l(mdp)].

The paper says that standard priors cannot be used; with l as a factor they can, by self-normalised importance sampling
from the prior. Its cost is that the likelihood of a long log selects one prior draw of a row and drops all others:
the effective sample size of `likelihood_sizes` falls towards one, and then the estimate means nothing.

>>> import jax.numpy as jnp
>>> from bellief.induction import method2
>>> from bellief.induction.bellman_likelihood import Rows
>>> chain = jnp.broadcast_to(jnp.eye(1), (3, 1, 1))
>>> prior = Rows(chain, reward=jnp.array([[0.0], [1.0], [2.0]]), log_weight=jnp.zeros((3, 1)))
>>> weighted = method2.weigh(prior, jnp.array([[-9.0], [0.0], [-9.0]]))  # the data favour the second draw
>>> round(method2.likelihood_sizes(weighted)[0].item(), 1)
1.0
>>> at = lambda value: method2.log_likelihood(value, value, weighted, prior, 0.5, jnp.array([0.1]))
>>> bool(at(jnp.array([2.0])) > at(jnp.array([4.0])))
True
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bellief.induction.bellman_likelihood import Rows, effective_sizes, log_ratio


def weigh(prior_draws: Rows, log_likelihood: Float[Array, "J S"]) -> Rows:
    """Prior draws of rows, each weighed by the likelihood of what was observed in its state: draws of the posterior.

    Normalised over the draws, so that the evidence of each state, a constant, is left out.
    """
    return prior_draws._replace(log_weight=jax.nn.log_softmax(log_likelihood, axis=0) + jnp.log(len(log_likelihood)))


def log_likelihood(
    values: Float[Array, "S"],
    next_values: Float[Array, "S"],
    weighted: Rows,
    prior_draws: Rows,
    discount: Float[Array, ""] | float,
    sigma: Float[Array, "S"],
) -> Float[Array, ""]:
    """log P(D | V_i, V_{i+1}) up to a constant: the mean of P(D | mdp) over draws weighed by l."""
    return log_ratio(values, next_values, weighted, prior_draws, discount, sigma)


def likelihood_sizes(weighted: Rows) -> Float[Array, "S"]:
    """How many prior draws of each state's row the data leave in play, before any value function is looked at."""
    return effective_sizes(weighted.log_weight)
