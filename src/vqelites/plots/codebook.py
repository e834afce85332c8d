"""What the codes of a VQ-VAE stand for, as the run goes on."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vqelites.plots.style import looks, new_figure

_BAR = looks(["vq-elites"])["vq-elites"].color


def decoded_codes(decoded: Mapping[int, np.ndarray], codes: Sequence[int], title: str) -> Figure:
    """The behaviors (k, *shape) that codes decode to: a row per iteration, a column per chosen code.

    Images share one scale from black to their brightest pixel (a blurred one is faint), videos are shown by
    their last frame, time series (steps, channels) as lines, vectors as bars.
    """
    figure = new_figure(0.85 * len(codes) + 1.2, 0.85 * len(decoded) + 0.7)
    figure.suptitle(title)
    grid = figure.subplots(len(decoded), len(codes), squeeze=False)
    low, high = _limits([behaviors[list(codes)] for behaviors in decoded.values()])
    for row, (iteration, behaviors) in zip(grid, decoded.items(), strict=True):
        for axes, code in zip(row, codes, strict=True):
            _glyph(axes, behaviors[code], low, high)
        row[0].set_ylabel(f"iteration\n{iteration}", rotation=0, ha="right", va="center", fontsize=8)
    for axes, code in zip(grid[0], codes, strict=True):
        axes.set_title(f"code {code}", fontsize=8)
    return figure


def _glyph(axes: Axes, behavior: np.ndarray, low: float, high: float) -> None:
    """One behavior, small and without ticks."""
    axes.set(xticks=[], yticks=[])
    axes.spines[["top", "right"]].set_visible(True)
    if behavior.ndim > 2:
        frame = behavior if behavior.ndim == 3 else behavior[-1]
        image = frame if frame.shape[2] == 3 else frame[..., 0]
        axes.imshow(np.clip(image / high, 0, 1), cmap="gray", vmin=0, vmax=1)
        return
    if behavior.ndim == 2:
        axes.plot(behavior, linewidth=1)
    else:
        axes.bar(range(len(behavior)), behavior, color=_BAR, width=0.8)
        axes.axhline(0, color="black", linewidth=0.5)
    margin = 0.05 * (high - low)
    axes.set(ylim=(low - margin, high + margin), box_aspect=1)


def _limits(behaviors: Sequence[np.ndarray]) -> tuple[float, float]:
    """A range that holds all of them, with 0 in it."""
    low, high = min(0, *(b.min() for b in behaviors)), max(0, *(b.max() for b in behaviors))
    return low, high if high > low else low + 1.0
