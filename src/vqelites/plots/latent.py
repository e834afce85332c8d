"""The learned descriptor space: codebook cells and the elites in them."""

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.spatial import Voronoi

from vqelites.plots.style import FITNESS_MAP, new_figure


def latent_cells(
    descriptors: np.ndarray, fitness: np.ndarray, codebook: np.ndarray, title: str, bound: float = 1.0
) -> Figure:
    """Elites (n, 2) over the cells of the codebook (k, 2), in the square [-bound, bound]^2."""
    figure = new_figure(5.2, 4.6)
    axes = figure.subplots()
    cells = PolyCollection(_bounded_cells(codebook, bound), facecolors="none", edgecolors="#bbbbbb", linewidths=0.4)
    axes.add_collection(cells)
    points = axes.scatter(descriptors[:, 0], descriptors[:, 1], c=fitness, s=9, cmap=FITNESS_MAP, linewidths=0)
    limit = 1.02 * bound
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", title=title)
    axes.set(xlabel="latent 1", ylabel="latent 2")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    figure.colorbar(points, ax=axes, label="fitness")
    return figure


def _bounded_cells(centres: np.ndarray, bound: float) -> list[np.ndarray]:
    """Voronoi polygons inside the square; centres mirrored in its sides make every cell end there."""
    inside = centres[(np.abs(centres) < bound).all(axis=1)]
    mirrored = [inside]
    for axis in (0, 1):
        for side in (-bound, bound):
            copy = inside.copy()
            copy[:, axis] = 2 * side - copy[:, axis]
            mirrored.append(copy)
    diagram = Voronoi(np.concatenate(mirrored))
    return [diagram.vertices[diagram.regions[region]] for region in diagram.point_region[: len(inside)]]
