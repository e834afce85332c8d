"""Metrics against worked examples and slow reference."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import metrics as reference

from vqelites import metrics
from vqelites.tessellation import grid
from vqelites.types import Bins, Elites, Sizes

CENTRES = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
BINS = Bins(jnp.asarray(CENTRES), jnp.array([True, True, True, False]))


project, measure, codebook_usage = map(eqx.filter_jit, (metrics.project, metrics.measure, metrics.codebook_usage))


def elites(truth, fitness, valid):
    empty = Elites.empty(len(truth), Sizes(1, (1,), 1, 1))
    truth = jnp.asarray(truth, jnp.float32)[:, None]
    fitness, valid = jnp.asarray(fitness, jnp.float32), jnp.asarray(valid)
    return eqx.tree_at(lambda e: (e.fitness, e.truth, e.valid), empty, (fitness, truth, valid))


def in_bins(*labels):
    """One elite of fitness 1 in each of these bins, in an archive of 9 places."""
    empty = 9 - len(labels)
    return elites([*labels, *[0] * empty], [1] * 9, [True] * len(labels) + [False] * empty)


def test_a_worked_example():
    archive = elites([0.1, -0.2, 2.4, 3.0, 9.0], [1.0, 3.0, 2.0, 5.0, 7.0], [True, True, True, True, False])
    values = measure(BINS, archive)
    assert values["size"] == 4
    assert values["coverage"] == pytest.approx(2 / 3)  # bins 0 and 2 of the three reachable ones
    assert values["pqd"] == pytest.approx(3 + 2)
    assert values["edr"] == pytest.approx(2 / 4)
    assert values["cds"] == pytest.approx(2 / 3 * 2 / 4)
    assert values["max_fitness"] == 5
    # Two elites in one bin, one in another: shares 2/3 and 1/3 of three bins.
    assert values["entropy"] == pytest.approx((2 / 3 * math.log(3 / 2) + 1 / 3 * math.log(3)) / math.log(3))
    np.testing.assert_array_equal(project(BINS, archive).best, [3, np.nan, 2, np.nan])


@pytest.mark.parametrize(
    "archive", [elites([0.0, 1.0], [1.0, 1.0], [False, False]), metrics.outcomes(np.zeros((0, 1)), [])]
)
def test_an_empty_archive_covers_nothing(archive):
    values = measure(BINS, archive)
    assert [float(values[name]) for name in ("size", "coverage", "pqd", "edr", "cds", "entropy")] == [0] * 6
    assert np.isnan(values["max_fitness"])


def test_one_elite_or_all_in_one_bin_have_no_entropy_and_full_shelves_have_all():
    one, crowd, even = (measure(BINS, in_bins(*labels)) for labels in ([1], [1, 1, 1], [0, 1, 2, 0, 1, 2]))
    assert (float(one["edr"]), float(crowd["edr"])) == (1, pytest.approx(1 / 3))
    assert (float(one["entropy"]), float(crowd["entropy"])) == (0, 0)
    assert float(even["entropy"]) == pytest.approx(1)


def test_a_single_reachable_bin_has_entropy_0_not_0_by_0():
    lone = Bins(BINS.centres, jnp.array([True, False, False, False]))
    assert measure(lone, in_bins(0, 0))["entropy"] == 0


rows = st.lists(st.tuples(st.integers(-2, 20), st.integers(-4, 4), st.booleans()), min_size=6, max_size=6)


@given(rows, st.permutations(range(6)))
def test_metrics_match_a_slow_reference_in_any_order_of_elites(table, order):
    table = [(t / 5 + 0.03, fitness, valid) for t, fitness, valid in table]  # never half way between two bins
    present = [(t, fitness) for t, fitness, valid in table if valid]
    expected = reference.measure(CENTRES[:, 0].tolist(), BINS.reachable.tolist(), present)
    for rows in (table, [table[i] for i in order]):
        values = measure(BINS, elites(*zip(*rows, strict=True)))
        assert values.keys() == expected.keys()
        for name, value in expected.items():
            assert float(values[name]) == pytest.approx(value, abs=1e-6, nan_ok=True), name


def test_only_elites_that_are_fit_enough_count_towards_coverage():
    archive = metrics.outcomes([[0.0], [1.0], [2.0]], np.exp([-0.04, -0.05, -0.06]))
    near = metrics.at_least(archive, math.exp(-0.05))
    assert near.size == 2
    assert float(metrics.coverage(project(BINS, near))) == pytest.approx(2 / 3)
    assert float(metrics.coverage(project(BINS, metrics.at_least(archive, 2.0)))) == 0


def test_outcomes_need_one_fitness_each():
    with pytest.raises(ValueError, match=r"shapes \(3, 1\) and \(2,\)"):
        metrics.outcomes(np.zeros((3, 1)), np.zeros(2))


def test_a_coarse_bin_is_reachable_if_it_holds_a_reachable_fine_one():
    fine = Bins(grid((6, 6), (0, 0), (1, 1)), jnp.zeros(36, bool).at[jnp.array([0, 35])].set(True))
    coarse = metrics.coarser(fine, (2, 2), (0, 0), (1, 1))
    np.testing.assert_array_equal(coarse.reachable, [True, False, False, True])
    np.testing.assert_allclose(coarse.centres[1], [0.25, 0.75])


def test_edr_at_a_common_size_by_hand():
    """Bins with 2, 1 and 0 elites, draws of 2: {a,a'} hits one bin, {a,b} and {a',b} two; so 5/3 bins of 2 elites."""
    projection = project(BINS, in_bins(0, 0, 1))
    assert metrics.edr_at(projection, 1) == pytest.approx(1)
    assert metrics.edr_at(projection, 2) == pytest.approx(5 / 3 / 2)
    assert metrics.edr_at(projection, 3) == pytest.approx(float(metrics.edr(projection)))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.data())
def test_edr_at_a_common_size_is_the_mean_over_all_draws(labels, data):
    size = data.draw(st.integers(1, len(labels)))
    bins = [None if label == 3 else label for label in labels]  # bin 3 is not reachable
    expected = reference.expected_occupied(bins, size) / size
    for order in (labels, labels[::-1]):
        assert metrics.edr_at(project(BINS, in_bins(*order)), size) == pytest.approx(expected, abs=1e-12)


def test_edr_at_a_common_size_keeps_its_digits_in_large_archives():
    """5,000 elites, two to a bin: a bin is missed by 2,000 draws with probability 3000 * 2999 / (5000 * 4999)."""
    counts = jnp.full(2500, 2, jnp.int32)
    large = metrics.Projection(counts, jnp.ones(2500), jnp.array(2500), jnp.array(5000))
    assert metrics.edr_at(large, 2000) == pytest.approx(2500 * (1 - 3000 * 2999 / (5000 * 4999)) / 2000, rel=1e-10)


@pytest.mark.parametrize("size", [0, 4])
def test_edr_at_a_size_the_archive_does_not_have_is_an_error(size):
    with pytest.raises(ValueError, match="between 1 and the 3 elites"):
        metrics.edr_at(project(BINS, in_bins(0, 0, 1)), size)


def test_codebook_usage_counts_codes_of_valid_descriptors_only():
    codebook = jnp.asarray([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    descriptors = jnp.asarray([[-0.9, 0.1], [-1.2, 0.0], [-0.8, 0.0], [0.1, 0.1], [1.0, 0.0]])
    used, perplexity = codebook_usage(codebook, descriptors, jnp.array([True, True, True, True, False]))
    assert used == 2
    assert float(perplexity) == pytest.approx(math.exp(0.75 * math.log(4 / 3) + 0.25 * math.log(4)))


@given(st.lists(st.integers(0, 4), max_size=8))
def test_perplexity_is_the_exponential_of_the_entropy_of_code_shares(codes):
    codebook = jnp.arange(5.0)[:, None]
    padded = jnp.asarray(codes + [0] * (8 - len(codes)), jnp.float32)[:, None]
    used, perplexity = codebook_usage(codebook, padded, jnp.arange(8) < len(codes))
    assert used == len(set(codes))
    assert float(perplexity) == pytest.approx(math.exp(reference.entropy([codes.count(c) for c in range(5)])), rel=1e-5)


def test_area_under_a_curve_by_hand():
    assert metrics.area_under_curve([0, 10, 20], [0.0, 4.0, 4.0]) == pytest.approx((20 + 40) / 20)
    assert metrics.area_under_curve([7], [3.0]) == 3


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=8), st.integers(1, 5))
def test_area_under_a_curve_lies_between_its_extremes_and_ignores_the_unit_of_time(values, step):
    iterations = np.arange(len(values))
    area = metrics.area_under_curve(iterations, values)
    slow = sum((a + b) / 2 for a, b in itertools.pairwise(values)) / (len(values) - 1)
    assert area == pytest.approx(slow, abs=1e-9)
    assert min(values) - 1e-9 <= area <= max(values) + 1e-9
    assert metrics.area_under_curve(iterations * step + 3, values) == pytest.approx(area, abs=1e-9)


@pytest.mark.parametrize(("iterations", "values"), [([], []), ([1, 1], [0, 0]), ([2, 1], [0, 0]), ([1, 2], [0])])
def test_area_needs_increasing_iterations_with_one_value_each(iterations, values):
    with pytest.raises(ValueError, match="increasing, with one value each"):
        metrics.area_under_curve(iterations, values)


def test_codebook_drift_by_hand():
    """Ten codes: one moves 5 in 10 iterations, then all move 1 in 5."""
    start = np.zeros((10, 2))
    middle = start.copy()
    middle[0] = [3, 4]
    drift = metrics.codebook_drift([10, 20, 25], [start, middle, middle + np.array([0, 1])])
    assert drift["iteration"].tolist() == [20, 25]
    np.testing.assert_allclose(drift["mean"], [0.05, 0.2])
    np.testing.assert_allclose(drift["p90"], [np.quantile([0.5] + [0.0] * 9, 0.9), 0.2])
    with pytest.raises(ValueError, match="at least 2 increasing iterations"):
        metrics.codebook_drift([10], start[None])


def test_metrics_are_the_same_under_jit_and_vmap():
    archives = [in_bins(0, 0, 1), in_bins(2, 3, 1)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *archives)
    together = jax.jit(jax.vmap(lambda e: metrics.measure(BINS, e)))(stacked)
    for i, archive in enumerate(archives):
        for name, value in measure(BINS, archive).items():
            np.testing.assert_allclose(together[name][i], value, rtol=1e-6)


def test_own_data_may_be_numpy_throughout():
    """Bins of NumPy arrays used to end in an AttributeError."""
    mine_did = metrics.outcomes(np.array([[0.1], [2.2]]), np.array([1.0, 2.0]))
    mine = Bins(np.asarray(BINS.centres, np.float64), np.asarray(BINS.reachable))
    found, expected = (metrics.measure(bins, mine_did) for bins in (mine, BINS))
    assert {name: float(value) for name, value in found.items()} == {n: float(v) for n, v in expected.items()}


def test_without_bins_only_what_needs_no_truth_is_measured():
    values = measure(None, elites([0.1, 1.1, 1.2], [1.0, -3.0, 9.0], [True, True, False]))
    assert {name: float(values[name]) for name in ("size", "max_fitness", "qd_score")} == {
        "size": 2, "max_fitness": 1, "qd_score": -2,
    }  # fmt: skip
    assert all(np.isnan(values[name]) for name in ("coverage", "pqd", "edr", "cds", "entropy"))
