"""How much a log shows about a policy's value under any prior.

A pair that was seen `FEW_VISITS` times or more is taken as known, up to sampling error. `supported` is the share of the
policy's discounted time that it is expected to spend in known pairs. The bounds are the value if every other pair
turned out at its worst, or at its best, from then on: the least and the largest return that rewards of the size seen
(or given) allow. Known rows are drawn from the posterior, and the bounds are the outer ends of both intervals.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bellief.errors import UserError
from bellief.evaluation import chains
from bellief.evaluation.diagnostics import CANNOT_TELL, FEW_VISITS, SHOWN_PAIRS
from bellief.evaluation.problem import Problem
from bellief.evaluation.sampled import SampledMDPs
from bellief.logs.labels import name_of

# Below this share of supported time, or above this share of all possible returns, the log does not determine the value.
LEAST_SUPPORTED, WIDEST_BOUNDS = 0.6, 0.9

# MDPs in which the bounds are computed; fewer with many states.
DRAWS, FEW_DRAWS, MANY_STATES = 25, 4, 2_000

# An episode of more steps counts as endless.
ENDLESS = 1e6


class EndlessError(UserError):
    """Under discount 1 the policy may never end, so that its value has no bound."""


class Knowledge(NamedTuple):
    """What the log shows about a policy; `bounds` is None where the return has no bound."""

    supported: float
    bounds: tuple[float, float] | None
    cannot_tell: str | None


def knowledge(
    problem: Problem, policy: Float[np.ndarray, "S A"], time: Float[np.ndarray, "S A"], seed: int, level: float
) -> Knowledge:
    """How much the log shows about the value of a policy, which spends shares of `time` with the pairs."""
    known = problem.log.visits() >= FEW_VISITS
    supported = min(float(time[known].sum() / time.sum()), 1.0)
    possible = possible_returns(problem)
    bounds = None if possible is None else value_bounds(problem, policy, known, possible, seed, level)
    return Knowledge(supported, bounds, _sentence(problem, time, known, supported, bounds, possible))


def bounded(
    problem: Problem, samples: Float[np.ndarray, "N *k"], start: Float[np.ndarray, "N"], level: float, who: str
) -> tuple[Float[np.ndarray, "N *k"], float]:
    """Values in which no episode counts for more than `ENDLESS` steps, and the share of draws in which one would.

    Under discount 1 a sampled MDP may hardly ever end. Where that concerns the ends of the interval of the start value
    no number is worth showing.
    """
    if problem.discount < 1 or problem.horizon is not None:
        return samples, 0.0
    most = ENDLESS * (max(abs(problem.log.reward_low), abs(problem.log.reward_high)) or 1.0)
    endless = float((np.abs(start) > most).mean())
    if endless > (1 - level) / 2:
        raise EndlessError(
            f"In {endless:.0%} of the sampled MDPs {who} hardly ever ends, so its value has no bound: give a horizon, "
            "or a discount below 1."
        )
    return np.clip(samples, -most, most), endless


def endless_sentence(share: float) -> str:
    """The effect of a few draws without end on the numbers."""
    return (
        f"In {share:.1%} of the sampled MDPs the policy hardly ever ends; they count as a million steps, so read the "
        "interval and not the mean, or give a horizon, or a discount below 1."
    )


def possible_returns(problem: Problem) -> tuple[float, float] | None:
    """The least and the largest return from any state, given the rewards seen (or the range given); None if infinite.

    A kind of step (going on, ending) that always paid the same is taken to pay that.
    """
    log, discount, horizon = problem.log, problem.discount, problem.horizon
    if horizon is not None:
        steps = float(horizon) if discount == 1 else (1 - discount**horizon) / (1 - discount)
    else:
        steps = np.inf if discount == 1 else 1 / (1 - discount)
    reached = []
    for ended in (False, True):
        cells = np.flatnonzero(log.cell_terminated == ended)
        if len(cells):
            low, high = float(log.cell_low[cells].min()), float(log.cell_high[cells].max())
            if low < high and problem.reward_range is not None:
                low, high = problem.reward_range
            # An episode may go on for any number of steps, none included.
            reached.append((low, high) if ended else tuple(0.0 if end == 0 else end * steps for end in (low, high)))
    low, high = min(pair[0] for pair in reached), max(pair[1] for pair in reached)
    return (low, high) if np.isfinite([low, high]).all() else None


def value_bounds(
    problem: Problem,
    policy: Float[np.ndarray, "S A"],
    known: Bool[np.ndarray, "S A"],
    possible: tuple[float, float],
    seed: int,
    level: float,
) -> tuple[float, float]:
    """The start value if all pairs that are not known brought the least, or the largest, possible return."""
    states, used = problem.log.states, (policy > 0) & known
    lost = np.where(known, 0.0, policy).sum(-1)
    if not used.any():
        return possible
    count = DRAWS if states <= MANY_STATES else FEW_DRAWS
    mdps = SampledMDPs(problem, seed, count)
    weight = policy.ravel()[used.ravel()]
    guide = mdps.guide(np.where(known, policy, 0.0)) if states <= chains.INVERSE_STATES else None
    ends = np.empty((count, 2, states))
    for draws, worlds in mdps.batches(used.ravel()):
        batch = worlds.chain(weight, states)
        earned = chains.values(batch, problem.discount, problem.horizon, guide)
        left = batch._replace(reward=np.broadcast_to(lost, earned.shape).copy())
        share = chains.values(left, problem.discount, problem.horizon, guide)
        for number, worst in enumerate(possible):
            ends[draws, number] = earned + worst * share
    tail = (1 - level) / 2
    start = problem.start_values(ends, seed)
    low, high = float(np.quantile(start[:, 0], tail)), float(np.quantile(start[:, 1], 1 - tail))
    return max(low, possible[0]), min(high, possible[1])


def _sentence(problem: Problem, time, known, supported: float, bounds, possible) -> str | None:
    """The warning that the log does not determine the value, with the reason and the pairs to observe first."""
    span = 0.0 if possible is None else possible[1] - possible[0]
    wide = bounds is not None and span > 0 and bounds[1] - bounds[0] > WIDEST_BOUNDS * span
    if supported >= LEAST_SUPPORTED and not wide:
        return None
    log, visits = problem.log, problem.log.visits()
    missing = np.where(known, 0.0, time)
    order = np.argsort(-missing, axis=None, kind="stable")[:SHOWN_PAIRS]
    pairs = [divmod(int(place), log.actions) for place in order if missing.flat[place] > 0]
    named = ", ".join(
        f"({name_of(state, log.state_labels)}, {name_of(action, log.action_labels)}) seen {visits[state, action]} of "
        f"{FEW_VISITS} times"
        for state, action in pairs
    )
    anything = ""
    if bounds is not None:
        anything = f" Depending on the rest it may be worth anything from {bounds[0]:.4g} to {bounds[1]:.4g}."
    return (
        f"{CANNOT_TELL} what this policy is worth: {supported:.0%} of its discounted time is spent in pairs that "
        f"were seen at least {FEW_VISITS} times.{anything} Needed first: {named} (`bellief collect` ranks them all)."
    )
