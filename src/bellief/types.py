"""Vocabulary shared by every layer: axis names, the record of one step, what an agent knows at the start.

Axis names used in shape annotations, always in this order:

- `runs`: independent repetitions of an experiment
- `J`: sampled MDPs (the paper's N_mu)
- `K`: value samples (the paper's N_V)
- `L`: utility samples per sampled MDP and state
- `S`, `A`: states and actions; `O`: outcomes of a state-action pair
"""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int


class Transition(NamedTuple):
    """One observed step; every field may carry leading batch axes."""

    state: Int[Array, "*batch"]
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    next_state: Int[Array, "*batch"]
    terminated: Bool[Array, "*batch"]


class Spaces(NamedTuple):
    """What an agent is told about a tabular environment before it starts; hashable, hence static under jit.

    `terminates` says whether episodes can end, in which case the belief reserves one more outcome for the end.
    `reward_low` and `reward_high` bound a single reward; the paper's sigma rule needs them. `None` where nobody knows:
    then the rewards seen so far stand in for them.
    `support` bounds the number of different outcomes of any one pair, where that is known. Samplers use it to draw
    faster; it never changes what they draw from.
    """

    states: int
    actions: int
    terminates: bool
    reward_low: float | None
    reward_high: float | None
    support: int | None = None
