"""Statistics for comparing agents over few runs: bootstrap, interquartile mean, probability of improvement."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

RESAMPLES = 10_000


class Estimate(NamedTuple):
    """A statistic and its bootstrap interval."""

    value: float
    low: float
    high: float


def interquartile_mean(values: Float[np.ndarray, "*batch runs"]) -> Float[np.ndarray, "*batch"]:
    """Mean of the middle half of the runs; fractions of a run at the edges count as fractions."""
    ordered = np.sort(values, axis=-1)
    runs = ordered.shape[-1]
    edges = np.clip(np.arange(runs + 1), runs / 4, 3 * runs / 4)
    return ordered @ np.diff(edges) / (runs / 2)


def bootstrap(
    values: Float[np.ndarray, "runs"],
    statistic: Callable[[np.ndarray], np.ndarray] = lambda sample: sample.mean(-1),
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Percentile bootstrap over runs; `statistic` maps [..., runs] to [...]."""
    values = np.asarray(values, dtype=np.float64)
    chosen = np.random.default_rng(seed).integers(0, len(values), size=(RESAMPLES, len(values)))
    return _estimate(statistic(values), statistic(values[chosen]), level)


def paired_difference(
    first: Float[np.ndarray, "runs"], second: Float[np.ndarray, "runs"], level: float = 0.95, seed: int = 0
) -> Estimate:
    """Mean of first minus second, run by run: run n of both agents met the same luck in the environment."""
    return bootstrap(np.asarray(first) - np.asarray(second), level=level, seed=seed)


def probability_of_improvement(
    first: Float[np.ndarray, "runs"], second: Float[np.ndarray, "runs"], level: float = 0.95, seed: int = 0
) -> Estimate:
    """Probability that a run of the first agent beats a run of the second, ties counting half."""
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    wins = (np.sign(first[:, None] - second[None, :]) + 1) / 2
    rng = np.random.default_rng(seed)
    resampled = []
    for _ in range(RESAMPLES // 10):
        rows, columns = (rng.integers(0, len(values), len(values)) for values in (first, second))
        resampled.append(wins[np.ix_(rows, columns)].mean())
    return _estimate(wins.mean(), np.array(resampled), level)


def _estimate(value, resampled: np.ndarray, level: float) -> Estimate:
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(value), float(low), float(high))
