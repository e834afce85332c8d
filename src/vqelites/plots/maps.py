"""The worlds of the tasks, and where elites end in them."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from mpl_toolkits.mplot3d import Axes3D

from vqelites.frames import ArchiveFrame
from vqelites.plots.style import few_ticks, fitness_bar, fitness_points, fitness_scale, new_figure, panels
from vqelites.tasks.base import Chart, Task
from vqelites.words import counted


def task_maps(tasks: Mapping[str, Task]) -> Figure:
    """The world of each task with its start, before any evaluation."""
    columns = min(len(tasks), 3)
    rows = -(-len(tasks) // columns)
    figure = new_figure(3.6 * columns, 3.5 * rows)
    for i, (name, task) in enumerate(tasks.items(), 1):
        axes = figure.add_subplot(rows, columns, i, projection=task.chart.projection)
        draw_map(axes, task)
        axes.set_title(name)
    return figure


def draw_map(axes: Axes, task: Task) -> None:
    """A task's world and where solutions start in it."""
    task.draw(axes, jnp.zeros((0, task.space.dim)))
    draw_marks(axes, task.chart)
    if isinstance(axes, Axes3D):
        axes.set_box_aspect((1, 1, 1), zoom=0.8)  # room for the labels
        axes.xaxis.labelpad = axes.yaxis.labelpad = 9
        few_ticks(axes, 3)
    else:
        axes.spines[["top", "right"]].set_visible(True)
        few_ticks(axes)


def draw_marks(axes: Axes, chart: Chart) -> None:
    """The task's letters, each in a disc with a ring of its colour."""
    for mark in chart.marks:
        axes.add_patch(Circle(mark.place, 0.45, facecolor="white", edgecolor=mark.colour, linewidth=1.5, zorder=3))
        axes.text(*mark.place, mark.letter, fontsize=7, ha="center", va="center_baseline", zorder=4)


def at_work(task: Task, solutions: Float[Array, "n s"], title: str) -> Figure:
    """Left: the world of the task. Right: these solutions in it; `spread` picks diverse ones."""
    figure = new_figure(9.6, 4.8)
    figure.suptitle(title)
    left, right = (figure.add_subplot(1, 2, i, projection=task.chart.projection) for i in (1, 2))
    count = counted(len(solutions), "solution")
    for axes, shown, name in ((left, solutions[:0], "the task"), (right, solutions, count)):
        task.draw(axes, shown)
        axes.set_title(name)
        few_ticks(axes, 4)
    return figure


def final_positions(task: Task, archives: Mapping[str, ArchiveFrame], title: str) -> Figure:
    """Every elite where it truly ended on the task's map, coloured by fitness, algorithms side by side."""
    figure, plots = panels(len(archives), 3.8, 3.8, title)
    scale = fitness_scale([archive.fitness for archive in archives.values()])
    for axes, (name, archive) in zip(plots, archives.items(), strict=True):
        draw_positions(axes, task, archive, scale)
        axes.set_title(name)
    fitness_bar(figure, scale, plots)
    return figure


def draw_positions(axes: Axes, task: Task, archive: ArchiveFrame, scale: ScalarMappable) -> None:
    """Like `final_positions`, on given axes."""
    places = on_map(task, archive.truth)
    draw_map(axes, task)
    fitness_points(axes, places, archive.fitness, scale)


def on_map(task: Task, truth: np.ndarray) -> np.ndarray:
    """True outcomes (n, 2) in the coordinates in which the task draws its world."""
    if truth.shape[1] != 2:
        raise ValueError(f"Only true outcomes of 2 numbers have a place on a map, but these have {truth.shape[1]}.")
    return task.chart.scale * (truth[:, ::-1] if task.chart.rows_first else truth)
