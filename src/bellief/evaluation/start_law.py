"""The law of a start value from draws of it and of its linear term, whose own law is known.

Draws (v, x), with x the linear term in units of its standard deviation, give a regression v = m(x) + s(x) e: m and s^2
quadratic, e the residuals. The law of v is then that of m(X) + s(X) E, with X from the known law of x and E from the
residuals, independent. Only m, s and E are estimated from the draws, so that the error is that of a regression with
small residuals, not that of counting draws in a tail (docs/accuracy.md). Two assumptions are checked against the draws,
and corrected as far as these outweigh what is expected of them: the law of x, known by four cumulants, against the
draws of x; and that E does not depend on X, by the share of draws below each point against the share that the
regression gives to draws with their x.

Where the closed second-order form of mean, sd and skewness is affordable (`evaluation.value_moments`), the law is an
average of this one and of the closed form's, each weighed by the other's squared error: that of the closed form is
what is expected of an expansion to second order, or the distance between the two where that is significantly more.

Where no law of the family has the cumulants of x (a rare outcome that costs a hundred steps), ends of intervals
are those of the draws. Only the mean of x is used: each draw gets a weight proportional to exp(t x), with t such that
the weighted mean of x is zero, as it is known to be. Moving all draws by what the mean is off, as a regression does,
would move the edge of a law of which nearly all lies at one end.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.evaluation import skewed_law

# Points of the law; values of x, and of the residual, that are combined.
POINTS, NODES, RESIDUALS = 2048, 256, 16

# With fewer draws, or with residuals of more than this part of the standard deviation, the draws alone are summarised.
FEWEST, LARGEST_RESIDUAL = 30, 0.8

# What is expected of the assumptions: quantiles of x are off by this times (skewness^2 + excess), and levels of
# quantiles by this times the residuals' part of the variance.
LAW_ERROR, INDEPENDENCE_ERROR = 0.03, 0.06

# What is expected of the closed form: its ends and its mean are off by these times the residuals' part of the variance,
# in standard deviations, or by this many times its own estimate.
CLOSED_ENDS_ERROR, CLOSED_MEAN_ERROR, CLOSED_FACTOR = 0.35, 0.1, 2.0

# A squared gap counts from so many times its variance on.
SIGNIFICANT_LAW, SIGNIFICANT_GAP, SIGNIFICANT_CLOSED = 9.0, 3.0, 9.0

TAIL = 0.05

# Weights are used as long as they are worth this part of the draws.
LEAST_EFFECTIVE = 0.5


class ClosedForm(NamedTuple):
    """Moments of a start value without draws, and their estimated errors: of the mean in standard deviations, of the
    sd as a part of it.
    """

    mean: float
    sd: float
    skewness: float
    mean_error: float
    sd_error: float


class StartLaw(NamedTuple):
    """Equally likely points, ascending, their standard errors as quantiles, and the standard error of the mean."""

    points: Float[np.ndarray, "K"]
    errors: Float[np.ndarray, "K"]
    mean_error: float

    def error_at(self, level: float) -> float:
        """Standard error of a quantile."""
        return float(np.interp(level, _levels(len(self.errors)), self.errors))


def start_law(
    values: Float[np.ndarray, "N"],
    linear: Float[np.ndarray, "N"],
    sd: float,
    skewness: float,
    excess: float,
    closed: ClosedForm | None = None,
) -> StartLaw | None:
    """The law of a number, given its draws with those of its linear term, that term's sd and shape, and perhaps the
    closed form of its moments.

    None where the linear term does not help.
    """
    number, spread = len(values), float(np.std(values))
    if number < FEWEST or not (0 < sd < np.inf and 0 < spread < np.inf):
        return None
    x = linear / sd
    powers = np.vander(x, 3, increasing=True)
    # Solved by normal equations: three columns of size one.
    precision = np.linalg.pinv(powers.T @ powers)
    residual = values - powers @ (coefficients := precision @ (powers.T @ (values - values.mean()))) - values.mean()
    coefficients[0] += values.mean()
    variance = float((residual**2).sum()) / (number - 3)
    part = np.sqrt(variance) / spread
    if not part < LARGEST_RESIDUAL:
        return None
    if not skewed_law.reaches(skewness, excess):
        return _weighted(values, x, variance)
    node, law_error = _nodes(x, skewness, excess)
    scale = _Scale(precision @ (powers.T @ residual**2), 0.2 * variance, 5 * variance)
    residuals = np.sort(residual / scale.at(powers))
    standard = np.quantile(residuals, _levels(RESIDUALS)) if part > 0 else np.zeros(RESIDUALS)
    standard -= standard.mean()
    standard /= np.sqrt((standard**2).mean()) or 1.0
    node_powers = np.vander(node, 3, increasing=True)
    model = _combined(node_powers, coefficients, scale, standard)
    levels = _levels(POINTS)
    points = np.interp(levels, _levels(len(model)), model)
    steepness = _steepness(points, levels)
    moved, level_error = _corrected(points, values, powers, coefficients, scale, standard, part, steepness)
    points = np.interp(np.clip(levels - moved, 0, 1), levels, points)
    at = np.vander(np.interp(levels, _levels(NODES), node), 3, increasing=True)
    slope = coefficients[1] + 2 * coefficients[2] * at[:, 1]
    fitted = variance * np.einsum("ki,ij,kj->k", at, precision, at)
    errors = np.sqrt(fitted + (slope * law_error) ** 2 + (steepness * level_error) ** 2)
    average = node_powers.mean(0)
    law = StartLaw(points, errors, float(np.sqrt(variance * average @ precision @ average)))
    return law if closed is None else _with_closed_form(law, closed, part**2, excess - 1.5 * skewness**2)


def _with_closed_form(law: StartLaw, closed: ClosedForm, residual: float, beyond: float) -> StartLaw:
    """The average of a law from draws and of the closed form's, whose kurtosis exceeds that of a gamma law by as much
    as the linear term's; `residual` is the residuals' part of the variance.
    """
    excess = 1.5 * closed.skewness**2 + beyond
    if not skewed_law.reaches(closed.skewness, excess):
        return law
    other = closed.mean + closed.sd * skewed_law.points(np.array([closed.skewness]), POINTS, excess)[:, 0]
    ends = np.searchsorted(_levels(POINTS), [TAIL, 1 - TAIL])
    at_ends = [CLOSED_ENDS_ERROR * residual, 1.64 * CLOSED_FACTOR * closed.sd_error]
    at_ends += [CLOSED_FACTOR * closed.mean_error, LAW_ERROR * (closed.skewness**2 + abs(excess))]
    at_mean = [CLOSED_MEAN_ERROR * residual, CLOSED_FACTOR * closed.mean_error]
    drawn = _drawn_part((law.points - other)[ends], law.errors[ends], closed.sd * np.array(at_ends))
    points = drawn * law.points + (1 - drawn) * other
    of_mean = _drawn_part(law.points.mean() - closed.mean, law.mean_error, closed.sd * np.array(at_mean))
    mean = of_mean * law.points.mean() + (1 - of_mean) * closed.mean
    return StartLaw(
        points - points.mean() + mean, np.sqrt(drawn) * law.errors, float(np.sqrt(of_mean) * law.mean_error)
    )


def _drawn_part(gap, error, expected: Float[np.ndarray, "k"]) -> float:
    """The weight of what was drawn, with its standard error, beside what has expected biases, given their gap."""
    variance = float(np.mean(error**2))
    bias = max(float(np.sum(expected**2)), float(np.mean(gap**2)) - SIGNIFICANT_CLOSED * variance)
    return bias / (bias + variance) if bias > 0 else 0.0


def _weighted(values: Float[np.ndarray, "N"], x: Float[np.ndarray, "N"], variance: float) -> StartLaw | None:
    """The law of the draws, weighted so that the mean of x is zero; `variance` is that of the residuals."""
    weight = _tilted(x)
    if weight is None:
        return None
    order, number = np.argsort(values), len(values)
    reached = np.append(0.0, weight[order].cumsum())
    total = np.append(0.0, (weight * values)[order].cumsum())
    reached /= reached[-1]
    # Means of parts of equal probability, whose mean is that of the law.
    points = np.diff(np.interp(np.linspace(0, 1, POINTS + 1), reached, total)) * POINTS
    levels = _levels(POINTS)
    errors = _steepness(points, levels) * np.sqrt(levels * (1 - levels) / number)
    return StartLaw(points, errors, float(np.sqrt(variance / number)))


def _tilted(x: Float[np.ndarray, "N"]) -> Float[np.ndarray, "N"] | None:
    """Weights of the draws, each exp(t x) times a constant, under which the mean of x is zero; None where there are
    none, or where a few draws would have most of the weight.
    """
    if not x.min() < 0 < x.max():
        return None
    tilt = 0.0
    for _ in range(50):
        weight = np.exp(tilt * x - (tilt * x).max())
        weight /= weight.sum()
        mean = weight @ x
        step = mean / (weight @ (x - mean) ** 2)
        # Newton's steps for a convex function, limited in length to what the draws support.
        tilt -= float(np.clip(step, -1.0, 1.0))
        if abs(mean) < 1e-12:
            break
    return weight if abs(mean) < 1e-9 and 1 / (weight**2).sum() > LEAST_EFFECTIVE * len(x) else None


class _Scale(NamedTuple):
    """The residual's variance as a quadratic function of x, within bounds."""

    coefficients: Float[np.ndarray, "3"]
    low: float
    high: float

    def at(self, powers: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n"]:
        if self.high == 0:
            return np.ones(len(powers))
        return np.sqrt(np.clip(powers @ self.coefficients, self.low, self.high))


def _levels(count: int) -> Float[np.ndarray, "n"]:
    return (np.arange(count) + 0.5) / count


def _nodes(x: Float[np.ndarray, "N"], skewness: float, excess: float) -> tuple[Float[np.ndarray, "n"], float]:
    """Points of the law of x, and their standard error: by cumulants, or from draws where these are more accurate."""
    fine = skewed_law.points(np.array([skewness]), 8 * NODES, excess)[:, 0]
    node = fine.reshape(NODES, 8).mean(-1)
    drawn = np.quantile(x, _levels(NODES))
    ends = np.searchsorted(_levels(NODES), [TAIL, 1 - TAIL])
    steep = np.diff(np.interp([TAIL - 0.02, TAIL + 0.02, 1 - TAIL - 0.02, 1 - TAIL + 0.02], _levels(NODES), node))[::2]
    counted = float(TAIL * (1 - TAIL) / len(x) * ((steep / 0.04) ** 2).mean())
    gap = float(((drawn - node)[ends] ** 2).mean())
    expected = (LAW_ERROR * (skewness**2 + abs(excess))) ** 2
    bias = max(expected, gap - SIGNIFICANT_LAW * counted)
    drawn_part = bias / (bias + counted)
    node = (1 - drawn_part) * node + drawn_part * drawn
    # The mean is known for any shape.
    return node - node.mean(), float(np.sqrt(drawn_part * counted))


def _combined(powers, coefficients, scale: _Scale, standard) -> Float[np.ndarray, "m"]:
    """All sums of an expected value and a residual, in order."""
    return np.sort(((powers @ coefficients)[:, None] + scale.at(powers)[:, None] * standard).ravel())


def _steepness(points: Float[np.ndarray, "K"], levels: Float[np.ndarray, "K"]) -> Float[np.ndarray, "K"]:
    """How fast quantiles grow with their level."""
    width = np.minimum(0.02, np.minimum(levels, 1 - levels))
    return (np.interp(levels + width, levels, points) - np.interp(levels - width, levels, points)) / (2 * width)


def _corrected(points, values, powers, coefficients, scale: _Scale, standard, part: float, steepness):
    """By how much the levels of the points are off, estimated from the draws; and the standard error of levels."""
    number, levels = len(values), _levels(POINTS)
    model = _combined(powers, coefficients, scale, standard)
    below = np.searchsorted(np.sort(values), points, side="right") / number
    gap = below - np.searchsorted(model, points, side="right") / len(model)
    # The variance of an indicator given x, where the residual is normal and small.
    spread = float(np.std(points))
    density = np.divide(spread, steepness, out=np.full(POINTS, 1.0), where=steepness > 0)
    counted = np.minimum(0.564 * part * density, levels * (1 - levels)) / number
    ends = np.searchsorted(levels, [TAIL, 1 - TAIL])
    expected = (INDEPENDENCE_ERROR * part**2) ** 2
    bias = max(expected, float((gap[ends] ** 2).mean() - SIGNIFICANT_GAP * counted[ends].mean()))
    drawn_part = bias / (bias + float(counted[ends].mean())) if bias > 0 else 0.0
    return drawn_part * gap, np.sqrt(drawn_part * counted)
