"""What run folders cost: a run with metrics, checkpoints and archive next to its compiled programs alone.

    python benchmarks/overhead.py [TASK] [ALGORITHM] [ITERATIONS]

Both take turns on the same chunks in one process, so that other work on the machine hits both alike. Saving happens
every two minutes of computing, as it does by default, and at the end.
"""

import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp

from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.runs.config import Config
from vqelites.runs.events import Status
from vqelites.runs.runner import execute
from vqelites.tasks import registry


def main() -> None:
    """Measure and print."""
    task, algorithm, iterations = [*sys.argv[1:], *("arm", "vq-elites", "300")[len(sys.argv) - 1 :]][:3]
    config = Config.of(task, algorithm, iterations=int(iterations))
    made = registry.make(task)
    bare = Compiled(build(made, config.settings), made)  # no metrics either
    state, _ = bare.begin(jnp.array([0]))
    chunk = config.chunk
    state, _ = bare.advance(state, 0, chunk)
    spent = {"alone": 0.0, "run": 0.0}
    resumed = time.monotonic()

    def take_turns(event: object) -> None:
        """After every chunk of the run, the same chunk alone; the first compiles and is left out."""
        nonlocal state, resumed
        if not isinstance(event, Status) or event.phase != "running":
            return
        now = time.monotonic()
        if event.iteration > chunk:
            spent["run"] += now - resumed
            state, _ = jax.block_until_ready(bare.advance(state, event.iteration - chunk, chunk))
            spent["alone"] += time.monotonic() - now
        resumed = time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        execute(config, {0: Path(folder) / "run"}, observe=take_turns, draw=False)
        spent["run"] += time.monotonic() - resumed  # the last checkpoint and archive
        sizes = {path.name: path.stat().st_size for path in (Path(folder) / "run").iterdir() if path.is_file()}
        final = time.monotonic() - resumed
    count = int(iterations) - chunk
    print(f"{config.named}, {count} iterations after the first chunk, {jax.devices()[0].device_kind}")
    each = 1000 * spent["alone"] / count
    print(f"alone {spent['alone']:.1f} s ({each:.1f} ms per iteration), run {spent['run']:.1f} s")
    print(f"overhead {100 * (spent['run'] / spent['alone'] - 1):.2f} %, of it the last save: {final:.2f} s")
    print(f"archive.npz {sizes['archive.npz'] / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
