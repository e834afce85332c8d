"""A run as arrays for a page without a server, which the browser draws by itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vqelites.explore import axes, columns
from vqelites.explore.axes import Axes2D, Layout
from vqelites.explore.source import NotShownError, Record, Scene, Source

_SCENES = 15_000_000  # bytes of all scenes
_MAP = Axes2D("descriptor 1", "descriptor 2")
_PROJECTED = Axes2D("component 1", "component 2")


def scenes(source: Source, record: Record, shown: Scene) -> tuple[list[int], list[dict[str, Any]]]:
    """The moments that a file has room for, evenly spread and with the one that is shown, and their scenes.

    Snapshots that are damaged are left out.
    """
    first = scene(record, shown)
    moments = _fitting(record.moments, shown.iteration, max(1, _SCENES // _bytes(first)))
    found = {shown.iteration: first}
    for moment in moments:
        if moment not in found:
            try:
                found[moment] = scene(record, source.scene(moment))
            except NotShownError:
                continue
    return sorted(found), [found[moment] for moment in sorted(found)]


def scene(record: Record, shown: Scene) -> dict[str, Any]:
    """One moment: a column (n,) for every number that its elites have of their own, and what else is drawn."""
    offered = {*columns.names(record, shown), *axes.choices(record, shown)}
    own = sorted(name for name in offered if not name.startswith(("truth", "solution")))
    known = np.zeros(0, int) if record.archive is None else record.archive.ids
    stored = columns.matched(shown.ids, known, np.arange(len(known)))
    kinds = {"map": _MAP, "projected": _PROJECTED, "other": Axes2D("descriptor 1", "fitness")}
    flat = shown.descriptors.shape[1]
    layouts = {
        kind: axes.lay_out(record, shown, chosen)
        for kind, chosen in kinds.items()
        if kind == "other" or (flat == 2 if kind == "map" else flat > 2)
    }
    return {
        "id": shown.ids.astype(np.int32),
        "stored": np.nan_to_num(stored, nan=-1).astype(np.int32),  # its row of the archive, -1: replaced since
        "columns": {name: _short(columns.values(record, shown, name)) for name in own},
        "centres": _centres(shown),
        "cells": _cells(layouts["map"]) if "map" in layouts else None,
        "captions": {kind: layout.caption for kind, layout in layouts.items()},
    }


def archive(record: Record, behavior: np.ndarray | None) -> dict[str, np.ndarray]:
    """Rows of all elites: truth, solution and, packed by its view, behavior. Without it, solutions only if short."""
    if record.archive is None:
        return {}
    rows = record.archive
    found = {"cell": rows.cells.astype(np.int32), "truth": _short(rows.truth)}
    if behavior is not None or rows.solutions.shape[1] <= columns.SOLUTIONS:
        found["solution"] = _short(rows.solutions)
    return found if behavior is None else found | {"behavior": behavior}


def _fitting(moments: Sequence[int], shown: int, room: int) -> list[int]:
    if len(moments) <= room:
        return list(moments)
    spread = np.linspace(0, len(moments) - 1, room).round().astype(int)
    return sorted({shown, *(moments[i] for i in spread)})


def _centres(shown: Scene) -> dict[str, np.ndarray]:
    """Centres of cells by the names of axes on which they are drawn."""
    if shown.centres is None:
        return {}
    tables = {"descriptor": shown.centres}
    if shown.centres.shape[1] > 2:
        tables["component"] = columns.components(shown)[1]
    return {f"{kind} {i + 1}": _short(side) for kind, table in tables.items() for i, side in enumerate(table.T)}


def _cells(layout: Layout) -> dict[str, np.ndarray] | None:
    """Outlines of cells, all corners one after the other, with the row of each cell's elite (-1: none)."""
    if not layout.outlines:
        return None
    corners = np.concatenate(layout.outlines)
    return {
        "x": _short(corners[:, 0]),
        "y": _short(corners[:, 1]),
        "end": np.cumsum([len(outline) for outline in layout.outlines]).astype(np.int32),
        "holder": layout.holders.astype(np.int32),
        "middle_x": _short(layout.middles[:, 0]),
        "middle_y": _short(layout.middles[:, 1]),
        "frame": np.concatenate([layout.low, layout.high]),
    }


def _short(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.int32 if np.issubdtype(values.dtype, np.integer) else np.float32)


def _bytes(packed: Any) -> int:
    if isinstance(packed, dict):
        return sum(_bytes(part) for part in packed.values())
    return packed.nbytes if isinstance(packed, np.ndarray) else 0
