"""Row by row, a batch insert says what pyribs' batch add says of the same data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references.archives import Record, elites

from vqelites.archives import CellArchive, Compete, InsertStatus
from vqelites.types import Sizes

ribs = pytest.importorskip("ribs.archives", reason="needs the extra ribs: pip install 'vqelites[ribs]'")

CELLS = np.array([(x, y) for x in (0.0, 1.0, 2.0) for y in (0.0, 1.0, 2.0)], np.float32)
BATCH = 8

# Near a cell's centre, where both find the same cell; few values of fitness, so that there are ties.
rows = st.tuples(
    st.integers(0, len(CELLS) - 1), st.sampled_from([-0.25, 0.0, 0.25]), st.sampled_from([-2.0, 0.0, 0.3, 1.0])
)
batches = st.lists(st.lists(rows, min_size=BATCH, max_size=BATCH), min_size=3, max_size=3)

archive = CellArchive(jnp.asarray(CELLS))
empty = archive.init(Sizes(solution=1, behavior=(2, 1), descriptor=2, truth=1), None)
insert = jax.jit(lambda state, batch: archive.insert(state, batch, Compete()))


def test_statuses_have_the_numbers_of_pyribs():
    ours = (InsertStatus.REJECTED, InsertStatus.IMPROVED, InsertStatus.NEW)
    assert ours == (ribs.AddStatus.NOT_ADDED, ribs.AddStatus.IMPROVE_EXISTING, ribs.AddStatus.NEW)


@given(batches)
def test_status_and_gain_are_those_of_pyribs(batches):
    theirs = ribs.CVTArchive(solution_dim=1, centroids=CELLS, ranges=[(-1.0, 3.0), (-1.0, 3.0)], dtype=np.float32)
    state = empty
    for batch in batches:
        near = [Record(i, f, tuple(CELLS[cell] + shift)) for i, (cell, shift, f) in enumerate(batch)]
        offers = elites(near)
        told = theirs.add(offers.solution, offers.fitness, offers.descriptor)
        state, info = insert(state, offers)
        np.testing.assert_array_equal(info.rows.status, told["status"])
        np.testing.assert_array_equal(info.rows.gain, told["value"])
        stays = np.asarray(info.rows.place) >= 0
        np.testing.assert_array_equal(info.rows.place[stays], np.array([cell for cell, *_ in batch])[stays])
        held = theirs.data(["index", "objective"])
        np.testing.assert_array_equal(np.flatnonzero(state.elites.valid), np.sort(held["index"]))
        np.testing.assert_array_equal(state.elites.fitness[held["index"]], held["objective"])
