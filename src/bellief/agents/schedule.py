"""When agents plan: the paper's steps 1, 3, 6, 10, ..."""

import math


def update_steps(steps: int) -> list[int]:
    """The triangular numbers up to `steps`. An update at step t precedes the t-th action: t - 1 steps were observed."""
    count = (math.isqrt(8 * steps + 1) - 1) // 2
    return [number * (number + 1) // 2 for number in range(1, count + 1)]
