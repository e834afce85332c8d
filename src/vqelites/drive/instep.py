"""Runs of a simulator in step: ask for a batch, evaluate all of it, tell it in the order asked."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from vqelites.archives import InsertInfo
from vqelites.drive.groups import positions, stacked
from vqelites.drive.host import Host
from vqelites.drive.position import Piece, Position, Rows
from vqelites.drive.simulated import TICK, AbstractSimulated, Watch, unwatched
from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.evaluation import AbstractEvaluator, arrays, evaluation_seeds
from vqelites.loop import QD, State, TellInfo, UpdateInfo


class InStep(AbstractSimulated):
    """Runs that wait for every evaluation of a batch, and so can be repeated exactly; those of a group take turns."""

    def __init__(self, qd: QD, evaluator: AbstractEvaluator, measure: Measure = no_measure, watch: Watch = unwatched):
        super().__init__(Host(qd, measure), evaluator, watch)

    def bootstrap(self, state: State) -> Iterator[tuple[State, StepInfo | None]]:
        runs = positions(state)
        rejected = np.array([at.told - int(at.state.seeds.valid.sum()) for at in runs], np.int32)
        updates = [UpdateInfo.nothing()] * len(runs)
        while runs[0].bootstrapping:
            tried = [self._tried(run, at) for run, at in enumerate(runs)]
            runs, updates = [at for at, _ in tried], [piece.info.update for _, piece in tried]
            rejected += [piece.info.tell.rejected for _, piece in tried]
            if runs[0].bootstrapping:
                yield stacked([at.state for at in runs]), None
        told = [TellInfo(InsertInfo.nothing(), jnp.asarray(count)) for count in rejected]  # those archives are gone
        infos = map(StepInfo, told, updates, [self.host.measured(at.state) for at in runs])
        yield stacked([at.state for at in runs]), stacked(list(infos))

    def advance(self, state: State, first: int, count: int) -> tuple[State, StepInfo]:
        return stacked([self._advance(run, at, count) for run, at in enumerate(positions(state))])

    def under_way(self, run: int) -> None:
        """Nothing: a run is saved between batches."""

    def restore(self, state: State, under_way: list[dict[str, np.ndarray]]) -> None:
        """Nothing has to be asked for again."""

    def close(self) -> None:
        self.evaluator.close()

    def _advance(self, run: int, at: Position, count: int) -> tuple[State, StepInfo]:
        infos = []
        for _ in range(count):
            at, piece = self._tried(run, at)
            infos.append(piece.info)
        return at.state, jax.tree.map(lambda *x: np.stack(x), *infos)

    def _tried(self, run: int, at: Position) -> tuple[Position, Piece]:
        """What became of a batch of solutions, or of as many as complete the bootstrap or the present iteration."""
        at, ids, solutions = self.host.ask(at, min(self.host.batch_size, self.host.missing(at)))
        self.evaluator.submit(ids, solutions, evaluation_seeds(int(at.state.seed), ids))
        found = {}
        while self.evaluator.pending:
            result = self.evaluator.next(timeout=TICK)
            self.watch(run, result)
            if result is not None:
                found[result.id] = result
        sizes = self.host.sizes
        results = [found[name] for name in ids.tolist()]
        rows = Rows(ids, solutions, *arrays(results, sizes.behavior, sizes.truth, sizes.eight_bit))
        at, [piece] = self.host.tell(at, rows, in_place=True)
        return at, piece
