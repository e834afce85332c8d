"""The archive where it truly is: every elite at its true outcome."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vqelites.plots.style import FITNESS_MAP, new_figure


def true_space(
    truth: np.ndarray, fitness: np.ndarray, low: Sequence[float], high: Sequence[float], title: str
) -> Figure:
    """Elites (n, 2) at their true outcome, coloured by fitness (n,)."""
    figure = new_figure(5.2, 4.6)
    axes = figure.subplots()
    points = axes.scatter(truth[:, 0], truth[:, 1], c=fitness, s=12, cmap=FITNESS_MAP, linewidths=0)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", title=title, xlabel="x", ylabel="y")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    figure.colorbar(points, ax=axes, label="fitness")
    return figure
