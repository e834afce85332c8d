"""The algorithm as a drawing of boxes and arrows."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from vqelites.plots.style import new_figure

Place = tuple[float, float]

_WIDTH, _HEIGHT = 2.5, 0.9  # of a box
# Each phase: its title, its frame (left, bottom, width, height) and its boxes by their centres.
_PHASES: dict[str, tuple[tuple[float, float, float, float], str, dict[str, Place]]] = {
    "Bootstrap": ((0.0, 0.0, 3.0, 6.4), "#eef2f7", {
        "random solutions": (1.5, 5.1),
        "evaluate them:\nfitness, raw behavior": (1.5, 3.7),
        "train the VQ-VAE\n(about 100 epochs)": (1.5, 2.3),
        "its codebook becomes\nthe archive's cells": (1.5, 0.9),
    }),
    "Evolution, every iteration": ((3.7, 0.0, 6.2, 6.4), "#f4f4ee", {
        "archive:\none elite per cell": (5.25, 0.9),
        "select parents\nuniformly": (5.25, 3.0),
        "vary\n(iso + line)": (5.25, 5.1),
        "evaluate:\nfitness, raw behavior": (8.35, 5.1),
        "encode: raw behavior\nto descriptor": (8.35, 3.0),
        "nearest code's cell:\nthe fitter one stays": (8.35, 0.9),
    }),
    "Update, every N iterations": ((10.6, 0.0, 3.0, 6.4), "#f7eef0", {
        "raw behaviors\ncollected since": (12.1, 5.1),
        "train the same model\nfurther (E epochs)": (12.1, 3.7),
        "new codebook,\nnew cells": (12.1, 2.3),
        "re-encode every elite,\nre-insert: fitter stays": (12.1, 0.9),
    }),
}  # fmt: skip
_ARROWS = (
    ("random solutions", "evaluate them:\nfitness, raw behavior"),
    ("evaluate them:\nfitness, raw behavior", "train the VQ-VAE\n(about 100 epochs)"),
    ("train the VQ-VAE\n(about 100 epochs)", "its codebook becomes\nthe archive's cells"),
    ("its codebook becomes\nthe archive's cells", "archive:\none elite per cell"),
    ("archive:\none elite per cell", "select parents\nuniformly"),
    ("select parents\nuniformly", "vary\n(iso + line)"),
    ("vary\n(iso + line)", "evaluate:\nfitness, raw behavior"),
    ("evaluate:\nfitness, raw behavior", "encode: raw behavior\nto descriptor"),
    ("encode: raw behavior\nto descriptor", "nearest code's cell:\nthe fitter one stays"),
    ("nearest code's cell:\nthe fitter one stays", "archive:\none elite per cell"),
    ("evaluate:\nfitness, raw behavior", "raw behaviors\ncollected since"),
    ("raw behaviors\ncollected since", "train the same model\nfurther (E epochs)"),
    ("train the same model\nfurther (E epochs)", "new codebook,\nnew cells"),
    ("new codebook,\nnew cells", "re-encode every elite,\nre-insert: fitter stays"),
)
_ARROW = {"arrowstyle": "-|>", "color": "#333333"}
_BACK = -0.55  # height at which the way back from the update to the archive runs


def overview() -> Figure:
    """VQ-Elites in one drawing: bootstrap, the loop of every iteration, the update of the model."""
    figure = new_figure(11.2, 5.9)
    axes = figure.subplots()
    axes.set(xlim=(-0.1, 13.7), ylim=(_BACK - 0.15, 6.5), aspect="equal")
    axes.set_axis_off()
    places: dict[str, Place] = {}
    for title, ((x, y, width, height), colour, boxes) in _PHASES.items():
        _box(axes, (x, y), width, height, colour, "none")
        axes.text(x + width / 2, y + height - 0.35, title, ha="center", va="center", fontsize=10, fontweight="bold")
        for text, centre in boxes.items():
            _box(axes, (centre[0] - _WIDTH / 2, centre[1] - _HEIGHT / 2), _WIDTH, _HEIGHT, "white", "#333333")
            axes.text(*centre, text, ha="center", va="center", fontsize=9)
        places |= boxes
    for start, end in _ARROWS:
        axes.annotate("", *_between(places[end], places[start]), arrowprops=_ARROW)
    _way_back(axes, places["re-encode every elite,\nre-insert: fitter stays"], places["archive:\none elite per cell"])
    return figure


def _box(axes: Axes, corner: Place, width: float, height: float, fill: str, edge: str) -> None:
    shape = "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch(corner, width, height, boxstyle=shape, facecolor=fill, edgecolor=edge))


def _between(end: Place, start: Place) -> tuple[Place, Place]:
    """Tip and tail of an arrow between the borders of two boxes beside or above each other."""
    dx, dy = (end[i] - start[i] for i in (0, 1))
    if abs(dx) > abs(dy):
        side = _WIDTH / 2 if dx > 0 else -_WIDTH / 2
        return (end[0] - side, end[1]), (start[0] + side, start[1])
    side = _HEIGHT / 2 if dy > 0 else -_HEIGHT / 2
    return (end[0], end[1] - side), (start[0], start[1] + side)


def _way_back(axes: Axes, start: Place, end: Place) -> None:
    """From below one box to below another, around everything between."""
    bottom = start[1] - _HEIGHT / 2
    axes.plot([start[0], start[0], end[0]], [bottom, _BACK, _BACK], color="#333333", linewidth=1)
    axes.text((start[0] + end[0]) / 2, _BACK + 0.25, "elites in their new cells", ha="center", va="center", fontsize=9)
    axes.annotate("", (end[0], bottom), (end[0], _BACK), arrowprops=_ARROW | {"shrinkA": 0})
