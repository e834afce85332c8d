"""Memory: the state of a run, how it grows, and the peak of a process that runs `mobile-free` at full size.

    python benchmarks/memory.py            # the table of states, at once
    python benchmarks/memory.py run        # the peak too, some minutes
    python benchmarks/memory.py frames     # the peak of ask/tell with frames of 64x64x3, in 8 bits and as floats

The run is short, of some updates of one epoch each: all of its arrays have their full size from the start, and the most
memory is in use when the model is trained and looks at all stored behaviors. That it stays the same from update to
update shows that it is reached.
"""

import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from vqelites import Effort, VQElites, vq_elites
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


def frames() -> None:
    """The most memory of ask/tell, each kind of frames in a process of its own."""
    for eight_bit in (True, False):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            print(process.submit(told, eight_bit).result(), flush=True)


def told(eight_bit: bool) -> str:
    """Of 2,000 cells and two trainings after the first."""
    before, dice = peak(), np.random.default_rng(0)
    qd = VQElites(solution_dim=8, behavior_shape=(64, 64, 3), cells=2_000, bootstrap_epochs=10, epochs=1)
    board = np.linspace(-1, 1, 64)
    seconds = 0.0
    for _ in range(30):
        x, y = qd.ask(128)[:, :2, None].swapaxes(0, 1)
        light = np.exp(-5 * ((board - x) ** 2)[:, :, None] - 5 * ((board - y) ** 2)[:, None])
        images = np.round(255 * light[..., None] * dice.uniform(0.9, 1, 3)).astype(np.uint8)
        began = time.monotonic()
        qd.tell(np.zeros(128), images if eight_bit else images / np.float32(255))
        seconds += time.monotonic() - began
    kind = "8 bits" if eight_bit else "floats"
    state = megabytes(qd._now.state)
    return f"frames in {kind}: state {state:.0f} MB, at most {peak() - before:.0f} MB more; told in {seconds:.1f} s"


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
    if "frames" in sys.argv[1:]:
        frames()
