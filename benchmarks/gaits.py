"""Robots of Brax that walk: what each algorithm covers of all gaits and speeds.

    python benchmarks/gaits.py [--robots ant halfcheetah] [--algorithms NAME ...] [--seeds 0 1 2 3 4] [--iterations N]
                               [--batch-size N] [--cells N] [--steps N] [--hidden N ...] [--out FILE.json]

MAP-Elites is given the share of time that each foot touches the ground. VQ-Elites and AURORA+ learn from observations
at 32 moments of an episode, and `autoqd` has AutoQD's descriptor (`fourier.py`); they know nothing of feet. All have
the same policies, evaluations and variation, and are paid for going forward. Counted are coverage and QD score (the
sum of the best fitness of each bin, less the worst that any had) over the feet and over mean velocity. Needs the extra
`brax`.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from fourier import Principal, Visited

from vqelites.algorithms import Effort, vq_elites
from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.experiments.presets import settings
from vqelites.frames import ArchiveFrame
from vqelites.keys import Stream, stream_keys
from vqelites.metrics import outcomes, project
from vqelites.tasks import AbstractTask
from vqelites.tasks.brax import BraxTask
from vqelites.tasks.brax.robots import ROBOTS
from vqelites.tessellation import grid
from vqelites.types import Bins

ALGORITHMS = ("vq-elites", "aurora-plus", "map-elites", "autoqd")
FASTEST = 6.0  # m/s
VELOCITY_BINS = {1: (100,), 2: (20, 20)}  # by directions
CHUNK = 50


def algorithm(name: str, task: BraxTask, asked: argparse.Namespace) -> tuple[Any, AbstractTask]:
    """The algorithm, and the task as it sees it."""
    if name == "autoqd":
        effort = Effort(asked.iterations, asked.batch_size, bootstrap=10 * asked.batch_size)
        seen = Visited(task)
        return vq_elites(seen, Principal(4, asked.cells), update_every=50, effort=effort), seen  # type: ignore[arg-type]
    chosen: Any = settings("robots", name, "paper")
    search = replace(
        chosen.search, iterations=asked.iterations, batch_size=asked.batch_size, bootstrap=10 * asked.batch_size
    )
    sizes = {"vq-elites": {"cells": asked.cells}, "aurora-plus": {"target": asked.cells, "capacity": 2 * asked.cells}}
    return build(task, replace(chosen, search=search, **sizes.get(name, {}))), task


def searched(name: str, task: BraxTask, asked: argparse.Namespace) -> list[ArchiveFrame]:
    """The archive of every seed."""
    qd, seen = algorithm(name, task, asked)
    runs = Compiled(qd, seen)
    state, _ = runs.begin(jnp.asarray(asked.seeds))
    for first in range(0, asked.iterations, CHUNK):
        state, _ = runs.advance(state, first, min(CHUNK, asked.iterations - first))
    elites = qd.archive.elites
    return [ArchiveFrame.of(elites(jax.tree.map(lambda x, i=i: x[i], state.archive))) for i in range(len(asked.seeds))]


@eqx.filter_jit
def velocities(task: BraxTask, seed: jax.Array, ids: jax.Array, solutions: jax.Array) -> jax.Array:
    """Mean velocity (n, 1 or 2) of the body while it stood, in the episodes that the elites had."""
    moments = jax.vmap(task.episode)(stream_keys(seed, Stream.EVALUATION, ids), solutions)
    seconds = jnp.maximum(moments.alive.sum(axis=1) - 1, 1) * task.env.dt
    return (moments.place[:, -1, :2] - moments.place[:, 0, :2]) / seconds[:, None]


def counted(task: BraxTask, seed: int, archive: ArchiveFrame, batch: int) -> dict[str, Any]:
    """Fitness, feet and velocity of the elites, to be measured once the worst fitness of all is known."""
    rows = np.arange(-(-len(archive) // batch) * batch) % len(archive)  # batches of one size are compiled once
    parts = [
        np.asarray(
            velocities(task, jnp.uint32(seed), jnp.asarray(archive.ids[part]), jnp.asarray(archive.solutions[part]))
        )
        for part in np.split(rows, len(rows) // batch)
    ]
    velocity = np.concatenate(parts)[: len(archive), : ROBOTS[task.subject].directions]
    return {"fitness": archive.fitness, "feet": archive.truth, "velocity": velocity}


def measured(task: BraxTask, found: dict[str, Any], worst: float) -> dict[str, float]:
    """Coverage and QD score in both spaces."""
    width = found["velocity"].shape[1]
    low, high = (-FASTEST,) * width, (FASTEST,) * width
    centres = grid(VELOCITY_BINS[width], low, high)
    result = {"elites": float(len(found["fitness"])), "best": float(found["fitness"].max())}
    for space, bins in (("feet", task.bins), ("velocity", Bins(centres, jnp.ones(len(centres), bool)))):
        seen = project(bins, outcomes(found[space], found["fitness"] - worst))
        result |= {f"{space} coverage": float(seen.occupied.mean()), f"{space} QD": float(seen.fitness.sum())}
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="+", default=["ant", "halfcheetah"], choices=ROBOTS, metavar="NAME")
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], metavar="SEED")
    parser.add_argument("--iterations", type=int, default=2000, metavar="N")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N")
    parser.add_argument("--cells", type=int, default=1000, metavar="N")
    parser.add_argument("--steps", type=int, default=250, metavar="N")
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64], metavar="N")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all numbers")
    asked = parser.parse_args()
    results: list[dict[str, Any]] = []
    for robot in asked.robots:
        task, found = BraxTask(robot, steps=asked.steps, hidden=tuple(asked.hidden)), []
        for name in asked.algorithms:
            began = time.monotonic()
            for seed, archive in zip(asked.seeds, searched(name, task, asked), strict=True):
                found.append((name, seed, counted(task, seed, archive, asked.batch_size)))
            print(f"{robot}, {name}: {time.monotonic() - began:.0f} s", flush=True)
        worst = min(float(one["fitness"].min()) for *_, one in found)
        results += [
            {"robot": robot, "algorithm": name, "seed": seed} | measured(task, one, worst) for name, seed, one in found
        ]
        if asked.out:
            asked.out.write_text(json.dumps(results, indent=1))
    columns = [column for column in results[0] if column not in ("robot", "algorithm", "seed")]
    print("| robot | algorithm | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 2) + "|")
    for robot in asked.robots:
        for name in asked.algorithms:
            rows = [one for one in results if (one["robot"], one["algorithm"]) == (robot, name)]
            cells = [" ".join(f"{row[column]:.4g}" for row in rows) for column in columns]
            print(f"| {robot} | {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
