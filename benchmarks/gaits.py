"""Robots of Brax that walk: what each algorithm covers of all gaits and speeds.

    python benchmarks/gaits.py ROBOT [--algorithms NAME ...] [--seeds 0 1 2 3 4] [--iterations N] [--batch-size N]
                               [--cells N] [--steps N] [--hidden N ...] [--out FOLDER]

MAP-Elites is given the share of time that each foot touches the ground. VQ-Elites and AURORA+ learn from observations
at 32 moments of an episode, and `autoqd` has AutoQD's descriptor (`fourier.py`); they know nothing of feet. All have
the same policies, evaluations and variation, and are paid for going forward. Counted are coverage and QD score (the
sum of the best fitness of each bin, less the worst that any had) over the feet and over mean velocity. Needs the extra
`brax`.

One program runs the episodes of all algorithms and seeds of an iteration, on a GPU if JAX has one. The searches are
driven from the host, on the CPU, where AURORA+'s archive takes newcomers a hundred times as fast. `ROBOT.json` and
`ROBOT.npz` (what every elite did) in the folder are renewed at every tenth of the run.
"""

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from fourier import Principal, Visited

from vqelites.algorithms import Effort, vq_elites
from vqelites.drive.host import Host
from vqelites.drive.position import Position, Rows
from vqelites.experiments.build import build
from vqelites.experiments.presets import settings
from vqelites.frames import ArchiveFrame
from vqelites.keys import evaluation_keys
from vqelites.metrics import outcomes, project
from vqelites.tasks.brax import BraxTask
from vqelites.tasks.brax.robots import ROBOTS
from vqelites.tessellation import grid
from vqelites.types import Bins

ALGORITHMS = ("vq-elites", "aurora-plus", "map-elites", "autoqd")
FASTEST = 6.0  # m/s
VELOCITY_BINS = {1: (100,), 2: (20, 20)}  # by directions
BOOTSTRAP = 2  # batches of random policies
LOOKS = 10  # times that the elites are counted in a run


class Found(NamedTuple):
    """What episodes showed, one row each."""

    fitness: Any  # (n,)
    observations: Any  # (n, moments, o)
    visited: Any  # (n, f) mean Fourier features of the states
    feet: Any  # (n, feet)
    velocity: Any  # (n, 1 or 2) mean velocity of the body while it stood


@eqx.filter_jit
def episodes(seen: Visited, seeds: jax.Array, ids: jax.Array, solutions: jax.Array) -> Found:
    """All that is wanted of the episodes of (n,) solutions, each with the seed of its run."""
    robot = seen.robot
    keys = jax.vmap(lambda seed, number: evaluation_keys(seed, number[None])[0])(seeds, ids)
    found, moments = jax.vmap(robot.both)(keys, solutions)
    seconds = jnp.maximum(moments.alive.sum(axis=1) - 1, 1) * robot.env.dt
    width = ROBOTS[robot.subject].directions
    velocity = (moments.place[:, -1, :width] - moments.place[:, 0, :width]) / seconds[:, None]
    return Found(found.fitness, found.behavior, seen.visited(moments), found.truth, velocity)


