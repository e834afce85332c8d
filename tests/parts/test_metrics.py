"""Metrics against a worked example and a slow reference."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites import metrics
from vqelites.types import Bins, Elites, Sizes

CENTRES = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
BINS = Bins(jnp.asarray(CENTRES), jnp.array([True, True, True, False]))


def elites(truth, fitness, valid):
    empty = Elites.empty(len(truth), Sizes(1, (1,), 1, 1))
    truth = jnp.asarray(truth, jnp.float32)[:, None]
    fitness, valid = jnp.asarray(fitness, jnp.float32), jnp.asarray(valid)
    return Elites(empty.solution, fitness, empty.behavior, empty.descriptor, truth, valid)


def test_a_worked_example():
    archive = elites([0.1, -0.2, 2.4, 3.0, 9.0], [1.0, 3.0, 2.0, 5.0, 7.0], [True, True, True, True, False])
    values = metrics.measure(BINS, archive)
    assert values["size"] == 4
    assert values["coverage"] == pytest.approx(2 / 3)  # bins 0 and 2 of the three reachable ones
    assert values["pqd"] == pytest.approx(3 + 2)
    assert values["edr"] == pytest.approx(2 / 4)
    assert values["cds"] == pytest.approx(2 / 3 * 2 / 4)
    assert values["max_fitness"] == 5


def test_an_empty_archive_covers_nothing():
    values = metrics.measure(BINS, elites([0.0, 1.0], [1.0, 1.0], [False, False]))
    assert [float(values[name]) for name in ("size", "coverage", "pqd", "edr", "cds")] == [0, 0, 0, 0, 0]
    assert np.isnan(values["max_fitness"])


def reference(truth, fitness, valid):
    best = {}
    for t, f, v in zip(truth, fitness, valid, strict=True):
        nearest = int(np.argmin(np.abs(CENTRES[:, 0] - t)))
        if v and bool(BINS.reachable[nearest]):
            best[nearest] = max(f, best.get(nearest, -np.inf))
    size = sum(valid)
    coverage = len(best) / 3
    edr = len(best) / size if size else 0.0
    return {"coverage": coverage, "pqd": sum(best.values()), "edr": edr, "cds": coverage * edr}


rows = st.lists(st.tuples(st.integers(-2, 20), st.integers(-4, 4), st.booleans()), min_size=6, max_size=6)


@given(rows, st.permutations(range(6)))
def test_metrics_match_a_slow_reference_in_any_order_of_elites(table, order):
    truth, fitness, valid = (list(column) for column in zip(*table, strict=True))
    truth = [t / 5 + 0.03 for t in truth]  # never half way between two bins
    expected = reference(truth, fitness, valid)
    shuffled = [[column[i] for i in order] for column in (truth, fitness, valid)]
    for columns in ((truth, fitness, valid), shuffled):
        values = metrics.measure(BINS, elites(*columns))
        for name, value in expected.items():
            assert float(values[name]) == pytest.approx(value, abs=1e-6)
