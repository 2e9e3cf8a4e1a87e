"""Our value belief: a Gaussian for each sampled MDP, kept with that MDP.

psi_i(V | mdp_j) = N(mean_j, factor_j^T factor_j), and the sampled MDPs stay equally likely, as posterior draws are. The
induction step is then exact: given mdp_j the Bellman operator is affine, so a Gaussian goes to a Gaussian. Nothing is
re-drawn, and which value belongs to which MDP is never forgotten, which is what makes the single Gaussian collapse.

With psi_H a point (zero rows in the factors) this is Monte Carlo over the J MDPs, no more and no less.

>>> import jax, jax.numpy as jnp
>>> from bellief.values import joint
>>> belief = joint.point(jnp.array([[1.0, 2.0], [3.0, 6.0]]))  # two MDPs, two states
>>> type(belief).__name__
'Joint'
>>> print(joint.mean(belief), joint.sd(belief), joint.quantile(belief, 1.0))
[2. 4.] [1. 2.] [3. 6.]
>>> chain = jnp.broadcast_to(jnp.eye(2), (2, 2, 2))
>>> joint.push_forward(belief, chain, jnp.ones((2, 2)), jnp.array(0.5)).mean.tolist()
[[1.5, 2.0], [2.5, 4.0]]
>>> joint.sample(jax.random.key(0), belief, count=4).shape
(4, 2)
>>> values, mdp = joint.sample_with_mdp(jax.random.key(0), belief, count=4)
>>> joint.responsibilities(belief, values, noise=0.01).round(3).tolist(), mdp.tolist()
([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], [0, 1, 0, 1])
>>> joint.pooled(belief.mean).mean.tolist()
[[2.0, 4.0], [2.0, 4.0]]
>>> joint.fit(values.reshape(2, 2, 2), jnp.full((2, 2), 0.5)).factor.shape
(2, 2, 2)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.values import gaussian, weighted


class Joint(NamedTuple):
    """One Gaussian per sampled MDP; R may be zero, for point masses."""

    mean: Float[Array, "J S"]
    factor: Float[Array, "J R S"]


def point(values: Float[Array, "J S"]) -> Joint:
    """All mass of each MDP on one value function."""
    return Joint(values, jnp.zeros((values.shape[0], 0, values.shape[1]), values.dtype))


def pooled(values: Float[Array, "J S"]) -> Joint:
    """The same Gaussian for every MDP: mean and covariance of the given value functions over all MDPs."""
    mdps, states = values.shape
    belief = gaussian.fit(values[:, None], jnp.full((mdps, 1), 1 / mdps, values.dtype))
    return Joint(
        jnp.broadcast_to(belief.mean, (mdps, states)), jnp.broadcast_to(belief.factor, (mdps, *belief.factor.shape))
    )


def push_forward(
    belief: Joint, transition: Float[Array, "J S S"], reward: Float[Array, "J S"], discount: Float[Array, ""]
) -> Joint:
    """The exact image of each MDP's Gaussian under that MDP's own Bellman operator."""
    mean_values = reward + discount * jnp.einsum("jst,jt->js", transition, belief.mean)
    factor = discount * jnp.einsum("jst,jrt->jrs", transition, belief.factor)
    return Joint(mean_values, factor)


def fit(samples: Float[Array, "J K S"], weights: Float[Array, "J K"]) -> Joint:
    """Refit each MDP's Gaussian to its own samples, weighted by responsibilities (normalised within each MDP)."""
    share = weights / jnp.sum(weights, axis=1, keepdims=True)

    def one_mdp(own_samples, own_share):
        return gaussian.fit(own_samples[None], own_share[None] * own_share.shape[0])

    return Joint(*jax.vmap(one_mdp)(samples, share))


def sample_with_mdp(key: Key[Array, ""], belief: Joint, count: int) -> tuple[Float[Array, "K S"], Int[Array, "K"]]:
    """Value functions from the mixture and the MDP each belongs to; MDPs are taken in turn, so shares are even."""
    mdps, rows, _ = belief.factor.shape
    owner = jnp.arange(count) % mdps
    normals = jax.random.normal(key, (count, rows), belief.mean.dtype)
    return belief.mean[owner] + jnp.einsum("kr,krs->ks", normals, belief.factor[owner]), owner


def sample(key: Key[Array, ""], belief: Joint, count: int) -> Float[Array, "K S"]:
    """Value functions from the mixture over MDPs."""
    return sample_with_mdp(key, belief, count)[0]


def responsibilities(
    belief: Joint, values: Float[Array, "K S"], noise: Float[Array, ""] | float
) -> Float[Array, "J K"]:
    """P(mdp_j | V_k, data) under the mixture: Method 1's weight, computed coherently.

    `noise` is the variance added to every direction, without which a singular Gaussian has no density.
    """

    def log_density(mean_values, factor):
        covariance = factor.T @ factor + noise * jnp.eye(mean_values.shape[0], dtype=values.dtype)
        root = jnp.linalg.cholesky(covariance)
        solved = jax.scipy.linalg.solve_triangular(root, (values - mean_values).T, lower=True)
        return -0.5 * jnp.sum(solved**2, axis=0) - jnp.sum(jnp.log(jnp.diagonal(root)))

    return jax.nn.softmax(jax.vmap(log_density)(belief.mean, belief.factor), axis=0)


def mean(belief: Joint) -> Float[Array, "S"]:
    """Mean of each state's value over the mixture."""
    return jnp.mean(belief.mean, axis=0)


def sd(belief: Joint) -> Float[Array, "S"]:
    """Standard deviation over the mixture: between the MDPs and within them."""
    within = jnp.sum(belief.factor**2, axis=1)
    return jnp.sqrt(jnp.mean(within, axis=0) + jnp.var(belief.mean, axis=0))


def quantile(belief: Joint, level: float) -> Float[Array, "S"]:
    """Quantile of each state's value over the mixture; for point masses the one of the J values (order statistics).

    With spread inside the MDPs it is found by bisection on the mixture's distribution function.
    """
    if belief.factor.shape[1] == 0:
        return weighted.order_quantile(belief.mean, level)
    within = jnp.sqrt(jnp.sum(belief.factor**2, axis=1))
    reach = 10 * jnp.max(within, axis=0)
    low, high = jnp.min(belief.mean, axis=0) - reach, jnp.max(belief.mean, axis=0) + reach

    def halve(_, bounds):
        lower, upper = bounds
        middle = (lower + upper) / 2
        standard = (middle - belief.mean) / jnp.maximum(within, jnp.finfo(within.dtype).tiny)
        too_low = jnp.mean(jax.scipy.stats.norm.cdf(standard), axis=0) < level
        return jnp.where(too_low, middle, lower), jnp.where(too_low, upper, middle)

    low, high = jax.lax.fori_loop(0, 60, halve, (low, high))
    return (low + high) / 2
