"""What one `tell` changed."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from vqelites.drive import Piece


@dataclass(frozen=True, eq=False)
class Told:
    """What one `tell` changed."""

    added: int = 0  # solutions that entered an empty cell
    replaced: int = 0  # solutions that took a cell from a less fit elite
    rejected: int = 0  # evaluations with a non-finite number, kept out
    lost: int = 0  # elites that lost their cell because the model moved
    trainings: int = 0
    rolled_back: int = 0  # trainings undone because a number was no longer finite
    moved: int = 0  # codes moved to where cells were too large
    restarted: int = 0  # times the map had collapsed and was begun anew
    loss: float = float("nan")  # of the last training
    behaviors: int = 0  # stored ones that differ, at the last training; so are the next three
    codes_used: float = float("nan")  # codes with at least one of them
    perplexity: float = float("nan")  # how many equally used codes would be as diverse
    saturated: float = float("nan")  # share of descriptors at the limits of the learned space
    status: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int8))  # (n,) an `InsertStatus` for each solution
    gain: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))  # (n,) see `InsertOutcome`

    @classmethod
    def of(cls, piece: Piece) -> "Told":
        """The counts of one piece."""
        told, updated, rows = piece.tell, piece.update, piece.tell.insert.rows
        return cls(
            added=int(told.insert.added),
            replaced=int(told.insert.replaced),
            rejected=int(told.rejected),
            lost=int(updated.lost),
            trainings=int(updated.learn.epochs > 0),
            rolled_back=int(updated.learn.rolled_back),
            moved=int(updated.map.moved),
            restarted=int(updated.map.restarted),
            loss=float(updated.learn.loss),
            behaviors=int(updated.map.behaviors),
            codes_used=float(updated.map.codes_used),
            perplexity=float(updated.map.perplexity),
            saturated=float(updated.map.saturated),
            status=np.asarray(rows.status)[piece.places],
            gain=np.asarray(rows.gain)[piece.places],
        )

    def and_then(self, later: "Told") -> "Told":
        """Both, in this order: counts add up, and of the map the last training tells."""
        last = later if later.trainings else self
        counts = {name: getattr(self, name) + getattr(later, name) for name in _COUNTS}
        rows: dict[str, Any] = {name: np.concatenate([getattr(self, name), getattr(later, name)]) for name in _ROWS}
        return Told(**counts, **rows, **{name: getattr(last, name) for name in _OF_THE_MAP})


_ROWS = ("status", "gain")
_OF_THE_MAP = ("loss", "behaviors", "codes_used", "perplexity", "saturated")
_COUNTS = tuple(one.name for one in fields(Told) if one.name not in _OF_THE_MAP + _ROWS)
