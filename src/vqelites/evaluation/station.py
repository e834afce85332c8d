"""What runs on the nodes of a cluster: a worker that takes chunks of solutions and answers with their results."""

import functools
import importlib.metadata
import platform
import sys
import time
from typing import NamedTuple

import numpy as np

from vqelites.evaluation.base import Activity, EvaluatorError, Result
from vqelites.evaluation.pool import PoolEvaluator
from vqelites.evaluation.simulator import Packed


class Greeting(NamedTuple):
    """The node of a worker, and its versions of packages by name."""

    node: str  # Ray's name of it
    host: str
    versions: dict[str, str]


class Report(NamedTuple):
    """The results of a chunk, in its order, the seconds it took, and all that the worker has done so far."""

    results: list[Result]
    seconds: float
    activity: Activity


class Station:
    """One worker of a cluster.

    Solutions are evaluated in a child process, a pool of one. How that process ended, exit code included, is therefore
    known and handled here; time-outs and retries cost no message. If the station
    itself ends, it was killed from outside.
    """

    def __init__(self, packed: Packed, timeout: float | None, retries: int):
        # The process below would import the main script of the cluster's own worker, for nothing.
        vars(sys.modules["__main__"]).pop("__file__", None)
        self._pool = PoolEvaluator(packed, 1, timeout=timeout, retries=retries)

    def greet(self) -> Greeting:
        """Say that it is up."""
        import ray

        self._pool.wait_until_up()  # else what it is given would be blamed for a kill before it has even begun
        return Greeting(ray.get_runtime_context().get_node_id(), platform.node(), versions())

    def evaluate(self, ids: list[int], solutions: np.ndarray, seeds: list[int]) -> Report:
        """Try n solutions (n, s)."""
        began = time.monotonic()
        results = self._pool.evaluate(ids, solutions, seeds)
        return Report(results, time.monotonic() - began, self._pool.activity)


@functools.cache
def versions() -> dict[str, str]:
    """What must be the same everywhere: pickled code is Python's own, and results should not depend on the node."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"Python": python, **{name: importlib.metadata.version(name) for name in ("vqelites", "numpy")}}


def check_versions(host: str, has: dict[str, str], wanted: dict[str, str]) -> None:
    """Raise if a node would compute something else than the driver, or could not read what it is sent."""
    differ = [f"{name} {version} instead of {wanted[name]}" for name, version in has.items() if version != wanted[name]]
    if differ:
        raise EvaluatorError(
            f"The node {host} of the cluster has {', '.join(differ)}. Install the same everywhere, or leave that node "
            "out."
        )
