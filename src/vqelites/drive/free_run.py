"""One run that does not wait: where it stands, what is under way for it, and the training that goes on beside it."""

from collections.abc import Mapping
from concurrent.futures import Executor, Future
from types import MappingProxyType

import equinox as eqx
import jax
import numpy as np

from vqelites.archives import InsertInfo
from vqelites.archives.base import InsertOutcome
from vqelites.drive.host import Host, Learned
from vqelites.drive.position import Piece, Position, Rows
from vqelites.drive.steps import StepInfo
from vqelites.evaluation import Result, arrays
from vqelites.loop import TellInfo, UpdateInfo


class FreeRun:
    """A run, asked and given results from outside. Whoever saves its state saves what is `under_way` too."""

    at: Position
    seed: int

    def __init__(self, host: Host, under_way: Mapping[str, np.ndarray] = MappingProxyType({})):
        self._host = host
        names, solutions = under_way.get("pending_ids", np.zeros(0)), under_way.get("pending_solutions", np.zeros(0))
        self.asked: dict[int, np.ndarray] = dict(zip(names.tolist(), solutions, strict=True))  # and not yet told
        self.arrived: list[Result] = []  # of them those whose results are here
        self.training: Future[Learned] | None = None
        self._due = bool(under_way.get("training_due", False))
        self.infos: list[StepInfo] = []  # of the iterations completed since `go_on_from`
        self._pieces: list[Piece] = []  # of the present iteration
        self.update, self.rejected = UpdateInfo.nothing(), 0  # of the present iteration, and of the bootstrap

    @property
    def complete(self) -> bool:
        """Whether all of the bootstrap is told; nothing more can be told until its training is over."""
        return not self.at.bootstrapping or self._host.missing(self.at) == 0

    def under_way(self) -> dict[str, np.ndarray]:
        """As arrays: solutions that were asked for and not told, and whether the model was to be trained."""
        return {
            "pending_ids": np.array(list(self.asked), np.int64),
            "pending_solutions": np.array(list(self.asked.values()), np.float32).reshape(-1, self._host.qd.space.dim),
            "training_due": np.array(self._due or self.training is not None),
        }

    def waiting(self) -> tuple[np.ndarray, np.ndarray]:
        """Ids and solutions that were asked for."""
        saved = self.under_way()
        return saved["pending_ids"], saved["pending_solutions"]

    def go_on_from(self, at: Position) -> None:
        """Take up the run where it stands."""
        self.at, self.seed, self.infos, self.update = at, int(at.state.seed), [], UpdateInfo.nothing()
        if at.bootstrapping:
            self.rejected = at.told - int(at.state.seeds.valid.sum())

    def ask(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids and solutions to evaluate."""
        self.at, ids, solutions = self._host.ask(self.at, count)
        self.asked.update(zip(ids.tolist(), solutions, strict=True))
        return ids, solutions

    def take_in(self, trainer: Executor) -> None:
        """Go on with a model that is trained, tell what has arrived, up to the end of a batch, and train."""
        if self.training is not None and self.training.done():
            first = self.at.bootstrapping
            self.at, update, _ = self._host.adopt(self.at, self.training.result())
            self.update = jax.device_get(update)
            self.training = None
            if first:
                return
        batch = self._host.batch_size
        room = min(self._host.missing(self.at), batch - self.at.told % batch)
        if self.arrived and room:
            self._tell(self.arrived[:room])
        starts = self.complete if self.at.bootstrapping else self._due and not self.at.told
        if starts and self.training is None:
            self.training, self._due = trainer.submit(self._host.train, self.at), False

    def _tell(self, results: list[Result]) -> None:
        del self.arrived[: len(results)]
        ids, sizes = np.array([result.id for result in results]), self._host.sizes
        solutions = np.stack([self.asked.pop(name) for name in ids.tolist()])
        was_bootstrapping = self.at.bootstrapping
        rows = Rows(ids, solutions, *arrays(results, sizes.behavior, sizes.truth, sizes.eight_bit))
        self.at, pieces = self._host.tell(self.at, rows, in_place=self.training is None)  # which looks at the archive
        self.rejected += sum(int(piece.info.tell.rejected) for piece in pieces)
        if was_bootstrapping:
            return
        self._pieces += pieces
        if pieces[-1].done is not None:
            # What a training did counts where it was adopted; where the archive was rebuilt as well, both cost elites.
            update = eqx.tree_at(lambda info: info.lost, self.update, self.update.lost + pieces[-1].info.update.lost)
            self.infos.append(StepInfo(_together(self._pieces), update, pieces[-1].info.measures))
            self._due |= self._host.learns_at(self.at.iteration - 1)
            self._pieces, self.update = [], UpdateInfo.nothing()


def _together(pieces: list[Piece]) -> TellInfo:
    """What the pieces of one iteration did, in numbers of solutions."""
    inserts = [piece.info.tell.insert for piece in pieces]
    added, replaced, evicted = np.sum([[one.added, one.replaced, one.evicted] for one in inserts], axis=0)
    rejected = np.sum([piece.info.tell.rejected for piece in pieces])
    return TellInfo(InsertInfo(added, replaced, evicted, InsertOutcome.nothing()), rejected)
