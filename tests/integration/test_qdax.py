"""An archive becomes QDax's repertoire and comes back."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("qdax", reason="needs the extra qdax: pip install 'vqelites[qdax]'")

from qdax.core.containers.mapelites_repertoire import MapElitesRepertoire, get_cells_indices

from vqelites.frames import ArchiveFrame
from vqelites.qdax import from_repertoire, to_repertoire
from vqelites.tessellation import nearest

CELLS = np.random.default_rng(0).uniform(-1, 1, (20, 2)).astype(np.float32)


@pytest.fixture(autouse=True)
def _as_qdax_is_written():
    """It relies on what our own tests forbid."""
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def archive():
    """Eight elites in twenty cells."""
    rng = np.random.default_rng(1)
    cells = np.sort(rng.permutation(20)[:8]).astype(np.int32)
    return ArchiveFrame(
        ids=rng.permutation(100)[:8].astype(np.int32),
        solutions=rng.normal(size=(8, 3)).astype(np.float32),
        fitness=rng.normal(size=8).astype(np.float32),
        behavior=rng.uniform(size=(8, 4, 4, 1)).astype(np.float32),
        descriptors=CELLS[cells] + np.float32(1e-3),
        truth=rng.normal(size=(8, 2)).astype(np.float32),
        cells=cells,
    )


def equal(first, second):
    """Whether two archives hold the same, bit for bit."""
    for name, values in vars(first).items():
        np.testing.assert_array_equal(getattr(second, name), values, err_msg=name)
        assert getattr(second, name).dtype == values.dtype, name


def test_there_and_back(archive):
    equal(archive, from_repertoire(to_repertoire(archive, CELLS)))


def test_an_empty_archive(archive):
    nobody = archive.take(np.zeros(0, int))
    there = to_repertoire(nobody, CELLS)
    assert (np.asarray(there.fitnesses) == -np.inf).all()
    equal(nobody, from_repertoire(there))


def test_qdax_goes_on_with_it(archive):
    """It finds the same cells, samples elites alone, and a fitter solution takes its cell."""
    repertoire = to_repertoire(archive, CELLS)
    np.testing.assert_array_equal(
        get_cells_indices(jnp.asarray(archive.descriptors), repertoire.centroids), archive.cells
    )
    drawn = repertoire.select(jax.random.key(0), 50).genotypes
    assert {tuple(row) for row in np.asarray(drawn)} <= {tuple(row) for row in archive.solutions}
    place, fitter = archive.descriptors[:1], archive.fitness[:1] + 1
    scores = {"id": np.array([7], np.int32), "behavior": archive.behavior[:1], "truth": archive.truth[:1]}
    after = from_repertoire(repertoire.add(jnp.ones((1, 3)), jnp.asarray(place), jnp.asarray(fitter), scores))
    assert len(after) == len(archive)
    assert after.ids[0] == 7
    np.testing.assert_array_equal(after.solutions[0], np.ones(3))


def test_a_repertoire_of_qdax_is_read():
    rng = np.random.default_rng(2)
    descriptors = rng.uniform(-1, 1, (30, 2)).astype(np.float32)
    solutions, fitness = rng.normal(size=(30, 3)).astype(np.float32), rng.normal(size=30).astype(np.float32)
    made = MapElitesRepertoire.init(solutions, fitness, jnp.asarray(descriptors), jnp.asarray(CELLS))
    archive = from_repertoire(made)
    cell = np.asarray(nearest(jnp.asarray(descriptors), jnp.asarray(CELLS)))
    assert dict(zip(archive.cells.tolist(), archive.fitness.tolist(), strict=True)) == {
        int(one): float(fitness[cell == one].max()) for one in set(cell)
    }
    assert archive.behavior.shape == (len(archive), 0)
    assert archive.best(1).fitness == fitness.max()


def test_what_does_not_fit_is_refused(archive):
    with pytest.raises(ValueError, match=r"cells must have shape \(k, 2\)"):
        to_repertoire(archive, CELLS[:, :1])
    with pytest.raises(ValueError, match="above the largest cell"):
        to_repertoire(archive, CELLS[:5])
    repertoire = to_repertoire(archive, CELLS)
    with pytest.raises(ValueError, match="ravel_pytree"):
        from_repertoire(repertoire.replace(genotypes={"weights": repertoire.genotypes}))
    with pytest.raises(ValueError, match="2 objectives"):
        from_repertoire(repertoire.replace(fitnesses=jnp.zeros((20, 2))))


def test_without_qdax_the_extra_is_named():
    code = "import sys; sys.modules['qdax'] = None; from vqelites.qdax import _repertoire_class as c; c()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "vqelites[qdax]"' in done.stderr
