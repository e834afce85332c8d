"""One look for every picture."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

# Fitness is an ordered quantity: a perceptually even map that stays readable in grey.
FITNESS_MAP = "viridis"
LINE = "#1f4e79"

RC: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in this look, without touching matplotlib's global state or needing a screen."""
    with matplotlib.rc_context(RC):
        return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: Path) -> Path:
    """Write the picture; its format follows from the file's ending."""
    with matplotlib.rc_context(RC):
        figure.savefig(path)
    return path
