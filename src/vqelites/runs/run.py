"""A run as an object: what its folder holds, checked, and its elites ready to be evaluated again."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vqelites.descriptors import Chosen
from vqelites.evaluation import evaluation_seeds
from vqelites.experiments.build import build
from vqelites.frames import ArchiveFrame
from vqelites.inputs import positive
from vqelites.loop import QD, State
from vqelites.runs import again, checkpoints, contents, metrics_file
from vqelites.runs.again import EvaluatedAgain
from vqelites.runs.checkpoints import SavePoint
from vqelites.runs.config import Config
from vqelites.runs.contents import Snapshot
from vqelites.runs.describe import describe
from vqelites.runs.files import RunError
from vqelites.runs.folder import RunFolder, open_folder
from vqelites.runs.programs import make_evaluator
from vqelites.runs.recovery import newest, snapshot_iterations
from vqelites.runs.replay import compiled_again, simulated_again
from vqelites.runs.taskfiles import given_again, make_task
from vqelites.tasks import AbstractTask, SimulatorTask, Task
from vqelites.types import Evaluation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Elite:
    """One elite with all that is known of it. For a task with a policy, `solution` holds the policy's parameters."""

    id: int
    solution: np.ndarray
    fitness: float
    behavior: np.ndarray
    descriptor: np.ndarray
    truth: np.ndarray
    cell: int


class Codebook(NamedTuple):
    """The codes of a model at one moment, and the behavior each stands for."""

    iteration: int
    codes: np.ndarray  # (k, d)
    decoded: np.ndarray  # (k, *shape)


