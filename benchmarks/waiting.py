"""What waiting costs: runs in step and asynchronous ones, with stragglers; and coverage after as many evaluations.

    python benchmarks/waiting.py            # throughput: 16 workers that sleep, batches of 128 and 32 (or as given)
    python benchmarks/waiting.py coverage   # two tasks (or as given), five seeds, the same evaluations in both modes
    python benchmarks/waiting.py coverage arm --modes async --seeds 3 4

An evaluation takes 20 ms, one in ten takes 500 ms. All is measured in whole runs of VQ-Elites, training included;
throughput from the moment on when everything is compiled.
"""

import argparse
import statistics
import tempfile
import time

import numpy as np

import vqelites
from vqelites.runs.events import Status, silent

WORKERS, MEASURED = 16, 2_560  # evaluations
SIZES = {"cells": 500, "bootstrap": 320}


class Straggling:
    """A simulator that takes 20 ms, one time in ten 500 ms."""

    def __init__(self, inner):
        self.inner = inner

    def simulate(self, solution, seed):
        """What the inner one returns, after a while."""
        time.sleep(0.5 if np.random.default_rng(seed).random() < 0.1 else 0.02)
        return self.inner(solution, seed)


def strike(solution, seed):
    """A puck that is struck three times, ever more softly, and where it is at 16 moments."""
    blows = solution.reshape(3, 2)
    rest = np.array([0.5, 0.3, 0.2]) @ (blows * np.abs(blows))
    return -float(np.abs(solution).mean()), np.linspace(0, 1, 16)[:, None] ** 0.5 * rest, rest


def throughput(mode, batch):
    """Evaluations per second, and the share of time that workers were busy, once two trainings are over."""
    seen, losses = [], set()

    def observe(event):
        if isinstance(event, Status) and event.phase == "running":
            losses.update(event.latest["loss"][~np.isnan(event.latest["loss"])].tolist())
            if len(losses) > 2:
                seen.append((time.monotonic(), event.activity.busy, event.activity.finished))

    with tempfile.TemporaryDirectory() as folder:
        sizes = {**SIZES, "batch_size": batch, "iterations": 10_000, "solution_dim": 6}
        options = {"workers": WORKERS, "mode": mode, "out": f"{folder}/run", "observe": observe}
        vqelites.run(Straggling(strike), **sizes, **options, stop=lambda: len(seen) > MEASURED // batch)
    (began, busy, done), (ended, busier, more) = seen[0], seen[-1]
    return (more - done) / (ended - began), (busier - busy) / (ended - began) / WORKERS


def reach(solution, seed):
    """An arm of six joints in the plane, and where its joints are."""
    angles = np.cumsum(np.pi * solution / 3)
    joints = np.cumsum(np.stack([np.cos(angles), np.sin(angles)], axis=1), axis=0) / 6
    return -float(np.var(solution)), joints.ravel(), joints[-1]


TASKS = {"puck": strike, "arm": reach}
MODES = ("step", "async")
SEEN = {"truth_low": (-1, -1), "truth_high": (1, 1), "bins": (12, 12)}


def coverage(task, mode, seed, iterations=60):
    """Coverage and trainings of a run with batches of 64. In step it does not matter how long an evaluation takes."""
    simulator = TASKS[task] if mode == "step" else Straggling(TASKS[task])
    with tempfile.TemporaryDirectory() as folder:
        sizes = {**SIZES, "batch_size": 64, "iterations": iterations, "solution_dim": 6, "bounded": True}
        workers = None if mode == "step" else WORKERS
        options = {"workers": workers, "mode": mode, "seed": seed, "observe": silent, "draw": False}
        metrics = vqelites.run(simulator, **sizes, **SEEN, **options, out=f"{folder}/run").metrics
    return metrics["coverage"].iloc[-1], metrics["loss"].notna().sum()


def compare_throughput(batch):
    """Print what both modes do with batches of this size."""
    (slow, idle), (fast, busy) = (throughput(mode, batch) for mode in ("step", "async"))
    print(
        f"batches of {batch}: in step {slow:.0f} evaluations/s, workers {idle:.1%} busy; "
        f"asynchronous {fast:.0f}, {busy:.1%} busy: {fast / slow:.2f} times",
        flush=True,
    )


def compare_coverage(task, modes, seeds):
    """Print what runs of a task cover."""
    for mode in modes:
        found, trainings = zip(*(coverage(task, mode, seed) for seed in seeds), strict=True)
        listed, counted = (" ".join(map(str, row)) for row in (np.round(found, 3), trainings))
        told = f"seeds {' '.join(map(str, seeds))}: median coverage {statistics.median(found):.3f} ({listed})"
        print(f"{task}, {mode}, {told}, trainings {counted}", flush=True)


def arguments():
    """What to measure."""
    parser = argparse.ArgumentParser(description="Runs in step and asynchronous ones, with stragglers.")
    parser.add_argument("what", nargs="*", default=["128", "32"], help="batch sizes, or `coverage` and tasks")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    return parser.parse_args()


if __name__ == "__main__":
    chosen = arguments()
    if chosen.what[0] == "coverage":
        for name in chosen.what[1:] or TASKS:
            compare_coverage(name, chosen.modes, chosen.seeds)
    else:
        for size in chosen.what:
            compare_throughput(int(size))
