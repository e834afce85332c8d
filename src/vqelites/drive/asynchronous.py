"""Runs of a simulator without waiting: results are told as they come, and training goes on beside them."""

import concurrent.futures
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vqelites.archives import InsertInfo
from vqelites.drive.free_run import FreeRun
from vqelites.drive.groups import positions, stacked
from vqelites.drive.host import Host
from vqelites.drive.simulated import TICK, AbstractSimulated, Watch, unwatched
from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.evaluation import AbstractEvaluator, evaluation_seeds
from vqelites.loop import QD, State, TellInfo

_AHEAD = 4  # solutions under way for each worker: one at work, others at hand while results are told


class Asynchronous(AbstractSimulated):
    """Runs that do not wait.

    Workers wait neither for the slowest evaluation nor for training, which has a thread of its own. A result is
    described by the model that is current when it arrives. Solutions under way are
    at most a batch for each run, or a few for each worker where that is more. What a run does depends on when results
    arrive, so that only a run in step can be repeated exactly.
    """

    def __init__(self, qd: QD, evaluator: AbstractEvaluator, measure: Measure = no_measure, watch: Watch = unwatched):
        super().__init__(Host(qd, measure, beside=True), evaluator, watch)
        self._trainer = concurrent.futures.ThreadPoolExecutor(1, "vqelites-training")
        self._piece = max(1, qd.batch_size // _AHEAD)  # asked for at a time: each size is compiled
        self._runs: list[FreeRun] = []

    def bootstrap(self, state: State) -> Iterator[tuple[State, StepInfo | None]]:
        self._go_on_from(state)
        while True:
            goals = [one.at.told + self.host.qd.batch_size for one in self._runs]
            self._until(lambda one, goal: one.complete or one.at.told >= goal, goals)
            if all(one.complete for one in self._runs):
                break
            yield self._state(), None
        self._until(lambda one, _: not one.at.bootstrapping)
        yield self._state(), stacked([*map(self._begun, self._runs)])

    def advance(self, state: State, first: int, count: int) -> tuple[State, StepInfo]:
        self._go_on_from(state)
        self._until(lambda one, _: len(one.infos) == count)
        infos = [jax.tree.map(lambda *x: np.stack(x), *one.infos) for one in self._runs]
        return self._state(), stacked(infos)

    def under_way(self, run: int) -> dict[str, np.ndarray]:
        return self._runs[run].under_way()

    def restore(self, state: State, under_way: list[dict[str, np.ndarray]]) -> None:
        self._runs = [FreeRun(self.host, arrays) for arrays in under_way]
        self._go_on_from(state)
        for run, one in enumerate(self._runs):
            self._submit(run, *one.waiting())

    def close(self) -> None:
        self.evaluator.close()
        self._trainer.shutdown(cancel_futures=True)

    def _go_on_from(self, state: State) -> None:
        """Take the runs where they stand; what is under way stays."""
        where = positions(state)
        self._runs = self._runs or [FreeRun(self.host) for _ in where]
        for one, at in zip(self._runs, where, strict=True):
            one.go_on_from(at)

    def _state(self) -> State:
        return stacked([one.at.state for one in self._runs])

    def _until(self, done: Callable[[FreeRun, Any], bool], goals: Sequence[Any] | None = None) -> None:
        """Tell what arrives until every run has reached its goal; one that is ahead of the others waits for them."""
        wanted = list(zip(self._runs, goals or [None] * len(self._runs), strict=True))
        while late := [one for one, goal in wanted if not done(one, goal)]:
            self._top_up()
            self._listen()
            for one in late:
                one.take_in(self._trainer)

    def _top_up(self) -> None:
        """Ask for more, as long as few enough are under way."""
        limit = max(_AHEAD * self.evaluator.activity.workers // len(self._runs), self.host.qd.batch_size)
        for run, one in enumerate(self._runs):
            while len(one.asked) + self._piece <= limit:
                self._submit(run, *one.ask(self._piece))

    def _submit(self, run: int, ids: np.ndarray, solutions: np.ndarray) -> None:
        """Have them evaluated; every run has its own ids, so those of the evaluator tell the run as well."""
        seeds = evaluation_seeds(self._runs[run].seed, ids)
        self.evaluator.submit(ids.astype(np.int64) * len(self._runs) + run, solutions, seeds)

    def _listen(self) -> None:
        """Take results that have come, after waiting for one; where all have come, wait for training."""
        if not self.evaluator.pending:
            trainings = [one.training for one in self._runs if one.training is not None]
            concurrent.futures.wait(trainings, TICK, concurrent.futures.FIRST_COMPLETED)
            return
        patience = TICK
        for _ in range(self._piece):
            result = self.evaluator.next(timeout=patience)
            name, run = divmod(0 if result is None else result.id, len(self._runs))
            result = None if result is None else dataclasses.replace(result, id=name)
            self.watch(run, result)
            if result is None:
                return
            self._runs[run].arrived.append(result)
            patience = 0.0

    def _begun(self, one: FreeRun) -> StepInfo:
        """What a bootstrap did; its archive is gone."""
        told = TellInfo(InsertInfo.nothing(), jnp.asarray(one.rejected, jnp.int32))
        return StepInfo(told, one.update, self.host.measured(one.at.state))
