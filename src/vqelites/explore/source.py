"""The interface between the page and a run: its record, its map at some moments, and the replay of an elite."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Union

import numpy as np

from vqelites.frames import ArchiveFrame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class NotShownError(Exception):
    """Why something cannot be shown, in a sentence that the page shows instead."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The map at one moment: elites where their descriptors are, and the centres of the cells where those are known."""

    iteration: int
    evaluations: int  # so far
    ids: np.ndarray  # (n,)
    fitness: np.ndarray  # (n,)
    descriptors: np.ndarray  # (n, d)
    centres: np.ndarray | None = None  # (k, d)
    centres_iteration: int | None = None  # if they are those of an earlier moment


@dataclass(frozen=True, eq=False)
class Record:
    """What is known of a run. Of elites that were replaced since, only what the scenes hold is known."""

    title: str
    task: str
    progress: str
    archive: ArchiveFrame | None  # as last saved; None: never yet
    moments: tuple[int, ...]  # iterations that have a scene, in order
    metrics: "pd.DataFrame"  # a row per iteration
    no_replay: str  # why elites cannot be replayed, in a sentence; empty if they can

    def row(self, id: int) -> int | None:
        """Where in the archive an elite is, if it is there still."""
        found = np.zeros(0, int) if self.archive is None else np.flatnonzero(self.archive.ids == id)
        return int(found[0]) if found.size else None


class Source(Protocol):
    """A run that can be read again and again, finished or not. Every method may raise `NotShownError`."""

    @property
    def name(self) -> str:
        """What it is called in lists."""

    def stamp(self) -> Hashable:
        """A value that changes whenever the run has changed on disk; cheap, and never raises."""

    def read(self) -> Record:
        """What is known of it now."""

    def scene(self, iteration: int) -> Scene:
        """The map at one of the moments of its record."""

    def replay(self, id: int) -> Union["Figure", np.ndarray]:
        """An elite of the archive replayed: a drawing, or frames (t, h, w, c) with values from 0 to 1."""
