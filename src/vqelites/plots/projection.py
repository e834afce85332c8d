"""Elite Grid Projection: the best fitness found in every bin of the true space."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from vqelites.plots.maps import draw_marks
from vqelites.plots.style import few_ticks, fitness_bar, fitness_scale, panels
from vqelites.tasks.base import Task


def elite_grids(
    task: Task, grids: Mapping[str, np.ndarray], reachable: np.ndarray, title: str, columns: int = 3
) -> Figure:
    """The best fitness of each bin of a grid (a, b) over a task's true outcomes, algorithms side by side on one scale.

    NaN marks bins without an elite (white); unreachable bins (a, b) are hatched. A grid is
    `metrics.project(bins, elites).best.reshape(shape)`.
    """
    figure, plots = panels(len(grids), 4.2, 4.4, title, columns)
    scale = fitness_scale(grids.values())
    for axes, (name, grid) in zip(plots, grids.items(), strict=True):
        draw_true_grid(axes, task, grid, reachable, scale)
        draw_marks(axes, task.chart)
        axes.set_title(name)
    fitness_bar(figure, scale, plots)
    return figure


def draw_grid(
    axes: Axes,
    grid: np.ndarray,
    reachable: np.ndarray,
    low: Sequence[float],
    high: Sequence[float],
    scale: ScalarMappable,
) -> None:
    """One such grid on axes that are there already."""
    x, y = (np.linspace(low[i], high[i], grid.shape[i] + 1) for i in (0, 1))
    shown = np.ma.masked_where(~reachable | np.isnan(grid), grid).T
    axes.pcolormesh(x, y, shown, cmap=scale.cmap).set_norm(scale.norm)
    _hatch(axes, x, y, ~reachable)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axes.spines[["top", "right"]].set_visible(True)
    few_ticks(axes)


def _hatch(axes: Axes, x: np.ndarray, y: np.ndarray, where: np.ndarray) -> None:
    """Grey, hatched bins, distinct from every colour of fitness in grey print, too."""
    corners = [[(x[i], y[j]), (x[i + 1], y[j]), (x[i + 1], y[j + 1]), (x[i], y[j + 1])] for i, j in np.argwhere(where)]
    axes.add_collection(PolyCollection(corners, facecolors="#e4e4e4", edgecolors="#a8a8a8", hatch="////", linewidths=0))


def draw_true_grid(axes: Axes, task: Task, grid: np.ndarray, reachable: np.ndarray, scale: ScalarMappable) -> None:
    """A grid over all of a task's true outcomes, lying as its map does."""
    low, high = task.truth_low, task.truth_high
    if task.chart.rows_first:
        draw_grid(axes, grid.T, reachable.T, low[::-1], high[::-1], scale)
        axes.set(xlabel="column", ylabel="row")
        axes.invert_yaxis()
    else:
        draw_grid(axes, grid, reachable, low, high, scale)
        axes.set(xlabel="x", ylabel="y")
