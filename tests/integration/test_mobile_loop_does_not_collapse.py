"""The fixed point of image models: one code, one elite that stands still, children that stand still."""

import functools
from dataclasses import replace

import jax.numpy as jnp
import pytest

from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.experiments.presets import settings
from vqelites.metrics import measure
from vqelites.tasks import registry


@pytest.mark.long
def test_the_mobile_loop_does_not_stay_collapsed():
    """Most cells are filled after 30 iterations; a collapsed loop has one elite."""
    task, quick = registry.make("mobile-free"), settings("mobile-free", "vq-elites", "quick")
    small = replace(
        quick,
        search=replace(quick.search, iterations=30),
        model=replace(quick.model, bootstrap_epochs=5),
        cells=500,
        epochs=5,
    )
    run = Compiled(build(task, small), task, functools.partial(measure, task.bins))
    state, _ = run.begin(jnp.arange(1))
    _, info = run.advance(state, 0, 30)
    assert info.measures["size"][0, -1] > 400
    assert info.measures["coverage"][0, -1] > 0.35
