"""Statistics for comparing agents over few runs: bootstrap, interquartile mean, probability of improvement."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

RESAMPLES = 10_000


class Estimate(NamedTuple):
    """A statistic and its bootstrap interval."""

    value: float
    low: float
    high: float


def interquartile_mean(values: Float[np.ndarray, "*batch runs"], axis: int = -1) -> Float[np.ndarray, "*batch"]:
    """Mean of the middle half of the runs; fractions of a run at the edges count as fractions."""
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, -1)
    runs = ordered.shape[-1]
    edges = np.clip(np.arange(runs + 1), runs / 4, 3 * runs / 4)
    return ordered @ np.diff(edges) / (runs / 2)


def bootstrap(
    values: Float[np.ndarray, "runs"],
    statistic: Callable[..., np.ndarray] = np.mean,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Percentile bootstrap over runs; `statistic` takes an array and the axis of the runs."""
    return _bootstrap((values,), statistic, RESAMPLES, level, seed)


def paired_difference(
    first: Float[np.ndarray, "runs"], second: Float[np.ndarray, "runs"], level: float = 0.95, seed: int = 0
) -> Estimate:
    """Mean of first minus second, run by run: run n of both agents has the same random numbers in the environment."""
    return bootstrap(np.asarray(first) - np.asarray(second), level=level, seed=seed)


def probability_of_improvement(
    first: Float[np.ndarray, "runs"], second: Float[np.ndarray, "runs"], level: float = 0.95, seed: int = 0
) -> Estimate:
    """Probability that a run of the first agent beats a run of the second, ties counting half."""

    def wins(first: np.ndarray, second: np.ndarray, axis: int = -1) -> np.ndarray:
        del axis
        return (np.sign(first[..., :, None] - second[..., None, :]).mean((-2, -1)) + 1) / 2

    return _bootstrap((first, second), wins, RESAMPLES // 10, level, seed)


def _bootstrap(
    samples: Sequence[Float[np.ndarray, "runs"]],
    statistic: Callable[..., np.ndarray],
    count: int,
    level: float,
    seed: int,
) -> Estimate:
    """A statistic of one or two samples; a single run has an interval without width."""
    from scipy import stats

    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    value = float(statistic(*arrays, axis=-1))
    if min(map(len, arrays)) < 2:
        return Estimate(value, value, value)
    rng = np.random.default_rng(seed)
    found = stats.bootstrap(
        arrays, statistic, n_resamples=count, confidence_level=level, method="percentile", vectorized=True, rng=rng
    )
    return Estimate(value, float(found.confidence_interval.low), float(found.confidence_interval.high))
