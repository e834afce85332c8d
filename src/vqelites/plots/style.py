"""One look for every picture: fonts, the colour of fitness, and a line of its own for every algorithm."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from vqelites.statistics import scale_limits

# Fitness is an ordered quantity: a perceptually even map that stays readable in grey.
FITNESS_MAP = "viridis"
MUTED = "#bbbbbb"

RC: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
    "svg.hashsalt": "vqelites",  # the same picture is the same file
}


@dataclass(frozen=True)
class Look:
    """How an algorithm's line is drawn: colours differ in lightness, and dashes and markers work without colour."""

    color: str
    dashes: tuple[float, ...]  # lengths of strokes and gaps; none: solid
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """As matplotlib wants it."""
        linestyle = (0, self.dashes) if self.dashes else "-"
        return {"color": self.color, "linestyle": linestyle, "marker": self.marker, "markersize": 4, "linewidth": 1.6}


_ALGORITHMS = {
    "vq-elites": Look("#08306b", (), "o"),
    "map-elites": Look("#cc4b37", (6, 2), "s"),
    "cvt-map-elites": Look("#d98200", (1.5, 1.5), "^"),
    "aurora": Look("#7fc8a9", (8, 2, 1.5, 2), "D"),
    "aurora-plus": Look("#7d3c98", (4, 1.5), "v"),
}
# For variants, in the order in which they are named.
_VARIANTS = (
    Look("#101010", (), "P"),
    Look("#b8860b", (6, 2), "X"),
    Look("#a50f62", (1.5, 1.5), "<"),
    Look("#e8b4c8", (8, 2, 1.5, 2), ">"),
    Look("#3b1053", (4, 1.5), "p"),
    Look("#56b4e9", (10, 2), "h"),
    Look("#5a3a22", (3, 1, 1, 1), "d"),
    Look("#00867a", (8, 2, 1.5, 2, 1.5, 2), "*"),
)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name: always the same one for the algorithms, the next free one for any variant."""
    names = list(dict.fromkeys(names))
    variants = [name for name in names if name not in _ALGORITHMS]
    if len(variants) > len(_VARIANTS):
        raise ValueError(
            f"One picture can tell {len(_VARIANTS)} variants apart, but got {len(variants)}: {variants}. Draw fewer."
        )
    others = dict(zip(variants, _VARIANTS, strict=False))
    return {name: _ALGORITHMS.get(name) or others[name] for name in names}


_LABELS = {
    "pqd": "PQD",
    "edr": "EDR",
    "cds": "CDS",
    "size": "archive size",
    "qd_score": "QD score",
    "codes_used": "codes in use",
    "coverage_auc": "coverage, area under the curve",
    "pqd_auc": "PQD, area under the curve",
    "edr_common": "EDR at a common size",
    "coverage_near_goal": "coverage within 5 cm",
}


def label(metric: str) -> str:
    """A metric's name in words."""
    return _LABELS.get(metric, metric.replace("_", " "))


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in this look, without touching matplotlib's global state or needing a screen."""
    with matplotlib.rc_context(RC):
        return Figure(figsize=(width, height), layout="constrained")


def panels(
    count: int, width: float, height: float, title: str, columns: int = 4, styles: Mapping[str, Look] | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` plots of this size (inches), in rows of at most `columns`, with a legend of the styles."""
    rows = math.ceil(count / columns)
    columns = math.ceil(count / rows)  # rows of equal length, if possible
    figure = new_figure(width * columns, height * rows)
    figure.suptitle(title)
    if styles:
        _legend(figure, styles)
    with matplotlib.rc_context(RC):
        return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(count)]


def _legend(figure: Figure, styles: Mapping[str, Look]) -> None:
    """The names of the lines below all plots, in as many rows as they need, for which the figure grows."""
    entry = (75 + 6.5 * max(map(len, styles))) / 72  # inches
    rows = math.ceil(len(styles) / max(int(figure.get_figwidth() / entry), 1))
    figure.set_figheight(figure.get_figheight() + 0.25 * rows)
    lines = [Line2D([], [], **look.line) for look in styles.values()]
    columns = math.ceil(len(styles) / rows)
    figure.legend(lines, list(styles), loc="outside lower center", ncols=columns, frameon=False, handlelength=4)


def few_ticks(axes: Axes, count: int = 5) -> None:
    """At most about `count` ticks on every axis, so that their labels never touch."""
    for axis in (axes.xaxis, axes.yaxis, getattr(axes, "zaxis", None)):
        if axis is not None:
            axis.set_major_locator(MaxNLocator(count))


def fitness_scale(values: Iterable[np.ndarray]) -> ScalarMappable:
    """One colour scale over all finite values, to compare pictures side by side.

    Outliers have the colour of an end; the bar of the scale is pointed there.
    """
    numbers = np.concatenate([np.ravel(v) for v in values])
    low, high = scale_limits(numbers)
    colours = matplotlib.colormaps[FITNESS_MAP].copy()
    beyond = bool(np.nanmin(numbers, initial=low) < low), bool(np.nanmax(numbers, initial=high) > high)
    ends = {(True, False): "min", (False, True): "max", (True, True): "both"}.get(beyond, "neither")
    colours.colorbar_extend = ends  # type: ignore[assignment]  # annotated as a bool, documented as a word
    return ScalarMappable(Normalize(low, high), colours)


def fitness_bar(figure: Figure, scale: ScalarMappable, axes: Sequence[Axes]) -> None:
    """The bar that explains the colours of these plots."""
    figure.colorbar(scale, ax=axes, label="fitness", shrink=0.9, aspect=30)


def fitness_points(
    axes: Axes, points: np.ndarray, fitness: np.ndarray, scale: ScalarMappable, near_goal: float | None = None
) -> None:
    """Elites as dots (n, 2) in the colour of their fitness, with a thin rim that keeps bright ones visible.

    Those less fit than `near_goal` are hollow.
    """
    missed = misses(fitness, near_goal)
    colours = scale.to_rgba(fitness)
    x, y = points[~missed, 0], points[~missed, 1]
    axes.scatter(x, y, c=colours[~missed], s=10, edgecolors="#00000080", linewidths=0.25, zorder=2)
    if missed.any():
        x, y = points[missed, 0], points[missed, 1]
        axes.scatter(x, y, facecolors="none", edgecolors=colours[missed], s=10, linewidths=0.8, zorder=2)


def misses(fitness: np.ndarray, near_goal: float | None) -> np.ndarray:
    """Which elites (n,) miss the goal; none if the task has no goal."""
    return np.zeros(len(fitness), bool) if near_goal is None else fitness < near_goal


def missed_legend(figure: Figure, fitness: np.ndarray, near_goal: float | None, **look: Any) -> None:
    """Below all plots, how elites that miss the goal are drawn and how many there are; nothing if there are none."""
    count = int(misses(fitness, near_goal).sum())
    if count:
        line = Line2D([], [], linestyle="none", markersize=6, **look)
        text = f"misses the goal ({count} of {len(fitness)})"
        figure.legend([line], [text], loc="outside lower right", frameon=False, fontsize=8)


def save(figure: Figure, path: Path, *, vector: bool = False) -> Path:
    """Write the picture; its format follows from the file's ending. `vector` writes it as SVG beside that, too."""
    with matplotlib.rc_context(RC):
        figure.savefig(path)
        if vector:
            figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    return path
