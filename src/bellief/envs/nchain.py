"""NChain: give up a small reward now for a large one at the far end (Strens 2000, after Dearden et al. 1998)."""

from dataclasses import dataclass

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_count, check_number, check_probability
from bellief.mdp.tabular_mdp import make_outcomes

BACK, FORWARD = 0, 1
# The transition table has a number for each pair of states.
MOST_STATES = 20_000


def nchain(size: int = 5, slip: float = 0.2, small_reward: float = 2.0, large_reward: float = 10.0) -> Environment:
    """A chain of `size` states that never ends; the start is state 0.

    Action 0, *back*, returns to state 0 and pays `small_reward`. Action 1, *forward*, moves one state on and pays
    nothing, except in the last state, where it stays and pays `large_reward`. With probability `slip` the other
    action takes effect, for the transition and the reward alike. Outcome 0 is the action as chosen, outcome 1 the slip.

    Deviation: the old Gym environment numbers *forward* 0 and *back* 1; here action 0 is *back*.

    >>> from bellief.envs.nchain import nchain
    >>> nchain(size=3).mdp().reward.tolist()
    [[1.6, 0.4], [1.6, 0.4], [3.6, 8.4]]
    """
    size = check_count("size", size, least=2, most=MOST_STATES)
    slip = check_probability("slip", slip)
    small_reward, large_reward = check_number("small_reward", small_reward), check_number("large_reward", large_reward)

    last = size - 1
    # Indexed [state, effective action].
    effective_next = np.stack([np.zeros(size, dtype=int), np.minimum(np.arange(size) + 1, last)], axis=1)
    effective_reward = np.zeros((size, 2))
    effective_reward[:, BACK] = small_reward
    effective_reward[last, FORWARD] = large_reward

    effective_action = np.array([[BACK, FORWARD], [FORWARD, BACK]])
    next_state = effective_next[:, effective_action]
    probability = np.broadcast_to([1.0 - slip, slip], next_state.shape)
    return Environment(
        name="nchain",
        outcomes=make_outcomes(probability, next_state, effective_reward[:, effective_action], single_start(size, 0)),
        action_names=("back", "forward"),
        parameters={"size": size, "slip": slip, "small_reward": small_reward, "large_reward": large_reward},
        view=ChainView(size),
    )


@dataclass(frozen=True)
class ChainView:
    """Names and draws the states of a chain."""

    size: int
    layout: None = None

    def describe(self, state: int) -> str:
        """The position in the chain, counted from 0."""
        place = {0: " (start)", self.size - 1: " (far end)"}.get(state, "")
        return f"position {state}{place}"

    def render_text(self, state: int) -> str:
        """The chain on one line."""
        return bracketed(range(self.size), state, " - ")

    def render_image(self, state: int) -> None:
        """A chain has no picture."""
        return None


def bracketed(path, state: int, link: str) -> str:
    """The states of `path` joined by `link`, with brackets around `state`; the width does not depend on `state`."""
    return link.join(f"[{item}]" if item == state else f" {item} " for item in path)
