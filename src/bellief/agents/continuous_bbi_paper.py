"""The paper's Algorithm 3 for continuous states as printed: `continuous_bbi` with `mode="paper"`.

>>> from bellief.agents import continuous_bbi_paper
>>> continuous_bbi_paper.Config().value_belief()
'gaussian'
"""

import dataclasses

from bellief.agents import continuous_settings
from bellief.agents.continuous_bbi import Info, State, act, init, plan, policy, update
from bellief.errors import require

__all__ = ["Config", "Info", "State", "act", "init", "plan", "policy", "update"]


@dataclasses.dataclass(frozen=True)
class Config(continuous_settings.Config):
    """Settings of `continuous_bbi`; `mode` is `paper`, from which those that are None follow."""

    mode: str = "paper"

    def __post_init__(self):
        require(self.mode == "paper", f"bbi-paper has no mode '{self.mode}': leave it out, or choose agent bbi.")
        super().__post_init__()
