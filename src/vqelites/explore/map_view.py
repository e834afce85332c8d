"""The map as a plot: cells or dots in the colour of a number, to zoom, point at and choose from."""

from collections.abc import Callable
from typing import Any

import numpy as np
from bokeh.events import SelectionGeometry, Tap
from bokeh.models import (
    BoxSelectTool,
    ColorBar,
    ColumnDataSource,
    HoverTool,
    LinearColorMapper,
    PanTool,
    Range1d,
    ResetTool,
    WheelZoomTool,
)
from bokeh.palettes import Viridis256
from bokeh.plotting import figure

from vqelites.explore.axes import Axes2D, Layout
from vqelites.explore.source import Scene

Choose = Callable[[list[int], bool], None]  # ids, and whether they join those chosen already
SIDE = 560  # pixels
_EMPTY = "#f0f0f0"
_UNKNOWN = "#bbbbbb"


class MapView:
    """One plot, filled anew with every scene. `choose` is called with the elites that were clicked or framed."""

    def __init__(self, choose: Choose):
        self._choose = choose
        self._ids, self._points = np.zeros(0, int), np.zeros((0, 2))
        self._targets = (self._ids, self._points)  # what a click chooses: the nearest of them
        self._frame: tuple[float, ...] = ()
        self.colours = LinearColorMapper(palette=Viridis256, low=0, high=1, nan_color=_UNKNOWN)
        self.cells = ColumnDataSource({"xs": [], "ys": [], "id": [], "fitness": [], "value": []})
        self.empty = ColumnDataSource({"xs": [], "ys": []})
        self.dots = ColumnDataSource({"x": [], "y": [], "id": [], "fitness": [], "value": []})
        self.centres = ColumnDataSource({"x": [], "y": []})
        self.chosen = ColumnDataSource({"x": [], "y": []})
        self.plot = self._plot()

    def show(self, scene: Scene, layout: Layout, axes: Axes2D, values: np.ndarray, visible: np.ndarray) -> None:
        """Draw a scene, coloured by `values` (n,); only elites that are `visible` (n,)."""
        rows = np.flatnonzero(visible & np.isfinite(layout.points).all(axis=1))
        self._ids, self._points = scene.ids[rows], layout.points[rows]
        held = np.isin(layout.holders, rows)
        self.empty.data = _outlines([o for o, h in zip(layout.outlines, held, strict=True) if not h])
        owners = layout.holders[held]
        self._targets = (scene.ids[owners], layout.middles[held]) if len(owners) else (self._ids, self._points)
        self.cells.data = {
            **_outlines([o for o, h in zip(layout.outlines, held, strict=True) if h]),
            **_numbers(scene, values, owners),
        }
        dots = rows if not layout.outlines else rows[:0]  # a cell carries the colour of its elite
        x, y = layout.points[dots].T
        self.dots.data = {"x": x, "y": y, **_numbers(scene, values, dots)}
        self.centres.data = {"x": layout.centres[:, 0], "y": layout.centres[:, 1]}
        self.plot.xaxis.axis_label, self.plot.yaxis.axis_label = axes.across, axes.up
        self._set_frame((*layout.low, *layout.high))

    def paint(self, low: float, high: float, label: str) -> None:
        """Set the ends of the colour scale, and what it shows."""
        self.colours.update(low=low, high=high)
        self.bar.title = label

    def mark(self, ids: list[int]) -> None:
        """Ring the elites that are chosen."""
        x, y = self._points[np.isin(self._ids, ids)].T
        self.chosen.data = {"x": x, "y": y}

    @property
    def sources(self) -> dict[str, ColumnDataSource]:
        """What is drawn, by the names that the browser knows it by."""
        return {
            "cells": self.cells,
            "empty": self.empty,
            "dots": self.dots,
            "centres": self.centres,
            "ring": self.chosen,
        }

    def _set_frame(self, corners: tuple[float, ...]) -> None:
        """Show all of it, unless that is where it was: a zoom then stays while the map moves."""
        if corners != self._frame:
            self._frame = corners
            left, bottom, right, top = map(float, corners)
            self.plot.x_range.update(start=left, end=right, reset_start=left, reset_end=right)
            self.plot.y_range.update(start=bottom, end=top, reset_start=bottom, reset_end=top)

    def _tapped(self, event: Tap) -> None:
        """Choose the elite, or that of the cell, nearest to where the map was clicked."""
        ids, points = self._targets
        if len(ids):
            sides = [abs(r.end - r.start) or 1.0 for r in (self.plot.x_range, self.plot.y_range)]
            distances = np.linalg.norm((points - [event.x, event.y]) / sides, axis=1)
            self._choose([int(ids[distances.argmin()])], bool((event.modifiers or {}).get("shift")))

    def _framed(self, event: SelectionGeometry) -> None:
        """Choose all elites in a rectangle."""
        box = event.geometry
        if event.final and box.get("type") == "rect":
            low, high = (box["x0"], box["y0"]), (box["x1"], box["y1"])
            inside = ((self._points >= low) & (self._points <= high)).all(axis=1)
            self._choose(self._ids[inside].tolist(), False)

    def _plot(self) -> Any:
        plot = figure(
            width=SIDE + 90,
            height=SIDE,
            x_range=Range1d(0, 1),
            y_range=Range1d(0, 1),
            tools="",
            toolbar_location="above",
        )
        plot.grid.visible = False
        plot.patches("xs", "ys", source=self.empty, fill_color=_EMPTY, line_color="#dddddd", line_width=0.5)
        colour = {"field": "value", "transform": self.colours}
        cells = plot.patches("xs", "ys", source=self.cells, fill_color=colour, line_color="white", line_width=0.5)
        plot.scatter("x", "y", source=self.centres, marker="x", size=5, line_color=_UNKNOWN)
        dots = plot.scatter(
            "x", "y", source=self.dots, size=6, fill_color=colour, line_color="#00000055", line_width=0.5
        )
        ring = plot.scatter(
            "x", "y", source=self.chosen, size=14, fill_color=None, line_color="#d62728", line_width=2.5
        )
        ring.level = "overlay"  # a layer of its own: tens of thousands of dots need not be drawn again for it
        for renderer in (cells, dots):  # what is chosen has a ring; no colour changes
            renderer.nonselection_glyph = renderer.selection_glyph = None
        wheel, frame_tool = WheelZoomTool(), BoxSelectTool(renderers=[])
        tips = [("id", "@id"), ("fitness", "@fitness"), ("colour", "@value")]
        hover = HoverTool(renderers=[cells, dots], tooltips=tips, limit=1)
        plot.add_tools(PanTool(), wheel, frame_tool, hover, ResetTool())
        plot.toolbar.active_scroll = wheel
        plot.toolbar.logo = None
        self.bar = ColorBar(color_mapper=self.colours, width=12, title="")
        plot.add_layout(self.bar, "right")
        plot.on_event(Tap, self._tapped)
        plot.on_event(SelectionGeometry, self._framed)
        return plot


def _outlines(polygons: list[np.ndarray]) -> dict[str, list[list[float]]]:
    """Corners as lists, rounded to less than a pixel: tens of thousands of them travel to the browser."""
    return {"xs": [p[:, 0].round(5).tolist() for p in polygons], "ys": [p[:, 1].round(5).tolist() for p in polygons]}


def _numbers(scene: Scene, values: np.ndarray, rows: np.ndarray) -> dict[str, np.ndarray]:
    return {"id": scene.ids[rows], "fitness": scene.fitness[rows], "value": np.asarray(values, float)[rows]}
