"""Priors over tabular MDPs, as numbers.

>>> from bellief.priors import Prior, named_prior
>>> named_prior("sparse").concentration(outcomes=4), Prior(dirichlet=1.0).concentration(outcomes=4)
(0.25, 1.0)
"""

import dataclasses

from bellief.errors import UserError, require, require_choice
from bellief.files import OMIT_DEFAULT


@dataclasses.dataclass(frozen=True)
class Prior:
    """Prior parameters shared by all state-action pairs; the defaults are the paper's.

    `dirichlet` is the pseudo-count of each possible outcome; `sparse` makes it `row_weight` divided by the number of
    outcomes, so that a row's prior weighs that many observations (one, unless said) however many states there are. The
    other four are the NormalGamma's [mu, kappa, alpha, beta]. With an `outcome_strength` a pair's reward depends on the
    next state too (see `bellief.beliefs.outcomes`), the less the larger the number. With a `state_weight` unseen
    outcomes lie where a pair's state leads under any action (`bellief.evaluation.base_measure`), each way an episode
    ended is an outcome of its own, and the reward part is about rewards less what their outcome pays (see
    `bellief.evaluation.reward_levels`). `caution` says how much less a row weighs whose outcomes were seen only once
    each (see `bellief.evaluation.logged_prior`). Only evaluation of logged data knows these three.
    """

    dirichlet: float = 0.5
    reward_mean: float = 0.0
    reward_strength: float = 1.0
    reward_shape: float = 1.0
    reward_rate: float = 1.0
    sparse: bool = False
    row_weight: float = 1.0
    outcome_strength: float | None = None
    state_weight: float | None = dataclasses.field(default=None, metadata={OMIT_DEFAULT: True})
    caution: float = dataclasses.field(default=0.0, metadata={OMIT_DEFAULT: True})

    def __post_init__(self):
        for name in ("dirichlet", "row_weight", "reward_strength", "reward_shape", "reward_rate"):
            require(getattr(self, name) > 0, f"The prior's {name} must be positive, not {getattr(self, name)}.")
        if self.state_weight is not None and not (self.state_weight > 0 and self.outcome_strength is not None):
            raise UserError("The prior's state_weight must be positive, and needs an outcome_strength.")
        require(0 <= self.caution < 1, f"The prior's caution must be at least 0 and below 1, not {self.caution}.")

    def concentration(self, outcomes: int) -> float:
        """Pseudo-count of each of `outcomes` possible outcomes of a state-action pair."""
        return self.row_weight / outcomes if self.sparse else self.dirichlet

    def scaled(self, scale: float) -> "Prior":
        """The same prior for rewards that are `scale` times as large."""
        return dataclasses.replace(self, reward_mean=self.reward_mean * scale, reward_rate=self.reward_rate * scale**2)

    def by_pair(self) -> "Prior":
        """The same prior with rewards that depend on the pair only."""
        return dataclasses.replace(self, outcome_strength=None)


PAPER_PRIOR = Prior()
SPARSE_PRIOR = Prior(sparse=True)
PRIORS = {"paper": PAPER_PRIOR, "sparse": SPARSE_PRIOR}


def named_prior(name: str) -> Prior:
    """The prior that people call by that name."""
    require_choice(name, PRIORS, "There is no prior")
    return PRIORS[name]
