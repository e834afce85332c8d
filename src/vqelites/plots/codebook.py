"""What the codes of a VQ-VAE stand for, as the run goes on."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from vqelites.plots.behavior import draw_behavior, limits
from vqelites.plots.channels import own_ranges, within
from vqelites.plots.style import new_figure


def decoded_codes(decoded: Mapping[int, np.ndarray], codes: Sequence[int], title: str) -> Figure:
    """The behaviors (k, *shape) that codes decode to: a row per iteration, a column per chosen code.

    Images share one scale from black to their brightest pixel (a blurred one is faint), videos are shown by
    their last frame, time series (steps, channels) as lines (channels in different units on scales of their own),
    vectors as bars.
    """
    figure = new_figure(0.85 * len(codes) + 1.2, 0.85 * len(decoded) + 0.7)
    figure.suptitle(title)
    grid = figure.subplots(len(decoded), len(codes), squeeze=False)
    shown = np.stack([behaviors[list(codes)] for behaviors in decoded.values()])
    shown = within(shown, own_ranges(shown)) if shown.ndim == 4 else shown
    low, high = limits([shown])
    low = low if shown.ndim < 5 else 0.0  # what lies below black in a decoded image is an overshoot of the network
    for row, iteration, behaviors in zip(grid, decoded, shown, strict=True):
        for axes, behavior in zip(row, behaviors, strict=True):
            draw_behavior(axes, behavior, low, high)
        row[0].set_ylabel(f"iteration\n{iteration}", rotation=0, ha="right", va="center", fontsize=8)
    for axes, code in zip(grid[0], codes, strict=True):
        axes.set_title(f"code {code}", fontsize=8)
    return figure
