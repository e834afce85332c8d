"""A document as a list of blocks, the same for HTML and Markdown; all text in it is plain text."""

from dataclasses import dataclass
from pathlib import Path
from typing import Union

import matplotlib
from matplotlib.figure import Figure

from vqelites import plots
from vqelites.plots.style import RC
from vqelites.runs.files import explained

Cell = str | tuple[str, ...]  # a tuple: one line each


@dataclass(frozen=True)
class Heading:
    """Begins a section; level 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list; a warning is set apart."""

    items: tuple[str, ...]
    warning: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; the first `left` columns hold words, the others numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str
    left: int = 1
    cards: bool = False  # on a narrow screen its rows may be set one below the other


@dataclass(frozen=True)
class Picture:
    """A PNG file that was written, and what it shows."""

    path: Path
    caption: str


@dataclass(frozen=True)
class Code:
    """Text in which every blank counts."""

    text: str


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away until someone asks for them."""

    summary: str
    blocks: tuple["Block", ...]


Block = Union[Heading, Text, Bullets, Table, Picture, Code, Details]  # noqa: UP007 (it refers to itself)


class Gallery:
    """A folder that pictures are written to as soon as they are drawn, as PNG and as SVG."""

    def __init__(self, folder: Path):
        self.folder = folder
        with explained(str(folder)):
            folder.mkdir(parents=True, exist_ok=True)
            for pattern in ("*.png", "*.svg"):  # of an earlier report
                for old in folder.glob(pattern):
                    old.unlink()

    def add(self, name: str, figure: Figure, caption: str) -> Picture:
        """Write a figure under a name that is not taken yet."""
        path = self.folder / f"{name}.png"
        if path.exists():
            raise ValueError(f"There is already a picture named {name}.")
        with matplotlib.rc_context(RC):
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # laid out once is enough for both files
        with explained(str(path)):
            return Picture(plots.save(figure, path, vector=True), caption)
