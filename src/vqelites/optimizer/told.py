"""What one `tell` changed."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vqelites.drive import Piece, StepInfo


@dataclass(frozen=True, eq=False, repr=False)
class Told:
    """What one `tell` changed. It may still be being computed: reading it waits."""

    pieces: tuple[Piece, ...]

    @property
    def added(self) -> int:
        """Solutions that entered an empty cell."""
        return self._sum(lambda info: info.tell.insert.added)

    @property
    def replaced(self) -> int:
        """Solutions that took a cell from a less fit elite."""
        return self._sum(lambda info: info.tell.insert.replaced)

    @property
    def rejected(self) -> int:
        """Evaluations with a non-finite number, kept out."""
        return self._sum(lambda info: info.tell.rejected)

    @property
    def lost(self) -> int:
        """Elites that lost their cell because the model moved."""
        return self._sum(lambda info: info.update.lost)

    @property
    def trainings(self) -> int:
        """Times the model was trained."""
        return self._sum(_trained)

    @property
    def rolled_back(self) -> int:
        """Trainings undone because a number was no longer finite."""
        return self._sum(lambda info: info.update.learn.rolled_back)

    @property
    def moved(self) -> int:
        """Codes moved to where cells were too large."""
        return self._sum(lambda info: info.update.map.moved)

    @property
    def restarted(self) -> int:
        """Times the map had collapsed and was retrained from scratch."""
        return self._sum(lambda info: info.update.map.restarted)

    @property
    def loss(self) -> float:
        """Loss of the last training; NaN if there was none."""
        return self._last(lambda info: info.update.learn.loss)

    @property
    def unexplained(self) -> float:
        """Share of the variance of the first behaviors that the first training left unexplained; NaN for later ones."""
        return float(np.fmax.reduce([piece.info.update.learn.unexplained for piece in self.pieces], initial=np.nan))

    @property
    def behaviors(self) -> int:
        """Number of distinct behaviors stored at the last training; 0 if there was none."""
        return int(self._last(lambda info: info.update.map.behaviors, 0))

    @property
    def codes_used(self) -> float:
        """Codes that these behaviors use; NaN if there was no training."""
        return self._last(lambda info: info.update.map.codes_used)

    @property
    def perplexity(self) -> float:
        """How many codes are in use, each counted by how much it is used."""
        return self._last(lambda info: info.update.map.perplexity)

    @property
    def saturated(self) -> float:
        """Share of descriptors at the limits of the learned space."""
        return self._last(lambda info: info.update.map.saturated)

    @functools.cached_property
    def status(self) -> np.ndarray:
        """An `InsertStatus` for each solution, (n,)."""
        return np.concatenate([piece.info.tell.insert.rows.status[piece.places] for piece in self.pieces])

    @functools.cached_property
    def gain(self) -> np.ndarray:
        """For each solution, (n,): see `InsertOutcome`."""
        return np.concatenate([piece.info.tell.insert.rows.gain[piece.places] for piece in self.pieces])

    def __repr__(self) -> str:
        counts = ("added", "replaced", "rejected", "lost", "trainings")
        return f"Told({', '.join(f'{name}={getattr(self, name)}' for name in counts)})"

    def _sum(self, count: Callable[[StepInfo], Any]) -> int:
        return int(sum(count(piece.info) for piece in self.pieces))

    def _last(self, number: Callable[[StepInfo], Any], otherwise: float = float("nan")) -> float:
        """Of the last training."""
        trained = [piece.info for piece in self.pieces if _trained(piece.info)]
        return float(number(trained[-1])) if trained else otherwise


def _trained(info: StepInfo) -> bool:
    return bool(info.update.learn.epochs > 0)
