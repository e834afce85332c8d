"""Runs of a simulator in step: ask for a batch, evaluate all of it, tell it in the order asked."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from vqelites.archives import InsertInfo
from vqelites.drive.host import Host, Rows
from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.evaluation import AbstractEvaluator, Result, arrays, evaluation_seeds
from vqelites.loop import QD, State, TellInfo, UpdateInfo
from vqelites.types import Elites

Watch = Callable[[int, Result], None]


def unwatched(run: int, result: Result) -> None:
    """Let results pass."""


class InStep:
    """Runs a simulator through an evaluator, with the interface of `Compiled`: runs of one group take turns.

    An evaluation that failed is told as a non-finite one: it counts, and is kept out. `watch` sees every result as it
    comes, with the index of its run.
    """

    def __init__(self, qd: QD, evaluator: AbstractEvaluator, measure: Measure = no_measure, watch: Watch = unwatched):
        self.qd, self.evaluator, self.measure, self.watch = qd, evaluator, measure, watch

    def begin(self, seeds: Int[Array, "runs"]) -> tuple[State, StepInfo]:
        """Bootstrap one run per seed; every leaf of the result has a leading axis of runs."""
        return _stacked([self._begin(run, int(seed)) for run, seed in enumerate(np.asarray(seeds))])

    def advance(self, state: State, first: int, count: int) -> tuple[State, StepInfo]:
        """`count` iterations of all runs, from iteration `first` on; info leaves are (runs, count, ...)."""
        runs = state.seed.shape[0]
        return _stacked([self._advance(run, jax.tree.map(lambda x, r=run: x[r], state), count) for run in range(runs)])

    def _begin(self, run: int, seed: int) -> tuple[State, StepInfo]:
        host = Host.begin(self.qd, seed)
        told, updated = TellInfo.nothing(), UpdateInfo.nothing()
        if self.qd.bootstrap:
            infos = host.tell(self._tried(run, host, self.qd.bootstrap))
            told = TellInfo(InsertInfo.nothing(), sum((info.rejected for info, _ in infos), told.rejected))
            updated = infos[-1][1]
        return host.state, self._info(host, told, updated)

    def _advance(self, run: int, state: State, count: int) -> tuple[State, StepInfo]:
        host, infos = Host(self.qd, state), []
        for _ in range(count):
            [(told, updated)] = host.tell(self._tried(run, host, self.qd.batch_size))
            infos.append(self._info(host, told, updated))
        return host.state, jax.tree.map(lambda *x: np.stack(x), *infos)

    def _tried(self, run: int, host: Host, count: int) -> Rows:
        """What the next solutions did."""
        ids, solutions = host.ask(count)
        self.evaluator.submit(ids, solutions, evaluation_seeds(int(host.state.seed), ids))
        found = {}
        for result in self.evaluator.results():
            self.watch(run, result)
            found[result.id] = result
        sizes = self.qd.sizes
        return Rows(ids, solutions, *arrays([found[name] for name in ids.tolist()], sizes.behavior, sizes.truth))

    def _info(self, host: Host, told: TellInfo, updated: UpdateInfo) -> StepInfo:
        return StepInfo(told, updated, _measured(self.measure, self.qd.archive.elites(host.state.archive)))


@eqx.filter_jit
def _measured(measure: Measure, elites: Elites) -> dict[str, Array]:
    return measure(elites)


def _stacked(runs: list[tuple[State, StepInfo]]) -> Any:
    """States and infos of all runs, with a leading axis of runs."""
    return jax.tree.map(lambda *x: jnp.stack(x), *runs)
