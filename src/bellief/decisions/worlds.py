"""Problems drawn from a prior, the logs that they make, and what policies are worth in them; NumPy only.

>>> import numpy as np
>>> from bellief.decisions.worlds import draw_world, simulate, true_values
>>> from bellief.priors import Prior
>>> rng = np.random.default_rng(0)
>>> world = draw_world(rng, Prior(), states=2, actions=2, terminates=False)
>>> policy = np.full((2, 2), 0.5)
>>> len(simulate(rng, world, policy, transitions=5)), true_values(world, policy, 0.9).shape
(5, (2,))
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.logs.transitions import Transitions
from bellief.priors import Prior

# Under discount 1 a world may never end; so much of a chance to end at every step makes its values finite.
BARELY = 1e-10


class World(NamedTuple):
    """An MDP drawn from a prior. Of the `O` outcomes those after the `S` states end the episode.

    `reward` is the mean of a pair; `outcome_reward`, where there is one, that of each of its outcomes.
    """

    rows: Float[np.ndarray, "S A O"]
    reward: Float[np.ndarray, "S A"]
    reward_sd: Float[np.ndarray, "S A"]
    outcome_reward: Float[np.ndarray, "S A O"] | None = None


def draw_world(rng: np.random.Generator, prior: Prior, states: int, actions: int, terminates: bool) -> World:
    """Dirichlet rows and NormalGamma rewards, exactly as the belief assumes."""
    outcomes = states + terminates
    rows = dirichlet(rng, np.full((states, actions, outcomes), prior.concentration(outcomes)))
    precision = rng.gamma(prior.reward_shape, 1 / prior.reward_rate, size=(states, actions))
    reward = rng.normal(prior.reward_mean, 1 / np.sqrt(prior.reward_strength * precision))
    if prior.outcome_strength is None:
        return World(rows, reward, 1 / np.sqrt(precision))
    spread = 1 / np.sqrt(prior.outcome_strength * precision)
    by_outcome = rng.normal(reward[..., None], spread[..., None], size=rows.shape)
    return World(rows, (rows * by_outcome).sum(-1), 1 / np.sqrt(precision), by_outcome)


def dirichlet(rng: np.random.Generator, concentration: Float[np.ndarray, "*k O"]) -> Float[np.ndarray, "*k O"]:
    """Dirichlet rows. For small concentrations NumPy's gammas underflow; their logarithms do not.

    Gamma(a) = Gamma(a + 1) U^(1 / a).
    """
    shape = concentration.shape
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(rng.standard_gamma(concentration + 1, shape)) + np.log(rng.random(shape)) / concentration
    weights = np.exp(logs - logs.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def simulate(
    rng: np.random.Generator, world: World, behaviour: Float[np.ndarray, "S A"], transitions: int
) -> Transitions:
    """A log of the behaviour policy in the world, beginning in state 0 and again after each end.

    Where there are several ends, each is a state of its own after the others; a single one is not named.
    """
    states, actions, outcomes = world.rows.shape
    ends = outcomes - states
    cumulative, choices = np.cumsum(world.rows, axis=-1), np.cumsum(behaviour, axis=-1)
    log = np.zeros((transitions, 5))
    state = 0
    for step, (first, second, noise) in enumerate(
        zip(rng.random(transitions), rng.random(transitions), rng.normal(size=transitions), strict=True)
    ):
        action = min(int(np.searchsorted(choices[state], first, side="right")), actions - 1)
        outcome = int(np.searchsorted(cumulative[state, action], second * cumulative[state, action, -1], side="right"))
        pair_mean = world.reward[state, action]
        mean = pair_mean if world.outcome_reward is None else world.outcome_reward[state, action, outcome]
        reward = mean + world.reward_sd[state, action] * noise
        ended = outcome >= states
        log[step] = state, action, reward, 0 if ended and ends == 1 else outcome, ended
        state = 0 if ended else outcome
    columns = [log[:, 0].astype(int), log[:, 1].astype(int), log[:, 2], log[:, 3].astype(int), log[:, 4].astype(bool)]
    return Transitions.from_arrays(*columns, states=states + (ends if ends > 1 else 0), actions=actions)


def true_values(world: World, policy: Float[np.ndarray, "S A"], discount: float) -> Float[np.ndarray, "S"]:
    """Values of a policy in a world, by a linear solve."""
    states = len(policy)
    chain = np.einsum("sa,sat->st", policy, world.rows[..., :states])
    return np.linalg.solve(np.eye(states) - min(discount, 1 - BARELY) * chain, (policy * world.reward).sum(-1))
