"""What runs in a worker process: take a chunk of solutions, evaluate it, send the outcomes back."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

import numpy as np

from vqelites.evaluation.base import Failure, Value
from vqelites.evaluation.simulator import Simulator


class Hello(NamedTuple):
    """The process is up and waits for its simulator."""


class Ready(NamedTuple):
    """The simulator is loaded, or `error` says why it cannot be."""

    error: str | None


class Chunk(NamedTuple):
    """Solutions (n, s) and seeds that are sent together, since single ones would cost more to send than to evaluate."""

    solutions: np.ndarray
    seeds: list[int]


class Reply(NamedTuple):
    """The outcomes of a chunk, and how long it took."""

    outcomes: list[Value | Failure]
    seconds: float


def work(connection: Connection) -> None:
    """Serve until the other end is closed."""
    os.setsid()  # a group of its own: what a simulator starts is ended with its worker
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        connection.send(Hello())
        packed = connection.recv_bytes()
        try:
            simulator: Simulator = pickle.loads(packed)
        except (Exception, SystemExit) as error:
            connection.send(Ready(f"{type(error).__name__}: {error}"))
            return
        connection.send(Ready(None))
        while True:
            chunk: Chunk = connection.recv()
            began = time.monotonic()
            outcomes = simulator.evaluate(chunk.solutions, chunk.seeds)
            connection.send(Reply(outcomes, time.monotonic() - began))


def _leave_with_parent() -> None:
    """Even in the middle of an evaluation: a killed run leaves nothing behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(os.getpgrp(), signal.SIGKILL)
