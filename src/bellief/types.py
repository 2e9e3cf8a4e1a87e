"""Vocabulary shared by every layer: axis names, the record of one step, what an agent knows at the start.

Axis names used in shape annotations, always in this order:

- `runs`: independent repetitions of an experiment
- `J`: sampled MDPs (the paper's N_mu)
- `K`: value samples (the paper's N_V)
- `L`: utility samples per sampled MDP and state
- `S`, `A`: states and actions; `O`: outcomes of a state-action pair
- `N`: states that a continuous problem is looked at in; `D`: dimensions of such a state; `F`: features
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int


def default_precision() -> np.dtype:
    """Of agents and their loops: single, or double with `JAX_ENABLE_X64=1`."""
    return np.dtype(jax.dtypes.canonicalize_dtype(float))


class Transition(NamedTuple):
    """One observed step; every field may carry leading batch axes. In a continuous problem states are vectors."""

    state: Int[Array, "*batch"] | Float[Array, "*batch D"]
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    next_state: Int[Array, "*batch"] | Float[Array, "*batch D"]
    terminated: Bool[Array, "*batch"]


class Spaces(NamedTuple):
    """What an agent knows about a tabular environment before it starts; hashable, hence static under jit.

    `terminates` says whether episodes can end, in which case the belief reserves one more outcome for the end.
    `reward_low` and `reward_high` bound a single reward; the paper's sigma rule needs them. `None` where unknown:
    then the rewards seen so far are used instead.
    `support` bounds the number of different outcomes of any one pair, where that is known. Samplers use it to draw
    faster; it never changes what they draw from.
    """

    states: int
    actions: int
    terminates: bool
    reward_low: float | None
    reward_high: float | None
    support: int | None = None


class BoxSpaces(NamedTuple):
    """What an agent knows about a continuous environment before it starts; hashable, hence static under jit.

    `low` and `high` bound each dimension, None where unknown. `termination` says of a single state whether it ends
    an episode; where it is None the end is learned from data, if `terminates`. `start_low` and `start_high` bound the
    states that episodes begin in. Rewards are bounded as in `Spaces`.
    """

    dimension: int
    actions: int
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    terminates: bool
    reward_low: float | None
    reward_high: float | None
    termination: Callable[[Float[Array, "D"]], Bool[Array, ""]] | None = None
    start_low: tuple[float, ...] | None = None
    start_high: tuple[float, ...] | None = None
