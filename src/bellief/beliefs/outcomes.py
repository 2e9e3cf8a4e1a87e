"""A belief in which the reward depends on the next state too; a sample of it is a `TabularMDP` like any other.

The paper's reward belief knows the state-action pair only, so a draw of the rewards is independent of a draw of the
transitions. In logs they usually go together (the goal pays *because* it is reached), and then the paper's posterior
of r + discount * V(s') is too wide where a good reward leads to a poor state and too narrow where it leads to a good
one. Here a pair has a mean reward, each outcome o of it a mean around that, and all share the pair's precision:

    precision ~ Gamma(shape, rate)
    pair      | precision ~ N(location, 1 / (strength * precision))
    mean_o    | pair, precision ~ N(pair, 1 / (outcome_strength * precision))
    reward    | o ~ N(mean_o, 1 / precision).

Given the precision everything is Gaussian, so the posterior is exact. As `outcome_strength` grows, this becomes the
paper's NormalGamma.

>>> import jax, jax.numpy as jnp
>>> from bellief.beliefs import outcomes
>>> from bellief.beliefs.normal_gamma import Parameters
>>> seen = outcomes.Statistics(jnp.array([[[3, 1]]]), jnp.array([[[0.0, 8.0]]]), jnp.array([[0.0]]))
>>> belief = outcomes.posterior(Parameters(*(jnp.ones((1, 1)) for _ in range(4))), 0.1, seen)
>>> isinstance(belief, outcomes.OutcomeBelief)
True
>>> mdp = outcomes.mean(0.5, belief, discount=0.9)  # of its two outcomes the second is the end
>>> print(mdp.transition[0, 0], mdp.termination[0, 0], mdp.reward[0, 0].round(1))
[0.7] 0.3 2.3
>>> drawn = outcomes.sample(jax.random.key(0), 0.5, belief, discount=0.9)
>>> drawn.reward.shape, outcomes.sample_rewards(jax.random.key(0), belief)[0].shape
((1, 1), (1, 1, 2))
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.beliefs import dirichlet, normal_gamma
from bellief.beliefs.gamma import sample_log_gamma
from bellief.beliefs.tabular import as_mdp
from bellief.mdp.tabular_mdp import TabularMDP


class Statistics(NamedTuple):
    """Counts of every outcome, mean reward of every outcome, squared deviations from it summed over a pair's."""

    counts: Int[Array, "S A O"]
    mean: Float[Array, "S A O"]
    squares: Float[Array, "S A"]


class OutcomeBelief(NamedTuple):
    """The posterior. Given its pair's mean m, an outcome's mean lies around location + share * m.

    `strength` is the precision of an outcome's mean, `pair_strength` that of the pair's, both in units of the pair's
    precision, whose Gamma distribution has `shape` and `rate`.
    """

    counts: Int[Array, "S A O"]
    location: Float[Array, "S A O"]
    share: Float[Array, "S A O"]
    strength: Float[Array, "S A O"]
    pair_location: Float[Array, "S A"]
    pair_strength: Float[Array, "S A"]
    shape: Float[Array, "S A"]
    rate: Float[Array, "S A"]


def posterior(
    prior: normal_gamma.Parameters, outcome_strength: Float[Array, ""] | float, seen: Statistics
) -> OutcomeBelief:
    """Conjugate update. An outcome seen n times adds precision 1 / (1 / outcome_strength + 1 / n) to its pair."""
    counts = seen.counts.astype(seen.mean.dtype)
    strength = outcome_strength + counts
    weight = outcome_strength * counts / strength
    pair_strength = prior.strength + jnp.sum(weight, axis=-1)
    gap = seen.mean - prior.mean
    pair_gap = jnp.sum(weight * gap, axis=-1) / pair_strength
    # Squared deviations from the posterior centre, in which no large squares are subtracted from one another.
    misfit = jnp.sum(weight * (gap - pair_gap[..., None]) ** 2, axis=-1) + prior.strength * pair_gap**2
    return OutcomeBelief(
        counts=seen.counts,
        location=seen.mean * counts / strength,
        share=outcome_strength / strength,
        strength=strength,
        pair_location=prior.mean + pair_gap,
        pair_strength=pair_strength,
        shape=prior.shape + jnp.sum(counts, axis=-1) / 2,
        rate=prior.rate + (seen.squares + misfit) / 2,
    )


def sample(
    key: Key[Array, ""],
    concentration: float,
    belief: OutcomeBelief,
    discount: Float[Array, ""] | float,
    start: Float[Array, "S"] | None = None,
    support: int | None = None,
) -> TabularMDP:
    """One MDP: rows first, then each pair's mean reward under its row.

    Given row and precision, the mean reward sum_o row_o mean_o is Gaussian with known mean and variance, so one normal
    draw per pair is exact and the outcomes' own means need never be drawn. `reward_sd` is the spread of a single reward
    around it, over outcomes and noise.
    """
    dtype = belief.location.dtype
    row_key, precision_key, mean_key = jax.random.split(key, 3)
    rows = dirichlet.sample(row_key, concentration, belief.counts, dtype, support)
    variance = jnp.exp(jnp.log(belief.rate) - sample_log_gamma(precision_key, belief.shape))
    centre, width = _row_reward(rows, belief)
    reward = centre + jnp.sqrt(width * variance) * jax.random.normal(mean_key, centre.shape, dtype)
    means = belief.location + belief.share * belief.pair_location[..., None]
    spread = jnp.sum(rows * (means - centre[..., None]) ** 2, axis=-1)
    return as_mdp(rows, reward, jnp.sqrt(spread + variance), start, discount)


def sample_rewards(key: Key[Array, ""], belief: OutcomeBelief) -> tuple[Float[Array, "S A O"], Float[Array, "S A"]]:
    """One draw of every outcome's mean reward and of the noise's standard deviation, where those are needed."""
    precision_key, pair_key, outcome_key = jax.random.split(key, 3)
    dtype = belief.location.dtype
    noise = jnp.exp((jnp.log(belief.rate) - sample_log_gamma(precision_key, belief.shape)) / 2)
    pair_normal = jax.random.normal(pair_key, noise.shape, dtype)
    pair = belief.pair_location + noise * pair_normal / jnp.sqrt(belief.pair_strength)
    normal = jax.random.normal(outcome_key, belief.location.shape, dtype)
    means = belief.location + belief.share * pair[..., None] + noise[..., None] * normal / jnp.sqrt(belief.strength)
    return means, noise


def _row_reward(rows, belief: OutcomeBelief) -> tuple[Float[Array, "S A"], Float[Array, "S A"]]:
    """Mean, and variance in units of the noise's, of the mean reward under given rows."""
    shared = jnp.sum(rows * belief.share, axis=-1)
    centre = jnp.sum(rows * belief.location, axis=-1) + shared * belief.pair_location
    return centre, jnp.sum(rows**2 / belief.strength, axis=-1) + shared**2 / belief.pair_strength


def mean(
    concentration: float,
    belief: OutcomeBelief,
    discount: Float[Array, ""] | float,
    start: Float[Array, "S"] | None = None,
) -> TabularMDP:
    """The mean MDP: rows and outcomes' rewards are independent, so the mean of their product is that of their means."""
    rows = dirichlet.mean(concentration, belief.counts, belief.location.dtype)
    return as_mdp(rows, _row_reward(rows, belief)[0], None, start, discount)
