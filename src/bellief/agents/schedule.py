"""When agents plan: the paper's steps 1, 3, 6, 10, ..."""

import math
from types import ModuleType


def update_steps(steps: int) -> list[int]:
    """The triangular numbers up to `steps`. An update at step t precedes the t-th action: t - 1 steps were observed."""
    count = (math.isqrt(8 * steps + 1) - 1) // 2
    return [number * (number + 1) // 2 for number in range(1, count + 1)]


def steps_of(agent: ModuleType, steps: int, longest_gap: int | None = None) -> list[int]:
    """The steps at which an agent plans: its own or the paper's, and as few more as leave no gap longer than said."""
    planned = getattr(agent, "plan_steps", update_steps)(steps)
    if longest_gap is None:
        return planned
    pairs = zip([1, *planned], [*planned, steps + 1], strict=True)
    return sorted({step for first, following in pairs for step in range(first, following, longest_gap)})
