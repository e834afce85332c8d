"""Evaluation in this process, one after the other."""

import collections
import time

import numpy as np

from vqelites.evaluation.base import AbstractEvaluator, Activity, Job, Result
from vqelites.evaluation.simulator import Simulator


class LocalEvaluator(AbstractEvaluator):
    """Evaluates when a result is asked for, in the order of submission.

    Nothing stands between the simulator and this process: one that hangs or kills its process does so here.
    `PoolEvaluator` survives that.
    """

    def __init__(self, simulator: Simulator, *, retries: int = 0):
        super().__init__()
        self._simulator, self._retries = simulator, retries
        self._queue: collections.deque[Job] = collections.deque()
        self._ready: collections.deque[Result] = collections.deque()
        self._activity = Activity(workers=1)

    @property
    def activity(self) -> Activity:
        current = self._activity.copy()
        current.queued = max(0, len(self._queue) - current.running)
        return current

    def _begin(self, jobs: list[Job]) -> None:
        self._queue.extend(jobs)

    def _take(self, timeout: float | None) -> Result | None:
        while not self._ready:
            self._work()
        return self._ready.popleft()

    def _end(self) -> None:
        self._queue.clear()
        self._ready.clear()

    def _work(self) -> None:
        """Evaluate one solution, or all that wait if the simulator takes batches."""
        chunk = list(self._queue) if self._simulator.batch else [self._queue[0]]
        began = time.monotonic()
        self._activity.working, self._activity.running = 1, len(chunk)
        try:
            outcomes = self._simulator.evaluate(np.stack([job.solution for job in chunk]), [job.seed for job in chunk])
        finally:
            self._activity.working, self._activity.running = 0, 0
            self._activity.busy += time.monotonic() - began
        for job, outcome in zip(chunk, outcomes, strict=True):
            self._queue.popleft()  # only now: Ctrl-C in the simulator loses nothing
            result = job.ended(outcome, self._retries)
            self._activity.count(result)
            if result is None:
                self._queue.append(job)
            else:
                self._ready.append(result)
