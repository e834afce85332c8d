"""Evaluation in a pool of processes that survives whatever a simulator, the system or a person does to them.

Why not a library: Pebble 5.2.3 was tried with two spawned workers. Its workers share one pipe and one lock. Killing an
idle worker, or one that is still starting, breaks the pool (`BrokenProcessPool: All workers expired`); a task that
leaves with exit code 0 never completes; a worker killed while it fetches its task leaves the lock held, so that all
others wait: of 60,000 short tasks with a kill every 0.3 s, 44,000 and 52,000 never completed. `concurrent.futures`
gives up the whole pool when one worker dies, and knows no time-outs. Here every worker has a connection of its own
(`process.py`), so what a worker was doing when it ended is known, and nobody waits for the dead.
"""

from vqelites.evaluation.managed import AbstractManaged
from vqelites.evaluation.simulator import Packed, Simulator
from vqelites.evaluation.supervisor import Supervisor


class PoolEvaluator(AbstractManaged):
    """`workers` processes on this machine, started once, each with its own copy of the simulator.

    An evaluation that raises, returns nonsense, takes more than `timeout` seconds or ends its worker has failed; it is
    tried again up to `retries` times, then it is a failure. A worker that is killed from outside (SIGKILL, SIGTERM
    or SIGHUP) is replaced and its evaluation repeated without being counted; an evaluation whose worker is killed ten
    times is taken to be the cause. For a batch simulator the time-out is that of one call; if a call fails as a
    whole, its solutions are tried one by one.
    """

    def __init__(self, simulator: Simulator | Packed, workers: int, *, timeout: float | None = None, retries: int = 0):
        if workers < 1 or retries < 0 or (timeout is not None and not timeout > 0):
            given = f"workers={workers}, retries={retries}, timeout={timeout}"
            raise ValueError(f"A pool needs workers >= 1, retries >= 0 and timeout > 0 or None, but got {given}.")
        if isinstance(simulator, Simulator):
            from vqelites.evaluation.packing import packed

            simulator = packed(simulator)
        self._supervisor = Supervisor(simulator, workers=workers, timeout=timeout, retries=retries)
        super().__init__(self._supervisor, "vqelites-pool")

    def wait_until_up(self) -> None:
        """Wait for a worker that is ready to evaluate. If there will be none, the next result says why."""
        self._supervisor.up.wait()
