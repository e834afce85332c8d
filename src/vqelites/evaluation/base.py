"""What every evaluator offers: solutions with their ids go in, results come out as they are ready."""

import abc
import collections
import dataclasses
import enum
from collections.abc import Collection, Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

Ids = Sequence[int] | np.ndarray
_KILLS = 10  # of one evaluation: until then it was bad luck, after that it takes all memory, say


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Value:
    """The results of one solution, checked: finite numbers of the expected shapes."""

    fitness: float
    behavior: np.ndarray  # of the behavior's shape: float32, or 8-bit levels
    truth: np.ndarray  # (t,) float32, t = 0 where no truth is known


class Kind(enum.StrEnum):
    """How an evaluation failed."""

    RAISED = "raised"
    NONSENSE = "nonsense"
    TIMED_OUT = "timed out"
    DIED = "died"


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no value."""

    kind: Kind
    reason: str


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Result:
    """The outcome of one evaluation, delivered once. `attempts` does not count those that were killed from outside."""

    id: int
    outcome: Value | Failure
    attempts: int = 1


class EvaluatorError(RuntimeError):
    """Evaluation is no longer possible, for any solution."""


@dataclasses.dataclass
class Activity:
    """What an evaluator is doing and has done, for progress displays and summaries.

    Of two taken one after the other, `finished` tells the evaluations per second.
    """

    workers: int = 0  # ready to evaluate
    working: int = 0  # of these, evaluating now
    queued: int = 0  # submitted, not yet in a worker
    running: int = 0  # in a worker now
    finished: int = 0  # evaluations that ended, failures included
    failed: collections.Counter[Kind] = dataclasses.field(default_factory=collections.Counter)
    repeated: int = 0  # evaluations begun again: retries, and those cut short from outside
    replaced: int = 0  # workers that died or were ended
    busy: float = 0.0  # seconds spent in the simulator, over all workers
    nodes: int = 0  # machines of a cluster that have workers; 0 where there is no cluster

    def copy(self) -> "Activity":
        """As it is now."""
        return dataclasses.replace(self, failed=self.failed.copy())

    def count(self, result: Result | None) -> None:
        """Count an evaluation that ended with this result, or that is repeated if there is none."""
        if result is None:
            self.repeated += 1
            return
        self.finished += 1
        if isinstance(result.outcome, Failure):
            self.failed[result.outcome.kind] += 1


@dataclasses.dataclass(slots=True)
class Job:
    """A solution on its way to a result."""

    id: int
    solution: np.ndarray  # (s,)
    seed: int
    failures: int = 0  # attempts that failed by their own fault
    kills: int = 0  # attempts whose worker was killed from outside
    alone: bool = False  # is not to share a worker with others

    def ended(self, outcome: Value | Failure, retries: int) -> Result | None:
        """What an attempt that was not cut short means: the result, or None if it is tried again."""
        failed = isinstance(outcome, Failure)
        self.failures += failed
        return None if failed and self.failures <= retries else Result(self.id, outcome, self.failures + (not failed))

    def killed(self, how: str) -> Result | None:
        """What it means that an attempt was cut short from outside while alone in its worker."""
        self.kills += 1
        if self.kills < _KILLS:
            return None
        reason = f"its worker was killed {self.kills} times ({how}); it may need more memory than there is"
        return Result(self.id, Failure(Kind.DIED, reason), self.failures + 1)


class AbstractEvaluator(abc.ABC):
    """Evaluates solutions, somewhere, in any order.

    In step: `evaluate(ids, solutions, seeds)`. Asynchronously: `submit` some, then take `results()` as they come and
    submit more meanwhile. An evaluator is a context manager; leaving it ends its workers and drops what is pending.
    What comes out depends on solution and seed alone, never on the number of workers or the order of arrival.
    """

    def __init__(self) -> None:
        self._pending: set[int] = set()
        self._closed = False

    @property
    @abc.abstractmethod
    def activity(self) -> Activity:
        """What is going on; may be asked for from any thread."""

    @abc.abstractmethod
    def _begin(self, jobs: list[Job]) -> None:
        """Have these evaluated, now or later."""

    @abc.abstractmethod
    def _take(self, timeout: float | None) -> Result | None:
        """The next result of those pending, of which there is one at least; None if it takes too long."""

    @abc.abstractmethod
    def _end(self) -> None:
        """Drop everything and end all workers; called once."""

    @property
    def pending(self) -> int:
        """How many results are still to come."""
        return len(self._pending)

    def submit(self, ids: Ids, solutions: ArrayLike, seeds: Ids) -> None:
        """Queue n solutions (n, s). An id may not be pending already; `evaluation_seeds` gives the seeds."""
        if self._closed:
            raise RuntimeError("This evaluator is closed.")
        new = _jobs(ids, solutions, seeds, self._pending)
        self._pending.update(job.id for job in new)
        self._begin(new)

    def next(self, timeout: float | None = None) -> Result | None:
        """The next result; None if nothing is pending, or if none came within `timeout` seconds."""
        result = self._take(timeout) if self._pending else None
        if result is not None:
            self._pending.discard(result.id)
        return result

    def results(self) -> Iterator[Result]:
        """Results as they come, until nothing is pending. More may be submitted meanwhile."""
        while (result := self.next()) is not None:
            yield result

    def evaluate(self, ids: Ids, solutions: ArrayLike, seeds: Ids) -> list[Result]:
        """Submit, wait for all, and give their results in the order of the ids."""
        if self.pending:
            raise RuntimeError(f"evaluate was called while {self.pending} results are pending: take those first.")
        self.submit(ids, solutions, seeds)
        found = {result.id: result for result in self.results()}
        return [found[int(name)] for name in ids]

    def close(self) -> None:
        """End all workers. Evaluations that are pending are dropped; closing twice does nothing."""
        if not self._closed:
            self._closed = True
            self._pending.clear()
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _jobs(ids: Ids, solutions: ArrayLike, seeds: Ids, pending: Collection[int]) -> list[Job]:
    """What was submitted, as jobs with solutions of their own, or an error that says what is wrong with it."""
    names, rows, numbers = np.asarray(ids), np.array(solutions), np.asarray(seeds)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise ValueError(
            f"solutions must be numbers of shape (n, s), one row per solution, but are {rows.dtype} of {rows.shape}."
        )
    for label, values in (("ids", names), ("seeds", numbers)):
        if values.shape != (len(rows),) or (values.dtype.kind not in "iu" and values.size):
            what = f"{values.dtype} of {values.shape}"
            raise ValueError(f"{label} must be {len(rows)} whole numbers, one per solution, but are {what}.")
    if len(set(names.tolist())) != len(names):
        raise ValueError("ids holds the same id more than once; every solution has its own.")
    known = [name for name in names.tolist() if name in pending]
    if known:
        raise ValueError(f"ids {known[:5]} are pending already: take their results before submitting them again.")
    return [Job(*job) for job in zip(names.tolist(), rows, numbers.tolist(), strict=True)]


def probe(evaluator: AbstractEvaluator, solutions: ArrayLike, seeds: Ids) -> Value:
    """What the first solution that can be evaluated did; its shapes are those of the simulator."""
    failures = []
    for solution, seed in zip(np.asarray(solutions), seeds, strict=True):
        [result] = evaluator.evaluate([0], solution[None], [seed])
        if isinstance(result.outcome, Value):
            return result.outcome
        failures.append(result.outcome.reason)
    raise EvaluatorError(
        f"None of {len(failures)} solutions could be evaluated, so the shape of the behavior is not known. "
        f"The first one: {failures[0] if failures else 'there was none'}."
    )
