"""Workers of a Ray cluster. All calls of Ray are here."""

import contextlib
import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from vqelites.evaluation.base import EvaluatorError, Job
from vqelites.evaluation.simulator import Packed
from vqelites.evaluation.station import Greeting, Report, Station, versions

Said = Greeting | Report | Exception
Answer = Callable[[Said], None]
_PATIENCE = 5.0  # seconds for a cluster's head to answer


class LostError(Exception):
    """A worker ended, was killed, or can no longer be reached, by no fault of the simulator."""


class Crew:
    """A cluster, and what each of its workers is given."""

    def __init__(
        self, packed: Packed, address: str, *, timeout: float | None, retries: int, num_cpus: float, num_gpus: float
    ):
        self.ray = connected(address)
        self._needs = {"num_cpus": num_cpus, "num_gpus": num_gpus}
        self._arguments = self.ray.put(packed), timeout, retries  # sent to every node once
        self._station = self.ray.remote(Station).options(
            **self._needs, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )

    def room(self) -> int:
        """How many workers the nodes have room for."""
        return room(self.ray, **self._needs)

    def check_room(self) -> None:
        """Raise if no node has what one worker needs."""
        if not self.room():
            told = no_room(self.ray, "worker", **self._needs)
            raise EvaluatorError(f"{told} Ask for less, or say how many workers to wait for (workers=N).")

    def hire(self) -> "Hand":
        """Start one more worker, on any node with room, as soon as there is some."""
        return Hand(self, self._station.remote(*self._arguments))

    def kill(self, actor: Any) -> None:
        """End a worker."""
        with contextlib.suppress(self.ray.exceptions.RayError):
            self.ray.kill(actor)


class Hand:
    """One worker, seen from the driver. Its messages go to the callback `answer`, called from a thread of Ray."""

    def __init__(self, crew: Crew, actor: Any):
        self._crew, self._actor = crew, actor
        self.greeting: Greeting | None = None
        self.chunks: list[list[Job]] = []  # the first is being evaluated
        self.reported = 0.0, 0, 0  # busy seconds, repeated evaluations and replaced processes it told of

    def welcome(self, answer: Answer) -> None:
        """Call back when it is up."""
        self._when_done(self._actor.greet.remote(), answer)

    def give(self, jobs: list[Job], answer: Answer) -> None:
        """Have these evaluated, after those it has already."""
        self.chunks.append(jobs)
        solutions = np.stack([job.solution for job in jobs])
        sent = self._actor.evaluate.remote([job.id for job in jobs], solutions, [job.seed for job in jobs])
        self._when_done(sent, answer)

    def dismiss(self) -> None:
        """End it."""
        self._crew.kill(self._actor)

    def _when_done(self, reference: Any, answer: Answer) -> None:
        def done(future: Any) -> None:
            error = future.exception()
            answer(future.result() if error is None else translated(self._crew.ray, error))

        reference.future().add_done_callback(done)


def translated(ray: Any, error: BaseException) -> Exception:
    """What an error of Ray means: `LostError` for one worker, `EvaluatorError` for all."""
    exceptions = ray.exceptions
    if isinstance(error, EvaluatorError):
        return EvaluatorError(str(getattr(error, "cause", error)))
    cause = getattr(error, "cause", error)
    if isinstance(cause, exceptions.ObjectStoreFullError | exceptions.OutOfDiskError):
        return EvaluatorError(
            f"The object store of a node is full, so results cannot be sent back ({_first_line(cause)}). Start the "
            "nodes with more (`ray start --object-store-memory BYTES`), free their disks, or return less behavior."
        )
    if getattr(error, "actor_init_failed", False):
        return EvaluatorError(
            f"A worker could not be started on the cluster: {_last_line(error)}. "
            f"Every node needs vqelites {versions()['vqelites']}."
        )
    if isinstance(error, exceptions.RayTaskError):
        return EvaluatorError(f"A worker of the cluster failed: {_last_line(error)}.")
    return LostError(_last_line(error))


def room(ray: Any, num_cpus: float, num_gpus: float) -> int:
    """How many that need this fit on the nodes of a cluster, if nobody else used them."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    needs = {name: need for name, need in (("CPU", num_cpus), ("GPU", num_gpus)) if need}
    return sum(min(int(node.get(name, 0) // need) for name, need in needs.items()) for node in nodes)


def no_room(ray: Any, what: str, **needs: float) -> str:
    """A sentence for the case that none fits."""
    wanted = ", ".join(f"{name}={need:g}" for name, need in needs.items())
    has = ray.cluster_resources()
    there = ", ".join(f"{has.get(name, 0):g} {name}" for name in ("CPU", "GPU"))
    return f"No node of the cluster has room for a {what} with {wanted}; all nodes together have {there}."


def connected(address: str) -> Any:
    """Ray, connected to this cluster: once per process, until it ends."""
    try:
        import ray
    except ImportError as error:
        raise EvaluatorError('A cluster needs Ray: pip install "vqelites[cluster]".') from error
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in ("auto", here):
            raise EvaluatorError(f"This process is connected to the cluster {here} already, not to {address}.")
        return ray
    if address != "auto":
        _check_answers(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anyone
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # workers that need no GPU see what the node sees
    ends_quietly = signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():
            # JAX warns of deadlocks after a fork, but what Ray forks becomes another program at once.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            ray.init(address=None if address == "auto" else address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # of many kinds
        raise EvaluatorError(f"The cluster {address} cannot be used: {_in_one_line(error)}") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ends_quietly)  # Ray has a handler of its own, which saves nothing
    return ray


def _check_answers(address: str) -> None:
    """Raise if nothing listens at the address: Ray itself would try for a minute and then end this process."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise EvaluatorError(f"A cluster is `auto` or the address HOST:PORT of its head, but got {address!r}.")
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise EvaluatorError(
            f"The cluster {address} does not answer ({error}). `ray status` on its head tells whether it runs, "
            "`ray start --head` starts one."
        ) from error


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip().rstrip(".")


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip().rstrip(".")
