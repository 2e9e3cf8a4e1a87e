"""A family of laws with given mean, standard deviation, skewness and (small) excess kurtosis, by its quantiles.

It is the shifted gamma law in the cube-root form of Wilson and Hilferty (1931), with the next term of the expansion of
Cornish and Fisher (1938) for what the kurtosis exceeds that of the gamma law by.

>>> import numpy as np
>>> from bellief.evaluation import skewed_law
>>> points = skewed_law.points(np.array([0.0, 1.0]), 4000)  # two laws: the normal one, and one that leans right
>>> points.shape, (points**3).mean(0).round(1).tolist()
((4000, 2), [0.0, 1.0])
>>> np.quantile(points, 0.95, axis=0).round(2).tolist()
[1.64, 1.87]
"""

import functools
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

# Beyond these the family is no longer close to anything.
MOST_SKEWED, LEAST_EXCESS, MOST_EXCESS = 2.0, -1.0, 3.0


@functools.lru_cache(maxsize=16)
def normal_points(count: int) -> Float[np.ndarray, "n"]:
    """Quantiles of the standard normal law in the middles of `count` parts of equal probability."""
    half = [NormalDist().inv_cdf((number + 0.5) / count) for number in range((count + 1) // 2)]
    found = np.array(half + [-point for point in reversed(half[: count // 2])])
    found.setflags(write=False)
    return found


def reaches(skewness: float, excess: float) -> bool:
    """Whether the family has a law with this shape.

    >>> from bellief.evaluation import skewed_law
    >>> skewed_law.reaches(1.0, 2.0), skewed_law.reaches(-4.0, 30.0)
    (True, False)
    """
    return abs(skewness) <= MOST_SKEWED and LEAST_EXCESS <= excess - 1.5 * skewness**2 <= MOST_EXCESS


def points(
    skewness: Float[np.ndarray, "k"], count: int, excess: Float[np.ndarray, "k"] | float | None = None
) -> Float[np.ndarray, "n k"]:
    """So many equally likely points of each law, ascending, with mean zero and variance one (of the points)."""
    normal = normal_points(count)[:, None]
    skewness = np.clip(skewness, -MOST_SKEWED, MOST_SKEWED)
    sixth = np.where(np.abs(skewness) < 1e-4, 1e-4, skewness) / 6
    found = ((1 + sixth * normal - sixth**2) ** 3 - 1) / (3 * sixth)
    if excess is not None:  # else that of the gamma law
        beyond = np.clip(excess - 1.5 * skewness**2, LEAST_EXCESS, MOST_EXCESS)
        found += beyond / 24 * (normal**3 - 3 * normal)
    found = np.maximum.accumulate(found, axis=0)
    found -= found.mean(0)
    spread = np.sqrt((found**2).mean(0))
    return found / np.where(spread > 0, spread, 1.0)
