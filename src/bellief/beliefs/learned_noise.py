"""Mean rewards whose noise is learned from all pairs together, while a pair never tried may pay anything.

The rewards of a pair scatter around its mean with a variance that is InverseGamma(`SHAPE`, b); b lies on a grid, and
its posterior is exact: with a flat prior on the mean, n rewards with squared deviations q have the marginal likelihood

    b^SHAPE / (b + q / 2)^(SHAPE + (n - 1) / 2)

up to factors without b. So where rewards do not vary, one visit determines a pair's mean reward; where they are noisy,
many are needed.

The mean of a pair has a wide prior that rewards of other pairs never narrow: an agent that took the rewards seen so far
as the scale of all rewards would stop exploring after a reward of 0.005. Its standard deviation is the largest absolute
reward seen so far, and at least one.

>>> import jax.numpy as jnp
>>> from bellief.beliefs import learned_noise
>>> rewards = learned_noise.init(states=2, actions=1)
>>> for _ in range(10):
...     rewards = learned_noise.update(rewards, 0, 0, jnp.array(3.0))
>>> mean, variance = learned_noise.posterior(rewards)
>>> mean.round(2).tolist(), variance.round(2).tolist(), type(rewards).__name__
([[3.0], [0.0]], [[0.0], [9.0]], 'Rewards')
>>> learned_noise.noise_variance(rewards).shape, learned_noise.rate_posterior(rewards).sum().round(3).item()
((2, 1), 1.0)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bellief.beliefs import normal_gamma

SHAPE = 1.0
# Possible rates b. Of these, the ones between so many times the square of the largest reward are possible.
GRID = 10.0 ** np.arange(-14, 15)
LEAST, MOST = 1e-6, 10.0
# The largest reward is at least this.
SMALLEST_SCALE = 1.0


class Rewards(NamedTuple):
    """Number, mean and squared deviations of each pair's rewards, the log marginal likelihood of each rate of the grid
    less the largest, and the largest absolute reward.
    """

    seen: normal_gamma.Statistics
    evidence: Float[Array, "B"]
    largest: Float[Array, ""]


def init(states: int, actions: int) -> Rewards:
    """No rewards seen."""
    scale = jnp.asarray(SMALLEST_SCALE, float)
    return Rewards(normal_gamma.init((states, actions), float), jnp.zeros(len(GRID), float), scale)


def update(rewards: Rewards, state, action, reward: Float[Array, ""]) -> Rewards:
    """Account for one reward."""
    seen = normal_gamma.update(rewards.seen, (state, action), reward)
    before = _log_evidence(rewards.seen.count[state, action], rewards.seen.squares[state, action])
    after = _log_evidence(seen.count[state, action], seen.squares[state, action])
    evidence = rewards.evidence + after - before
    return Rewards(seen, evidence - jnp.max(evidence), jnp.maximum(rewards.largest, jnp.abs(reward)))


def _log_evidence(count, squares) -> Float[Array, "B"]:
    freedom = jnp.maximum(count - 1, 0).astype(squares.dtype) / 2
    rate = jnp.asarray(GRID, squares.dtype)
    # The factor b^SHAPE of the first reward cancels: with one reward the likelihood does not depend on b.
    return SHAPE * jnp.log(rate) - (SHAPE + freedom) * jnp.log(rate + squares / 2)


def rate_posterior(rewards: Rewards) -> Float[Array, "B"]:
    """Probability of each rate of the grid."""
    relative = jnp.asarray(GRID, rewards.evidence.dtype) / rewards.largest**2
    possible = (relative >= LEAST / 2) & (relative <= MOST * 2)
    return jax.nn.softmax(jnp.where(possible, rewards.evidence, -jnp.inf))


def noise_variance(rewards: Rewards) -> Float[Array, "S A"]:
    """Expected variance of a single reward of each pair: mean of b + q / 2 over its shape, averaged over b."""
    expected_rate = rate_posterior(rewards) @ jnp.asarray(GRID, rewards.evidence.dtype)
    freedom = jnp.maximum(rewards.seen.count - 1, 0).astype(expected_rate.dtype) / 2
    return (expected_rate + rewards.seen.squares / 2) / (SHAPE + freedom)


def posterior(rewards: Rewards) -> tuple[Float[Array, "S A"], Float[Array, "S A"]]:
    """Mean and variance of what each pair pays on average, given the expected noise."""
    noise = noise_variance(rewards)
    count = rewards.seen.count.astype(noise.dtype)
    variance = 1 / (count / noise + 1 / rewards.largest**2)
    return variance * count * rewards.seen.mean / noise, variance
