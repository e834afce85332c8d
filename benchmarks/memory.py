"""Memory: the state of a run, how it grows, and the peak of a process that runs `mobile-free` at full size.

    python benchmarks/memory.py            # the table of states, at once
    python benchmarks/memory.py run        # the peak too, some minutes

The run is short, two updates of one epoch each: all of its arrays have their full size from the start.
"""

import resource
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp

from vqelites import Effort, vq_elites
from vqelites.descriptors import VQVAE
from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.experiments.presets import settings
from vqelites.runs.checkpoints import state_like
from vqelites.tasks import Interface, SimulatorTask, registry

CASES = [  # cells, shape of a behavior, seeds
    (2_000, (64, 64, 1), 1),
    (20_000, (64, 64, 1), 1),
    (2_000, (64, 64, 3), 1),
    (2_000, (30,), 1),
    (20_000, (30,), 1),
    (2_000, (64, 64, 1), 10),
]


def megabytes(tree: object) -> float:
    """Of all arrays."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree)) / 1e6


def states() -> None:
    """What a state holds, with the automatic networks and the defaults of VQ-Elites."""
    names = "".join(f" {name:>8}" for name in ("elites", "reserve", "window", "model", "all"))
    print(f"{'cells':>7} {'behavior':>14} {'seeds':>5}{names}  MB")
    for cells, shape, seeds in CASES:
        task = SimulatorTask(print, Interface(100, behavior_shape=shape, truth_dim=2))
        state = state_like(vq_elites(task, VQVAE(shape, 2, cells, codebook="random"), effort=Effort(iterations=100)))
        parts = state.archive.elites, state.archive.reserve, state.dataset, state.descriptor, state
        sizes = "".join(f" {seeds * megabytes(part):8.1f}" for part in parts)
        print(f"{cells:7} {'x'.join(map(str, shape)):>14} {seeds:5}{sizes}")


def run() -> None:
    """The most memory this process held, and when."""
    chosen = settings("mobile-free", "vq-elites")
    chosen = replace(chosen, epochs=1, model=replace(chosen.model, bootstrap_epochs=1))
    task = registry.make("mobile-free")
    driver = Compiled(build(task, chosen), task)
    print(f"mobile-free, preset paper: state {megabytes(state_like(driver.qd)):.0f} MB; resident {peak():.0f} MB")
    state, _ = jax.block_until_ready(driver.begin(jnp.arange(1)))
    print(f"after the bootstrap: at most {peak():.0f} MB", flush=True)
    for first in range(0, 2 * chosen.update_every, chosen.update_every):
        state, _ = jax.block_until_ready(driver.advance(state, first, chosen.update_every))
        print(f"after iteration {first + chosen.update_every}: at most {peak():.0f} MB", flush=True)


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    states()
    if "run" in sys.argv[1:]:
        run()
