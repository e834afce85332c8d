"""A page without a server: the data are in the file, and the browser draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import panel as pn
from bokeh.models import ColumnDataSource

from vqelites.explore import texts
from vqelites.explore.behaviors import BehaviorView
from vqelites.explore.map_view import MapView

_CODE = resources.files("vqelites.explore").joinpath("in_browser.js").read_text()


@dataclass(frozen=True, eq=False)
class Held:
    """A run as the browser holds it."""

    task: str
    scenes: ColumnDataSource  # of `packing.scene`
    archive: ColumnDataSource  # of `packing.archive`
    now: ColumnDataSource  # the number of the scene that is shown, the name of its colour, the id that is chosen
    map: MapView
    plot: pn.pane.Bokeh  # of the map
    widgets: dict[str, pn.widgets.Widget]
    said: dict[str, pn.pane.HTML]
    views: dict[str, BehaviorView]  # of columns of the archive; without them no elite can be chosen

    @property
    def models(self) -> dict[str, Any]:
        """What other runs on the page need of it."""
        parts = {"task": self.task, "scenes": self.scenes, "archive": self.archive, "now": self.now}
        return parts | {"colours": self.map.colours, "bar": self.map.bar}


def leave(runs: Sequence[Held]) -> None:
    """Make the widgets of these runs work in the browser alone."""
    for place, run in enumerate(runs):
        arguments = {"runs": [one.models for one in runs], "place": place, "replaced": texts.REPLACED}
        arguments |= {"plot": run.map.plot, **run.map.sources, **run.widgets, **run.said}
        for name, view in run.views.items():
            arguments |= {f"{name}_{part}": model for part, model in view.sources.items()}
        code = _redraw(run.views) + _CODE
        for widget in run.widgets.values():
            widget.jscallback(args=arguments, value=code)
        if run.views:
            run.plot.jscallback(args=arguments, **{"event:tap": code})


def _redraw(views: dict[str, BehaviorView]) -> str:
    """JavaScript that draws a row of the archive, in a block for each of its views."""
    code = ""
    for name, view in views.items():
        parts = "".join(f"const {part} = {name}_{part}\n" for part in view.sources)
        code += f"{{\n{parts}const values = archived(run, '{name}', row)\n{view.REDRAW}\n}}\n"
    return f"function redraw(row) {{\n{code}}}\n"
