"""How metrics grew over the iterations, and how the codebook settled."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vqelites.plots.style import Look, label, looks, panels
from vqelites.statistics import bands

_MARKERS = 8  # on each line


def metric_curves(iterations: np.ndarray, metrics: Mapping[str, np.ndarray], title: str) -> Figure:
    """The metrics of one run, each over the iterations (n,)."""
    run = pd.DataFrame({"algorithm": title, "seed": 0, "iteration": iterations, **metrics})
    return algorithm_curves(run, list(metrics), title)


def algorithm_curves(curves: pd.DataFrame, metrics: Sequence[str], title: str, columns: int = 4) -> Figure:
    """One plot per metric: for every algorithm (or variant) the median over its seeds, and the quartiles as a band.

    `curves` has a row per iteration of each run: columns algorithm, seed, iteration and the metrics. Algorithms may
    have different iterations and seeds; one without any number for a metric is left out of its plot.
    """
    groups = {str(name): rows for name, rows in curves.groupby("algorithm", sort=False)}
    styles = looks(groups)
    several = len(groups) > 1
    figure, plots = panels(len(metrics), 3.2, 2.7, title, columns, styles if several else None)
    for axes, metric in zip(plots, metrics, strict=True):
        for i, (name, rows) in enumerate(groups.items()):
            _band(axes, bands(rows, metric).dropna(), styles[name], (i + 0.5) / len(groups) if several else None)
        axes.set(xlabel="iteration", title=label(metric), xlim=(0, curves["iteration"].max()))
        if curves[metric].min() >= 0:
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    return figure


def _band(axes: Axes, band: pd.DataFrame, look: Look, shift: float | None) -> None:
    """One algorithm's line and band. Markers are shifted by this share of their distance, so that none coincide."""
    marks = np.unique([int((i + shift) * len(band) / _MARKERS) for i in range(_MARKERS) if shift is not None])
    axes.fill_between(band["iteration"], band["low"], band["high"], color=look.color, alpha=0.25, linewidth=0)
    axes.plot(band["iteration"], band["median"], markevery=marks.astype(int).tolist(), **look.line)


def drift_curves(drifts: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """How fast codes move, run by run: the mean as a line, what 90 % of them stay below as a thin one, on a log scale.

    The tables come from `metrics.codebook_drift`. Where nothing moved there is no point.
    """
    styles = looks(drifts)
    figure, (axes,) = panels(1, 5.6, 3.6, title, styles=styles)
    for name, drift in drifts.items():
        moving, line = drift[drift["mean"] > 0], styles[name].line
        axes.plot(moving["iteration"], moving["mean"], **line)
        axes.plot(moving["iteration"], moving["p90"], **line | {"linewidth": 0.7, "marker": ""})
    axes.set(xlabel="iteration", ylabel="movement per iteration", yscale="log")
    axes.set_title("codes: mean (thick) and 90 % quantile (thin)", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure
