"""Rewards that all lie far from zero, for the methods that cut the sum of discounted rewards off.

An infinite horizon is cut where what lies beyond it has a thousandth of the weight. That is a thousandth of the values,
which is more than rewards of 10^9 vary by, and 10^9 leaves few digits of double precision to what they vary by. Where
episodes do not end, values of rewards with an offset are those without it plus a number: the offset is taken out before
anything is computed, and its value is added in closed form. Where they may end, an offset counts for as long as
episodes last, which is uncertain itself: nothing can be taken out.
"""

import dataclasses

from bellief.evaluation.problem import Problem

# Where the middle of all rewards lies no further from zero than this many times their range, they are taken as they
# are: cutting off loses a hundredth of the range of values at most.
NEAR = 10.0


def far_offset(ready: Problem) -> float:
    """The middle of the rewards that lie far from zero; 0 where they do not, or where it cannot be taken out.

    Equal rewards have no range, and their own size is the only scale that there is.
    """
    high = max(ready.log.reward_high, ready.prior.reward_mean)
    low = min(ready.log.reward_low, ready.prior.reward_mean)
    middle = low / 2 + high / 2
    constant = ready.log.reward_low == ready.log.reward_high
    return 0.0 if ready.terminates or constant or abs(middle) <= NEAR * (high - low) else middle


def without_offset(ready: Problem, offset: float) -> Problem:
    """The same question about rewards that are smaller by a number, which the prior expects to be so."""
    log = ready.log
    moved = {name: getattr(log, name) - offset for name in ("cell_mean", "cell_low", "cell_high")}
    prior = dataclasses.replace(ready.prior, reward_mean=ready.prior.reward_mean - offset)
    return dataclasses.replace(ready, log=dataclasses.replace(log, **moved), prior=prior)


def value_of_offset(ready: Problem, offset: float) -> float:
    """What rewards of this size are worth at every step."""
    if ready.horizon is None:
        return offset / (1 - ready.discount)
    if ready.discount == 1:
        return offset * ready.horizon
    return offset * (1 - ready.discount**ready.horizon) / (1 - ready.discount)
