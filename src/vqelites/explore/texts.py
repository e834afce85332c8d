"""Text on the page. All of it is escaped: names come from files of others."""

import html
from collections.abc import Mapping
from typing import Any

import numpy as np
import panel as pn

REPLACED = "It was replaced since: only its place and its fitness were kept."
_NUMBERS = 12  # of a vector, in text
_STYLE = """
h3 { margin: 4px 0 0 0; }
.sentence { padding: 8px 12px; border-left: 4px solid #d98200; background: #fff6e5; }
.more { color: #555555; }
th { text-align: left; padding-right: 12px; vertical-align: top; font-weight: normal; color: #555555; }
"""


def pane(text: str = "", **options: Any) -> pn.pane.HTML:
    """An HTML pane; the text must be escaped already."""
    return pn.pane.HTML(text, stylesheets=[_STYLE], **options)


def sentence(text: str) -> pn.pane.HTML:
    """A sentence that says why something is not there."""
    return pane(f'<div class="sentence">{html.escape(text)}</div>', sizing_mode="stretch_width")


def heading(text: str, more: str = "") -> str:
    """A title and, smaller, what else is to be said."""
    return f"<h3>{html.escape(text)}</h3>{small(more)}"


def small(text: str) -> str:
    """A line of less weight."""
    return f"<div class='more'>{html.escape(text)}</div>"


def table(rows: Mapping[str, str]) -> str:
    """Names and values."""
    lines = [f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows.items()]
    return f"<table>{''.join(lines)}</table>"


def numbers(vector: np.ndarray) -> str:
    """A vector in a line, its end left out if it is long."""
    shown = ", ".join(f"{value:.3g}" for value in vector[:_NUMBERS])
    return shown if len(vector) <= _NUMBERS else f"{shown}, ... ({len(vector)} numbers)"
