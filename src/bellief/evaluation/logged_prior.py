"""Priors for logged data: by name, given outright, or (the default) in the units of the log itself."""

import math
from typing import NamedTuple

import numpy as np

from bellief.errors import UserError
from bellief.evaluation import reward_levels
from bellief.evaluation.ends import merged_ends, split_outcomes
from bellief.evaluation.widening import widening
from bellief.logs.tally import Tally
from bellief.logs.transitions import Transitions
from bellief.priors import PRIORS, Prior, named_prior

# Chosen from coverage of real logs (docs/results/coverage.md): a heavier row prior biases values, a lighter one is
# overconfident about pairs seen once or twice.
ROW_WEIGHT = 0.1

# Weight of where the whole log goes against where a state goes: as much as one visit of the state.
STATE_WEIGHT = 1.0

# A row whose outcomes were all seen once weighs this much less than its visits.
CAUTION = 2 / 3

# A Gamma shape of 2 gives an unseen mean reward a Student t with four degrees of freedom, which has a variance.
REWARD_SHAPE = 2.0

# Lower limits of the noise and of the differences, as shares of the total variance of rewards.
LEAST_NOISE, LEAST_DIFFERENCE = 1e-4, 0.1

# The default of version 0.1, by name.
OLD = "logged-0.1"
NAMES = ("logged", OLD, *PRIORS)


def read_prior(prior: str | Prior, data: Tally) -> Prior:
    """A prior from its name; `logged` takes the scale of its reward part from the data."""
    if isinstance(prior, Prior):
        return prior
    name, colon, text = prior.partition(":")
    make = {"logged": logged_prior, OLD: even_prior}.get(name)
    if make is not None:
        if not colon:
            return make(data)
        # `logged:0.5` is the same prior with rows that weigh half an observation.
        try:
            weight = float(text)
        except ValueError:
            weight = math.nan
        if not 0 < weight < math.inf:
            raise UserError(f"The prior '{prior}' needs a positive weight after the colon, such as logged:0.5.")
        return make(data, weight)
    if prior not in PRIORS:
        raise UserError(f"There is no prior '{prior}'; choose one of {', '.join(NAMES)}.")
    return named_prior(prior)


def even_name(prior: str | Prior) -> str | Prior:
    """The name of the same prior without what it learns about states; others as they are."""
    if isinstance(prior, str) and prior.partition(":")[0] == "logged":
        return OLD + prior.removeprefix("logged")
    return prior


def logged_prior(data: Transitions | Tally, row_weight: float = ROW_WEIGHT) -> Prior:
    """The default for logged data: light rows around what their state does, rewards by outcome, scales from the log.

    - An outcome that a pair has not shown lies where the pair's state leads under any action, or where the log leads.
    - An outcome pays what it paid elsewhere in the log, as far as outcomes say what is paid at all; a pair may differ
      from that by as much as the log's pairs and cells do (`evaluation.reward_levels`). Where every step that goes on
      paid 0, it pays exactly 0.
    - A row that shows a new outcome at almost every visit is known less well than its visits say: the plug-in variance
      of n single outcomes is (n - 1) / n of the true one, and the Dirichlet's denominator n + 1 instead of n. Rows
      are therefore taken to have 1 - caution * (outcomes seen once) / n of their visits, in shape, not in mean (the
      share of single outcomes is Good and Turing's estimate of what was not seen yet).

    Multiplying all rewards by a number, or adding one, changes values as it should and nothing else.

    >>> import bellief
    >>> from bellief.evaluation.logged_prior import logged_prior
    >>> data = bellief.Transitions.from_arrays([0, 1] * 4, [0, 0] * 4, [100.0, 300.0] * 4, [1, 0] * 4)
    >>> prior = logged_prior(data)
    >>> prior.row_weight, prior.state_weight
    (0.1, 1.0)
    """
    log = data.statistics()
    if log.reward_low == log.reward_high:
        # Nothing says what rewards depend on, how large they can be, or where they are: they may be anywhere.
        return even_prior(log, row_weight)
    cells = standard_cells(log)
    scales = _scales(*cells) if len(cells[0]) else Scales(0.0, 1.0, 1.0, 1.0)
    return _prior(scales, row_weight, state_weight=STATE_WEIGHT, caution=CAUTION)


