"""Evaluation on a Ray cluster: workers wherever there is room, as many as there is room for."""

from vqelites.evaluation.crew import Crew
from vqelites.evaluation.dispatcher import Dispatcher
from vqelites.evaluation.managed import AbstractManaged
from vqelites.evaluation.simulator import Simulator


class ClusterEvaluator(AbstractManaged):
    """Workers on the nodes of a cluster, each with its own copy of the simulator, which need not be installed there.

    `address` is that of the cluster's head (host:port); `auto` is the cluster of this machine, started here if there is
    none. There are as many `workers` as were asked for, or as fit into the cluster: more when a node joins, fewer when
    one is lost. Each takes `num_cpus` and `num_gpus` of a node. `timeout` and `retries` are those of `PoolEvaluator`.
    A worker that is killed, or lost with its node, is replaced and its evaluations are repeated without being counted.
    """

    def __init__(
        self,
        simulator: Simulator,
        address: str = "auto",
        *,
        workers: int | None = None,
        timeout: float | None = None,
        retries: int = 0,
        num_cpus: float = 1,
        num_gpus: float = 0,
    ):
        from vqelites.evaluation.packing import packed

        sent = packed(simulator, anywhere=True)
        crew = Crew(sent, address, timeout=timeout, retries=retries, num_cpus=num_cpus, num_gpus=num_gpus)
        dispatcher = Dispatcher(crew, workers=workers, timeout=timeout, batch=sent.batch)
        super().__init__(dispatcher, "vqelites-cluster")