@dataclass(frozen=True, repr=False)
class Run:
    """A run, read from its folder. Files are checked when they are first read; nothing in them is executed."""

    folder: RunFolder
    simulator: SimulatorTask | None = None  # where it was given, and is not found by its name

    @classmethod
    def load(cls, folder: Path | str, simulate: Any = None, *, batch: bool = False) -> "Run":
        """Open a run folder, finished or not.

        A simulator that is not registered by name must be given if elites are to be evaluated again.
        """
        return cls(open_folder(Path(folder)), given_again(simulate, batch))

    @property
    def config(self) -> Config:
        """Its task, algorithm and settings."""
        return self.folder.config

    @property
    def seed(self) -> int:
        """The seed of all its randomness."""
        return self.folder.seed

    @property
    def iteration(self) -> int:
        """The last iteration that is saved."""
        return self._saved[1].iteration if self._saved else 0

    @property
    def finished(self) -> bool:
        """Whether the run has reached its planned end."""
        return self.iteration == self.folder.iterations

    @property
    def saved(self) -> bool:
        """Whether there is a checkpoint."""
        return self._saved is not None

    def __repr__(self) -> str:
        done = f"{self.iteration} of {self.folder.iterations} iterations"
        return f"<run of {self.config.named}, seed {self.seed}, {done}, in {self.folder.path}>"

    @property
    def rejected(self) -> int:
        """Number of evaluations that failed or were not finite, and were kept out."""
        return self._saved[1].rejected if self._saved else 0

    @property
    def chosen(self) -> Chosen | None:
        """How the map sees behavior, chosen from the first data; None if nothing is learned, or nothing saved yet."""
        found = self._saved[1].chosen if self._saved else None
        return Chosen(**found) if found else None

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """Table of metrics.csv, one row per iteration; row 0 is the archive after the bootstrap."""
        return metrics_file.read(self.folder.metrics, self._saved[1].metrics if self._saved else None)

    @property
    def archive(self) -> ArchiveFrame:
        """The elites at the last checkpoint."""
        if self._saved is None:
            raise RunError(f"{self.folder.path} has no archive yet: the run was never saved.")
        return self._saved[0]

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """Elites and codes at about 20 iterations of the run, in order."""
        wanted = snapshot_iterations(self.folder, self.iteration)
        return [contents.load_snapshot(self.folder, iteration) for iteration in wanted]

    @property
    def codebooks(self) -> list[Codebook]:
        """Codes and the behavior they decode to at some iterations; empty for algorithms without a codebook."""
        return [
            Codebook(moment.iteration, moment.codes, moment.decoded)
            for moment in self.snapshots
            if moment.codes is not None and moment.decoded is not None
        ]

    @cached_property
    def task(self) -> Task:
        """The simulator that was given, or the task made from its name."""
        if self.simulator is None or self.config.interface is None:
            return make_task(self.config.task, self.config.interface)
        return self.simulator.with_interface(self.config.interface)

    def state(self) -> State:
        """The whole state of the newest checkpoint, model included."""
        return self._engine()[1]

    def describe(self, behavior: Any) -> np.ndarray:
        """Where behavior (n, *shape) belongs in the learned space, (n, latent_dim); of one, (latent_dim,)."""
        qd, state = self._engine()
        return describe(qd, state, behavior)

    def lookup(self, behavior: Any) -> np.ndarray:
        """For each behavior (n, *shape), or for one, the row of `archive` nearest in the learned space."""
        return self.archive.nearest(self.describe(behavior))

    def elite(self, index: int) -> Elite:
        """Row `index` of the archive, with its task."""
        archive = self.archive
        if not -len(archive) <= index < len(archive):
            raise IndexError(f"The archive has elites 0 to {len(archive) - 1}, but {index} was asked for.")
        return Elite(
            int(archive.ids[index]),
            archive.solutions[index],
            float(archive.fitness[index]),
            archive.behavior[index],
            archive.descriptors[index],
            archive.truth[index],
            int(archive.cells[index]),
        )

    def replay(self, index: int) -> Evaluation:
        """Evaluate an elite again, with the randomness it had; every array of the result has one row."""
        elite = self.elite(index)
        return self.evaluate_again(np.array([elite.id]), elite.solution[None])[0]

    def render(self, index: int) -> Any:
        """What the simulator's own `render(solution, seed)` returns for an elite, with the randomness it had."""
        if not isinstance(self.task, SimulatorTask) or not hasattr(self.task.source, "render"):
            raise RunError(f"{self.config.task} has no method `render(solution, seed)`.")
        elite = self.elite(index)
        return self.task.source.render(elite.solution.copy(), evaluation_seeds(self.seed, [elite.id])[0])

    def evaluate_again(
        self, ids: np.ndarray, solutions: np.ndarray, *, batch: int | None = None, repeats: Sequence[int] = (0,)
    ) -> list[Evaluation]:
        """Evaluate solutions (n, s) of this run again; evaluations that fail are NaN.

        Repeat 0 uses the randomness that each had in the run, every other repeat its own.
        """
        if isinstance(self.task, AbstractTask):
            size = batch or self.config.settings.search.batch_size
            return [compiled_again(self.task, self.seed, ids, solutions, batch=size, repeat=i) for i in repeats]
        assert isinstance(self.task, SimulatorTask)
        shapes = (self.task.behavior_shape, len(self.task.truth_low))
        with make_evaluator(self.task, self.config.evaluating.here) as evaluator:
            return [simulated_again(evaluator, self.seed, ids, solutions, shapes, i) for i in repeats]

    def explore(self) -> Any:
        """A page on this run, its map and its elites, for a notebook: shown as the last value of a cell."""
        from vqelites.runs.explored import in_notebook

        return in_notebook(self)

    def reevaluate(self, times: int) -> EvaluatedAgain:
        """Evaluate every elite some more times, each time with other randomness, and keep the results in the folder.

        The archive stays as it is: an elite keeps its place and the fitness it won it with.
        """
        positive(times=times)
        archive = self.archive
        found = []
        if len(archive):
            found = self.evaluate_again(archive.ids, archive.solutions, repeats=range(1, times + 1))
        fitness = np.stack([np.asarray(one.fitness) for one in found], axis=1) if found else np.zeros((0, times))
        result = EvaluatedAgain(archive.ids, archive.fitness, fitness)
        again.save(self.folder, result)
        return result

    @property
    def reevaluated(self) -> EvaluatedAgain | None:
        """Results of the last `reevaluate`."""
        return again.load(self.folder)

    def _engine(self) -> tuple[QD, State]:
        qd = build(self.task, self.config.settings)
        return qd, checkpoints.restore(self.folder, newest(self.folder), qd)

    @cached_property
    def _saved(self) -> tuple[ArchiveFrame, SavePoint] | None:
        if not self.folder.archive.exists() and not checkpoints.found(self.folder):
            return None
        return contents.load_archive(self.folder)
