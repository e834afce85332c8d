"""What VQArchive costs beside pyribs' CVTArchive with the same cells: `python benchmarks/pyribs_archive.py`."""

import statistics
import time

import numpy as np
from ribs.archives import CVTArchive

from vqelites.ribs import VQArchive

BATCH, CELLS, ROUNDS = 108, 300, 200
WEIGHTS = np.random.default_rng(0).normal(size=(8, 30))


def median(times: list[float]) -> float:
    """In milliseconds."""
    return 1e3 * statistics.median(times)


def plain(archive: VQArchive) -> CVTArchive:
    """pyribs' own, over the same cells."""
    return CVTArchive(solution_dim=8, centroids=archive.centroids, ranges=[(-1, 1)] * 2)


def main() -> None:
    """Solutions of 8 numbers with behavior (30,), in batches of three CMA-ME emitters."""
    rng = np.random.default_rng(1)
    archive = VQArchive(solution_dim=8, behavior_shape=(30,), cells=CELLS)
    theirs = plain(archive)
    spent: dict[str, list[float]] = {"encode": [], "add": [], "CVTArchive.add": [], "train": []}

    def timed(name, call, *values, **named):
        began = time.perf_counter()
        result = call(*values, **named)
        spent[name].append(time.perf_counter() - began)
        return result

    for i in range(1, ROUNDS + 1):
        solutions = 0.5 * rng.normal(size=(BATCH, 8))
        objective, behavior = -np.square(solutions).sum(axis=1), np.sin(solutions @ WEIGHTS)
        told = (solutions, objective, timed("encode", archive.encode, behavior))
        timed("add", archive.add, *told, behavior=behavior)
        timed("CVTArchive.add", theirs.add, *told)
        if i % 10 == 0:
            timed("train", archive.train, i / ROUNDS)
            theirs = plain(archive)
    print(f"compiling, with the first training: {spent['train'][0]:.1f} s")
    for name, times in spent.items():
        print(f"{name}: {median(times):.2f} ms (median of {len(times)})")


if __name__ == "__main__":
    main()
