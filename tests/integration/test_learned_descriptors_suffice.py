"""The promise: without seeing the truth, VQ-Elites covers it about as well as CVT-MAP-Elites, which is given it."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import Effort, cvt_map_elites, vq_elites
from vqelites.descriptors import VQVAE
from vqelites.drive import Compiled
from vqelites.metrics import measure
from vqelites.tasks import PlanarArm

CELLS, ITERATIONS, SEEDS = 1200, 400, 5


def final_metrics(qd, task):
    runs = Compiled(qd, task, functools.partial(measure, task.bins))
    state, _ = runs.begin(jnp.arange(SEEDS))
    _, info = runs.advance(state, 0, ITERATIONS)
    return {name: np.asarray(values)[:, -1] for name, values in info.measures.items()}


@pytest.mark.long
@pytest.mark.shipped
def test_vq_elites_reaches_nine_tenths_of_the_coverage_of_cvt_map_elites():
    task, effort = PlanarArm(behavior="joints"), Effort(ITERATIONS)
    given = final_metrics(cvt_map_elites(task, CELLS, effort=effort), task)
    learned = final_metrics(vq_elites(task, VQVAE(task.behavior_shape, 2, CELLS), effort=effort), task)
    print(f"\ncoverage of {SEEDS} seeds: CVT-MAP-Elites {given['coverage']}, VQ-Elites {learned['coverage']}")
    assert np.median(learned["coverage"]) >= 0.9 * np.median(given["coverage"])
