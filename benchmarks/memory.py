"""Memory: the state of a run, how it grows, and the peak of a process that runs `mobile-free` at full size.

    python benchmarks/memory.py            # the table of states, at once
    python benchmarks/memory.py run        # the peak too, some minutes

The run is short, of some updates of one epoch each: all of its arrays have their full size from the start, and the most
memory is in use when the model is trained and looks at all stored behaviors. That it stays the same from update to
update shows that it is reached.
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

CASES = [  # cells, shape of a behavior, whether it is in 8 bits, seeds
    (2_000, (64, 64, 1), False, 1),
    (20_000, (64, 64, 1), False, 1),
    (2_000, (64, 64, 3), False, 1),
    (2_000, (64, 64, 3), True, 1),
    (20_000, (64, 64, 3), True, 1),
    (2_000, (30,), False, 1),
    (20_000, (30,), False, 1),
    (2_000, (64, 64, 1), False, 10),
]
UPDATES = 4


def megabytes(tree: object) -> float:
    """Of all arrays."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree)) / 1e6


def states() -> None:
    """What a state holds, with the automatic networks and the defaults of VQ-Elites."""
    names = "".join(f" {name:>8}" for name in ("elites", "others", "window", "model", "all"))
    print(f"{'cells':>7} {'behavior':>14} {'bits':>4} {'seeds':>5}{names}  MB; others: what the archive keeps beside")
    for cells, shape, eight_bit, seeds in CASES:
        task = SimulatorTask(print, Interface(100, behavior_shape=shape, truth_dim=2, eight_bit=eight_bit))
        qd = vq_elites(task, VQVAE(shape, 2, cells, codebook="random"), effort=Effort(iterations=100))
        state = state_like(qd)
        elites, *others = qd.archive.stored(state.archive)
        parts = elites, others, state.dataset, state.descriptor, state
        sizes = "".join(f" {seeds * megabytes(part):8.1f}" for part in parts)
        print(f"{cells:7} {'x'.join(map(str, shape)):>14} {8 if eight_bit else 32:4} {seeds:5}{sizes}")


def run() -> None:
    """The most memory this process held, and when."""
    chosen = settings("mobile-free", "vq-elites")
    chosen = replace(chosen, epochs=1, model=replace(chosen.model, bootstrap_epochs=1))
    task = registry.make("mobile-free")
    driver = Compiled(build(task, chosen), task)
    size = megabytes(state_like(driver.qd))
    print(f"mobile-free, preset paper, {jax.devices()[0].device_kind}: state {size:.0f} MB; {most()}", flush=True)
    state, _ = jax.block_until_ready(driver.begin(jnp.arange(1)))
    print(f"after the bootstrap: {most()}", flush=True)
    for first in range(0, UPDATES * chosen.update_every, chosen.update_every):
        state, _ = jax.block_until_ready(driver.advance(state, first, chosen.update_every))
        print(f"after iteration {first + chosen.update_every}: {most()}", flush=True)


def most() -> str:
    """The peaks so far, of this process and of its device if that has memory of its own."""
    device = jax.devices()[0].memory_stats()
    text = f"at most {peak():.0f} MB resident"
    return text if device is None else f"{text}, {device['peak_bytes_in_use'] / 1e6:.0f} MB on the device"


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    states()
    if "run" in sys.argv[1:]:
        run()
