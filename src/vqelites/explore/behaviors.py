"""What one elite did, as a small plot: its behavior by kind, filled anew with every elite."""

from typing import Any

import numpy as np
import panel as pn
from bokeh.models import BasicTicker, ColumnDataSource, Legend, LegendItem, Range1d
from bokeh.palettes import Category10_10
from bokeh.plotting import figure

from vqelites.plots.behavior import brightness
from vqelites.plots.channels import channel_names, within

_BARS = 40  # numbers of a vector; more are drawn as a line
_COLOR = "#08306b"
_FRAME_TIME = 120  # milliseconds
_SHOW_FRAME = "shown.data = {image: [frames.data.image[cb_obj.value]]}"


def view_of(
    shape: tuple[int, ...],
    low: float,
    high: float,
    width: int,
    *,
    ranges: np.ndarray | None = None,
    small: bool = False,
) -> "BehaviorView":
    """A plot for behaviors of this shape, whose values lie between these limits.

    Channels of a series may have `ranges` (c, 2) of their own.
    """
    if len(shape) == 1:
        return VectorView(shape[0], low, high, width, small)
    if len(shape) == 2:
        return SeriesView(shape, *((low, high) if ranges is None else (0.0, 1.0)), width, small, ranges)
    return FramesView(shape if len(shape) == 4 else (1, *shape), low, high, width, small)


class VectorView:
    """Numbers (d,) as bars or, if there are many, as a line."""

    REDRAW = "source.data = {...source.data, y: values}"

    def __init__(self, count: int, low: float, high: float, width: int, small: bool):
        self.source = ColumnDataSource({"x": [], "y": []})
        plot = _plot(width, round(0.6 * width), small)
        plot.x_range, plot.y_range = Range1d(0.3, count + 0.7), _range(low, high)
        plot.xaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
        if count <= _BARS:
            plot.vbar(x="x", top="y", width=0.8, source=self.source, color=_COLOR)
        else:
            plot.line("x", "y", source=self.source, color=_COLOR)
        self.view = pn.pane.Bokeh(plot)

    @property
    def sources(self) -> dict[str, ColumnDataSource]:
        """What `REDRAW` changes: JavaScript that draws another row of `packed` values, none where they are NaN."""
        return {"source": self.source}

    def packed(self, behaviors: np.ndarray) -> np.ndarray:
        """Vectors (n, d) as the browser gets them."""
        return behaviors.astype(np.float32)

    def show(self, behavior: np.ndarray) -> None:
        """Draw another vector."""
        self.source.data = {"x": np.arange(1, len(behavior) + 1), "y": np.asarray(behavior, float)}

    def clear(self) -> None:
        """Draw nothing."""
        self.source.data = {"x": [], "y": []}


class SeriesView:
    """A time series (T, d), a line for each of its channels."""

    REDRAW = """
const width_of = source.data.ys.length
source.data = {...source.data, ys: source.data.ys.map((_, c) => values.filter((_, i) => i % width_of === c))}
"""

    def __init__(
        self, shape: tuple[int, ...], low: float, high: float, width: int, small: bool, ranges: np.ndarray | None
    ):
        steps, channels = shape
        self._ranges, self._names = ranges, channel_names(channels, ranges)
        self.source = ColumnDataSource({"xs": [], "ys": [], "color": [], "channel": []})
        self.plot = _plot(width, round(0.6 * width), small)
        self.plot.x_range, self.plot.y_range = _range(0, max(steps - 1, 1)), _range(low, high)
        lines = self.plot.multi_line("xs", "ys", source=self.source, line_color="color", line_width=1 if small else 2)
        self.plot.xaxis.axis_label = "step"
        if ranges is not None:
            self.plot.yaxis.visible = False
        if not small and 1 < channels <= len(Category10_10):
            names = Legend(items=[LegendItem(label={"field": "channel"}, renderers=[lines])], title="channel")
            self.plot.add_layout(names, "right")  # beside the lines, which it would hide
        self.view = pn.pane.Bokeh(self.plot)

    @property
    def sources(self) -> dict[str, ColumnDataSource]:
        """What `REDRAW` changes."""
        return {"source": self.source}

    def packed(self, behaviors: np.ndarray) -> np.ndarray:
        """Series (n, T, d) as the browser gets them, (n, T * d)."""
        return within(behaviors, self._ranges).reshape(len(behaviors), -1).astype(np.float32)

    def show(self, behavior: np.ndarray) -> None:
        """Draw another series."""
        lines = within(np.asarray(behavior, float), self._ranges).T
        self.source.data = {
            "xs": [list(range(lines.shape[1]))] * len(lines),
            "ys": lines.tolist(),
            "color": [Category10_10[i % len(Category10_10)] for i in range(len(lines))],
            "channel": self._names,
        }

    def clear(self) -> None:
        """Draw nothing."""
        self.source.data = {"xs": [], "ys": [], "color": [], "channel": []}


