"""Solutions that were asked for and not yet told."""

from typing import Any

import numpy as np


class Pending:
    """Keeps asked solutions by id, and which of them the next plain `tell` answers."""

    def __init__(self, solutions: dict[int, np.ndarray] | None = None, open_ids: np.ndarray | None = None):
        self.solutions = {} if solutions is None else solutions
        self.open_ids = np.zeros(0, np.int64) if open_ids is None else open_ids

    def check_nothing_open(self) -> None:
        """A second plain `ask` would make it unclear which one a `tell` answers."""
        if len(self.open_ids):
            raise RuntimeError(
                f"ask was called again before tell: {len(self.open_ids)} solutions still wait for their result. "
                "Tell them first; or use `ids, x = ask(n, ids=True)` and `tell(..., ids=ids)`, in any order."
            )

    def add(self, ids: np.ndarray, solutions: np.ndarray, *, by_order: bool) -> None:
        """Remember what was asked; `by_order` if the next plain `tell` answers it."""
        self.solutions.update(zip(ids.tolist(), solutions, strict=True))
        if by_order:
            self.open_ids = ids

    def answered(self, ids: Any) -> np.ndarray:
        """The ids a `tell` answers, or an error that says why it cannot."""
        if ids is None:
            if not len(self.open_ids):
                waiting = (
                    f" {len(self.solutions)} solutions asked with ids=True wait: pass ids=." if self.solutions else ""
                )
                raise RuntimeError(f"tell was called without ask: there is no solution it could answer.{waiting}")
            return self.open_ids
        given = np.asarray(ids)
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
            raise ValueError(f"ids must be a list of the integers that ask(n, ids=True) gave, but is {ids!r}.")
        if len(np.unique(given)) != len(given):
            raise ValueError("ids holds the same id more than once; every solution is told once.")
        unknown = [name for name in given.tolist() if name not in self.solutions]
        if unknown:
            raise KeyError(f"ids {unknown[:5]} were never asked for, or were told already.")
        return given

    def take(self, ids: np.ndarray) -> np.ndarray:
        """The solutions of these ids, (n, s), which no longer wait."""
        self.open_ids = self.open_ids[~np.isin(self.open_ids, ids)]
        return np.stack([self.solutions.pop(name) for name in ids.tolist()])
