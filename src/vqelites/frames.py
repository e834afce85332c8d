"""An archive as plain NumPy arrays, for users who never see JAX."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vqelites.inputs import positive
from vqelites.levels import as_floats
from vqelites.types import Elites

if TYPE_CHECKING:
    import pandas as pd


class Stats(NamedTuple):
    """An archive in numbers; fitness is NaN where there are no elites."""

    size: int
    max_fitness: float
    mean_fitness: float
    qd_score: float  # sum of fitness


@dataclass(frozen=True, repr=False, eq=False)
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
            behavior=as_floats(np.asarray(elites.behavior)[rows]),
            descriptors=np.asarray(elites.descriptor)[rows],
            truth=np.asarray(elites.truth)[rows],
            cells=rows.astype(np.int32),
        )

    def __len__(self) -> int:
        return len(self.fitness)

    def __repr__(self) -> str:
        if not len(self):
            return "<no elites>"
        worst, best = self.fitness.min(), self.fitness.max()
        return f"<{len(self)} elites, fitness {worst:.4g} to {best:.4g}, descriptors of {self.descriptors.shape[1]}>"

    @property
    def stats(self) -> "Stats":
        """Number of elites, best and mean fitness, and QD score."""
        if not len(self):
            return Stats(0, float("nan"), float("nan"), 0.0)
        fitness = self.fitness.astype(float)
        return Stats(len(self), float(fitness.max()), float(fitness.mean()), float(fitness.sum()))

    def take(self, rows: ArrayLike) -> "ArchiveFrame":
        """Some of the elites, by their rows."""
        chosen = np.asarray(rows)
        return ArchiveFrame(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def best(self, count: int = 1) -> "ArchiveFrame":
        """The fittest elites, the best first; of equal ones the older first. Fewer if there are fewer."""
        positive(count=count)
        return self.take(np.lexsort((self.ids, -self.fitness))[:count])

    def sample(self, count: int, seed: int | None = None) -> "ArchiveFrame":
        """Random elites, each with the same chance, drawn with replacement."""
        if not len(self):
            raise ValueError("There is no elite to draw from: the archive is empty.")
        return self.take(np.random.default_rng(seed).integers(len(self), size=count))

    def nearest(self, descriptors: ArrayLike) -> np.ndarray:
        """For each descriptor (n, d), or for one (d,), the row of the elite whose descriptor is nearest."""
        points = np.asarray(descriptors, np.float32)
        if not len(self) or points.shape[-1:] != self.descriptors.shape[1:] or points.ndim > 2:
            raise ValueError(
                f"Expected descriptors of shape (n, {self.descriptors.shape[1]}) and at least one elite; got shape "
                f"{points.shape} and {len(self)} elites."
            )
        from scipy.spatial import KDTree

        return KDTree(self.descriptors).query(points)[1]

    def to_pandas(self) -> "pd.DataFrame":
        """One row per elite: id, cell, fitness, descriptor_*, truth_*, solution_*. Raw behavior is left out."""
        import pandas as pd

        columns = {"id": self.ids, "cell": self.cells, "fitness": self.fitness}
        for name, values in (("descriptor", self.descriptors), ("truth", self.truth), ("solution", self.solutions)):
            columns |= {f"{name}_{i}": values[:, i] for i in range(values.shape[1])}
        return pd.DataFrame(columns)
