"""What both ways of driving a simulator have in common."""

import abc
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Array, Int

from vqelites.drive.groups import stacked
from vqelites.drive.host import Host
from vqelites.drive.steps import StepInfo
from vqelites.evaluation import AbstractEvaluator, Result
from vqelites.loop import State

Watch = Callable[[int, Result | None], None]
TICK = 1.0  # seconds after which a watcher is told that there is no result


def unwatched(run: int, result: Result | None) -> None:
    """Watch nothing."""


class AbstractSimulated(abc.ABC):
    """Runs of a simulator through an evaluator, with the interface of `Compiled`.

    An evaluation that failed is told as a non-finite one: it counts, and is kept out. `watch` sees every result as it
    comes, with the index of its run, and None where a second passes without one.
    """

    def __init__(self, host: Host, evaluator: AbstractEvaluator, watch: Watch):
        self.host, self.evaluator, self.watch = host, evaluator, watch

    def init(self, seeds: Int[Array, "runs"] | np.ndarray) -> State:
        """One run per seed, before any evaluation; every leaf has a leading axis of runs."""
        return stacked([self.host.begin(int(seed)).state for seed in np.asarray(seeds)])

    def begin(self, seeds: Int[Array, "runs"] | np.ndarray) -> tuple[State, StepInfo]:
        """Bootstrap one run per seed; every leaf of the result has a leading axis of runs."""
        *_, (state, info) = self.bootstrap(self.init(seeds))
        assert info is not None
        return state, info

    @abc.abstractmethod
    def bootstrap(self, state: State) -> Iterator[tuple[State, StepInfo | None]]:
        """The rest of a bootstrap: the states after every batch, and what it did at last."""

    @abc.abstractmethod
    def advance(self, state: State, first: int, count: int) -> tuple[State, StepInfo]:
        """`count` iterations of all runs, from iteration `first` on; info leaves are (runs, count, ...)."""

    @abc.abstractmethod
    def under_way(self, run: int) -> dict[str, np.ndarray] | None:
        """What a checkpoint must hold besides the state, as arrays: what has to be asked for again."""

    @abc.abstractmethod
    def restore(self, state: State, under_way: list[dict[str, np.ndarray]]) -> None:
        """Go on from a saved state of so many runs, for which this was under way."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the evaluator's workers, and drop what is going on."""
