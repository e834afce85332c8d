"""Evaluation in this process, one after the other."""

import collections
import time

import numpy as np
from numpy.typing import ArrayLike

from vqelites.evaluation.base import AbstractEvaluator, Activity, Ids, Job, Result, jobs
from vqelites.evaluation.simulator import Simulator


class LocalEvaluator(AbstractEvaluator):
    """Evaluates when a result is asked for, in the order of submission.

    Nothing stands between the simulator and this process: one that hangs or kills its process does so here.
    `PoolEvaluator` survives that.
    """

    def __init__(self, simulator: Simulator, *, retries: int = 0):
        self._simulator, self._retries = simulator, retries
        self._queue: collections.deque[Job] = collections.deque()
        self._ready: collections.deque[Result] = collections.deque()
        self._pending: set[int] = set()
        self._activity = Activity(workers=1)
        self._closed = False

    def submit(self, ids: Ids, solutions: ArrayLike, seeds: Ids) -> None:
        if self._closed:
            raise RuntimeError("This evaluator is closed.")
        new = jobs(ids, solutions, seeds, self._pending)
        self._pending.update(job.id for job in new)
        self._queue.extend(new)

    def next(self, timeout: float | None = None) -> Result | None:
        while self._queue and not self._ready:
            self._work()
        if not self._ready:
            return None
        result = self._ready.popleft()
        self._pending.discard(result.id)
        return result

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def activity(self) -> Activity:
        current = self._activity.copy()
        current.queued = len(self._queue)
        return current

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self._ready.clear()
        self._pending.clear()

    def _work(self) -> None:
        """Evaluate one solution, or all that wait if the simulator takes batches."""
        chunk = list(self._queue) if self._simulator.batch else [self._queue[0]]
        began = time.monotonic()
        outcomes = self._simulator.evaluate(np.stack([job.solution for job in chunk]), [job.seed for job in chunk])
        self._activity.busy += time.monotonic() - began
        for job, outcome in zip(chunk, outcomes, strict=True):
            self._queue.popleft()  # only now: Ctrl-C in the simulator loses nothing
            result = job.ended(outcome, self._retries)
            if result is None:
                self._activity.repeated += 1
                self._queue.append(job)
            else:
                self._activity.count(result)
                self._ready.append(result)
