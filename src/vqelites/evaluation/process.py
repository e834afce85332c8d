"""One worker process, seen from the process that gives it work."""

import collections
import contextlib
import multiprocessing
import os
import pickle
import signal
import time
from multiprocessing import resource_tracker

import numpy as np

from vqelites.evaluation.base import Job
from vqelites.evaluation.worker import Chunk, Hello, Ready, Reply, work

_SPAWN = multiprocessing.get_context("spawn")  # JAX has threads, which a forked process would lack
# What ends a process that did nothing wrong: a person, the system short of memory, a scheduler, a closed terminal.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = 2.0  # seconds a process has to end by itself once its connection is closed


class WorkerProcess:
    """A process with a connection of its own, which no other worker shares.

    Nothing a dying worker held can therefore block the others, and what it was doing is known without being told.
    """

    def __init__(self) -> None:
        self.connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=work, args=(theirs,), name="vqelites-worker")
        # Blocked here, Ctrl-C stays blocked in the new process: it is for the one that gives the work.
        resource_tracker.ensure_running()  # which would unblock it again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.ready = False
        self.chunks: collections.deque[list[Job]] = collections.deque()  # the first is being evaluated,
        self.since = 0.0  # since then
        self._silent = False  # its connection is closed
        self._deserted = False  # it closed its connection and lived on

    def greet(self, packed: bytes) -> None:
        """Send the simulator, once it waits for it."""
        with contextlib.suppress(OSError):  # dead: noticed when it is looked at
            self.connection.send_bytes(packed)

    def give(self, jobs: list[Job]) -> None:
        """Have these evaluated, after those it has already."""
        if not self.chunks:
            self.since = time.monotonic()
        self.chunks.append(jobs)
        with contextlib.suppress(OSError):
            self.connection.send(Chunk(np.stack([job.solution for job in jobs]), [job.seed for job in jobs]))

    def take(self) -> list[Job]:
        """The jobs that were just answered."""
        self.since = time.monotonic()
        return self.chunks.popleft()

    def receive(self) -> Hello | Ready | Reply | None:
        """Its next message, if there is one."""
        try:
            return self.connection.recv() if self.connection.poll() else None
        except (EOFError, OSError, pickle.UnpicklingError):  # the end, or a message that was cut off by it
            self._silent = True
            return None

    @property
    def gone(self) -> bool:
        """Whether nothing more will come from it, but for what it sent before."""
        return self._silent or not self._process.is_alive()

    def bury(self) -> None:
        """Make sure that it has ended, and whatever it started with it."""
        if self._silent:
            self._process.join(_PATIENCE)  # the connection closes a moment before the process ends
            self._deserted = self._process.is_alive()
        self.end()

    def end(self) -> None:
        """Kill it, and whatever it started."""
        assert self._process.pid is not None
        self._process.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.join()

    def dismiss(self) -> None:
        """End it: kindly if it only waits for work and its connection was closed."""
        if self.ready and not self.chunks:
            self._process.join(_PATIENCE)
        self.end()

    @property
    def own_fault(self) -> bool:
        """Whether it ended by itself, by leaving or by crashing, rather than being killed from outside."""
        return self._deserted or -(self._process.exitcode or 0) not in _FROM_OUTSIDE

    @property
    def farewell(self) -> str:
        """How it ended."""
        code = self._process.exitcode or 0
        if self._deserted:
            return "its connection was closed"
        return f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