@dataclass
class Search:
    """One algorithm with one seed, and the velocities of all its solutions by their ids."""

    name: str
    seed: int
    host: Host
    at: Position
    velocity: np.ndarray  # (ids, 1 or 2)

    def ask(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids and solutions."""
        self.at, ids, solutions = self.host.ask(self.at, count)
        return ids, solutions

    def tell(self, ids: np.ndarray, solutions: np.ndarray, found: Found) -> None:
        """What they did."""
        self.velocity[ids] = found.velocity
        behavior = found.visited if self.name == "autoqd" else found.observations
        self.at, _ = self.host.tell(self.at, Rows(ids, solutions, found.fitness, behavior, found.feet))

    def elites(self) -> dict[str, np.ndarray]:
        """What the elites did."""
        archive = ArchiveFrame.of(self.host.qd.archive.elites(self.at.state.archive))
        return {"fitness": archive.fitness, "feet": archive.truth, "velocity": self.velocity[archive.ids]}


def algorithm(name: str, task: BraxTask, seen: Visited, asked: argparse.Namespace) -> Any:
    """The algorithm of a name."""
    if name == "autoqd":
        effort = Effort(asked.iterations, asked.batch_size, bootstrap=BOOTSTRAP * asked.batch_size)
        return vq_elites(seen, Principal(4, asked.cells), update_every=50, effort=effort)  # type: ignore[arg-type]
    chosen: Any = settings("robots", name, "paper")
    search = replace(
        chosen.search, iterations=asked.iterations, batch_size=asked.batch_size, bootstrap=BOOTSTRAP * asked.batch_size
    )
    sizes = {"vq-elites": {"cells": asked.cells}, "aurora-plus": {"target": asked.cells, "capacity": 2 * asked.cells}}
    return build(task, replace(chosen, search=search, **sizes.get(name, {})))


def searches(task: BraxTask, seen: Visited, asked: argparse.Namespace) -> list[list[Search]]:
    """Of every algorithm those of all seeds, which share their programs."""
    count, width = (BOOTSTRAP + asked.iterations) * asked.batch_size, ROBOTS[task.subject].directions
    hosts = {name: Host(algorithm(name, task, seen, asked)) for name in asked.algorithms}
    return [
        [Search(name, seed, host, host.begin(seed), np.zeros((count, width), np.float32)) for seed in asked.seeds]
        for name, host in hosts.items()
    ]


def generation(groups: list[list[Search]], seen: Visited, batch: int, pool: ThreadPoolExecutor, where: Any) -> None:
    """Ask, run all episodes, and tell."""
    everyone = [search for group in groups for search in group]
    asked = list(pool.map(lambda search: search.ask(batch), everyone))
    seeds = np.repeat(np.array([search.seed for search in everyone], np.uint32), batch)
    ids, solutions = (np.concatenate(column) for column in zip(*asked, strict=True))
    found = jax.device_get(episodes(seen, *jax.device_put((seeds, ids, solutions), where)))
    parts = [Found(*(column[i * batch : (i + 1) * batch] for column in found)) for i in range(len(everyone))]
    list(pool.map(lambda search, mine, part: search.tell(*mine, part), everyone, asked, parts))


def measured(task: BraxTask, found: dict[str, Any], worst: float) -> dict[str, float]:
    """Coverage and QD score in both spaces."""
    width = found["velocity"].shape[1]
    low, high = (-FASTEST,) * width, (FASTEST,) * width
    centres = grid(VELOCITY_BINS[width], low, high)
    result = {"elites": float(len(found["fitness"])), "best": float(found["fitness"].max())}
    for space, bins in (("feet", task.bins), ("velocity", Bins(centres, jnp.ones(len(centres), bool)))):
        counted = project(bins, outcomes(found[space], found["fitness"] - worst))
        result |= {f"{space} coverage": float(counted.occupied.mean()), f"{space} QD": float(counted.fitness.sum())}
    return result


def looked(task: BraxTask, groups: list[list[Search]]) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Numbers of every algorithm and seed so far, and what their elites did."""
    found = {(search.name, search.seed): search.elites() for group in groups for search in group}
    worst = min(float(one["fitness"].min()) for one in found.values())
    rows = [
        {"robot": task.subject, "algorithm": name, "seed": seed} | measured(task, one, worst)
        for (name, seed), one in found.items()
    ]
    return rows, {f"{name}/{seed}/{key}": values for (name, seed), one in found.items() for key, values in one.items()}


def table(rows: list[dict[str, Any]]) -> str:
    """The numbers of all seeds, one line for each algorithm."""
    columns = [column for column in rows[0] if column not in ("robot", "algorithm", "seed")]
    lines = ["| robot | algorithm | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for robot, name in dict.fromkeys((row["robot"], row["algorithm"]) for row in rows):
        mine = [row for row in rows if row["algorithm"] == name]
        cells = [" ".join(f"{row[column]:.4g}" for row in mine) for column in columns]
        lines.append(f"| {robot} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot", choices=ROBOTS, metavar="ROBOT", help=f"one of {', '.join(ROBOTS)}")
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], metavar="SEED")
    parser.add_argument("--iterations", type=int, default=200, metavar="N")
    parser.add_argument("--batch-size", type=int, default=1024, metavar="N")
    parser.add_argument("--cells", type=int, default=1000, metavar="N")
    parser.add_argument("--steps", type=int, default=250, metavar="N")
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64], metavar="N")
    parser.add_argument("--out", type=Path, default=Path("gaits"), metavar="FOLDER")
    asked = parser.parse_args()
    where = jax.devices()[0]
    jax.config.update("jax_default_device", jax.devices("cpu")[0])
    task = BraxTask(asked.robot, steps=asked.steps, hidden=tuple(asked.hidden))
    seen = Visited(task)
    groups = searches(task, seen, asked)
    asked.out.mkdir(parents=True, exist_ok=True)
    began, rows = time.monotonic(), []
    with ThreadPoolExecutor(len(asked.algorithms) * len(asked.seeds)) as pool:
        for done in range(1, BOOTSTRAP + asked.iterations + 1):
            generation(groups, seen, asked.batch_size, pool, where)
            iteration = done - BOOTSTRAP
            if iteration < 0 or (iteration % max(asked.iterations // LOOKS, 1) and iteration < asked.iterations):
                continue
            now, elites = looked(task, groups)
            rows += [{"evaluations": done * asked.batch_size} | row for row in now]
            (asked.out / f"{asked.robot}.json").write_text(json.dumps(rows, indent=1))
            np.savez_compressed(asked.out / f"{asked.robot}.npz", **elites)  # type: ignore[arg-type]
            print(f"iteration {iteration}, {time.monotonic() - began:.0f} s on {where}\n{table(now)}", flush=True)


if __name__ == "__main__":
    main()
