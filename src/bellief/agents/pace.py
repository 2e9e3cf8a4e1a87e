"""How often agents that learn without planning renew what they act on.

"Each algorithm updates its policy at steps t = 1, 3, 6, 10, ..." can be read in three ways for them, and verdicts on
the paper depend on which one is taken: `every-step` (they learn and act on what they have learned at every step, as
their authors have it), `scheduled-policy` (they learn at every step, and what they act on is renewed at these steps
only) and `scheduled-learning` (one learning step at each of these steps, and none between them). The steps of the
schedule are those at which `plan` is called.

>>> from bellief.agents import pace
>>> pace.check("vdqn", "scheduled-learning", pace.PACES)
>>> pace.field(pace.EVERY_STEP).default
'every-step'
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from bellief.errors import require_choice
from bellief.files import OMIT_DEFAULT

EVERY_STEP, SCHEDULED_POLICY, SCHEDULED_LEARNING = "every-step", "scheduled-policy", "scheduled-learning"
PACES = (EVERY_STEP, SCHEDULED_POLICY, SCHEDULED_LEARNING)


def field(default: str) -> Any:
    """The field `pace` of an agent's settings."""
    return dataclasses.field(default=default, metadata={OMIT_DEFAULT: True})


def check(agent: str, pace: str, able: Sequence[str]) -> None:
    """`UserError` unless it is one of those that the agent has."""
    require_choice(pace, able, f"{agent} has no pace")
