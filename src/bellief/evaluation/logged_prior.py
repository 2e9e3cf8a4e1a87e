"""Priors for logged data: by name, given outright, or (the default) in the units of the log itself."""

import functools
import math
import statistics
from typing import NamedTuple

import numpy as np

from bellief.errors import UserError
from bellief.evaluation.ends import merged_ends
from bellief.logs.tally import Tally
from bellief.logs.transitions import Transitions
from bellief.priors import PRIORS, Prior, named_prior

# Chosen from coverage of real logs (docs/results/coverage.md): a heavier row prior biases values, a lighter one is
# overconfident about pairs seen once or twice.
ROW_WEIGHT = 0.1

# A Gamma shape of 2 gives an unseen mean reward a Student t with four degrees of freedom, which has a variance.
REWARD_SHAPE = 2.0

# Nothing is ever taken to vary by less than these shares of the total variance of rewards.
LEAST_NOISE, LEAST_DIFFERENCE = 1e-4, 0.1

NAMES = ("logged", *PRIORS)


def read_prior(prior: str | Prior, data: Tally) -> Prior:
    """A prior from its name; `logged` takes the scale of its reward part from the data."""
    if isinstance(prior, Prior):
        return prior
    if prior == "logged":
        return logged_prior(data)
    if prior not in PRIORS:
        raise UserError(f"There is no prior '{prior}'; choose one of {', '.join(NAMES)}.")
    return named_prior(prior)


def logged_prior(data: Transitions | Tally, row_weight: float = ROW_WEIGHT) -> Prior:
    """The default for logged data: light rows, rewards by outcome, reward scale from the log (empirical Bayes).

    A pair never tried is expected to pay what the seen pairs pay, with their spread; an outcome of a pair that was
    never seen, what the pair's other outcomes pay, with the spread that outcomes of a pair have; and single rewards
    the noise that is left. Multiplying all rewards by a number, or adding one, therefore changes values as it should
    and nothing else, which the paper's prior (mean 0, scale 1) does not do.

    >>> import bellief
    >>> from bellief.evaluation.logged_prior import logged_prior
    >>> data = bellief.Transitions.from_arrays([0, 1] * 4, [0, 0] * 4, [100.0, 300.0] * 4, [1, 0] * 4)
    >>> prior = logged_prior(data)
    >>> prior.row_weight, prior.reward_mean
    (0.1, 200.0)
    """
    scales = reward_scales(data.statistics())
    return Prior(
        sparse=True,
        row_weight=row_weight,
        reward_mean=scales.location,
        reward_strength=scales.noise / scales.pairs,
        outcome_strength=scales.noise / scales.outcomes,
        reward_shape=REWARD_SHAPE,
        reward_rate=scales.noise * (REWARD_SHAPE - 1),
    )


def widening(degrees: int) -> float:
    """What a variance from so few degrees of freedom is multiplied by: Student's over Gauss's 97.5% point, squared.

    The prior takes the scale that it is given as known. A scale from a handful of numbers is not, and an interval that
    allows for it is wider by this factor: 42 with one degree of freedom, 2.6 with 3, 1.09 with 30.
    """
    return (_student_point(max(degrees, 1)) / statistics.NormalDist().inv_cdf(0.975)) ** 2


@functools.cache
def _student_point(degrees: int) -> float:
    """The 97.5% point of Student's t distribution.

    With t = sqrt(degrees) tan(u) its density is that of cos(u)^(degrees - 1), which Gauss's rule integrates to the last
    digits; `scipy.special` has it too, but takes longer to import than a small log to answer.
    """
    node, weight = np.polynomial.legendre.leggauss(64)
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2
    for _ in range(100):
        angle = (low + high) / 2
        mass = scale * angle / 2 * float(weight @ np.cos(angle / 2 * (node + 1)) ** (degrees - 1))
        low, high = (angle, high) if mass < 0.475 else (low, angle)
    return math.sqrt(degrees) * math.tan((low + high) / 2)


class Scales(NamedTuple):
    """Mean of the pairs' mean rewards; variance between pairs, between outcomes of a pair, and of what is left."""

    location: float
    pairs: float
    outcomes: float
    noise: float


def reward_scales(log: Tally) -> Scales:
    """The scales on which the rewards of a log vary, each kept away from zero and widened where few numbers tell it."""
    log = merged_ends(log)
    times, means = log.cell_count, log.cell_mean
    mean = float((times * means).sum() / len(log))
    squares = float(log.cell_squares.sum())
    variance = (squares + float((times * (means - mean) ** 2).sum())) / len(log)
    # Where all rewards are equal their size is the only scale there is; where all are zero there is none at all.
    total = variance or mean**2 or 1.0
    left = len(log) - len(times)
    # Where no outcome was seen twice, all of the variance may be noise.
    noise = squares / left if left else total
    return Scales(
        location=float(log.pair_mean.mean()),
        pairs=max(_between_pairs(log.pair_mean, total), LEAST_DIFFERENCE * total),
        outcomes=max(_between_outcomes(log, noise), LEAST_NOISE * total),
        noise=max(noise * widening(left) if left else noise, LEAST_NOISE * total),
    )


def _between_pairs(means: np.ndarray, total: float) -> float:
    """Variance of another pair's mean around the average of these, which is itself uncertain."""
    count = len(means)
    if count == 1:
        return total * widening(1)
    return float(means.var(ddof=1)) * (1 + 1 / count) * widening(count - 1)


def _between_outcomes(log: Tally, noise: float) -> float:
    """Variance of mean rewards of a pair's outcomes, less the noise of their averages; half the noise if none shows."""
    _, owner, outcomes = np.unique(
        log.cell_state * log.actions + log.cell_action, return_inverse=True, return_counts=True
    )
    centres = np.bincount(owner, weights=log.cell_mean) / outcomes
    left = len(owner) - len(outcomes)
    if left == 0:
        return noise / 2
    apart = float(((log.cell_mean - centres[owner]) ** 2).sum()) / left
    return max((apart - noise * float((1 / log.cell_count).mean())) * widening(left), 0.01 * noise)
