"""Time per iteration of the paper's tasks at full size, after everything is compiled.

    python benchmarks/iterations.py [TASK ...] [--seeds N] [--algorithms NAME ...]

Iterations with their updates, in whole update periods, for the algorithms whose iterations are all alike; the bootstrap
is cut short, since it is not timed.
"""

import argparse
import time
from dataclasses import replace

import jax
import jax.numpy as jnp

from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.experiments.config import VQElitesSettings
from vqelites.experiments.presets import settings
from vqelites.studies.catalogue import TASKS
from vqelites.tasks import registry

ENOUGH = 5.0  # seconds of measuring
ALIKE = ("map-elites", "cvt-map-elites", "vq-elites")


def milliseconds(task: str, algorithm: str, seeds: int) -> float:
    """Per iteration, all seeds together."""
    chosen = settings(task, algorithm)
    period = 10
    if isinstance(chosen, VQElitesSettings):
        chosen, period = replace(chosen, model=replace(chosen.model, bootstrap_epochs=1)), chosen.update_every
    made = registry.make(task)
    run = Compiled(build(made, chosen), made)
    state, _ = run.begin(jnp.arange(seeds))
    state, _ = jax.block_until_ready(run.advance(state, 0, period))
    done, start = 0, time.monotonic()
    while time.monotonic() - start < ENOUGH:
        state, _ = jax.block_until_ready(run.advance(state, period + done, period))
        done += period
    return 1000 * (time.monotonic() - start) / done


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--seeds", type=int, default=1, help="computed by one program")
    parser.add_argument("--algorithms", nargs="+", default=ALIKE, choices=ALIKE)
    asked = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, {asked.seeds} seed(s) together, milliseconds per iteration of 128")
    for task in asked.tasks:
        times = {name: milliseconds(task, name, asked.seeds) for name in asked.algorithms}
        print(f"{task:16}" + "".join(f"  {name} {value:8.1f}" for name, value in times.items()), flush=True)


if __name__ == "__main__":
    main()
