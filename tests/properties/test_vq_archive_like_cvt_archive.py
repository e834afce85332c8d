"""With the identity as encoder and the same cells, VQArchive holds what pyribs' CVTArchive holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("ribs", reason="needs the extra ribs: pip install 'vqelites[ribs]'")

from ribs.archives import CVTArchive

from vqelites.ribs import VQArchive

pytestmark = pytest.mark.filterwarnings("ignore:The model has learned next to nothing")  # in 2 epochs
CELLS = 9
# Few values of each, so that cells are shared and objectives tie.
rows = st.tuples(*[st.sampled_from([-1.0, -0.4, 0.1, 0.45, 0.9])] * 2, st.sampled_from([-2.0, 0.0, 0.25, 1.0]))
batches = st.lists(st.lists(rows, min_size=1, max_size=8), min_size=1, max_size=4)
rules = st.sampled_from([{}, {"learning_rate": 0.25, "threshold_min": -1.0}])


def identity(x):
    """What a behavior is encoded to: itself."""
    return x


def transparent(**rule):
    """A VQArchive whose measures are the behavior itself."""
    plain = {"standardise": False, "principal": False, "bounded": False, "bootstrap_epochs": 2, "epochs": 2}
    return VQArchive(solution_dim=1, behavior_shape=2, cells=CELLS, encoder=identity, decoder=identity, **plain, **rule)


def columns(batch, first):
    """Solutions with a number of their own, objectives and behavior."""
    table = np.array(batch)
    return first + np.arange(len(batch), dtype=float)[:, None], table[:, 2], table[:, :2]


def held(archive):
    """The elites by cell."""
    data = archive.data(["index", "solution", "objective", "measures", "threshold"])
    return {cell: row for cell, *row in zip(*(values.tolist() for values in data.values()), strict=True)}


@given(batches, rules)
def test_it_holds_the_same_elites_with_the_same_statistics(batches, rule):
    ours = transparent(**rule)
    theirs = CVTArchive(solution_dim=1, centroids=ours.centroids, ranges=[(-1, 1)] * 2, **rule)
    for number, batch in enumerate(batches):
        solution, objective, behavior = columns(batch, 100 * number)
        measures = ours.encode(behavior)
        told = ours.add(solution, objective, measures, behavior=behavior)
        expected = theirs.add(solution, objective, measures)
        np.testing.assert_array_equal(told["status"], expected["status"])
        np.testing.assert_array_equal(told["value"], expected["value"])
        assert held(ours) == held(theirs)
        assert ours.stats == theirs.stats


@pytest.mark.slow
@settings(max_examples=15)
@given(batches, rules)
def test_after_a_training_it_holds_the_fittest_of_every_new_cell(batches, rule):
    """Against a plain loop over all that was kept; the first training begins anew, as CVTArchive would."""
    ours = transparent(**rule)
    first = columns([(x, y, z) for x in (-0.9, 0.0, 0.8) for y in (-0.7, 0.1, 0.6) for z in (0.0, 0.5)], 0)
    ours.add(first[0], first[1], ours.encode(first[2]), behavior=first[2])
    ours.train()
    theirs = CVTArchive(solution_dim=1, centroids=ours.centroids, ranges=[(-1, 1)] * 2, **rule)
    theirs.add(*first[:2], ours.encode(first[2]))
    assert held(ours) == held(theirs)
    for number, batch in enumerate(batches):
        solution, objective, behavior = columns(batch, 1000 * (number + 1))
        ours.add(solution, objective, ours.encode(behavior), behavior=behavior)
        kept = ours._kept()
        ours.train()
        best, threshold = {}, {}
        cells = ours.index_of(ours.encode(kept["behavior"]))
        for row, cell in enumerate(cells):
            threshold[cell] = max(threshold.get(cell, -np.inf), kept["threshold"][row])
            if cell not in best or kept["objective"][row] > kept["objective"][best[cell]]:
                best[cell] = row
        data = ours.data()
        assert sorted(data["index"]) == sorted(best)
        for place, cell in enumerate(data["index"]):
            assert data["solution"][place] == kept["solution"][best[cell]]
            assert data["threshold"][place] == threshold[cell]
        assert ours.stats.qd_score == pytest.approx(data["objective"].sum())
        assert ours.stats.obj_mean == pytest.approx(data["objective"].mean())
