"""The small pinned runs, and the command that pins them anew: `python tests/golden/regenerate.py`."""

import functools
import json
from pathlib import Path

import jax.numpy as jnp

from vqelites import Effort, aurora_plus, cvt_map_elites, map_elites, vq_elites
from vqelites.archives import UnstructuredArchive
from vqelites.descriptors import VQVAE, AutoEncoder
from vqelites.drive import Compiled
from vqelites.metrics import measure
from vqelites.tasks import PlanarArm

TASK = PlanarArm(behavior="joints")
EFFORT = Effort(iterations=10, batch_size=32, bootstrap=64, bootstrap_epochs=5)
RUNS = {
    "map-elites": lambda: map_elites(TASK, TASK.cells, effort=EFFORT),
    "cvt-map-elites": lambda: cvt_map_elites(TASK, 100, effort=EFFORT),
    "vq-elites": lambda: vq_elites(TASK, VQVAE(TASK.behavior_shape, 2, 100), epochs=2, effort=EFFORT),
    "aurora-plus": lambda: aurora_plus(
        TASK, AutoEncoder(TASK.behavior_shape, 2), UnstructuredArchive(150, 100, initial=0.05), epochs=3, effort=EFFORT
    ),
}


def summarise(name: str) -> dict[str, float]:
    """The final metrics of a run."""
    runs = Compiled(RUNS[name](), TASK, functools.partial(measure, TASK.bins))
    state, _ = runs.begin(jnp.array([0]))
    _, info = runs.advance(state, 0, EFFORT.iterations)
    return {key: float(values[0, -1]) for key, values in info.measures.items()}


if __name__ == "__main__":
    path = Path(__file__).parent / "runs.json"
    path.write_text(json.dumps({name: summarise(name) for name in RUNS}, indent=2) + "\n")
