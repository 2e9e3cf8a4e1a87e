"""The one MDP type of the library, and the outcome table that an environment is stepped from.

>>> from bellief.mdp import tabular_mdp
>>> coin = tabular_mdp.make_outcomes([[[0.5, 0.5]]], next_state=[[[0, 0]]], reward=[[[0, 10]]], start=[1])
>>> mdp = tabular_mdp.to_mdp(coin, discount=0.9)
>>> type(coin).__name__, type(mdp).__name__, mdp.reward.tolist(), mdp.reward_sd.tolist()
('Outcomes', 'TabularMDP', [[5.0]], [[5.0]])
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bellief.errors import UserError


class TabularMDP(NamedTuple):
    """A finite MDP. Environments are turned into it, beliefs sample it, planners take it.

    The end of an episode is not a state: `transition[s, a]` sums to `1 - termination[s, a]`, and what follows an end
    is worth exactly zero. `reward` is the mean; `reward_sd` is the spread of a single reward where that is known.
    """

    transition: Float[Array, "S A S"]
    reward: Float[Array, "S A"]
    termination: Float[Array, "S A"]
    start: Float[Array, "S"]
    discount: Float[Array, ""]
    reward_sd: Float[Array, "S A"] | None = None


class Outcomes(NamedTuple):
    """Everything that can happen after each state-action pair, as a list of `O` outcomes with probabilities.

    This holds more than a `TabularMDP`: rewards may differ between two ways of reaching the same next state (falling
    into lava and walking home both lead to the start, with different rewards). Where `terminated` is true
    `next_state` is the state the episode ended in; a new episode then begins from `start`.
    """

    probability: Float[np.ndarray, "S A O"]
    next_state: Int[np.ndarray, "S A O"]
    reward: Float[np.ndarray, "S A O"]
    terminated: Bool[np.ndarray, "S A O"]
    start: Float[np.ndarray, "S"]


def make_outcomes(probability, next_state, reward, start, terminated=None) -> Outcomes:
    """Check and normalise the types of an outcome table; `UserError` says which pair is wrong."""
    probability = np.asarray(probability, dtype=np.float64)
    next_state = np.asarray(next_state, dtype=np.int32)
    reward = np.broadcast_to(np.asarray(reward, dtype=np.float64), probability.shape)
    start = np.asarray(start, dtype=np.float64)
    if terminated is None:
        terminated = np.zeros(probability.shape, dtype=bool)
    terminated = np.asarray(terminated, dtype=bool)
    states = len(probability)
    if probability.ndim != 3 or next_state.shape != probability.shape or terminated.shape != probability.shape:
        raise UserError("An outcome table needs probability, next_state and terminated of one shape [S, A, O].")
    bad_rows = np.argwhere(~np.isclose(probability.sum(-1), 1.0) | (probability < 0).any(-1))
    if len(bad_rows):
        state, action = bad_rows[0]
        raise UserError(
            f"The outcome probabilities of state {state}, action {action} are not a distribution: "
            f"they are {probability[state, action].tolist()}; make them non-negative with sum 1."
        )
    if next_state.min() < 0 or next_state.max() >= states:
        raise UserError(f"A next state lies outside 0..{states - 1}; every next state must be one of the states.")
    if start.shape != (states,) or not np.isclose(start.sum(), 1.0) or (start < 0).any():
        raise UserError(f"The start distribution must be {states} non-negative numbers with sum 1.")
    return Outcomes(probability, next_state, reward, terminated, start)


def to_mdp(outcomes: Outcomes, discount: float = 0.99) -> TabularMDP:
    """The exact `TabularMDP` of an outcome table: transition, mean and spread of rewards, termination."""
    states, actions, _ = outcomes.probability.shape
    continues = np.where(outcomes.terminated, 0.0, outcomes.probability)
    transition = np.zeros((states, actions, states))
    state, action, _ = np.indices(outcomes.probability.shape)
    np.add.at(transition, (state, action, outcomes.next_state), continues)
    reward = (outcomes.probability * outcomes.reward).sum(-1)
    variance = (outcomes.probability * (outcomes.reward - reward[..., None]) ** 2).sum(-1)
    # NumPy arrays, exact in float64; JAX takes them wherever it takes its own.
    fields: dict[str, Any] = {
        "transition": transition,
        "reward": reward,
        "termination": (outcomes.probability * outcomes.terminated).sum(-1),
        "start": outcomes.start,
        "discount": np.asarray(discount, dtype=np.float64),
        "reward_sd": np.sqrt(variance),
    }
    return TabularMDP(**fields)
