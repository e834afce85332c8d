"""What ask + tell costs beside the simulator, next to pyribs' scheduler, in one run.

    python benchmarks/asktell.py

Batches of 128 solutions of 10 numbers, behavior of 30, 2,000 cells, no training. pyribs is given two of these numbers
as measures. Rounds alternate; the medians are compared.
"""

import statistics
import time
import warnings

import numpy as np

from vqelites import VQElites

BATCH, CELLS, SOLUTION, BEHAVIOR, ROUNDS = 128, 2000, 10, 30, 300


def simulate(solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fitness (n,) and behavior (n, 30) of solutions (n, 10), at hardly any cost."""
    return -np.square(solutions).sum(axis=1), np.tile(solutions, 3)


def ours():
    """One round of VQ-Elites, once it is trained on its bootstrap."""
    qd = VQElites(
        solution_dim=SOLUTION, behavior_shape=BEHAVIOR, cells=CELLS, bootstrap=1280, bootstrap_epochs=1,
        update_every=10**6, window=BATCH, archive=0, iterations=10**6,
    )  # fmt: skip
    qd.tell(*simulate(qd.ask(1280)))

    def round_() -> float:
        began = time.perf_counter()
        solutions = qd.ask(BATCH)
        asked = time.perf_counter() - began
        fitness, behavior = simulate(solutions)
        began = time.perf_counter()
        qd.tell(fitness, behavior)
        return asked + time.perf_counter() - began

    return round_


def ribs():
    """One round of pyribs' CVT-MAP-Elites."""
    from ribs.archives import CVTArchive
    from ribs.emitters import IsoLineEmitter
    from ribs.schedulers import Scheduler

    centres = np.random.default_rng(0).uniform(-1, 1, (CELLS, 2))
    archive = CVTArchive(solution_dim=SOLUTION, centroids=centres, ranges=[(-1, 1)] * 2, seed=0)
    emitter = IsoLineEmitter(archive, x0=np.zeros(SOLUTION), iso_sigma=0.01, line_sigma=0.2, batch_size=BATCH, seed=0)
    scheduler = Scheduler(archive, [emitter])

    def round_() -> float:
        began = time.perf_counter()
        solutions = scheduler.ask()
        asked = time.perf_counter() - began
        fitness, behavior = simulate(solutions)
        began = time.perf_counter()
        scheduler.tell(fitness, behavior[:, :2])
        return asked + time.perf_counter() - began

    return round_


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    rounds = {"vqelites": ours(), "pyribs": ribs()}
    spent: dict[str, list[float]] = {name: [] for name in rounds}
    for number in range(ROUNDS + 20):
        for name, round_ in rounds.items():
            seconds = round_()
            if number >= 20:
                spent[name].append(seconds)
    middle = {name: 1000 * statistics.median(times) for name, times in spent.items()}
    for name, milliseconds in middle.items():
        print(f"{name:10} {milliseconds:.2f} ms per ask + tell of {BATCH}")
    print(f"ratio {middle['vqelites'] / middle['pyribs']:.2f} (wanted: at most 2)")


if __name__ == "__main__":
    main()
