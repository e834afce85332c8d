"""LunarLander-v3 by 32 raw observations of the episode, next to pyribs' MAP-Elites given where it ends, (x, y).

    python benchmarks/lander.py [--same-start] [--seeds SEED ...] [--evaluations N] [--workers N] [--out FOLDER]

Both have the same policy (8-16-4), first random solutions, variation, number of evaluations and cells (500). Every
evaluation starts with another push over another ground, as its solution's id says; with `--same-start` all start alike.
At last a new process replays the best elite: it must have the return that is stored. Needs the extras `gym` and `ribs`.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
from frames import BATCH, CASES, bootstrap, count
from worlds import landing

import vqelites
from vqelites.evaluation import PoolEvaluator, Simulator, arrays, evaluation_seeds
from vqelites.tasks import registry
from vqelites.tasks.gym import GymTask

CASE = CASES["lander-observations"]


class SameStart(gymnasium.Wrapper):
    """Every episode starts as with seed 0."""

    def reset(self, **options):
        return super().reset(**options | {"seed": 0})


TASKS = {
    "lander": lambda: GymTask("LunarLander-v3", behavior="observations", truth=landing),
    "lander-same-start": lambda: GymTask("LunarLander-v3", behavior="observations", truth=landing, wrapper=SameStart),
}
for name, make in TASKS.items():  # for `vqelites replay --task-file`, too
    registry.register(name, "LunarLander-v3, with the place where it ends")(make)


def learned(task: str, seed: int, evaluations: int, workers: int, out: Path) -> dict[str, float]:
    """What VQ-Elites' archive holds in the end."""
    first = bootstrap(evaluations)
    run = vqelites.run(
        task,
        seed=seed,
        out=out,
        workers=workers,
        cells=CASE.cells,
        bootstrap=first,
        iterations=(evaluations - first) // BATCH,
        overwrite=True,
    )
    return count(CASE, run.archive.fitness, run.archive.truth)


def given(task: str, seed: int, evaluations: int, workers: int) -> dict[str, float]:
    """What pyribs' grid over x and y holds in the end."""
    from ribs.archives import GridArchive
    from ribs.emitters import IsoLineEmitter
    from ribs.schedulers import Scheduler

    made, extra = TASKS[task](), {"truth": ((3,), np.float32)}
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
    parser.add_argument("--same-start", action="store_true")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], metavar="SEED")
    parser.add_argument("--evaluations", type=int, default=CASE.evaluations, metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--out", type=Path, default=Path("runs"), metavar="FOLDER")
    asked = parser.parse_args()
    task = "lander-same-start" if asked.same_start else "lander"
    for seed in asked.seeds:
        folder, size = asked.out / f"{task}-{seed}", (asked.evaluations, asked.workers)
        print(f"{task}, seed {seed}, VQ-Elites: {learned(task, seed, *size, folder)}", flush=True)
        print(f"{task}, seed {seed}, pyribs given x and y: {given(task, seed, *size)}", flush=True)
        command = ["replay", str(folder), "--task-file", __file__, "--out", str(folder / "best.gif")]
        beside = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}  # where a task file finds what it imports
        subprocess.run([sys.executable, "-m", "vqelites", *command], check=True, env=beside)


if __name__ == "__main__":
    main()