class FramesView:
    """An image, or a video (T, h, w, c) with buttons to play it, in a scale from `low` (black) to `high` (white).

    A small view shows the last frame.
    """

    REDRAW = """
const pixels = frames.data.image[0].length, channels = values.length / (frames.data.image.length * pixels)
frames.data.image.forEach((image, t) => {
  for (let i = 0; i < pixels; i++) {
    const at = (t * pixels + i) * channels, green = channels < 3 ? at : at + 1, blue = channels < 3 ? at : at + 2
    const level = values[blue] << 16 | values[green] << 8 | values[at]
    image[i] = Number.isNaN(values[at]) ? 0 : (0xff000000 | level) >>> 0  // nothing is known: nothing is seen
  }
})
shown.data = {image: [frames.data.image[0]]}
shown.change.emit()  // the image is the same object as before, with other pixels
"""

    def __init__(self, shape: tuple[int, ...], low: float, high: float, width: int, small: bool):
        frames, rows, columns, _ = shape
        self.low, self.high, self.small = low, high, small
        self.shown = ColumnDataSource({"image": []})
        self.frames = ColumnDataSource({"image": []})
        plot = _plot(width, round(width * rows / columns), small=True)
        plot.frame_width, plot.frame_height = width - 10, round((width - 10) * rows / columns)
        plot.x_range, plot.y_range = Range1d(0, columns), Range1d(0, rows)
        plot.image_rgba("image", x=0, y=0, dw=columns, dh=rows, source=self.shown)
        self.view: Any = pn.pane.Bokeh(plot)
        self.player = None
        if frames > 1 and not small:
            self.player = pn.widgets.Player(
                start=0, end=frames - 1, loop_policy="loop", interval=_FRAME_TIME, width=width, show_loop_controls=False
            )
            self.player.jscallback(value=_SHOW_FRAME, args={"shown": self.shown, "frames": self.frames})
            self.view = pn.Column(self.view, self.player)

    @property
    def sources(self) -> dict[str, ColumnDataSource]:
        """What `REDRAW` changes."""
        return {"frames": self.frames, "shown": self.shown}

    def packed(self, behaviors: np.ndarray) -> np.ndarray:
        """Images or videos (n, ..., h, w, c) as the browser gets them, with 8 bits and the last row of pixels first."""
        levels = np.rint(brightness(behaviors, self.low, self.high) * 255).astype(np.uint8)
        return np.flip(levels, axis=-3).reshape(len(behaviors), -1)

    def show(self, behavior: np.ndarray) -> None:
        """Show another image or video, a video from its first frame on."""
        video = behavior if behavior.ndim == 4 else behavior[None]
        images = [_rgba(brightness(frame, self.low, self.high)) for frame in (video[-1:] if self.small else video)]
        self.frames.data = {"image": images}
        self.shown.data = {"image": images[:1]}
        if self.player is not None:
            self.player.value = 0

    def play(self) -> None:
        """Have a video play by itself."""
        if self.player is not None:
            self.player.direction = 1

    def clear(self) -> None:
        """Show nothing."""
        self.shown.data = self.frames.data = {"image": []}


BehaviorView = VectorView | SeriesView | FramesView


def _rgba(frame: np.ndarray) -> np.ndarray:
    """An image (h, w, c) with values from 0 to 1 as Bokeh wants it: (h, w) of 32 bits, its first row at the bottom."""
    colours = frame[..., :3] if frame.shape[2] >= 3 else np.repeat(frame[..., :1], 3, axis=2)
    levels = np.full((*frame.shape[:2], 4), 255, np.uint8)
    levels[..., :3] = np.rint(colours * 255)
    return np.flipud(levels.view(np.uint32)[..., 0])


def _plot(width: int, height: int, small: bool) -> Any:
    # Aligned with the frame of a plot below it, an image would be squeezed.
    plot = figure(width=width, height=height, tools="", toolbar_location=None, frame_align=False)
    plot.grid.visible = False
    if small:
        plot.axis.visible = False
        plot.min_border = 2
    return plot


def _range(low: float, high: float) -> Range1d:
    margin = 0.05 * (high - low)
    return Range1d(low - margin, high + margin)
