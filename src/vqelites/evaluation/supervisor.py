"""Gives chunks of solutions to worker processes and decides what becomes of those that do not come back."""

import math
import multiprocessing
import queue
import threading
import time
from multiprocessing.connection import wait

from vqelites.evaluation.base import EvaluatorError, Failure, Job, Kind, Result
from vqelites.evaluation.managed import AbstractManager
from vqelites.evaluation.pace import Pace
from vqelites.evaluation.process import WorkerProcess
from vqelites.evaluation.simulator import Packed
from vqelites.evaluation.worker import Hello, Ready, Reply

_TICK = 0.2  # seconds between looks at the workers, for those whose death closes no connection
_CHUNK_SECONDS = 0.01  # what one chunk should take: long next to sending it, short next to a batch
_STARTS = 30  # killed in a row before one was ready: there is no room for workers


class Supervisor(AbstractManager):
    """Manages the processes of a pool.

    If a worker ends while it has several jobs, none of them is blamed: each is repeated alone. A job that is alone in a
    worker that ends has failed one attempt, unless the worker was killed from outside: then it is repeated, and only
    after some such ends of the same job is it taken to be the cause.
    """

    def __init__(self, packed: Packed, *, workers: int, timeout: float | None, retries: int):
        super().__init__()
        self._packed, self._size, self._timeout, self._retries = packed.pickled, workers, timeout, retries
        self.up = threading.Event()  # a worker was ready, or none ever will be
        self._inbox: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._bell, self._rope = multiprocessing.Pipe(duplex=False)  # wakes the thread
        self._pace = Pace(_CHUNK_SECONDS, timeout, packed.batch)
        self._stillborn = 0  # workers in a row that were killed before they were ready
        self._workers = [WorkerProcess() for _ in range(workers)]

    def submit(self, jobs: list[Job] | None) -> None:
        self._inbox.put(jobs)
        self._rope.send_bytes(b".")

    def _serve(self) -> None:
        while self._take_in():
            self._hand_out()
            self._listen()
            self._look_after()

    def _leave(self) -> None:
        self.up.set()
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.dismiss()

    def _take_in(self) -> bool:
        """Queue what was submitted; False if told to stop."""
        while not self._inbox.empty():
            jobs = self._inbox.get()
            if jobs is None:
                return False
            self._queue.extend(jobs)
        return True

    def _hand_out(self) -> None:
        """Give every worker that is ready something to do, as long as jobs wait."""
        for worker in self._workers:
            if self._queue and worker.ready and not worker.chunks:
                self._give(worker)
        for worker in self._workers:
            # A second chunk hides the way to and fro. Slow ones and the last are left to whoever is free first.
            if len(worker.chunks) == 1 and len(self._queue) > self._size and self._pace.short:
                self._give(worker)
        self.activity.workers = sum(worker.ready for worker in self._workers)
        self.activity.queued = len(self._queue)

    def _give(self, worker: WorkerProcess) -> None:
        """The first in the queue, with as many of the next as are worth one message."""
        chunk = self._pace.chunk(self._queue, self._size)
        self.activity.running += len(chunk)
        self.activity.working += not worker.chunks
        worker.give(chunk)

    def _listen(self) -> None:
        """Wait for an event, then take the workers' messages."""
        limit = math.inf if self._timeout is None else self._timeout
        left = [worker.since + limit - time.monotonic() for worker in self._workers if worker.chunks]
        patience = max(0.0, min([_TICK, *left]))
        speaking = set(wait([self._bell, *(worker.connection for worker in self._workers)], patience))
        while self._bell.poll():
            self._bell.recv_bytes()
        for worker in self._workers:
            if worker.connection in speaking:
                self._hear(worker)

    def _hear(self, worker: WorkerProcess) -> bool:
        """Take one message; False if there is none."""
        message = worker.receive()
        if isinstance(message, Hello):
            worker.greet(self._packed)
        elif isinstance(message, Ready):
            if message.error is not None:
                raise EvaluatorError(f"The simulator cannot be loaded in a worker process: {message.error}")
            worker.ready, self._stillborn = True, 0
            self.up.set()
        elif isinstance(message, Reply):
            chunk = worker.take()
            self.activity.running -= len(chunk)
            self.activity.working -= not worker.chunks
            self.activity.busy += message.seconds
            self._pace.took(message.seconds / len(chunk))
            for job, outcome in zip(chunk, message.outcomes, strict=True):
                self._settle(job, job.ended(outcome, self._retries))
        return message is not None

    def _look_after(self) -> None:
        """Replace workers that ended, and end those that take too long."""
        for i, worker in enumerate(self._workers):
            late = self._timeout is not None and worker.chunks and time.monotonic() - worker.since > self._timeout
            if worker.gone or late:
                self._bury(worker, late=bool(late) and not worker.gone)
                self._workers[i] = WorkerProcess()
                self.activity.replaced += 1

    def _bury(self, worker: WorkerProcess, late: bool) -> None:
        """Decide what a worker's end means for its jobs, after the messages it sent before."""
        worker.bury()
        while self._hear(worker):
            late = False
        worker.connection.close()
        self.activity.running -= sum(map(len, worker.chunks))
        self.activity.working -= bool(worker.chunks)
        if not worker.ready:
            self._check_start(worker)
        self._accuse(self._taken_back(worker.chunks), worker, late)

    def _accuse(self, chunk: list[Job], worker: WorkerProcess, late: bool) -> None:
        """What the end of a worker means for what it was evaluating."""
        if len(chunk) == 1:
            self._settle(chunk[0], self._verdict(chunk[0], worker, late))
            return
        if late:
            self._pace.too_slow()
        for job in chunk:
            job.alone = True
            self._settle(job, None)

    def _verdict(self, job: Job, worker: WorkerProcess, late: bool) -> Result | None:
        """What the end of its worker means for a job that was alone in it."""
        if late:
            return job.ended(Failure(Kind.TIMED_OUT, f"took more than {self._timeout:g} s"), self._retries)
        if worker.own_fault:
            return job.ended(Failure(Kind.DIED, f"ended its worker ({worker.farewell})"), self._retries)
        return job.killed(worker.farewell)

    def _check_start(self, worker: WorkerProcess) -> None:
        """A worker that never gets ready would be replaced for ever."""
        self._stillborn += 1
        if worker.own_fault or self._stillborn >= _STARTS:
            raise EvaluatorError(
                f"A worker process ended before it was ready ({worker.farewell}); what it printed says why. "
                'A script that starts workers needs its own code under `if __name__ == "__main__":`, '
                "since every worker imports the script."
            )
