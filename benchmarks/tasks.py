"""Coverage of VQ-Elites on the paper's tasks, several seeds in one program.

    python benchmarks/tasks.py arm arm-constrained [--preset quick] [--seeds SEED ...] [--override FIELD=VALUE ...]

What `vqelites run TASK --seed SEED` finds, without run folders; prints how far it is on the way.
`--override fringe=False` tries another setting.
"""

import argparse
import functools
import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
from sensors import override

from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.experiments.presets import settings
from vqelites.metrics import measure
from vqelites.studies.catalogue import TASKS
from vqelites.tasks import registry

COLUMNS = ("coverage", "size", "max_fitness", "pqd")
REPORTS = 10  # of a run


def final(
    task: str, preset: str, seeds: list[int], overrides: list[str], report: bool = False
) -> dict[str, np.ndarray]:
    """What the archives hold at the end, a number per seed; reports print how far the runs are."""
    chosen = functools.reduce(override, overrides, settings(task, "vq-elites", preset))
    made = registry.make(task)
    search = Compiled(build(made, chosen), made, functools.partial(measure, made.bins))
    start = time.monotonic()
    state, _ = search.begin(jnp.asarray(seeds))
    total = chosen.search.iterations
    marks = np.linspace(0, total, REPORTS + 1).astype(int)
    for begin, end in itertools.pairwise(marks):
        state, info = search.advance(state, int(begin), int(end - begin))
        lost = np.asarray(info.update.lost)
        found = {name: np.asarray(info.measures[name])[:, -1] for name in COLUMNS}
        found["lost per update"] = lost.sum(axis=1) / np.maximum((lost > 0).sum(axis=1), 1)
        line = "; ".join(f"{name} {' '.join(f'{value:.4g}' for value in values)}" for name, values in found.items())
        if report:
            print(f"{task} {preset} {end}/{total} ({time.monotonic() - start:.0f} s): {line}", flush=True)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], metavar="SEED")
    parser.add_argument("--override", nargs="+", default=[], metavar="FIELD=VALUE", help="settings of VQ-Elites")
    asked = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, seeds {asked.seeds} {' '.join(asked.override)}", flush=True)
    for task in asked.tasks:
        coverage = final(task, asked.preset, asked.seeds, asked.override, report=True)["coverage"]
        outcome = f"median {np.median(coverage):.3f}, worst {coverage.min():.3f}"
        print(f"{task} {asked.preset} seeds {asked.seeds}: {outcome}", flush=True)


if __name__ == "__main__":
    main()
