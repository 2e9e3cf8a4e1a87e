"""Smooth densities of draws that may be heavy-tailed, few, or all the same."""

import numpy as np
from jaxtyping import Float

# How much of the central 90% range is shown beyond each of its ends. A t distribution with two degrees of freedom
# would otherwise squeeze everything of interest into a few pixels.
REACH = 0.6
MOST_KERNELS = 2000


def finite(samples: Float[np.ndarray, "N"]) -> Float[np.ndarray, "n"]:
    """The draws that are numbers."""
    samples = np.asarray(samples, dtype=np.float64).ravel()
    return samples[np.isfinite(samples)]


def is_point(samples: Float[np.ndarray, "N"]) -> bool:
    """Whether all draws are one number, up to rounding."""
    return len(samples) < 2 or np.ptp(samples) <= 1e-9 * max(1.0, float(np.abs(samples).max()))


def window(samples: Float[np.ndarray, "N"]) -> tuple[float, float]:
    """The range worth showing: the central 90% and some room around it, but no further than the draws go."""
    low, high = np.quantile(samples, [0.05, 0.95])
    room = REACH * (high - low)
    return max(low - room, float(samples.min())), min(high + room, float(samples.max()))


def common_window(groups: list[Float[np.ndarray, "N"]], margin: float = 0.06) -> tuple[float, float]:
    """A range that shows all groups, never of width zero."""
    ends = [window(samples) for samples in groups if len(samples)]
    if not ends:
        return 0.0, 1.0
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    width = high - low
    if width <= 1e-9 * max(1.0, abs(low), abs(high)):
        width = max(1.0, abs(high))
    return low - margin * width, high + margin * width


def bandwidth(samples: Float[np.ndarray, "N"]) -> float:
    """Silverman's rule with the smaller of the two spreads, because a heavy tail inflates the standard deviation."""
    quartiles = np.quantile(samples, [0.25, 0.75])
    spreads = [spread for spread in (samples.std(ddof=1), np.ptp(quartiles) / 1.349) if spread > 0]
    return 0.9 * min(spreads) * len(samples) ** -0.2


def density(samples: Float[np.ndarray, "N"], grid: Float[np.ndarray, "G"]) -> Float[np.ndarray, "G"]:
    """Gaussian kernel density at the points of a grid; draws outside it count in the total only.

    Many draws are replaced by so many of their quantiles first, so that the cost does not grow with their number.
    """
    width = bandwidth(samples)
    if len(samples) > MOST_KERNELS:
        samples = np.quantile(samples, (np.arange(MOST_KERNELS) + 0.5) / MOST_KERNELS)
    kernel = np.exp(-0.5 * ((grid[:, None] - samples) / width) ** 2)
    return kernel.sum(1) / (len(samples) * width * np.sqrt(2 * np.pi))


def outline(
    samples: Float[np.ndarray, "N"], limits: tuple[float, float], points: int = 300
) -> tuple[Float[np.ndarray, "G"], Float[np.ndarray, "G"]]:
    """A grid over the limits and the density on it, scaled to a highest value of one.

    A narrow hill in a wide picture gets grid points of its own, or it would be drawn as a few corners.
    """
    low, high = window(samples)
    reach = 4 * bandwidth(samples)
    near = np.clip(np.linspace(low - reach, high + reach, points), *limits)
    grid = np.unique(np.concatenate([near, np.linspace(*limits, points // 3)]))
    height = density(samples, grid)
    peak = height.max()
    return grid, height / peak if peak > 0 else height
