"""Whether a run folder can be trusted: every file as it was written, every elite doing again what is stored of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vqelites.runs import checkpoints, contents
from vqelites.runs.environment import differences, environment
from vqelites.runs.files import RunError, read_sealed
from vqelites.runs.recovery import snapshot_iterations
from vqelites.runs.run import Run
from vqelites.tasks import AbstractTask
from vqelites.types import Evaluation

# Of the fitness, on another device or version. Rollouts of hundreds of steps amplify a rounding until a picture of the
# last moment has nothing in common with the one stored, while the fitness still is what it was for nearly all elites.
TOLERANCE = 1e-2
MOST = 0.95


@dataclass(frozen=True)
class Replayed:
    """What came of evaluating all elites again."""

    elites: int
    exact: int  # bit for bit as stored
    close: int  # fitness within the tolerance, exact ones included
    largest: float  # difference in fitness, relative to 1 or the stored size if that is larger
    same_machine: bool  # device, versions and flags are those of the run

    @property
    def good(self) -> bool:
        """Exact on the same machine, within the tolerance for nearly all elites elsewhere."""
        return self.exact == self.elites if self.same_machine else self.close >= MOST * self.elites

    def __str__(self) -> str:
        text = f"{self.exact} of {self.elites} elites do again exactly what is stored of them"
        if self.exact == self.elites:
            return f"{text}."
        text += f", {self.close} have their fitness within {TOLERANCE:.0%} (largest difference {self.largest:.3g})."
        if not self.same_machine:
            text += (
                f" Device or versions are not those of the run: rounding grows, {MOST:.0%} such elites are expected."
            )
        return text


def problems(run: Run) -> list[str]:
    """Files of the folder that are missing or not as they were written."""
    found = []
    for check in _checks(run):
        try:
            check()
        except RunError as error:
            found.append(str(error))
    return found


def _checks(run: Run) -> Iterator[Callable[[], Any]]:
    folder = run.folder
    yield lambda: read_sealed(folder.environment, 1)
    yield lambda: run.archive
    yield lambda: run.metrics
    try:
        iteration = run.iteration
    except RunError:  # the archive is damaged, which is reported already
        iteration = max(checkpoints.found(folder), default=0)
    for moment in snapshot_iterations(folder, iteration):
        yield lambda moment=moment: contents.load_snapshot(folder, moment)  # type: ignore[misc]
    if not checkpoints.found(folder):
        yield lambda: _raise(f"{folder.checkpoints} holds no checkpoint.")
    for saved in checkpoints.found(folder):
        yield lambda saved=saved: checkpoints.check(folder, saved)  # type: ignore[misc]


def _raise(text: str) -> None:
    raise RunError(text)


def replay_all(run: Run) -> Replayed:
    """Evaluate every elite again, in batches as the run did, and compare with what is stored."""
    archive = run.archive
    if not len(archive):
        return Replayed(0, 0, 0, 0.0, True)
    [first] = run.evaluate_again(archive.ids, archive.solutions)
    exact = _same(first, archive.fitness, archive.behavior)
    if not exact.all() and run.config.settings.search.bootstrap and isinstance(run.task, AbstractTask):
        # The first random solutions were evaluated in one large batch, which may round differently.
        [large] = run.evaluate_again(archive.ids, archive.solutions, batch=run.config.settings.search.bootstrap)
        exact |= _same(large, archive.fitness, archive.behavior)
    size = np.maximum(np.abs(archive.fitness), 1)
    difference = np.where(exact, 0, np.abs(np.asarray(first.fitness) - archive.fitness) / size)
    difference = np.where(np.isnan(difference), np.inf, difference)  # of an evaluation that failed this time
    close = int((difference <= TOLERANCE).sum())
    return Replayed(len(archive), int(exact.sum()), close, float(difference.max()), _same_machine(run))


def _same_machine(run: Run) -> bool:
    """Whether it is certain that all is as it was when the run began."""
    try:
        return not differences(read_sealed(run.folder.environment, 1), environment())
    except RunError:
        return False


def _same(result: Evaluation, fitness: np.ndarray, behavior: np.ndarray) -> np.ndarray:
    equal = (np.asarray(result.behavior) == behavior).reshape(len(fitness), -1).all(axis=1)
    return equal & (np.asarray(result.fitness) == fitness)
