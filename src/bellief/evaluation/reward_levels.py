"""Which rewards go with which outcomes: the level that each outcome pays, and how far a pair may differ from it.

Steps that continue and steps that end an episode are separate kinds. Within each kind the variance of the mean rewards
of the cells (a pair and an outcome) is split into that between outcomes, b, and that between cells of one outcome, c
(analysis of variance). An outcome seen from k pairs has the level

    mean of the kind + B (its own mean - mean of the kind),    B = b / (b + c / k),

and an unseen cell of it may differ by the standard deviation of c + (1 - B) b, both widened where they are estimated
from few numbers, to which the noise of single rewards of a cell is added. Where all steps that continue pay 0, they pay
exactly 0; where the outcome determines the reward, an unseen cell of it pays exactly that.

>>> import numpy as np
>>> from bellief.evaluation.reward_levels import fit
>>> found = fit(  # three states and two ends; only the second end pays
...     outcome=np.array([1, 2, 3, 3, 4, 4]), count=np.ones(6), mean=np.array([0.0, 0, 0, 0, 1, 1]),
...     squares=np.zeros(6), states=3, outcomes=5
... )
>>> found.level.tolist(), found.scale.tolist()
([0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0])
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.evaluation.widening import widening

# Relative size of a variance that is rounding.
ROUNDING = 1e-18


class Levels(NamedTuple):
    """What each outcome pays, and by how much an unseen cell of it may differ.

    `optimism`: how much more an unseen cell's mean varies around the level than those of the cells that the level was
    fitted to, as a variance.
    """

    level: Float[np.ndarray, "O"]
    scale: Float[np.ndarray, "O"]
    optimism: Float[np.ndarray, "O"]


def fit(
    outcome: Int[np.ndarray, "C"],
    count: np.ndarray,
    mean: Float[np.ndarray, "C"],
    squares: Float[np.ndarray, "C"],
    states: int,
    outcomes: int,
) -> Levels:
    """Levels and scales from the seen cells: outcomes, numbers of rewards, their means and squared deviations."""
    level, scale, optimism = np.zeros(outcomes), np.zeros(outcomes), np.ones(outcomes)
    for kind in (np.arange(outcomes) < states, np.arange(outcomes) >= states):
        cells = np.flatnonzero(kind[outcome])
        if len(cells) == 0:  # never seen: as the other kind
            level[kind], scale[kind] = float(mean.mean()), float(mean.std())
            continue
        repeated = float((count[cells] - 1).sum())
        noise = float(squares[cells].sum()) / repeated if repeated else 0.0
        found = _kind(outcome[cells], mean[cells], noise, outcomes)
        level[kind], scale[kind], optimism[kind] = (field[kind] for field in found)
    return Levels(level, scale, optimism)


def _kind(outcome: Int[np.ndarray, "c"], mean: Float[np.ndarray, "c"], noise: float, outcomes: int) -> Levels:
    if np.ptp(mean) == 0:
        return Levels(np.full(outcomes, mean[0]), np.full(outcomes, np.sqrt(noise)), np.ones(outcomes))
    centre = float(mean.mean())
    times = np.bincount(outcome, minlength=outcomes)
    own = np.bincount(outcome, mean - centre, outcomes) / np.maximum(times, 1)
    between, within = _components(outcome, mean - centre, own, times)
    total = between + within
    share = np.divide(between, between + within / np.maximum(times, 1), out=np.zeros(outcomes), where=times > 0)
    # Variances from few outcomes, or from few cells of an outcome, are widened: the prior takes them as known.
    groups = int((times > 0).sum())
    apart = between * (1 + 1 / groups) * widening(groups - 1)
    unseen = within * (widening(len(mean) - groups) if len(mean) > groups else 1) + (1 - share) * apart
    fitted = (1 - share) ** 2 * between + within * (1 - share * (2 - share) / np.maximum(times, 1))
    spread = unseen + noise
    spread[spread <= ROUNDING * total] = 0.0
    level = centre + share * own
    # Cells of one outcome that pay the same: exactly that.
    exact = np.flatnonzero((spread == 0) & (times > 0))
    first = np.full(outcomes, -1)
    first[outcome[::-1]] = np.arange(len(outcome))[::-1]
    level[exact] = mean[first[exact]]
    return Levels(level, np.sqrt(spread), np.divide(unseen, fitted, out=np.ones(outcomes), where=fitted > 0))


def _components(outcome, deviation, own, times) -> tuple[float, float]:
    """Variance between outcomes and between cells of an outcome (Searle's estimators for unequal groups)."""
    cells, groups = len(outcome), int((times > 0).sum())
    inside = float(((deviation - own[outcome]) ** 2).sum())
    if cells == groups:  # no outcome was seen from two pairs: half of the variance each
        total = float(deviation.var(ddof=1)) if cells > 1 else float(deviation.var())
        return total / 2, total / 2
    within = inside / (cells - groups)
    if groups == 1:  # nothing says what outcomes differ by: as much as cells do
        return within, within
    size = (cells - float((times**2).sum()) / cells) / (groups - 1)
    across = float((times * own**2).sum()) / (groups - 1)
    return max((across - within) / size, 0.0), within
