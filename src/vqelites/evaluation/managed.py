"""Evaluators with workers: a manager in a thread of its own gives them jobs and takes their results."""

import abc
import atexit
import collections
import queue
import threading
from collections.abc import Sequence

from vqelites.evaluation.base import AbstractEvaluator, Activity, EvaluatorError, Job, Result


class AbstractManager(abc.ABC):
    """Runs in a thread of its own, which alone touches the workers. Jobs come in by `submit`, results go to `outbox`.

    A job is in one place at a time: waiting, in the chunk of one worker, or delivered.
    """

    def __init__(self) -> None:
        self.outbox: queue.SimpleQueue[Result | EvaluatorError] = queue.SimpleQueue()
        self.activity = Activity()
        self._queue: collections.deque[Job] = collections.deque()

    @abc.abstractmethod
    def submit(self, jobs: list[Job] | None) -> None:
        """Evaluate these as well; None: stop."""

    @abc.abstractmethod
    def _serve(self) -> None:
        """Work until told to stop; raises if nothing can be evaluated any more."""

    @abc.abstractmethod
    def _leave(self) -> None:
        """End all workers."""

    def run(self) -> None:
        """Until told to stop, or until nothing can be evaluated any more."""
        try:
            self._serve()
        except Exception as error:  # must reach those who wait for results, whatever it is
            told = error if isinstance(error, EvaluatorError) else EvaluatorError(f"Evaluation failed: {error!r}")
            self.outbox.put(told)
        finally:
            self._leave()

    def _settle(self, job: Job, result: Result | None) -> None:
        """Deliver the result, or begin again where there is none, after those that wait."""
        self.activity.count(result)
        if result is None:
            self._queue.append(job)  # in front, it would be hit by every kill of a bad moment, until it is blamed
        else:
            self.outbox.put(result)

    def _taken_back(self, chunks: Sequence[list[Job]]) -> list[Job]:
        """What a lost worker was evaluating, its first chunk; the others wait again, in front as they were."""
        begun, *others = chunks or [[]]
        for chunk in reversed(others):
            self._queue.extendleft(reversed(chunk))
        return begun


class AbstractManaged(AbstractEvaluator):
    """An evaluator that leaves all work to a manager."""

    def __init__(self, manager: AbstractManager, name: str):
        super().__init__()
        self._manager = manager
        self._thread = threading.Thread(target=manager.run, name=name, daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def activity(self) -> Activity:
        return self._manager.activity.copy()

    def _begin(self, jobs: list[Job]) -> None:
        self._manager.submit(jobs)

    def _take(self, timeout: float | None) -> Result | None:
        try:
            result = self._manager.outbox.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(result, EvaluatorError):
            self._manager.outbox.put(result)  # whoever asks again hears it again
            raise result
        return result

    def _end(self) -> None:
        self._manager.submit(None)
        self._thread.join()
        atexit.unregister(self.close)
