"""LunarLander-v3 by 32 raw observations of the episode, next to pyribs' MAP-Elites given where it ends, (x, y).

    python benchmarks/lander.py [--seeds SEED ...] [--evaluations N] [--workers N] [--out FOLDER]

Both have the same policy (8-16-4), first random solutions, variation, number of evaluations and cells (500), and every
evaluation starts somewhere else, as its solution's id says. At last a new process replays the best elite: it must have
the return that is stored. Needs the extras `gym` and `ribs`.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
from frames import BATCH, CASES, bootstrap, count

import vqelites
from vqelites.evaluation import PoolEvaluator, Simulator, arrays, evaluation_seeds
from vqelites.tasks import registry, simulator_task
from vqelites.tasks.gym import Episode, GymTask

CASE = CASES["lander-observations"]


def landing(episode: Episode) -> np.ndarray:
    """Where it ends: x, y, and 1 if on the ground, where it crashed, came to rest, or stands when time is up."""
    x, y, *_, left, right = episode.observations[-1]
    return np.array([x, y, abs(x) < 1 and (episode.terminated or left or right)], np.float32)


def task() -> GymTask:
    """What both search."""
    return GymTask("LunarLander-v3", behavior="observations", truth=landing, truth_dim=3)


@registry.register("lander", "LunarLander-v3, with the place where it ends")
def lander() -> vqelites.tasks.SimulatorTask:
    """The same by name, for `vqelites replay --task-file`."""
    return simulator_task(task())


def learned(seed: int, evaluations: int, workers: int, out: Path) -> dict[str, float]:
    """What VQ-Elites' archive holds in the end."""
    first = bootstrap(evaluations)
    run = vqelites.run(
        "lander",
        seed=seed,
        out=out,
        workers=workers,
        cells=CASE.cells,
        bootstrap=first,
        iterations=(evaluations - first) // BATCH,
        overwrite=True,
    )
    return count(CASE, run.archive.fitness, run.archive.truth)


def given(seed: int, evaluations: int, workers: int) -> dict[str, float]:
    """What pyribs' grid over x and y holds in the end."""
    from ribs.archives import GridArchive
    from ribs.emitters import IsoLineEmitter
    from ribs.schedulers import Scheduler

    made, extra = task(), {"truth": ((3,), np.float32)}
    dim = made.interface.solution_dim
    archive = GridArchive(solution_dim=dim, dims=CASE.grid, ranges=CASE.ranges, seed=seed, extra_fields=extra)
    first = np.random.default_rng(seed).uniform(-1, 1, (bootstrap(evaluations), dim))
    emitter = IsoLineEmitter(
        archive, iso_sigma=0.01, line_sigma=0.2, initial_solutions=first, batch_size=BATCH, seed=seed
    )
    scheduler, done = Scheduler(archive, [emitter]), 0
    with PoolEvaluator(Simulator(made.simulate), workers) as evaluator:
        while done < evaluations:
            solutions = scheduler.ask()
            ids = range(done, done + len(solutions))
            results = evaluator.evaluate(ids, solutions.astype(np.float32), evaluation_seeds(seed, ids))
            fitness, _, truth = arrays(results, (32, 8), 3)
            scheduler.tell(fitness, truth[:, :2], truth=truth)
            done += len(solutions)
    return count(CASE, archive.data("objective"), archive.data("truth"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], metavar="SEED")
    parser.add_argument("--evaluations", type=int, default=CASE.evaluations, metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--out", type=Path, default=Path("runs/lander"), metavar="FOLDER")
    asked = parser.parse_args()
    for seed in asked.seeds:
        folder = asked.out / f"seed-{seed}"
        print(f"seed {seed}, VQ-Elites: {learned(seed, asked.evaluations, asked.workers, folder)}", flush=True)
        print(f"seed {seed}, pyribs given x and y: {given(seed, asked.evaluations, asked.workers)}", flush=True)
        command = ["replay", str(folder), "--task-file", __file__, "--out", str(folder / "best.gif")]
        subprocess.run([sys.executable, "-m", "vqelites", *command], check=True)


if __name__ == "__main__":
    main()
