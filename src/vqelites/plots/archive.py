"""Archives with a two-dimensional truth: every elite at its true outcome, and all views of them side by side."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from vqelites.frames import ArchiveFrame
from vqelites.metrics import coarser, outcomes, project
from vqelites.plots.latent import draw_latent
from vqelites.plots.maps import draw_positions
from vqelites.plots.projection import draw_true_grid
from vqelites.plots.style import RC, few_ticks, fitness_bar, fitness_points, fitness_scale, new_figure, panels
from vqelites.tasks.base import Task
from vqelites.types import Bins
from vqelites.words import counted

_LONG = 4.0  # times as long as wide: a picture need not keep such a shape


def true_space(
    truth: np.ndarray, fitness: np.ndarray, low: Sequence[float], high: Sequence[float], title: str
) -> Figure:
    """Elites (n, 2) at their true outcome, coloured by fitness (n,); `final_positions` has the task's map, too.

    Limits that are not known (infinite) are those of the elites.
    """
    figure, (axes,) = panels(1, 5.2, 4.6, title)
    scale = fitness_scale([fitness])
    draw_truth(axes, truth, fitness, low, high, scale)
    fitness_bar(figure, scale, [axes])
    return figure


def draw_truth(
    axes: Axes,
    truth: np.ndarray,
    fitness: np.ndarray,
    low: Sequence[float],
    high: Sequence[float],
    scale: ScalarMappable,
) -> None:
    """Like `true_space`, on given axes."""
    margin = 0.05 * np.ptp(truth, axis=0) + 1e-6
    lower = np.where(np.isfinite(low), low, truth.min(axis=0) - margin)
    upper = np.where(np.isfinite(high), high, truth.max(axis=0) + margin)
    fitness_points(axes, truth, fitness, scale)
    axes.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), xlabel="x", ylabel="y")
    sides = upper - lower
    if sides.max() <= _LONG * sides.min():  # a strip would show nothing, and its units hardly compare
        axes.set_aspect("equal")
    few_ticks(axes)


def archive_views(
    task: Task,
    archives: Mapping[str, ArchiveFrame],
    codebooks: Mapping[str, np.ndarray],
    title: str,
    shape: Sequence[int] = (8, 8),
    *,
    world: bool = True,
) -> Figure:
    """A row per algorithm: its best fitness over a coarse grid, where its elites end, and their descriptors.

    `codebooks` has those of the algorithms that learn one. There is no grid where the task has no bins, and no `world`
    around the elites where it cannot be drawn.
    """
    columns = 2 if task.bins is None else 3
    figure = new_figure(3.5 * columns, 3.4 * len(archives))
    figure.suptitle(title)
    with matplotlib.rc_context(RC):
        grid = figure.subplots(len(archives), columns, squeeze=False)
    scale = fitness_scale([archive.fitness for archive in archives.values()])
    for (*left, middle, right), (name, archive) in zip(grid, archives.items(), strict=True):
        if task.bins is not None:
            _draw_best(left[0], task, task.bins, archive, shape, scale)
            left[0].set_title(f"{name}: best fitness")
        if world:
            draw_positions(middle, task, archive, scale)
        else:
            draw_truth(middle, archive.truth, archive.fitness, task.truth_low, task.truth_high, scale)
        count = counted(len(archive), "elite")
        middle.set_title(count if left else f"{name}: {count}")
        draw_latent(right, archive.descriptors, archive.fitness, codebooks.get(name), scale)
        right.set_title("their descriptors")
    fitness_bar(figure, scale, list(grid.flat))
    return figure


def _draw_best(
    axes: Axes, task: Task, bins: Bins, archive: ArchiveFrame, shape: Sequence[int], scale: ScalarMappable
) -> None:
    """The best fitness over a coarse grid, never finer than the bins: cells between bins would look unreachable."""
    fine = np.asarray(bins.centres)
    shape = [min(count, len(np.unique(fine[:, i]))) for i, count in enumerate(shape)]
    coarse = coarser(bins, shape, task.truth_low, task.truth_high)
    best = project(coarse, outcomes(archive.truth, archive.fitness)).best.reshape(shape)
    draw_true_grid(axes, task, best, np.asarray(coarse.reachable).reshape(shape), scale)
