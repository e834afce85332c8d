"""Solutions that were asked for and not yet told."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Pending:
    """Asked solutions by id, and which of them the next plain `tell` answers."""

    solutions: Mapping[int, np.ndarray] = field(default_factory=dict)
    open_ids: tuple[int, ...] = ()

    def check_nothing_open(self) -> None:
        """A second plain `ask` would make it unclear which one a `tell` answers."""
        if self.open_ids:
            raise RuntimeError(
                f"ask was called again before tell: {len(self.open_ids)} solutions still wait for their result. "
                "Tell them first; or use `ids, x = ask(n, ids=True)` and `tell(..., ids=ids)`, in any order."
            )

    def with_asked(self, ids: np.ndarray, solutions: np.ndarray, *, by_order: bool) -> "Pending":
        """With what was asked; `by_order` if the next plain `tell` answers it."""
        known = {**self.solutions, **dict(zip(ids.tolist(), solutions, strict=True))}
        return Pending(known, tuple(ids.tolist()) if by_order else self.open_ids)

    def answered(self, ids: Any) -> np.ndarray:
        """The ids a `tell` answers, or an error that says why it cannot."""
        if ids is None:
            if not self.open_ids:
                waiting = (
                    f" {len(self.solutions)} solutions asked with ids=True wait: pass ids=." if self.solutions else ""
                )
                raise RuntimeError(f"tell was called without ask: there is no solution it could answer.{waiting}")
            return np.array(self.open_ids)
        given = np.asarray(ids)
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
            raise ValueError(f"ids must be a list of the integers that ask(n, ids=True) gave, but is {ids!r}.")
        if len(np.unique(given)) != len(given):
            raise ValueError("ids holds the same id more than once; every solution is told once.")
        unknown = [name for name in given.tolist() if name not in self.solutions]
        if unknown:
            raise KeyError(f"ids {unknown[:5]} were never asked for, or were told already.")
        return given

    def of(self, ids: np.ndarray) -> np.ndarray:
        """The solutions of these ids, (n, s)."""
        return np.stack([self.solutions[name] for name in ids.tolist()])

    def without(self, ids: np.ndarray) -> "Pending":
        """These no longer wait."""
        told = set(ids.tolist())
        left = {name: solution for name, solution in self.solutions.items() if name not in told}
        return replace(self, solutions=left, open_ids=tuple(name for name in self.open_ids if name not in told))
