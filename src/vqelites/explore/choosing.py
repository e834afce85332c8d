"""Choosing elites on a page without a server: all of them are in the file, and the browser looks them up."""

import numpy as np
from bokeh.events import Tap
from bokeh.models import ColumnDataSource, CustomJS, Div

from vqelites.explore.behaviors import BehaviorView
from vqelites.explore.map_view import MapView

MOST_BYTES = 30_000_000  # of behaviors and solutions in the file

_NEAREST = """
const wide = plot.x_range.end - plot.x_range.start, high = plot.y_range.end - plot.y_range.start
let row = 0, least = Infinity
places.data.x.forEach((x, i) => {
  const distance = ((x - cb_obj.x) / wide) ** 2 + ((places.data.y[i] - cb_obj.y) / high) ** 2
  if (distance < least) { row = i; least = distance }
})
facts.text = places.data.text[row]
ring.data = {x: [places.data.ring_x[row]], y: [places.data.ring_y[row]]}
"""
_ROW = "const all = %s.data.values, width = all.length / places.data.x.length\n"
_ROW += "const values = Array.from({length: width}, (_, i) => all[row * width + i])\n"


def choose_in_browser(
    map_view: MapView, ids: np.ndarray, texts: list[str], facts: Div, drawn: list[tuple[BehaviorView, np.ndarray]]
) -> None:
    """Have a click on the map show the nearest of these elites: its text, and its row (n, ...) in each of the views."""
    places, rings, known = map_view.targets(ids)
    table = {"x": places[:, 0], "y": places[:, 1], "ring_x": rings[:, 0], "ring_y": rings[:, 1]}
    source = ColumnDataSource(table | {"text": [texts[i] for i in known]})
    arguments = {"plot": map_view.plot, "places": source, "facts": facts, "ring": map_view.chosen}
    code = _NEAREST
    for number, (view, rows) in enumerate(drawn):
        name = f"rows_{number}"
        arguments[name] = ColumnDataSource({"values": view.packed(rows[known])})
        arguments |= {f"{part}_{number}": model for part, model in view.sources.items()}
        named = "".join(f"const {part} = {part}_{number}\n" for part in view.sources)
        code += f"{{\n{_ROW % name}{named}{view.REDRAW}\n}}\n"
    map_view.plot.js_on_event(Tap, CustomJS(args=arguments, code=code))
