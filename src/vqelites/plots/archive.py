"""Archives with a two-dimensional truth: every elite at its true outcome, and all views of them side by side."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from vqelites.frames import ArchiveFrame
from vqelites.metrics import coarser, outcomes, project
from vqelites.plots.latent import draw_latent
from vqelites.plots.maps import draw_positions
from vqelites.plots.projection import draw_true_grid
from vqelites.plots.style import RC, few_ticks, fitness_bar, fitness_points, fitness_scale, new_figure, panels
from vqelites.tasks.base import Task


def true_space(
    truth: np.ndarray, fitness: np.ndarray, low: Sequence[float], high: Sequence[float], title: str
) -> Figure:
    """Elites (n, 2) at their true outcome, coloured by fitness (n,); `final_positions` has the task's map, too."""
    figure, (axes,) = panels(1, 5.2, 4.6, title)
    scale = fitness_scale([fitness])
    fitness_points(axes, truth, fitness, scale)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xlabel="x", ylabel="y")
    few_ticks(axes)
    fitness_bar(figure, scale, [axes])
    return figure


def archive_views(
    task: Task,
    archives: Mapping[str, ArchiveFrame],
    codebooks: Mapping[str, np.ndarray],
    title: str,
    shape: Sequence[int] = (8, 8),
) -> Figure:
    """A row per algorithm: its best fitness over a coarse grid, where its elites end, and their descriptors.

    `codebooks` has those of the algorithms that learn one.
    """
    figure = new_figure(10.6, 3.4 * len(archives))
    figure.suptitle(title)
    with matplotlib.rc_context(RC):
        grid = figure.subplots(len(archives), 3, squeeze=False)
    bins = coarser(task.bins, shape, task.truth_low, task.truth_high)
    reachable = np.asarray(bins.reachable).reshape(shape)
    scale = fitness_scale([archive.fitness for archive in archives.values()])
    for (left, middle, right), (name, archive) in zip(grid, archives.items(), strict=True):
        best = project(bins, outcomes(archive.truth, archive.fitness)).best.reshape(shape)
        draw_true_grid(left, task, best, reachable, scale)
        left.set_title(f"{name}: best fitness")
        draw_positions(middle, task, archive, scale)
        middle.set_title(f"{len(archive)} elites")
        draw_latent(right, archive.descriptors, archive.fitness, codebooks.get(name), scale)
        right.set_title("their descriptors")
    fitness_bar(figure, scale, list(grid.flat))
    return figure
