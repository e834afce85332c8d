"""Elites of a noisy task evaluated again, some times each: how good they are without the luck of their first try."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vqelites.runs.files import DamagedError, load_arrays, save_arrays
from vqelites.runs.folder import FORMAT, RunFolder

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class EvaluatedAgain:
    """Fitness of the elites in further evaluations; NaN where one failed. Rows are those of the archive."""

    ids: np.ndarray  # (n,)
    stored: np.ndarray  # (n,) the fitness that the elite has in the archive
    fitness: np.ndarray  # (n, times)

    @property
    def mean(self) -> np.ndarray:
        """Of the evaluations that did not fail, (n,)."""
        return _over(np.nanmean, self.fitness)

    @property
    def spread(self) -> np.ndarray:
        """Their standard deviation, (n,)."""
        return _over(np.nanstd, self.fitness)

    def to_pandas(self) -> "pd.DataFrame":
        """One row per elite: id, stored, mean, spread, failed."""
        import pandas as pd

        failed = np.isnan(self.fitness).sum(axis=1)
        columns = {"id": self.ids, "stored": self.stored, "mean": self.mean, "spread": self.spread, "failed": failed}
        return pd.DataFrame(columns)

    def __str__(self) -> str:
        if not len(self.ids):
            return "There are no elites to evaluate again."
        drop, failed = np.nanmedian(self.stored - self.mean), np.isnan(self.fitness).mean()
        text = f"{len(self.ids)} elites were evaluated {self.fitness.shape[1]} more times. Half of them have lost "
        text += f"{drop:.3g} or more of their fitness; the median spread is {np.nanmedian(self.spread):.3g}."
        return f"{text} {failed:.1%} of the evaluations failed." if failed else text


def _over(function: Callable[..., np.ndarray], fitness: np.ndarray) -> np.ndarray:
    """Of each row, NaN for those without a value."""
    known = ~np.isnan(fitness).all(axis=1)
    values = np.full(len(fitness), np.nan, np.float32)
    values[known] = function(fitness[known], axis=1)
    return values


def save(folder: RunFolder, found: EvaluatedAgain) -> None:
    """Write evaluated.npz, with mean and spread beside the single values."""
    arrays = {**vars(found), "mean": found.mean, "spread": found.spread}
    save_arrays(folder.evaluated, arrays, {"format": FORMAT, "config": folder.identity})


def load(folder: RunFolder) -> EvaluatedAgain | None:
    """What was found, if elites were evaluated again."""
    if not folder.evaluated.exists():
        return None
    arrays, about = load_arrays(folder.evaluated)
    if about.get("config") != folder.identity:
        raise DamagedError(f"{folder.evaluated} is foreign: it was not written by this run.")
    return EvaluatedAgain(arrays["ids"], arrays["stored"], arrays["fitness"])
