"""A document as one HTML file that needs nothing else: pictures are inside, and there is no script."""

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from vqelites.studies.document import Block, Bullets, Cell, Code, Heading, Picture, Table, Text

_STYLE = """
:root { --ink: #1d2530; --soft: #5b6675; --line: #d8dde4; --tint: #f5f7f9; --accent: #08306b; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 1rem/1.6 "Source Serif 4", "Iowan Old Style", Charter, Georgia, serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1.1rem 5rem; }
main > p, main > ul { max-width: 44rem; }
h1, h2, h3, h4, nav, table, figcaption, summary, .verdict {
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 1rem 0 .6rem; }
h2 { font-size: 1.4rem; line-height: 1.25; margin: 3.2rem 0 .6rem; padding-top: .9rem;
  border-top: 2px solid var(--ink); }
h3 { font-size: 1.13rem; margin: 2.2rem 0 .4rem; }
h4 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
p { margin: .6rem 0; overflow-wrap: break-word; }
nav { font-size: .9rem; margin: 1.2rem 0; padding: .8rem 1rem; background: var(--tint); border-radius: 6px; }
nav ol { margin: 0; padding: 0; list-style: none; } nav a { color: var(--accent); text-decoration: none; }
nav a:hover { text-decoration: underline; }
figure { margin: 1.3rem 0; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
figcaption, .caption { color: var(--soft); font-size: .86rem; line-height: 1.45; text-align: left; }
figcaption { margin-top: .4rem; } .caption { margin: 1.3rem 0 .3rem; font-family: system-ui, sans-serif; }
figure.half { display: inline-block; vertical-align: top; width: calc(50% - .4rem); margin: 1.3rem 0; }
figure.half + figure.half { margin-left: .2rem; }
.scroll { overflow-x: auto; margin: 0 0 1.1rem; }
table { border-collapse: collapse; font-size: .84rem; line-height: 1.4; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .65rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
  white-space: nowrap; }
th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
th.word, td.word { text-align: left; white-space: normal;  overflow-wrap: break-word; }
td.long { text-align: left; white-space: normal; min-width: 17rem; }
td.claim { min-width: 11rem; }
.verdict { display: inline-block; padding: 0 .5em; border-radius: 4px; white-space: nowrap; font-weight: 600; }
.yes { background: #dcefe2; color: #14532d; } .no { background: #f7dcd8; color: #7f1d1d; }
.open { background: #e9ecf0; color: #3c4653; }
.warning { background: #fff7df; border-left: 4px solid #d9a400; padding: .7rem 1rem .7rem 2rem; }
details { margin: .7rem 0; border: 1px solid var(--line); border-radius: 6px; padding: 0 .9rem; }
details[open] { padding-bottom: .6rem; }
summary { cursor: pointer; padding: .5rem 0; font-size: .92rem; }
pre { overflow-x: auto; background: var(--tint); padding: .7rem; font-size: .78rem; line-height: 1.4;
  border-radius: 4px; }
@media (max-width: 40rem) { body { font-size: .96rem; } h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; }
  th, td { padding: .25rem .45rem; } td.long { min-width: 13rem; }
  .cards thead { display: none; } .cards tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .cards td { display: block; min-width: 0; padding: .1rem 0; border: 0; }
  figure.half { display: block; width: auto; } figure.half + figure.half { margin-left: 0; } }
@media print { details { border: 0; } nav { display: none; } }
"""
# Nothing may be fetched or executed, whatever text ends up in the document.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_VERDICTS = {"reproduced": "yes", "not reproduced": "no", "not tested": "open"}
_SCALE = 104 / 150  # pixels of the page per pixel of a picture, which has 150 per inch
_HALF = 560  # pixels up to which two pictures stand side by side
_LONG = 60  # characters from which on a cell is text to read, not a number


def html(blocks: Sequence[Block]) -> str:
    """The whole document; its first block is the title."""
    title = blocks[0].text if isinstance(blocks[0], Heading) else "Report"
    names = _anchors(blocks)
    contents = "".join(
        f'<li><a href="#{names[i]}">{escape(block.text)}</a></li>'
        for i, block in enumerate(blocks)
        if isinstance(block, Heading) and block.level == 2
    )
    body = [_block(block, names.get(i, "")) for i, block in enumerate(blocks)]
    body.insert(1, f"<nav><ol>{contents}</ol></nav>")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f'<link rel="icon" href="data:,">\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n'
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _anchors(blocks: Sequence[Block]) -> dict[int, str]:
    """A name for every heading, none twice."""
    return {
        i: f"s{i}-{re.sub(r'[^a-z0-9]+', '-', block.text.lower()).strip('-')[:40]}"
        for i, block in enumerate(blocks)
        if isinstance(block, Heading)
    }


def _block(block: Block, anchor: str = "") -> str:
    if isinstance(block, Heading):
        return f'<h{block.level} id="{anchor}">{escape(block.text)}</h{block.level}>'
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Bullets):
        kind = ' class="warning"' if block.warning else ""
        return f"<ul{kind}>" + "".join(f"<li>{escape(item)}</li>" for item in block.items) + "</ul>"
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Picture):
        data = base64.b64encode(block.path.read_bytes()).decode()
        caption = escape(block.caption)
        width = _width(block.path)
        image = f'<img width="{width}" alt="{caption}" src="data:image/png;base64,{data}">'
        kind = ' class="half"' if width <= _HALF else ""
        return f"<figure{kind}>{image}<figcaption>{caption}</figcaption></figure>"
    if isinstance(block, Code):
        return f"<pre>{escape(block.text)}</pre>"
    inside = "\n".join(_block(one) for one in block.blocks)
    return f"<details><summary>{escape(block.summary)}</summary>\n{inside}\n</details>"


def _width(png: Path) -> int:
    """The width of a picture on the page, so that its text is about as large as the text around it."""
    with png.open("rb") as file:
        return round(int.from_bytes(file.read(24)[16:20], "big") * _SCALE)


def _table(table: Table) -> str:
    head = "".join(
        f"<th{' class=word' if i < table.left else ''}>{escape(name)}</th>" for i, name in enumerate(table.columns)
    )
    rows = "\n".join(
        "<tr>" + "".join(_cell(cell, i < table.left) for i, cell in enumerate(row)) + "</tr>" for row in table.rows
    )
    caption = f'<p class="caption">{escape(table.caption)}</p>'
    kind = ' class="cards"' if table.cards else ""
    body = f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody>"
    return f'{caption}\n<div class="scroll"><table{kind}>{body}</table></div>'


def _cell(cell: Cell, word: bool) -> str:
    lines = (cell,) if isinstance(cell, str) else cell
    text = "<br>".join(escape(line) for line in lines)
    if cell in _VERDICTS:
        return f'<td class="word"><span class="verdict {_VERDICTS[str(cell)]}">{text}</span></td>'
    kind = "word" if word else ""
    if isinstance(cell, tuple) and max(map(len, lines), default=0) >= _LONG // 2:
        kind = "long"
    elif isinstance(cell, str) and len(cell) >= _LONG // 2:
        kind = "word claim"
    return f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>"
