"""How busy a pool keeps its workers, and how many evaluations per second it can carry.

    python benchmarks/evaluation.py [WORKERS]

In step, as a search with batches of 128 does: the next batch is submitted when all of the last have come back.
"""

import sys
import tempfile
import time

import numpy as np

import vqelites
from vqelites.evaluation import PoolEvaluator, Simulator, evaluation_seeds
from vqelites.runs.events import Status

BATCH, ROUNDS = 128, 20


def sleep(solution, seed):
    """20 ms, as a small physics simulation takes."""
    time.sleep(0.02)
    return 0.0, solution


def cheap(solution, seed):
    """Next to nothing."""
    return float(solution.sum()), solution


def image(solution, seed):
    """Next to nothing, and returns an image of 64 x 64."""
    return 0.0, np.zeros((64, 64, 1), np.uint8)


def measure(simulate, workers, batch):
    """Print what one simulator and batch size give."""
    began = time.monotonic()
    with PoolEvaluator(Simulator(simulate), workers) as evaluator:
        while evaluator.activity.workers < workers:
            time.sleep(0.001)
        started = time.monotonic() - began
        solutions = np.random.default_rng(0).random((batch, 10), np.float32)
        evaluator.evaluate(range(batch), solutions, evaluation_seeds(0, range(batch)))
        busy, began = evaluator.activity.busy, time.monotonic()
        for i in range(1, ROUNDS + 1):
            ids = range(i * batch, (i + 1) * batch)
            evaluator.evaluate(ids, solutions, evaluation_seeds(0, ids))
        seconds = time.monotonic() - began
        busy = (evaluator.activity.busy - busy) / (seconds * workers)
    rate = ROUNDS * batch / seconds
    name = f"{simulate.__name__}, {workers} workers, batches of {batch}"
    print(f"{name}: {rate:.0f} evaluations/s, workers {100 * busy:.1f} % busy, ready after {started:.2f} s")
    if simulate is sleep:
        print(f"  {100 * rate * 0.02 / workers:.1f} % of the evaluations that {workers} workers can sleep through")


def search(workers):
    """Print how busy workers are in a whole run of VQ-Elites, training included, once all is compiled."""
    seen = []

    def observe(event):
        if isinstance(event, Status) and event.phase == "running" and event.iteration >= 10:
            seen.append((time.monotonic(), event.activity.busy, event.activity.finished))

    with tempfile.TemporaryDirectory() as folder:
        sizes = {"solution_dim": 10, "cells": 1000, "iterations": 40, "bootstrap": 640}
        vqelites.run(sleep, **sizes, workers=workers, out=f"{folder}/run", observe=observe)
    (began, busy, done), (ended, busier, more) = seen[0], seen[-1]
    share, rate = (busier - busy) / (ended - began) / workers, (more - done) / (ended - began)
    print(f"a run of VQ-Elites, {workers} workers: {rate:.0f} evaluations/s, workers {100 * share:.1f} % busy")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    search(count)
    measure(sleep, count, BATCH)
    for task in (cheap, image):
        measure(task, 2, BATCH)
        measure(task, 2, 40 * BATCH)
