"""Inserting a batch of 128 solutions: this package next to QDax, in one process, their turns alternating.

Run with `python benchmarks/archive.py` where `vqelites[bench]` is installed.
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from qdax.core.containers.mapelites_repertoire import MapElitesRepertoire

from vqelites.archives.addition import AbstractAddition, Compete, Dominate
from vqelites.archives.base import AbstractArchive
from vqelites.archives.cells import CellArchive
from vqelites.archives.unstructured import UnstructuredArchive
from vqelites.types import Elites, Sizes

BATCH, STEPS, TURNS, SOLUTION = 128, 20, 15, 10


def batches(d: int, steps: int = STEPS, rows: int = BATCH) -> Elites:
    """Batches of random solutions of 10 numbers."""
    solution, fitness, descriptor = jax.random.split(jax.random.key(0), 3)
    return Elites(
        id=jnp.broadcast_to(jnp.arange(rows), (steps, rows)),
        solution=jax.random.uniform(solution, (steps, rows, SOLUTION)),
        fitness=jax.random.uniform(fitness, (steps, rows)),
        behavior=jnp.zeros((steps, rows, 0)),
        descriptor=jax.random.uniform(descriptor, (steps, rows, d)),
        truth=jnp.zeros((steps, rows, 0)),
        valid=jnp.ones((steps, rows), bool),
    )


def ours(archive: AbstractArchive, rule: AbstractAddition, data: Elites) -> Callable[[], object]:
    """Our archive, filled by all batches; the timed call offers them all again."""
    state = archive.init(Sizes(SOLUTION, (0,), data.descriptor.shape[-1]), None)
    scan = jax.jit(lambda state, data: jax.lax.scan(lambda s, batch: archive.insert(s, batch, rule), state, data)[0])
    filled = scan(state, data)
    return lambda: scan(filled, data)


def qdax(cells: jax.Array, data: Elites) -> Callable[[], object]:
    """QDax's repertoire, the same way."""

    def add(repertoire: MapElitesRepertoire, batch: Elites) -> tuple[MapElitesRepertoire, None]:
        return repertoire.add(batch.solution, batch.descriptor, batch.fitness), None

    empty = MapElitesRepertoire.init_default(genotype=jnp.zeros(SOLUTION), centroids=cells)
    scan = jax.jit(lambda repertoire, data: jax.lax.scan(add, repertoire, data)[0])
    filled = scan(empty, data)
    return lambda: scan(filled, data)


def medians(*calls: Callable[[], object]) -> list[float]:
    """Median milliseconds per batch of each call."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(TURNS):
        for call, spent in zip(calls, times, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(call())
            spent.append((time.perf_counter() - start) / STEPS * 1e3)
    return [statistics.median(spent) for spent in times]


def main() -> None:
    """Print the table."""
    print(f"{jax.devices()[0]}, milliseconds per batch of {BATCH}, median of {TURNS} x {STEPS}")
    print(f"{'archive':<28}{'d':>3}{'ours':>10}{'QDax':>10}{'ratio':>8}")
    for k in (1_500, 15_000):
        for d in (2, 5, 10):
            cells, data = jax.random.uniform(jax.random.key(1), (k, d)), batches(d)
            mine, theirs = medians(ours(CellArchive(cells), Compete(), data), qdax(cells, data))
            print(f"{f'{k} cells, compete':<28}{d:>3}{mine:>10.3f}{theirs:>10.3f}{theirs / mine:>8.1f}")
    for rule in (Compete(), Dominate()):
        for threshold, state in ((0.3, "contested"), (1e-5, "full")):
            archive = UnstructuredArchive(capacity=1_500, target=1_500, initial=threshold)
            (mine,) = medians(ours(archive, rule, batches(5)))
            name = f"1500 slots, {type(rule).__name__.lower()}, {state}"
            print(f"{name:<28}{5:>3}{mine:>10.3f}{'-':>10}{'-':>8}")


if __name__ == "__main__":
    main()
