"""Between the Gaussian and the joint belief: one Gaussian for each group of sampled MDPs.

psi_i(V | group c) = N(mean_c, covariance_c). Within a group a value function forgets which MDP it came from, as with
the paper's single Gaussian; between groups it does not, as with the joint belief. One group is the paper's Gaussian
with equal weights (its moments, without the noise of sampling), as many groups as MDPs are the joint belief.

The induction step keeps the first two moments: V from the group's Gaussian, an MDP of the group drawn independently of
it, and the Gaussian with the moments of what comes out.

>>> import jax, jax.numpy as jnp
>>> from bellief.values import grouped_values
>>> own = jnp.array([[1.0, 2.0], [3.0, 6.0], [5.0, 4.0], [7.0, 8.0]])  # four MDPs, two states
>>> group = grouped_values.groups_by_value(own.mean(1), count=2)
>>> group.tolist()
[0, 0, 1, 1]
>>> belief = grouped_values.fit(own, group, count=2)
>>> type(belief).__name__, belief.mean.tolist(), grouped_values.mean(belief).tolist()
('Grouped', [[2.0, 4.0], [6.0, 6.0]], [4.0, 5.0])
>>> bool(jnp.allclose(grouped_values.sd(belief), own.std(0)))  # fitting keeps the moments
True
>>> chain = jnp.broadcast_to(jnp.eye(2), (4, 2, 2))
>>> grouped_values.push_forward(belief, chain, jnp.ones((4, 2)), jnp.array(0.5)).mean.tolist()
[[2.0, 3.0], [4.0, 4.0]]
>>> grouped_values.sample(jax.random.key(0), belief, count=6).shape
(6, 2)
>>> bool((grouped_values.quantile(belief, 0.5) < grouped_values.quantile(belief, 0.9)).all())
True
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.errors import UserError


class Grouped(NamedTuple):
    """A Gaussian for each group, and the share of each MDP in each group's mean (rows sum to one)."""

    mean: Float[Array, "C S"]
    covariance: Float[Array, "C S S"]
    share: Float[Array, "C J"]

    @property
    def weight(self) -> Float[Array, "C"]:
        """The share of the MDPs that belong to each group."""
        return jnp.sum(self.share > 0, axis=1) / self.share.shape[1]


def groups_by_value(score: Float[Array, "J"], count: int) -> Int[Array, "J"]:
    """`count` groups of nearly equal size, of MDPs whose scores (such as their mean value) are next to one another."""
    if not 1 <= count <= score.shape[0]:
        raise UserError(f"{score.shape[0]} MDPs make 1 to {score.shape[0]} groups, not {count}.")
    rank = jnp.argsort(jnp.argsort(score))
    return (rank * count) // score.shape[0]


def fit(values: Float[Array, "J S"], group: Int[Array, "J"], count: int) -> Grouped:
    """The groups' Gaussians from one value function of each MDP."""
    share = (group[None] == jnp.arange(count)[:, None]).astype(values.dtype)
    share = share / jnp.sum(share, axis=1, keepdims=True)
    centre = share @ values
    apart = values[None] - centre[:, None]
    return Grouped(centre, jnp.einsum("cj,cjs,cjt->cst", share, apart, apart), share)


def push_forward(
    belief: Grouped, transition: Float[Array, "J S S"], reward: Float[Array, "J S"], discount: Float[Array, ""]
) -> Grouped:
    """One induction step: the moments of r_j + discount P_j V with j from the group and V from its Gaussian."""
    own = jnp.argmax(belief.share > 0, axis=0)
    backed_up = reward + discount * jnp.einsum("jst,jt->js", transition, belief.mean[own])
    passed_on = discount**2 * jnp.einsum("jst,jtu,jvu->jsv", transition, belief.covariance[own], transition)
    centre = belief.share @ backed_up
    apart = backed_up - centre[own]
    moment = passed_on + apart[:, :, None] * apart[:, None]
    return Grouped(centre, jnp.einsum("cj,jst->cst", belief.share, moment), belief.share)


def sample(key: Key[Array, ""], belief: Grouped, count: int) -> Float[Array, "K S"]:
    """Value functions from the mixture over groups."""
    group_key, normal_key = jax.random.split(key)
    group = jax.random.categorical(group_key, jnp.log(belief.weight), shape=(count,))
    width, directions = jnp.linalg.eigh(belief.covariance)
    root = directions * jnp.sqrt(jnp.maximum(width, 0.0))[:, None]
    normals = jax.random.normal(normal_key, (count, belief.mean.shape[1]), belief.mean.dtype)
    return belief.mean[group] + jnp.einsum("kst,kt->ks", root[group], normals)


def mean(belief: Grouped) -> Float[Array, "S"]:
    """Mean of each state's value."""
    return belief.weight @ belief.mean


def sd(belief: Grouped) -> Float[Array, "S"]:
    """Standard deviation of each state's value: between the groups and within them."""
    within = belief.weight @ jnp.diagonal(belief.covariance, axis1=1, axis2=2)
    return jnp.sqrt(within + belief.weight @ (belief.mean - mean(belief)) ** 2)


def quantile(belief: Grouped, level: float) -> Float[Array, "S"]:
    """Quantile of each state's value, by bisection on the mixture's distribution function."""
    width = jnp.sqrt(jnp.maximum(jnp.diagonal(belief.covariance, axis1=1, axis2=2), 0.0))
    reach = 10 * jnp.max(width, axis=0)
    first = (jnp.min(belief.mean, axis=0) - reach, jnp.max(belief.mean, axis=0) + reach)

    def halve(_, bounds):
        lower, upper = bounds
        middle = (lower + upper) / 2
        standard = (middle - belief.mean) / jnp.maximum(width, jnp.finfo(width.dtype).tiny)
        too_low = belief.weight @ jax.scipy.stats.norm.cdf(standard) < level
        return jnp.where(too_low, middle, lower), jnp.where(too_low, upper, middle)

    low, high = jax.lax.fori_loop(0, 60, halve, first)
    return (low + high) / 2
