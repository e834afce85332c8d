"""How many solutions are worth one message to a worker."""

import collections
import math

from vqelites.evaluation.base import Job

_LIMIT = 256  # jobs in a chunk
_SHORT = 0.1  # seconds: evaluations next to which the time to send one counts


class Pace:
    """Cuts chunks from a queue of jobs, by how long evaluations take.

    A chunk should take `target` seconds: long next to sending it, short next to a batch and to the time-out of one. A
    batch simulator gets its share of all; others get little at a time, so that all workers finish together.
    """

    def __init__(self, target: float, timeout: float | None, batch: bool):
        self._timeout, self._batch = timeout, batch
        self._target = target if timeout is None else min(target, timeout / 10)
        self._seconds: float | None = None  # of one evaluation, a moving mean

    @property
    def short(self) -> bool:
        """Whether a worker should have its next chunk at hand when it has finished one."""
        return self._seconds is not None and self._seconds < _SHORT

    def took(self, seconds: float) -> None:
        """One evaluation of a chunk took this long, on average."""
        self._seconds = seconds if self._seconds is None else 0.9 * self._seconds + 0.1 * seconds

    def too_slow(self) -> None:
        """A chunk ran into the time-out."""
        self._seconds = self._timeout

    def chunk(self, queue: collections.deque[Job], workers: int) -> list[Job]:
        """The first of the queue, with as many of the next as are worth one message; jobs that are alone stay so."""
        taken = [queue.popleft()]
        for _ in range(self._size(len(queue) + 1, workers) - 1):
            if taken[0].alone or not queue or queue[0].alone:
                break
            taken.append(queue.popleft())
        return taken

    def _size(self, waiting: int, workers: int) -> int:
        if self._batch:
            return math.ceil(waiting / workers)
        if self._seconds is None:
            return 1
        worth = self._target / max(self._seconds, self._target / _LIMIT)
        return max(1, min(int(worth), math.ceil(waiting / (2 * workers))))
