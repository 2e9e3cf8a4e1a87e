"""Number, mean, sum of squared deviations, smallest and largest of the rewards of groups, and how groups are merged."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Moments(NamedTuple):
    """Moments of the rewards of groups, sorted by the groups' keys."""

    key: Int[np.ndarray, "G"]
    number: Int[np.ndarray, "G"]
    mean: Float[np.ndarray, "G"]
    squares: Float[np.ndarray, "G"]
    low: Float[np.ndarray, "G"]
    high: Float[np.ndarray, "G"]


def of_rows(keys: Int[np.ndarray, "n"], rewards: Float[np.ndarray, "n"]) -> Moments:
    """Moments of the rewards of rows with these keys."""
    key, place = np.unique(keys, return_inverse=True)
    count = np.bincount(place, minlength=len(key))
    low, high = np.full(len(key), np.inf), np.full(len(key), -np.inf)
    np.minimum.at(low, place, rewards)
    np.maximum.at(high, place, rewards)
    # Deviations from the smallest reward: the mean of large equal rewards is that reward, and not nearly so.
    mean = low + np.bincount(place, rewards - low[place], len(key)) / count
    squares = np.bincount(place, (rewards - mean[place]) ** 2, len(key))
    return Moments(key, count, mean, squares, low, high)


def merge(parts: Moments) -> Moments:
    """Moments of groups, from parts of them: rows with equal keys, in any order, become one.

    Chan, Golub and LeVeque's formula for many parts at once, with deviations from the first part's mean.
    """
    # By every field, so that the order in which parts come does not change a bit.
    order = np.lexsort((*reversed(parts[1:]), parts.key))
    key, place = np.unique(parts.key, return_inverse=True)
    place = place[order]
    _, count, mean, squares, low, high = (field[order] for field in parts)
    if len(key) == len(place):
        return Moments(key, count, mean, squares, low, high)
    first = np.searchsorted(place, np.arange(len(key)))
    total = np.add.reduceat(count, first)
    centre = mean[first] + np.bincount(place, count * (mean - mean[first][place]), len(key)) / total
    spread = np.bincount(place, squares + count * (mean - centre[place]) ** 2, len(key))
    return Moments(key, total, centre, spread, np.minimum.reduceat(low, first), np.maximum.reduceat(high, first))
