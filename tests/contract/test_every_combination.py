"""Every descriptor x archive x rule that makes sense runs under jit, vmap, scan and save/load, in the one loop."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import checkpoint, drive, schedule
from vqelites.archives import CellArchive, Compete, Cooperate, Dominate, UnstructuredArchive
from vqelites.dataset import Dataset
from vqelites.descriptors import VQVAE, AutoEncoder, HandCoded
from vqelites.drive import devices
from vqelites.loop import QD
from vqelites.tasks import PlanarArm
from vqelites.tessellation import grid
from vqelites.types import Sizes
from vqelites.variation import Gaussian

TASK = PlanarArm(joints=3, behavior="joints")
SHAPE = TASK.behavior_shape

DESCRIPTORS = {
    "hand-coded": lambda: HandCoded(2),
    "vq-vae": lambda: VQVAE(SHAPE, 2, 16),
    "vq-vae unbounded, from data": lambda: VQVAE(SHAPE, 2, 16, bounded=False, codebook="data", units="mixed"),
    "vq-vae unbounded, literal": lambda: VQVAE(
        SHAPE, 2, 16, bounded=False, standardise=False, principal=False, reduction="sum", stretch=0, equal=0, even=False
    ),
    "autoencoder": lambda: AutoEncoder(SHAPE, 2),
    "autoencoder unbounded": lambda: AutoEncoder(SHAPE, 2, bounded=False, stretch=1.0),
}
ARCHIVES = {
    "grid": lambda: CellArchive(grid((4, 4), (-1, -1), (1, 1))),
    "codebook": lambda: CellArchive(),
    "codebook with fringe": lambda: CellArchive(fringe=True),
    "unstructured": lambda: UnstructuredArchive(24, 16, initial=0.1),
}
RULES = {"compete": Compete, "cooperate": Cooperate, "dominate": Dominate}


def sensible(descriptor, archive):
    return descriptor.startswith("vq-vae") or not archive.startswith("codebook")


FAST = {
    ("hand-coded", "grid", "dominate"),
    ("hand-coded", "unstructured", "cooperate"),
}
SLOW = {  # what learns takes long to compile
    ("vq-vae", "codebook with fringe", "cooperate"),
    ("vq-vae", "grid", "dominate"),
    ("autoencoder", "unstructured", "compete"),
}
PAIRS = [pair for pair in itertools.product(DESCRIPTORS, ARCHIVES) if sensible(*pair)]


def combinations():
    """All of them; the fast and slow tests take every descriptor that is no variant, every archive and every rule."""
    for pair, rule in itertools.product(PAIRS, RULES):
        case = (*pair, rule)
        marks = () if case in FAST else pytest.mark.slow if case in SLOW else pytest.mark.long
        yield pytest.param(*pair, rule, marks=marks, id="-".join((*pair, rule)))


def compose(descriptor, archive, rule):
    learned = descriptor != "hand-coded"
    plan = schedule.every(4, update_every=2, epochs=2, cooperate=1) if learned else schedule.never(4)
    dataset = Dataset(window=16) if learned else Dataset()
    return QD(
        descriptor=DESCRIPTORS[descriptor](),
        archive=ARCHIVES[archive](),
        addition=RULES[rule](),
        variation=Gaussian(),
        space=TASK.space,
        schedule=plan,
        dataset=dataset,
        sizes=Sizes(3, SHAPE, 2, 2),
        batch_size=8,
        bootstrap=0,
    )


@pytest.mark.parametrize(("descriptor", "archive", "rule"), list(combinations()))
def test_runs_compiled_over_seeds_and_comes_back_from_disk(descriptor, archive, rule, tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "side_by_side", lambda runs: True)  # as on a GPU; on a CPU they would take turns
    qd = compose(descriptor, archive, rule)
    state = eqx.filter_jit(eqx.filter_vmap(qd.init))(jnp.arange(2))  # op by op it takes longer
    shapes = jax.tree.map(jnp.shape, state)
    # As when restored from disk: else the same programs would be compiled twice.
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(state))
    state, info = drive.Compiled(qd, TASK).advance(state, 0, 4)
    assert jax.tree.map(jnp.shape, state) == shapes
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(state))
    elites = qd.archive.elites(state.archive)
    assert (np.asarray(elites.valid).sum(axis=1) > 0).all()
    assert all(np.isfinite(np.asarray(x)).all() for x in jax.tree.leaves(eqx.filter(elites, eqx.is_inexact_array)))
    assert info.tell.rejected.sum() == 0
    trained = np.asarray(info.update.learn.epochs) > 0
    assert (np.asarray(info.update.map.behaviors) > 0).tolist() == trained.tolist()
    assert trained.sum(axis=1).tolist() == ([2, 2] if qd.schedule.learns else [0, 0])

    # Seeds differ: two runs side by side are not the same run twice.
    solution = np.asarray(elites.solution)
    assert (solution[0] != solution[1]).any()

    checkpoint.save(tmp_path / "state", state)
    back = checkpoint.restore(tmp_path / "state", jax.tree.map(jnp.zeros_like, state))
    jax.tree.map(np.testing.assert_array_equal, state, back)


@pytest.mark.parametrize("descriptor", [d for d in DESCRIPTORS if not d.startswith("vq-vae")])
def test_codebook_cells_need_a_descriptor_with_a_codebook(descriptor):
    with pytest.raises(ValueError, match="cells"):
        compose(descriptor, "codebook", "compete").init(0)
