"""The descriptor space: elites at their descriptors, and the cells of the codebook."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from scipy.spatial import Voronoi

from vqelites.plots.style import MUTED, few_ticks, fitness_bar, fitness_points, fitness_scale, missed_legend, panels


def latent_cells(
    descriptors: np.ndarray,
    fitness: np.ndarray,
    codebook: np.ndarray | None,
    title: str,
    near_goal: float | None = None,
    scale: ScalarMappable | None = None,
) -> Figure:
    """Elites (n, d) coloured by fitness (n,) over the codebook (k, d), if there is one.

    Two dimensions are drawn as they are, with the cells of the codes, and one with fitness as its height; any other
    number as the two principal components of descriptors and codes together, the codes as crosses, since a projection
    of cells means nothing. Elites less fit than `near_goal` are hollow. Pictures to be compared have one `scale` of
    colours.
    """
    figure, (axes,) = panels(1, 5.2, 4.6, title)
    scale = fitness_scale([fitness]) if scale is None else scale
    draw_latent(axes, descriptors, fitness, codebook, scale, near_goal)
    missed_legend(figure, fitness, near_goal, marker="o", markerfacecolor="none", color="black")
    fitness_bar(figure, scale, [axes])
    return figure


def draw_latent(
    axes: Axes,
    descriptors: np.ndarray,
    fitness: np.ndarray,
    codebook: np.ndarray | None,
    scale: ScalarMappable,
    near_goal: float | None = None,
) -> None:
    """Like `latent_cells`, on given axes."""
    codes = np.zeros((0, descriptors.shape[1])) if codebook is None else codebook
    if descriptors.shape[1] == 1:
        axes.vlines(codes[:, 0], 0, 1, transform=axes.get_xaxis_transform(), color=MUTED, linewidth=0.4, zorder=0)
        fitness_points(axes, np.column_stack([descriptors[:, 0], fitness]), fitness, scale, near_goal)
        axes.set(xlabel="descriptor 1", ylabel="fitness")
        few_ticks(axes)
        return
    names = ["descriptor 1", "descriptor 2"]
    if descriptors.shape[1] == 2:
        low, high = frame(descriptors, codes)
        outlines = cells(codes, low, high)
        axes.add_collection(PolyCollection(outlines, facecolors="none", edgecolors=MUTED, linewidths=0.4))
    else:
        descriptors, codes, shares = principal(descriptors, codes)
        names = [f"component {i} ({100 * share:.0f} % of variance)" for i, share in enumerate(shares, 1)]
        low, high = frame(np.concatenate([descriptors, codes]), codes[:0])
        axes.scatter(codes[:, 0], codes[:, 1], marker="x", s=10, color=MUTED, linewidths=0.6)
    fitness_points(axes, descriptors, fitness, scale, near_goal)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel=names[0], ylabel=names[1])
    axes.set_aspect("equal")
    few_ticks(axes)


def principal(descriptors: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Both projected onto their first two principal components, and the share of the variance of each.

    The largest entry of a component is positive, so that pictures of one run do not flip from moment to moment.
    """
    points = np.concatenate([descriptors, codes]).astype(float)
    points = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))
    centred = points - points.mean(axis=0)
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    largest = np.abs(directions).argmax(axis=1)[:, None]
    directions *= np.where(np.take_along_axis(directions, largest, axis=1) < 0, -1, 1)
    flat = centred @ directions[:2].T
    shares = spread[:2] ** 2 / max((spread**2).sum(), np.finfo(float).tiny)
    return flat[: len(descriptors)], flat[len(descriptors) :], shares.tolist()


def cells(codes: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """The Voronoi polygon of every code (k, 2), cut off at the box they are in; codes in one place share a cell."""
    codes = np.unique(codes, axis=0)
    if not len(codes):
        return []
    mirrored = [codes]  # mirrored in the four sides, they make every cell end there
    for axis in (0, 1):
        for side in (low, high):
            copy = codes.copy()
            copy[:, axis] = 2 * side[axis] - copy[:, axis]
            mirrored.append(copy)
    diagram = Voronoi(np.concatenate(mirrored))
    return [diagram.vertices[diagram.regions[region]] for region in diagram.point_region[: len(codes)]]


def frame(descriptors: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a square around all: the one bounded descriptors live in if there are codes and it holds them.

    On a narrower frame tick labels would touch.
    """
    points = np.concatenate([descriptors, codes])
    low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(2), np.ones(2))
    if len(codes) and max(-low.min(), high.max()) <= 1:
        low, high = np.full(2, -1.0), np.full(2, 1.0)
    centre, half = (low + high) / 2, np.maximum(0.52 * (high - low).max(), 1e-6)
    return centre - half, centre + half
