"""NormalGamma belief about the mean and precision of a reward; the state is count, mean and squared deviations.

The paper's parameters (mu, kappa, alpha, beta) are computed from these sufficient statistics when they are needed, so
updating needs no prior and the count stays an exact integer.

>>> import jax, jax.numpy as jnp
>>> from bellief.beliefs import normal_gamma
>>> one = normal_gamma.update(normal_gamma.init(rows=(1,)), (0,), jnp.array(4.0))
>>> more = normal_gamma.update_batch(normal_gamma.init(rows=(1,)), (jnp.array([0, 0]),), jnp.array([2.0, 6.0]))
>>> seen = normal_gamma.combine(one, more)
>>> type(seen).__name__, [part.tolist() for part in seen]
('Statistics', [[3], [4.0], [8.0]])
>>> after = normal_gamma.posterior(normal_gamma.Parameters(*jnp.array([0.0, 1.0, 1.0, 1.0])), seen)
>>> normal_gamma.mean(after).tolist(), after.shape.tolist()
([3.0], [2.5])
>>> reward, sd = normal_gamma.sample(jax.random.key(0), after)
>>> normal_gamma.log_density(after, reward, 1 / sd**2).shape
(1,)
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int, Key

from bellief.beliefs.gamma import sample_log_gamma


class Parameters(NamedTuple):
    """Parameters of a NormalGamma distribution, in the paper's order [mu, kappa, alpha, beta]."""

    mean: Float[Array, "*rows"]
    strength: Float[Array, "*rows"]
    shape: Float[Array, "*rows"]
    rate: Float[Array, "*rows"]


class Statistics(NamedTuple):
    """Sufficient statistics of the rewards seen in each row."""

    count: Int[Array, "*rows"]  # type: ignore[assignment]  # a tuple has a method of that name
    mean: Float[Array, "*rows"]
    squares: Float[Array, "*rows"]


def init(rows: tuple[int, ...], dtype: Any = float) -> Statistics:
    """No observations yet."""
    return Statistics(jnp.zeros(rows, jnp.int32), jnp.zeros(rows, dtype), jnp.zeros(rows, dtype))


def update(statistics: Statistics, row: tuple, reward: Float[Array, ""]) -> Statistics:
    """Account for one reward (Welford's update: no large squares are ever subtracted)."""
    count = statistics.count[row] + 1
    before = reward - statistics.mean[row]
    change = before / count.astype(reward.dtype)
    squares = before * (before - change)
    return Statistics(
        statistics.count.at[row].add(1),
        statistics.mean.at[row].set(_add(statistics.mean[row], change, count)),
        statistics.squares.at[row].set(_add(statistics.squares[row], squares, count)),
    )


# From so many observations on, single precision would lose small changes and keep large ones. At twice as many a change
# is one or two units in the last place, and the mean has drifted already; with fewer, stored runs would change.
MANY = 2**19


def _add(total: Float[Array, ""], change: Float[Array, ""], count: Int[Array, ""]) -> Float[Array, ""]:
    """total + change, rounded to the nearest number or, beyond MANY observations, to either neighbour so that nothing
    is lost on average.

    Rounding to the nearest alone would drop every change below half a unit in the last place: where rewards of 10 are
    frequent and 2 is rare, the many small rises are lost, the few large falls are not, and the mean drifts down. What
    is chosen follows the golden ratio's multiples of the count, which are spread as evenly as can be.
    """
    nearest = total + change
    left = change - (nearest - total)
    other = jnp.nextafter(nearest, jnp.where(left > 0, jnp.inf, -jnp.inf).astype(nearest.dtype))
    share = jnp.abs(left) / jnp.abs(other - nearest)
    turn = (count.astype(jnp.uint32) * jnp.uint32(2654435769)).astype(nearest.dtype) / 2.0**32
    return jnp.where((count >= MANY) & (turn < share), other, nearest)


def update_batch(statistics: Statistics, row: tuple, rewards: Float[Array, "n"]) -> Statistics:
    """Account for many rewards, each in the row that `row` (a tuple of index arrays) names for it."""
    zeros = jnp.zeros_like(statistics.mean)
    new_count = jnp.zeros_like(statistics.count).at[row].add(1)
    size = jnp.maximum(new_count, 1).astype(zeros.dtype)
    # Summing differences to a first guess keeps float32 sums small where rewards share a large offset.
    guess = zeros.at[row].set(rewards)
    new_mean = guess + zeros.at[row].add(rewards - guess[row]) / size
    new_squares = zeros.at[row].add((rewards - new_mean[row]) ** 2)
    return combine(statistics, Statistics(new_count, new_mean, new_squares))


def combine(first: Statistics, second: Statistics) -> Statistics:
    """Statistics of two sets of observations together (Chan's formula)."""
    count = first.count + second.count
    total = jnp.maximum(count, 1).astype(first.mean.dtype)
    share = second.count.astype(first.mean.dtype) / total
    gap = second.mean - first.mean
    cross = gap**2 * first.count.astype(first.mean.dtype) * share
    return Statistics(count, first.mean + gap * share, first.squares + second.squares + cross)


def posterior(prior: Parameters, statistics: Statistics) -> Parameters:
    """Conjugate update of the prior's parameters by the sufficient statistics."""
    count = statistics.count.astype(statistics.mean.dtype)
    strength = prior.strength + count
    gap = statistics.mean - prior.mean
    return Parameters(
        mean=prior.mean + gap * count / strength,
        strength=strength,
        shape=prior.shape + count / 2,
        rate=prior.rate + statistics.squares / 2 + prior.strength * count * gap**2 / (2 * strength),
    )


def sample(key: Key[Array, ""], parameters: Parameters) -> tuple[Float[Array, "*rows"], Float[Array, "*rows"]]:
    """One draw of (mean, standard deviation) of the reward in every row: precision first, then the mean given it."""
    precision_key, mean_key = jax.random.split(key)
    precision = jnp.exp(sample_log_gamma(precision_key, parameters.shape)) / parameters.rate
    normal = jax.random.normal(mean_key, parameters.mean.shape, parameters.mean.dtype)
    return parameters.mean + normal / jnp.sqrt(parameters.strength * precision), 1 / jnp.sqrt(precision)


def mean(parameters: Parameters) -> Float[Array, "*rows"]:
    """Posterior mean of the mean reward."""
    return parameters.mean


def log_density(
    parameters: Parameters, mean_reward: Float[Array, "*rows"], precision: Float[Array, "*rows"]
) -> Float[Array, "*rows"]:
    """Log of the joint density of mean and precision."""
    location, strength, shape, rate = parameters
    gamma_part = shape * jnp.log(rate) - gammaln(shape) + (shape - 1) * jnp.log(precision) - rate * precision
    normal_part = 0.5 * (jnp.log(strength * precision) - jnp.log(2 * jnp.pi))
    return gamma_part + normal_part - 0.5 * strength * precision * (mean_reward - location) ** 2
