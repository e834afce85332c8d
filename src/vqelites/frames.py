"""An archive as plain NumPy arrays, for users who never see JAX."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vqelites.types import Elites

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ArchiveFrame:
    """The elites of an archive at one moment, one row each."""

    ids: np.ndarray  # (n,) of their solutions
    solutions: np.ndarray  # (n, s)
    fitness: np.ndarray  # (n,)
    behavior: np.ndarray  # (n, *shape)
    descriptors: np.ndarray  # (n, d)
    truth: np.ndarray  # (n, t), width 0 where none was told
    cells: np.ndarray  # (n,) index of each elite's cell

    @classmethod
    def of(cls, elites: Elites) -> "ArchiveFrame":
        """The present rows of a record."""
        rows = np.flatnonzero(np.asarray(elites.valid))
        return cls(
            ids=np.asarray(elites.id)[rows],
            solutions=np.asarray(elites.solution)[rows],
            fitness=np.asarray(elites.fitness)[rows],
            behavior=np.asarray(elites.behavior)[rows],
            descriptors=np.asarray(elites.descriptor)[rows],
            truth=np.asarray(elites.truth)[rows],
            cells=rows.astype(np.int32),
        )

    def __len__(self) -> int:
        return len(self.fitness)

    def to_pandas(self) -> "pd.DataFrame":
        """One row per elite: id, cell, fitness, descriptor_*, truth_*, solution_*. Raw behavior is left out."""
        import pandas as pd

        columns = {"id": self.ids, "cell": self.cells, "fitness": self.fitness}
        for name, values in (("descriptor", self.descriptors), ("truth", self.truth), ("solution", self.solutions)):
            columns |= {f"{name}_{i}": values[:, i] for i in range(values.shape[1])}
        return pd.DataFrame(columns)
