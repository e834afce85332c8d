"""Solutions that were asked for and not yet told."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Pending:
    """Asked solutions with their ids, which grow from row to row, and which of them the next plain `tell` answers."""

    ids: np.ndarray  # (n,)
    solutions: np.ndarray  # (n, s)
    open_ids: np.ndarray  # (m,), some of the ids or none

    @classmethod
    def nothing(cls, solution_dim: int) -> "Pending":
        """Nothing was asked for."""
        return cls(np.zeros(0, np.int64), np.zeros((0, solution_dim), np.float32), np.zeros(0, np.int64))

    def check_nothing_open(self) -> None:
        """A second plain `ask` would make it unclear which one a `tell` answers."""
        if len(self.open_ids):
            raise RuntimeError(
                f"ask was called again before tell: {len(self.open_ids)} solutions still wait for their result. "
                "Tell them first; or use `ids, x = ask(n, ids=True)` and `tell(..., ids=ids)`, in any order."
            )

    def with_asked(self, ids: np.ndarray, solutions: np.ndarray, *, by_order: bool) -> "Pending":
        """With what was asked; `by_order` if the next plain `tell` answers it."""
        known = np.concatenate([self.ids, ids]), np.concatenate([self.solutions, solutions])
        return Pending(*known, known[0][len(self.ids) :] if by_order else self.open_ids)

    def answered(self, ids: Any) -> np.ndarray:
        """The ids a `tell` answers, or an error that says why it cannot."""
        if ids is None:
            if not len(self.open_ids):
                waiting = f" {len(self.ids)} solutions asked with ids=True wait: pass ids=." if len(self.ids) else ""
                raise RuntimeError(f"tell was called without ask: there is no solution it could answer.{waiting}")
            return self.open_ids
        given = np.asarray(ids)
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
            raise ValueError(f"ids must be a list of the integers that ask(n, ids=True) gave, but is {ids!r}.")
        if len(np.unique(given)) != len(given):
            raise ValueError("ids holds the same id more than once; every solution is told once.")
        unknown = given[~np.isin(given, self.ids)]
        if len(unknown):
            raise ValueError(f"ids {unknown[:5].tolist()} were never asked for, or were told already.")
        return given

    def of(self, ids: np.ndarray) -> np.ndarray:
        """The solutions of these ids, (n, s)."""
        return self.solutions[self._rows(ids)]

    def without(self, ids: np.ndarray) -> "Pending":
        """These no longer wait."""
        if np.array_equal(ids, self.ids):
            return Pending.nothing(self.solutions.shape[1])
        waits = ~np.isin(self.ids, ids, assume_unique=True)
        return Pending(self.ids[waits], self.solutions[waits], self.open_ids[waits[self._rows(self.open_ids)]])

    def _rows(self, ids: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.ids, ids)
