"""The training that ends the bootstrap and the later ones are one program: what they work with has the same shapes."""

import jax
import jax.numpy as jnp
import pytest

from vqelites.algorithms import Effort, vq_elites
from vqelites.dataset import Dataset
from vqelites.descriptors import VQVAE
from vqelites.tasks import PlanarArm

TASK = PlanarArm(joints=3, behavior="joints")


@pytest.mark.parametrize("bootstrap", [8, 40, 400])
@pytest.mark.parametrize(
    "dataset",
    [Dataset(16), Dataset(8, archive=20), Dataset(8, archive=99), Dataset(8, archive=5, replay=70, memory=90)],
)
def test_assignments_have_one_shape_and_rows_as_announced(bootstrap, dataset):
    effort = Effort(iterations=4, batch_size=8, bootstrap=bootstrap)
    qd = vq_elites(TASK, VQVAE(TASK.behavior_shape, 2, 25), dataset=dataset, effort=effort)

    def assigned(seed):
        state = qd.init(seed)
        samples, _ = qd.dataset.samples(state.dataset, jax.random.key(0), qd.archive.elites(state.archive))
        return samples, qd.assign(state, qd.schedule.at(0)), qd.assign(qd.emptied(state), qd.schedule.at(0))

    samples, first, later = jax.eval_shape(assigned, jnp.uint32(0))
    assert len(samples) == qd.dataset.rows(25)
    assert jax.tree.structure(first) == jax.tree.structure(later)
    assert [x.shape for x in jax.tree.leaves(first)] == [x.shape for x in jax.tree.leaves(later)]
    assert len(first.mask) == max(bootstrap, len(samples))
