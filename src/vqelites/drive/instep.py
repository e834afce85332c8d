"""Runs of a simulator in step: ask for a batch, evaluate all of it, tell it in the order asked."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from vqelites.archives import InsertInfo
from vqelites.drive.host import Host, Piece, Position, Rows
from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.evaluation import AbstractEvaluator, Result, arrays, evaluation_seeds
from vqelites.loop import QD, State, TellInfo, UpdateInfo

Watch = Callable[[int, Result], None]


def unwatched(run: int, result: Result) -> None:
    """Let results pass."""


class InStep:
    """Runs a simulator through an evaluator, with the interface of `Compiled`: runs of one group take turns.

    An evaluation that failed is told as a non-finite one: it counts, and is kept out. `watch` sees every result as it
    comes, with the index of its run.
    """

    def __init__(self, qd: QD, evaluator: AbstractEvaluator, measure: Measure = no_measure, watch: Watch = unwatched):
        self.host, self.evaluator, self.watch = Host(qd, measure), evaluator, watch

    def begin(self, seeds: Int[Array, "runs"]) -> tuple[State, StepInfo]:
        """Bootstrap one run per seed; every leaf of the result has a leading axis of runs."""
        begun = [self.host.begin(int(seed)) for seed in np.asarray(seeds)]
        return _stacked([self._bootstrap(run, at) for run, at in enumerate(begun)])

    def bootstrap(self, state: State) -> tuple[State, StepInfo]:
        """The rest of a bootstrap that was interrupted."""
        return _stacked([self._bootstrap(run, at) for run, at in enumerate(_each(state))])

    def advance(self, state: State, first: int, count: int) -> tuple[State, StepInfo]:
        """`count` iterations of all runs, from iteration `first` on; info leaves are (runs, count, ...)."""
        return _stacked([self._advance(run, at, count) for run, at in enumerate(_each(state))])

    def _bootstrap(self, run: int, at: Position) -> tuple[State, StepInfo]:
        if not at.bootstrapping:
            return at.state, StepInfo(TellInfo.nothing(), UpdateInfo.nothing(), self.host.measured(at.state))
        at, pieces = self._tried(run, at)
        rejected = np.sum([piece.tell.rejected for piece in pieces], dtype=np.int32)
        told = TellInfo(InsertInfo.nothing(), jnp.asarray(rejected))  # that archive is gone
        return at.state, StepInfo(told, pieces[-1].update, pieces[-1].measures)

    def _advance(self, run: int, at: Position, count: int) -> tuple[State, StepInfo]:
        infos = []
        for _ in range(count):
            at, [piece] = self._tried(run, at)
            infos.append(piece.info)
        return at.state, jax.tree.map(lambda *x: np.stack(x), *infos)

    def _tried(self, run: int, at: Position) -> tuple[Position, list[Piece]]:
        """What became of the solutions that complete the bootstrap or the present iteration."""
        at, ids, solutions = self.host.ask(at, self.host.missing(at))
        self.evaluator.submit(ids, solutions, evaluation_seeds(int(at.state.seed), ids))
        found = {}
        for result in self.evaluator.results():
            self.watch(run, result)
            found[result.id] = result
        sizes = self.host.qd.sizes
        results = [found[name] for name in ids.tolist()]
        return self.host.tell(at, Rows(ids, solutions, *arrays(results, sizes.behavior, sizes.truth)))


def _each(states: State) -> list[Position]:
    """Where each of the runs stands."""
    runs = states.seed.shape[0]
    return [Position.of(jax.tree.map(lambda x, i=i: x[i], states)) for i in range(runs)]


def _stacked(runs: list[tuple[State, StepInfo]]) -> Any:
    """States and infos of all runs, with a leading axis of runs."""
    return jax.tree.map(lambda *x: jnp.stack(x), *runs)
