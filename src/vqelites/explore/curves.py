"""Metrics over the iterations, of the runs that are shown."""

from collections.abc import Mapping, Sequence

import pandas as pd
import panel as pn
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from vqelites.explore import texts
from vqelites.plots.style import label

_METRICS = (
    "coverage", "pqd", "edr", "cds", "entropy", "size", "max_fitness", "qd_score", "codes_used", "perplexity",
    "saturated", "elites_lost", "loss",
)  # fmt: skip
_LINES = (("#08306b", "solid"), ("#cc4b37", "dashed"))  # of the run, and of the one beside it
_NOTHING = pd.DataFrame({"iteration": [], "value": []})


class CurvesView:
    """A small plot for every metric that any of the runs has."""

    def __init__(self) -> None:
        self.sources = {metric: [ColumnDataSource({"x": [], "y": []}) for _ in _LINES] for metric in _METRICS}
        self.panes = {metric: pn.pane.Bokeh(self._plot(metric)) for metric in _METRICS}
        self.legend = texts.pane()
        self._plots = pn.FlexBox(sizing_mode="stretch_width")
        self.view = pn.Column(self.legend, self._plots, sizing_mode="stretch_width")

    def show(self, tables: Mapping[int, pd.DataFrame], names: Sequence[str]) -> None:
        """Draw the tables of the first and the second run, by their place; gaps take the last known value."""
        self.legend.object = texts.small(f"Solid: {names[0]}. Dashed: {names[1]}.") if len(names) > 1 else ""
        shown = []
        for metric, sources in self.sources.items():
            for place, source in enumerate(sources):
                table = tables.get(place)
                known = _NOTHING if table is None else table.ffill()[["iteration", metric]].dropna()
                source.data = {"x": known["iteration"].to_numpy(), "y": known.iloc[:, 1].to_numpy()}
            if any(len(source.data["x"]) for source in sources):
                shown.append(self.panes[metric])
        if shown != self._plots.objects:
            self._plots.objects = shown

    def _plot(self, metric: str) -> figure:
        plot = figure(
            width=270, height=190, title=label(metric), tools="hover", tooltips="@x: @y", toolbar_location=None
        )
        plot.xaxis.axis_label = "iteration"
        plot.grid.grid_line_alpha = 0.4
        for source, (color, dash) in zip(self.sources[metric], _LINES, strict=True):
            plot.line("x", "y", source=source, line_color=color, line_dash=dash, line_width=2)
        return plot
