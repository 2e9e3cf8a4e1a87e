"""Pictures of a value posterior over a plane of states: its mean above, its standard deviation below."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from bellief.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_planes(
    extent: tuple[float, float, float, float],
    means: list[Float[np.ndarray, "rows columns"]],
    spreads: list[Float[np.ndarray, "rows columns"]],
    titles: list[str],
    xlabel: str = "",
    ylabel: str = "",
    visited: list[Float[np.ndarray, "n 2"]] | None = None,
) -> "Figure":
    """One column for each amount of data, with the same colours for the same numbers in a row.

    Args:
        extent: left, right, bottom and top of the plane.
        means: mean values, the first row at the bottom.
        spreads: standard deviations.
        titles: a title for each column.
        xlabel: what goes from left to right.
        ylabel: what goes from bottom to top.
        visited: states that were seen, drawn as dots on the means.
    """
    figure = style.new_figure(3.1 * len(means) + 1.0, 5.6)
    axes = figure.subplots(2, len(means), sharex=True, sharey=True, squeeze=False)
    for row, (planes, colours, label) in enumerate(((means, "viridis", "mean"), (spreads, "magma", "sd"))):
        low, high = min(plane.min() for plane in planes), max(plane.max() for plane in planes)
        for column, plane in enumerate(planes):
            one = axes[row, column]
            image = one.imshow(plane, origin="lower", extent=extent, aspect="auto", cmap=colours, vmin=low, vmax=high)
            style.tidy(one, grid=None)
            if row == 0:
                one.set_title(titles[column], color=style.INK, size=style.FONT_SIZE)
                if visited is not None:
                    one.plot(*visited[column].T, ".", color="white", markersize=2, alpha=0.6)
                    one.set(xlim=extent[:2], ylim=extent[2:])
            else:
                one.set_xlabel(xlabel)
        axes[row, 0].set_ylabel(ylabel)
        figure.colorbar(image, ax=list(axes[row]), label=f"value, {label}")
    return figure