def even_prior(data: Transitions | Tally, row_weight: float = ROW_WEIGHT) -> Prior:
    """The default of version 0.1: light rows around all states alike, one end of episodes, rewards by outcome.

    A pair never tried is expected to pay what the seen pairs pay, with their spread; an outcome of a pair that was
    never seen, what the pair's other outcomes pay, with the spread that outcomes of a pair have; and single rewards
    the noise that is left.

    >>> import bellief
    >>> from bellief.evaluation.logged_prior import even_prior
    >>> data = bellief.Transitions.from_arrays([0, 1] * 4, [0, 0] * 4, [100.0, 300.0] * 4, [1, 0] * 4)
    >>> prior = even_prior(data)
    >>> prior.row_weight, prior.reward_mean
    (0.1, 200.0)
    """
    return _prior(reward_scales(data.statistics()), row_weight)


def _prior(scales: "Scales", row_weight: float, **others: float) -> Prior:
    return Prior(
        sparse=True,
        row_weight=row_weight,
        reward_mean=scales.location,
        reward_strength=scales.noise / scales.pairs,
        outcome_strength=scales.noise / scales.outcomes,
        reward_shape=REWARD_SHAPE,
        reward_rate=scales.noise * (REWARD_SHAPE - 1),
        **others,
    )


class Scales(NamedTuple):
    """Mean of the pairs' mean rewards; variance between pairs, between outcomes of a pair, and of what is left."""

    location: float
    pairs: float
    outcomes: float
    noise: float


def reward_scales(log: Tally) -> Scales:
    """The scales on which the rewards of a log vary, with lower limits, and widened where few numbers estimate them."""
    log = merged_ends(log)
    pair = log.cell_state * log.actions + log.cell_action
    return _scales(pair, log.cell_count, log.cell_mean, log.cell_squares)


def standard_cells(log: Tally) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pair, number, mean and squared deviations of the cells, in units of their outcomes' scales; those without one
    are left out. Means vary as those of unseen cells would.
    """
    outcome, ends = split_outcomes(log)
    cells = outcome, log.cell_count, log.cell_mean, log.cell_squares
    levels = reward_levels.fit(*cells, log.states, log.states + len(ends))
    scale = levels.scale[outcome]
    kept = np.flatnonzero(scale > 0)
    pair = log.cell_state * log.actions + log.cell_action
    mean = ((log.cell_mean - levels.level[outcome]) * np.sqrt(levels.optimism[outcome]))[kept] / scale[kept]
    return pair[kept], log.cell_count[kept], mean, log.cell_squares[kept] / scale[kept] ** 2


def _scales(pair: np.ndarray, count: np.ndarray, mean: np.ndarray, squares: np.ndarray) -> Scales:
    """Scales from the cells' pairs, numbers of rewards, mean rewards and sums of squared deviations."""
    _, owner = np.unique(pair, return_inverse=True)
    rows, centre = int(count.sum()), float((count * mean).sum() / count.sum())
    within = float(squares.sum())
    variance = (within + float((count * (mean - centre) ** 2).sum())) / rows
    # Where all rewards are equal their size is the only scale there is; where all are zero there is none at all.
    total = variance or centre**2 or 1.0
    left = rows - len(count)
    # Where no outcome was seen twice, all of the variance may be noise.
    noise = within / left if left else total
    pair_mean = np.bincount(owner, count * mean) / np.bincount(owner, count)
    return Scales(
        location=float(pair_mean.mean()),
        pairs=max(_between_pairs(pair_mean, total), LEAST_DIFFERENCE * total),
        outcomes=max(_between_outcomes(owner, count, mean, noise), LEAST_NOISE * total),
        noise=max(noise * widening(left) if left else noise, LEAST_NOISE * total),
    )


def _between_pairs(means: np.ndarray, total: float) -> float:
    """Variance of another pair's mean around the average of these, which is itself uncertain."""
    count = len(means)
    if count == 1:
        return total * widening(1)
    return float(means.var(ddof=1)) * (1 + 1 / count) * widening(count - 1)


def _between_outcomes(owner: np.ndarray, count: np.ndarray, mean: np.ndarray, noise: float) -> float:
    """Variance of mean rewards of a pair's outcomes, less the noise of their averages; half the noise if none shows."""
    outcomes = np.bincount(owner)
    centres = np.bincount(owner, weights=mean) / outcomes
    left = len(owner) - len(outcomes)
    if left == 0:
        return noise / 2
    apart = float(((mean - centres[owner]) ** 2).sum()) / left
    return max((apart - noise * float((1 / count).mean())) * widening(left), 0.01 * noise)
