"""How metrics grew over the iterations."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vqelites.plots.style import LINE, new_figure


def metric_curves(iterations: np.ndarray, metrics: Mapping[str, np.ndarray], title: str) -> Figure:
    """One small plot per metric, each over the iterations (n,)."""
    figure = new_figure(3.1 * len(metrics), 2.9)
    figure.suptitle(title)
    for axes, (name, values) in zip(figure.subplots(1, len(metrics), squeeze=False)[0], metrics.items(), strict=True):
        axes.plot(iterations, values, color=LINE, linewidth=1.5)
        axes.set(xlabel="iteration", title=name, xlim=(0, iterations[-1]))
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    return figure
