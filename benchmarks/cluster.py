"""What a cluster costs per evaluation: here, next to a bare Ray map and to Dask as pyribs' tutorial uses it.

    pip install ".[cluster]" "dask[distributed]"
    python benchmarks/cluster.py [WORKERS]

All in one run and on this machine, with as many workers each, in step with batches of 128 and 5,120: what is left when
a simulator does next to nothing, returns an image, or takes 20 ms. Then what one message of Ray takes: a call of an
actor that does nothing, alone and with others under way.
"""

import sys
import time

import numpy as np
import ray
from dask.distributed import Client, LocalCluster

from vqelites.evaluation import ClusterEvaluator, PoolEvaluator, Simulator, evaluation_seeds

ROUNDS = 5


def cheap(solution, seed):
    """Next to nothing."""
    return float(solution.sum()), solution


def image(solution, seed):
    """Next to nothing, and returns an image of 64 x 64."""
    return 0.0, np.zeros((64, 64, 1), np.uint8)


def sleep(solution, seed):
    """20 ms, as a small physics simulation takes."""
    time.sleep(0.02)
    return 0.0, solution


def rounds(evaluate, batch):
    """Milliseconds per evaluation; the first round is left out."""
    solutions = np.random.default_rng(0).random((batch, 10), np.float32)
    evaluate(range(batch), solutions)
    began = time.monotonic()
    for i in range(1, ROUNDS + 1):
        evaluate(range(i * batch, (i + 1) * batch), solutions)
    return 1000 * (time.monotonic() - began) / ROUNDS / batch


def ours(evaluator):
    """An evaluator as a search uses it."""
    return lambda ids, solutions: evaluator.evaluate(ids, solutions, evaluation_seeds(0, ids))


def bare_ray(simulate):
    """One Ray task per solution, as the first page of Ray's manual shows."""
    task = ray.remote(simulate)
    return lambda ids, solutions: ray.get([task.remote(x, i) for x, i in zip(solutions, ids, strict=True)])


def bare_dask(client, simulate):
    """`client.map`, then gather."""
    return lambda ids, solutions: client.gather(client.map(simulate, list(solutions), list(ids), pure=False))


def compare(simulate, batch, workers, client):
    """Print one row."""
    found = {}
    for name, kind in (("pool", PoolEvaluator), ("cluster", ClusterEvaluator)):
        with kind(Simulator(simulate), workers=workers) as evaluator:
            while evaluator.activity.workers < workers:
                time.sleep(0.01)
            found[name] = rounds(ours(evaluator), batch)
    found["bare Ray"] = rounds(bare_ray(simulate), batch)
    found["Dask"] = rounds(bare_dask(client, simulate), batch)
    told = ", ".join(f"{name} {ms:.2f}" for name, ms in found.items())
    print(f"{simulate.__name__}, batches of {batch}, {workers} workers: ms per evaluation: {told}", flush=True)


class Echo:
    """An actor that answers at once."""

    def answer(self, number):
        """What it was given."""
        return number


def messages(count=2_000):
    """Print what a call of a bare actor takes, one after the other and all at once."""
    actor = ray.remote(Echo).remote()
    ray.get(actor.answer.remote(0))
    began = time.monotonic()
    for i in range(count):
        ray.get(actor.answer.remote(i))
    half = time.monotonic()
    ray.get([actor.answer.remote(i) for i in range(count)])
    alone, among = (1000 * seconds / count for seconds in (half - began, time.monotonic() - half))
    print(f"a call of a bare actor of Ray: {alone:.2f} ms alone, {among:.2f} ms with others under way", flush=True)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as local, Client(local) as client:
        for task in (cheap, image):
            compare(task, 128, count, client)
            compare(task, 5120, count, client)
        compare(sleep, 128, count, client)
    messages()
