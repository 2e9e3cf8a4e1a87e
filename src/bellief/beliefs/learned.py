"""A belief about tabular MDPs that learns its own prior: `learned_rows` for transitions, `learned_noise` for rewards.

>>> import jax, jax.numpy as jnp
>>> from bellief.beliefs import learned
>>> from bellief.types import Spaces, Transition
>>> spaces = Spaces(3, 2, terminates=True, reward_low=None, reward_high=None)
>>> belief = learned.init(spaces)
>>> belief = learned.update(belief, Transition(*map(jnp.asarray, (0, 1, 1.0, 2, False))))
>>> type(belief).__name__, learned.outcomes(belief), belief.rows.visits.sum().item()
('Belief', 4, 1)
>>> drawn = learned.sample(jax.random.key(0), belief, slots=2)
>>> type(drawn).__name__, bool(jnp.allclose(drawn.mass.sum(-1) + 4 * drawn.even, 1, atol=1e-5))
('Draw', True)
>>> learned.sizes(belief)
(2, 4)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.beliefs import learned_noise, learned_rows
from bellief.beliefs.gamma import sample_log_gamma
from bellief.types import Spaces, Transition

# What a drawn row puts on outcomes that were never seen: so many atoms, and the rest evenly.
ATOMS = 4
# Numbers of seen outcomes that there are programs for.
SIZES = (2, 8, 32, 128)
# Degrees of freedom of the reward of a pair that was never tried.
FREEDOM = 4.0


class Belief(NamedTuple):
    """What is known of transitions and of rewards. `ends` has one entry where episodes can end, else none: the number
    of outcomes is then the states and the end, else the states.
    """

    rows: learned_rows.Rows
    rewards: learned_noise.Rewards
    ends: Float[Array, "e"]


class Draw(NamedTuple):
    """A drawn MDP by its atoms: next states (or S for the end) with their mass, `even` more for every outcome."""

    outcome: Int[Array, "S A K"]
    mass: Float[Array, "S A K"]
    even: Float[Array, "S A"]
    reward: Float[Array, "S A"]


def init(spaces: Spaces) -> Belief:
    """Nothing learned."""
    possible = spaces.states + int(spaces.terminates)
    return Belief(
        learned_rows.init(spaces.states, spaces.actions, possible, spaces.support),
        learned_noise.init(spaces.states, spaces.actions),
        jnp.zeros(int(spaces.terminates), float),
    )


def outcomes(belief: Belief) -> int:
    """Possible outcomes of a pair."""
    return belief.rows.visits.shape[0] + belief.ends.shape[0]


def update(belief: Belief, transition: Transition) -> Belief:
    """Account for one transition."""
    states = belief.rows.visits.shape[0]
    outcome = transition.next_state
    if belief.ends.shape[0]:
        outcome = jnp.where(transition.terminated, states, outcome)
    place = (transition.state, transition.action)
    return Belief(
        learned_rows.update(belief.rows, *place, outcome, outcomes(belief)),
        learned_noise.update(belief.rewards, *place, transition.reward),
        belief.ends,
    )


def sizes(belief: Belief) -> tuple[int, ...]:
    """Numbers of slots that programs are compiled for: `SIZES`, and all there are."""
    slots = belief.rows.count.shape[-1]
    return (*(size for size in SIZES if size < slots), slots)


def sample(key: Key[Array, ""], belief: Belief, slots: int) -> Draw:
    """One MDP from the posterior, of whose rows no more than `slots` outcomes were seen.

    The weight of the rows is drawn from its posterior, for all rows alike; then seen outcomes are Gamma(count + w / O),
    which is exact. Deviation: what is left of a row, Gamma(w times the share of unseen outcomes), is broken into
    `ATOMS` sticks on outcomes drawn evenly and a rest spread evenly, where the Dirichlet process has infinitely many.
    """
    weight_key, cell_key, left_key, stick_key, place_key, reward_key = jax.random.split(key, 6)
    rows = belief.rows
    grid = jnp.asarray(learned_rows.GRID, rows.evidence.dtype)
    weight = grid[jax.random.categorical(weight_key, rows.evidence)]
    possible = outcomes(belief)
    count = rows.count[..., :slots]
    seen = count > 0
    number = jnp.sum(seen, axis=-1)
    cells = sample_log_gamma(cell_key, jnp.where(seen, count + weight / possible, 1.0))
    left = sample_log_gamma(left_key, jnp.maximum(weight * (possible - number) / possible, 1e-6))
    log_mass = jnp.concatenate([jnp.where(seen, cells, -jnp.inf), left[..., None]], axis=-1)
    shares = jax.nn.softmax(log_mass, axis=-1)
    shape = (*number.shape, ATOMS)
    # Beta(1, w) by inversion; the sticks are what each leaves of the rest.
    breaks = 1 - jax.random.uniform(stick_key, shape, grid.dtype) ** (1 / weight)
    remaining = jnp.cumprod(1 - breaks, axis=-1)
    sticks = breaks * jnp.concatenate([jnp.ones_like(remaining[..., :1]), remaining[..., :-1]], axis=-1)
    unseen = shares[..., -1]
    place = jax.random.randint(place_key, shape, 0, possible)
    return Draw(
        jnp.concatenate([rows.outcome[..., :slots], place], axis=-1),
        jnp.concatenate([shares[..., :-1], unseen[..., None] * sticks], axis=-1),
        unseen * remaining[..., -1] / possible,
        _sample_reward(reward_key, belief.rewards),
    )


def _sample_reward(key: Key[Array, ""], rewards: learned_noise.Rewards) -> Float[Array, "S A"]:
    """Mean rewards: normal where a pair was tried, else Student with few degrees of freedom."""
    normal_key, tail_key = jax.random.split(key)
    mean, variance = learned_noise.posterior(rewards)
    normal = jax.random.normal(normal_key, mean.shape, mean.dtype)
    stretch = jnp.sqrt(FREEDOM / (2 * jnp.exp(sample_log_gamma(tail_key, jnp.full(mean.shape, FREEDOM / 2)))))
    return mean + jnp.sqrt(variance) * normal * jnp.where(rewards.seen.count > 0, 1.0, stretch)
