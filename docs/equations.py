"""A hook of MkDocs: equations become SVG as the site is built, so that browsers need no script and no font for them."""

import html
import re
from typing import Any
from xml.etree import ElementTree

import ziamath

ziamath.config.svg2 = False  # glyphs are written where they stand: two equations then share no ids
_SIZE = 16  # pixels; what is drawn is measured in sizes of the text around it
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_DISPLAYED = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace the LaTeX that the extension arithmatex has marked."""
    content = _INLINE.sub(lambda found: _drawn(found[1], inline=True), content)
    return _DISPLAYED.sub(lambda found: f'<div class="equation">{_drawn(found[1])}</div>', content)


def _drawn(escaped: str, *, inline: bool = False) -> str:
    """An equation in the colour of the text, standing on its line; those who cannot see it are told its LaTeX."""
    latex = " ".join(html.unescape(escaped).split())
    equation = ziamath.Latex(latex, size=_SIZE, inline=inline, color="currentColor")
    drawing = equation.svgxml()
    width, height = (float(drawing.attrib.pop(side)) / _SIZE for side in ("width", "height"))
    drawing.attrib |= {
        "role": "img",
        "aria-label": latex,
        "style": f"width: {width:.3f}em; height: {height:.3f}em; vertical-align: {equation.getyofst() / _SIZE:.3f}em",
    }
    return ElementTree.tostring(drawing, encoding="unicode")
