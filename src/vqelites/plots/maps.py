"""The worlds of the tasks, and where elites end in them."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from mpl_toolkits.mplot3d import Axes3D

from vqelites.frames import ArchiveFrame
from vqelites.plots.style import few_ticks, fitness_bar, fitness_points, fitness_scale, new_figure, panels
from vqelites.tasks.arm import Arm
from vqelites.tasks.base import AbstractTask
from vqelites.tasks.minigrid import COLOURS, Colour, MiniGrid
from vqelites.tasks.mobile import RADIUS, WORLD, MobileRobot


def task_maps(tasks: Mapping[str, AbstractTask], title: str) -> Figure:
    """The world of each task with its start, before anything is tried."""
    columns = min(len(tasks), 3)
    rows = -(-len(tasks) // columns)
    figure = new_figure(3.6 * columns, 3.7 * rows)
    figure.suptitle(title)
    for i, (name, task) in enumerate(tasks.items(), 1):
        kind = "3d" if isinstance(task, Arm) else "rectilinear"
        axes = figure.add_subplot(rows, columns, i, projection=kind)
        draw_map(axes, task)
        axes.set_title(name)
    return figure


def draw_map(axes: Axes, task: AbstractTask) -> None:
    """A task's world and where solutions start in it."""
    task.draw(axes, jnp.zeros((0, task.space.dim)))
    if isinstance(task, MobileRobot):
        x, y, heading = np.asarray(task.start)
        axes.add_patch(Circle((x, y), RADIUS, facecolor="white", edgecolor="black", zorder=3))
        tip = (x + 6 * RADIUS * np.cos(heading), y + 6 * RADIUS * np.sin(heading))
        axes.annotate("", tip, (x, y), arrowprops={"arrowstyle": "->", "color": "black"}, zorder=3)
    if isinstance(task, MiniGrid):
        draw_items(axes, task)
    if isinstance(axes, Axes3D):
        axes.set_box_aspect((1, 1, 1), zoom=0.8)  # room for the labels
        axes.xaxis.labelpad = axes.yaxis.labelpad = 9
        few_ticks(axes, 3)
    else:
        axes.spines[["top", "right"]].set_visible(True)
        few_ticks(axes)


def draw_items(axes: Axes, task: MiniGrid) -> None:
    """Start, keys (small letters) and doors (capitals), each in a disc ringed in the colour of its pair."""
    marks: list[tuple[str, np.ndarray, Colour]] = [("S", np.asarray(task.start), (0.0, 0.0, 0.0))]
    for letters, tiles in (("abcd", task.key_at), ("ABCD", task.door_at)):
        for row, column, pair in np.argwhere(np.asarray(tiles)):
            marks.append((letters[pair], np.array([row, column]), COLOURS["ABCD"[pair]]))
    for letter, (row, column), colour in marks:
        axes.add_patch(Circle((column, row), 0.45, facecolor="white", edgecolor=colour, linewidth=1.5, zorder=3))
        axes.text(column, row, letter, fontsize=7, ha="center", va="center_baseline", zorder=4)


def final_positions(task: AbstractTask, archives: Mapping[str, ArchiveFrame], title: str) -> Figure:
    """Every elite where it truly ended on the task's map, coloured by fitness, algorithms side by side."""
    figure, plots = panels(len(archives), 3.8, 3.8, title)
    scale = fitness_scale([archive.fitness for archive in archives.values()])
    for axes, (name, archive) in zip(plots, archives.items(), strict=True):
        draw_positions(axes, task, archive, scale)
        axes.set_title(name)
    fitness_bar(figure, scale, plots)
    return figure


def draw_positions(axes: Axes, task: AbstractTask, archive: ArchiveFrame, scale: ScalarMappable) -> None:
    """The same on axes that are there already."""
    places = on_map(task, archive.truth)
    draw_map(axes, task)
    fitness_points(axes, places, archive.fitness, scale)


def on_map(task: AbstractTask, truth: np.ndarray) -> np.ndarray:
    """True outcomes (n, 2) in the coordinates in which the task draws its world."""
    if truth.shape[1] != 2:
        raise ValueError(f"Only true outcomes of 2 numbers have a place on a map, but these have {truth.shape[1]}.")
    if isinstance(task, MobileRobot):
        return truth * WORLD
    return truth[:, ::-1] if isinstance(task, MiniGrid) else truth
