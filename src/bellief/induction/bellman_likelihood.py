"""What Methods 2 and 3 share: the likelihood of an MDP given two value functions, by how well they satisfy its Bellman
equation, and a sampler for value functions.

The likelihood and what follows from it::

    l(mdp) = exp(-|V_i - r - discount P V_{i+1}|^2 / (2 sigma^2)),   P(mdp | V_i, V_{i+1}) proportional to prior * l.

Rows of different states are independent under the belief, prior and posterior alike, and l is a product over states.
So the expectation of l is a product over states too, and J draws of each row give as good an estimate as J^S draws of
whole MDPs would. Without this the estimates degenerate at once: l requires every state to fit at the same time.

Deviation: the paper prints l with V_i and V_{i+1} exchanged, and without the prior as a factor.

>>> import jax, jax.numpy as jnp
>>> from bellief.induction import bellman_likelihood as shared
>>> chain = jnp.broadcast_to(jnp.eye(2), (3, 2, 2))  # three draws of two states that stay where they are
>>> rows = shared.Rows(chain, reward=jnp.array([[0.9, 1.0], [1.0, 1.0], [1.1, 1.0]]), log_weight=jnp.zeros((3, 2)))
>>> values, sigma = jnp.array([2.0, 2.0]), jnp.array([0.1, 0.1])
>>> links = shared.log_links(values, values, rows, discount=0.5, sigma=sigma)
>>> print(links.round(2)[:, 0], shared.effective_sizes(links).round(1))
[-0.5  0.  -0.5] [2.8 3. ]
>>> bool(shared.log_mean(links) < 0), shared.log_ratio(values, values, rows, rows, 0.5, sigma).item()
(True, 0.0)
>>> print(shared.residual_spread(values, rows, 0.5).round(3))
[0.082 0.   ]
>>> target = lambda many: -jnp.sum(many**2, axis=-1) / 2
>>> chains = shared.sample_values(jax.random.key(0), target, jax.random.normal(jax.random.key(1), (8, 2)), steps=5)
>>> type(chains).__name__, chains.values.shape
('Chains', (8, 2))
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key


class Rows(NamedTuple):
    """Draws of the Markov chain that the policy makes of the MDP: J rows for every state, with optional log weights.

    `log_weight` [J, S] belongs to each draw of each row by itself; zero for plain draws.
    """

    transition: Float[Array, "J S S"]
    reward: Float[Array, "J S"]
    log_weight: Float[Array, "J S"]


def log_links(
    values: Float[Array, "S"],
    next_values: Float[Array, "S"],
    rows: Rows,
    discount: Float[Array, ""] | float,
    sigma: Float[Array, "S"],
) -> Float[Array, "J S"]:
    """Logarithm of each state's factor of l for every draw of its row, plus the draw's own log weight."""
    backed_up = rows.reward + discount * rows.transition @ next_values
    return -(((values - backed_up) / sigma) ** 2) / 2 + rows.log_weight


def log_mean(logs: Float[Array, "J S"]) -> Float[Array, ""]:
    """Logarithm of the expectation of a product over states, from draws of each state's factor."""
    return jnp.sum(logsumexp(logs, axis=0) - jnp.log(logs.shape[0]))


def log_ratio(
    values: Float[Array, "S"],
    next_values: Float[Array, "S"],
    draws: Rows,
    prior_draws: Rows,
    discount: Float[Array, ""] | float,
    sigma: Float[Array, "S"],
) -> Float[Array, ""]:
    """log E[l] over some draws less that over prior draws: what Methods 2 and 3 have in common."""
    numerator = log_mean(log_links(values, next_values, draws, discount, sigma))
    return numerator - log_mean(log_links(values, next_values, prior_draws, discount, sigma))


def effective_sizes(logs: Float[Array, "J S"]) -> Float[Array, "S"]:
    """How many of the J draws of each state's row carry the estimate of its factor."""
    weights = jax.nn.softmax(logs, axis=0)
    return 1 / jnp.sum(weights**2, axis=0)


def residual_spread(values: Float[Array, "S"], rows: Rows, discount: Float[Array, ""] | float) -> Float[Array, "S"]:
    """Standard deviation over draws of r + discount P V at each state: the scale on which l must tell MDPs apart."""
    return jnp.std(rows.reward + discount * rows.transition @ values, axis=0)


class Chains(NamedTuple):
    """Last state of every chain and the share of moves that were accepted."""

    values: Float[Array, "N S"]
    acceptance: Float[Array, ""]


def sample_values(
    key: Key[Array, ""],
    log_target: Callable[[Float[Array, "N S"]], Float[Array, "N"]],
    first: Float[Array, "N S"],
    steps: int,
) -> Chains:
    """Metropolis chains over value functions, one from each row of `first`, with a density known up to a constant.

    `log_target` takes all chains at once, so that the caller may choose how many of them to compute together.
    A proposal adds a scaled difference of two rows of `first` (ter Braak 2006, with the differences held fixed, which
    keeps proposals symmetric) and a little noise, so that moves have the shape of the posterior. The scale is drawn
    anew at every step: a tenth of the moves have full length, which lets a chain jump.
    """
    count, states = first.shape
    jitter = 1e-3 * jnp.std(first, axis=0)
    usual = 2.38 / jnp.sqrt(2.0 * states)

    def propose(key, values):
        pick_key, scale_key, noise_key = jax.random.split(key, 3)
        one, other = first[jax.random.randint(pick_key, (2,), 0, count)]
        kind = jax.random.uniform(scale_key, (2,))
        scale = jnp.where(kind[0] < 0.1, 1.0, usual * kind[1])
        return values + scale * (one - other) + jitter * jax.random.normal(noise_key, (states,), values.dtype)

    def step(carry, step_key):
        values, density = carry
        propose_key, accept_key = jax.random.split(step_key)
        proposal = jax.vmap(propose)(jax.random.split(propose_key, count), values)
        proposed = log_target(proposal)
        accepted = jnp.log(jax.random.uniform(accept_key, (count,), values.dtype)) < proposed - density
        values = jnp.where(accepted[:, None], proposal, values)
        return (values, jnp.where(accepted, proposed, density)), jnp.mean(accepted.astype(values.dtype))

    start = (first, log_target(first))
    (values, _), accepted = jax.lax.scan(step, start, jax.random.split(key, steps))
    return Chains(values, jnp.mean(accepted))
