"""Raw behaviors, drawn by their kind: images, videos, time series, vectors."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vqelites.plots.channels import channel_names, own_ranges, within
from vqelites.plots.style import MUTED, looks, missed_legend, misses, panels

_COLOR = looks(["vq-elites"])["vq-elites"].color
_FRAMES = 5  # of a video, side by side
_BARS = 40  # numbers of a vector; more are drawn as a line
_NAMED = 10  # channels of a series; of more, the colours would repeat


def behavior_gallery(behaviors: np.ndarray, fitness: np.ndarray, title: str, near_goal: float | None = None) -> Figure:
    """What some elites (n, *shape) did, each with its fitness (n,).

    Images share one scale from black (0, or their darkest pixel if that is negative) to their brightest pixel, videos
    are shown by some frames in a row, time series (steps, channels) as lines, vectors as bars or, if long, as a line.
    `spread` picks diverse elites. Those less fit than `near_goal` have a grey, dashed frame and, if they are bars, grey
    bars. Channels in different units have scales of their own.
    """
    ranges = own_ranges(behaviors) if behaviors.ndim == 3 and len(behaviors) else None
    behaviors = within(behaviors, ranges)
    video = behaviors.ndim == 5
    figure, plots = panels(len(behaviors), *((3.7, 1.1) if video else (1.9, 1.9)), title, columns=3 if video else 6)
    low, high = limits([behaviors])
    missed = misses(fitness, near_goal)
    left = plots[0].get_position().x0 if plots else 0.0
    for axes, behavior, value, miss in zip(plots, behaviors, fitness, missed, strict=True):
        shown = _strip(behavior, high) if video else behavior
        draw_behavior(axes, shown, low, high, MUTED if miss else _COLOR)
        axes.set_title(f"fitness {value:.3g}", fontsize=8, color="#777777" if miss else "black")
        if miss:
            axes.spines[:].set(color="#777777", linestyle="--")
        if behavior.ndim <= 2 and axes.get_position().x0 == left:  # all share one scale
            ends = [f"{low:.3g}", f"{high:.3g}"] if ranges is None else ["lowest", "highest"]
            axes.set_yticks([low, high], ends, fontsize=7)
    if behaviors.ndim == 3 and 1 < behaviors.shape[2] <= _NAMED:
        names = [f"channel {name}" for name in channel_names(behaviors.shape[2], ranges)]
        figure.legend(plots[0].lines, names, loc="outside lower left", ncols=5, frameon=False, fontsize=8)
    missed_legend(figure, fitness, near_goal, marker="s", color=MUTED, markeredgecolor="#777777")
    return figure


def draw_behavior(axes: Axes, behavior: np.ndarray, low: float, high: float, color: str = _COLOR) -> None:
    """One behavior, small and without ticks; a video by its last frame. Bars have this colour."""
    axes.set(xticks=[], yticks=[])
    axes.spines[["top", "right"]].set_visible(True)
    if behavior.ndim > 2:
        frame = behavior if behavior.ndim == 3 else behavior[-1]
        image = frame if frame.shape[2] == 3 else frame[..., 0]
        axes.imshow(brightness(image, low, high), cmap="gray", vmin=0, vmax=1)
        return
    if behavior.ndim == 2 or len(behavior) > _BARS:
        axes.plot(behavior, linewidth=1)
    else:
        axes.bar(range(len(behavior)), behavior, color=color, width=0.8)
        axes.axhline(0, color="black", linewidth=0.5)
    margin = 0.05 * (high - low)
    axes.set(ylim=(low - margin, high + margin), box_aspect=1)


def limits(behaviors: Sequence[np.ndarray]) -> tuple[float, float]:
    """A range that holds all of them, with 0 in it."""
    low, high = min(0, *(b.min() for b in behaviors)), max(0, *(b.max() for b in behaviors))
    return low, high if high > low else low + 1.0


def brightness(images: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values of images as levels from 0 (black) to 1 (white)."""
    return np.clip((images - low) / (high - low), 0, 1)


def _strip(video: np.ndarray, bright: float) -> np.ndarray:
    """Frames (t, h, w, c) from the first to the last as one image, with a bright line between them."""
    chosen = video[np.unique(np.linspace(0, len(video) - 1, _FRAMES).round().astype(int))]
    line = np.full((video.shape[1], 1, video.shape[3]), bright, video.dtype)
    return np.concatenate([part for frame in chosen for part in (line, frame)][1:], axis=1)
