"""A document as Markdown, with pictures in a folder beside it."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from vqelites.studies.document import Block, Bullets, Cell, Code, Heading, Picture, Table, Text

_SPECIAL = re.compile(r"([\\`*_\[\]|~])")
_LEADING = re.compile(r"^(\d*)([-+#=.)])(?=[-#=\s]|$)")  # would begin a list or a heading


def markdown(blocks: Sequence[Block], folder: Path) -> str:
    """The whole document; links to pictures are relative to the folder it will lie in."""
    return "\n\n".join(_block(block, folder) for block in blocks) + "\n"


def plain(text: str) -> str:
    """Text that Markdown shows as it is, in one line: no markup and no HTML of its own."""
    return _LEADING.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", escape(" ".join(text.split()), quote=False)))


def _block(block: Block, folder: Path) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {plain(block.text)}"
    if isinstance(block, Text):
        return plain(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {plain(item)}" for item in block.items)
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Picture):
        link = quote(block.path.relative_to(folder).as_posix())
        return f"![{plain(block.caption)}]({link})\n\n{plain(block.caption)}"
    if isinstance(block, Code):
        return _fenced(block.text)
    inside = "\n\n".join(_block(one, folder) for one in block.blocks)
    return f"<details><summary>{escape(block.summary)}</summary>\n\n{inside}\n\n</details>"


def _fenced(text: str) -> str:
    """Between fences that are longer than any in the text."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _table(table: Table) -> str:
    lines = [
        "| " + " | ".join(plain(name) for name in table.columns) + " |",
        "|" + "|".join("---" if i < table.left else "---:" for i in range(len(table.columns))) + "|",
        *("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in table.rows),
    ]
    return f"{plain(table.caption)}\n\n" + "\n".join(lines)


def _cell(cell: Cell) -> str:
    lines = (cell,) if isinstance(cell, str) else cell
    return "<br>".join(plain(line) for line in lines)
