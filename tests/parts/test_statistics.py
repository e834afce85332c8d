"""Bands and exact tests, against scipy, brute force and known tables."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from references import statistics as reference

from vqelites import statistics
from vqelites.statistics import bands, by_task, compare, equivalence, holm, mann_whitney, smallest_p, summarise

few_values = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=5)  # many ties
chances = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(few_values, few_values)
def test_u_and_p_are_those_of_all_splits_even_with_ties(first, second):
    u, p = reference.mann_whitney(first, second)
    test = mann_whitney(first, second)
    assert test.u == u
    assert test.p == pytest.approx(p, rel=1e-12)
    assert test.effect == pytest.approx(u / (len(first) * len(second)))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 4), (5, 5), (10, 10), (7, 20), (30, 30)])
def test_without_ties_p_is_scipys_exact_one(n, m):
    random = np.random.default_rng(n * m)
    for shift in (0.0, 0.5, 1.0):
        first, second = random.normal(size=n), random.normal(size=m) + shift
        theirs = scipy.stats.mannwhitneyu(first, second, method="exact")
        ours = mann_whitney(first, second)
        assert ours.u == theirs.statistic
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-10)


def test_with_ties_p_is_scipys_permutation_test():
    first, second = [1, 2, 2, 5, 5], [2, 3, 3, 5, 7, 7]

    def u(x, y):
        return scipy.stats.mannwhitneyu(x, y).statistic

    theirs = scipy.stats.permutation_test((first, second), u, n_resamples=np.inf)
    assert mann_whitney(first, second).p == pytest.approx(theirs.pvalue, rel=1e-12)


@given(few_values, few_values, st.sampled_from([0.5, 1.0, 2.0]))
def test_equivalence_is_refuting_both_one_sided_differences(first, second, margin):
    above = reference.rank_tails([x + margin for x in first], second)[1]
    below = reference.rank_tails([x - margin for x in first], second)[0]
    assert equivalence(first, second, margin) == pytest.approx(max(above, below), rel=1e-12)


def test_equivalence_needs_seeds_and_a_margin():
    assert equivalence([1.0] * 3, [1.0] * 3, 0.1) == pytest.approx(1 / 20)
    assert equivalence([1.0] * 5, [1.0] * 5, 0.1) == pytest.approx(1 / 252)
    assert equivalence([1.0] * 5, [1.1] * 5, 0.1) > 0.5
    with pytest.raises(ValueError, match="margin above 0, got 0"):
        equivalence([1.0], [1.0], 0)


def test_p_of_the_published_table_for_5_and_10_runs():
    """Completely separated groups reach the floor: 2/252 and 2/184,756."""
    for n, floor in ((5, 0.0079), (10, 1.08e-5)):
        assert mann_whitney(range(n), range(n, 2 * n)).p == pytest.approx(floor, rel=0.01)
        assert mann_whitney(range(n), range(n, 2 * n)).p == pytest.approx(smallest_p(n, n), rel=1e-12)


def test_critical_values_of_the_published_u_tables():
    """Two-sided, 5 %: U is critical at 2 for n = m = 5 and at 23 for n = m = 10; one more is not."""
    for n, critical in ((5, 2), (10, 23)):
        for u, below in ((critical, True), (critical + 1, False)):
            assert (mann_whitney(*_groups_with(n, u)).p <= 0.05) == below


def _groups_with(n, u):
    """Two groups without ties, n each, of which the first beats the second in u pairs."""
    full, rest = divmod(u, n)
    first = [-1.0 - i for i in range(n)]
    for i in range(full):
        first[i] = 100.0 + i
    if rest:
        first[full] = rest - 0.5
    return first, list(range(n))


def test_large_groups_stay_exact_down_to_the_last_split():
    """1 of C(100, 50) splits, about 1e-29: lost by any method that takes one chance from another."""
    ranks = 2 * np.arange(1, 101)
    assert statistics._rank_sums(ranks, 50).sum() == pytest.approx(1, rel=1e-12)
    assert mann_whitney(range(50), range(50, 100)).p == pytest.approx(smallest_p(50, 50), rel=1e-9)


@given(few_values, few_values)
def test_swapping_the_groups_or_mapping_the_values_changes_nothing_but_the_direction(first, second):
    test, swapped = mann_whitney(first, second), mann_whitney(second, first)
    assert swapped.p == pytest.approx(test.p, rel=1e-12)
    assert swapped.u + test.u == len(first) * len(second)
    assert swapped.effect + test.effect == pytest.approx(1)
    bent = mann_whitney(np.exp(first), np.exp(second))
    assert (bent.u, bent.p) == (test.u, test.p)
    assert test.p >= smallest_p(len(first), len(second)) * (1 - 1e-12)


def test_groups_of_equal_values_show_nothing():
    test = mann_whitney([3.0] * 4, [3.0] * 6)
    assert (test.u, test.p, test.effect) == (12, 1, 0.5)


@pytest.mark.parametrize("group", [[], [1.0, float("nan")], [[1.0]]])
def test_groups_without_numbers_are_an_error(group):
    for pair in ((group, [1.0]), ([1.0], group)):
        with pytest.raises(ValueError, match="at least one number each, without NaN"):
            mann_whitney(*pair)
    with pytest.raises(ValueError, match="at least one value"):
        smallest_p(0, 3)


def test_one_seed_each_can_never_show_anything():
    assert smallest_p(1, 1) == 1
    assert mann_whitney([1.0], [2.0]).p == 1


@given(chances)
def test_holm_follows_its_definition(values):
    corrected = holm(values)
    np.testing.assert_allclose(corrected, reference.holm(values), rtol=1e-12)
    assert (corrected >= values).all()
    assert (corrected <= 1).all()
    for i, j in itertools.permutations(range(len(values)), 2):
        assert values[i] > values[j] or corrected[i] <= corrected[j]


def test_holm_by_hand_and_against_nothing():
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
    assert holm([]).shape == (0,)
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.1, float("nan")])


def curves(**seeds):
    rows = [(name, i, value) for name, values in seeds.items() for i, value in values.items()]
    return pd.DataFrame(rows, columns=["seed", "iteration", "pqd"])


def test_bands_are_quartiles_over_seeds_at_shared_iterations():
    table = bands(curves(a={1: 0, 2: 10, 3: 5}, b={2: 20, 1: 4}, c={1: 8, 2: 30, 3: 7}), "pqd")
    assert table["iteration"].tolist() == [1, 2]  # b never got to 3
    assert table["median"].tolist() == [4, 20]
    assert table["low"].tolist() == [2, 15]
    assert table["high"].tolist() == [6, 25]


def test_the_band_of_one_seed_is_its_curve_and_of_a_missing_number_is_missing():
    table = bands(curves(a={1: 3.0, 2: float("nan")}), "pqd")
    for column in ("low", "median", "high"):
        np.testing.assert_array_equal(table[column], [3, np.nan])


def test_bands_of_mixed_algorithms_or_disjoint_seeds_are_an_error():
    with pytest.raises(ValueError, match="one algorithm at a time"):
        bands(pd.concat([curves(a={1: 0})] * 2), "pqd")
    with pytest.raises(ValueError, match="no iteration in common"):
        bands(curves(a={1: 0}, b={2: 0}), "pqd")
    with pytest.raises(ValueError, match=r"'coverage'.*missing"):
        bands(curves(a={1: 0}), "coverage")


def results():
    """Two tasks; on each, c is far above a and b, which are alike; only c has a loss."""
    rows = [
        (task, algorithm, seed, base + seed + (0.1 if algorithm == "b" else 0), 1.0 if algorithm == "c" else np.nan)
        for task in ("arm", "maze")
        for algorithm, base in (("a", 0), ("b", 0), ("c", 100))
        for seed in range(5)
    ]
    return pd.DataFrame(rows, columns=["task", "algorithm", "seed", "pqd", "loss"])


def test_every_pair_is_compared_on_every_task_and_corrected_there():
    table = compare(results(), ["pqd"])
    assert list(zip(table["task"], table["first"], table["second"], strict=True)) == [
        (task, *pair) for task in ("arm", "maze") for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    arm = table[table["task"] == "arm"].set_index(["first", "second"])
    clear = arm.loc[("a", "c")]
    assert (clear["median_first"], clear["median_second"]) == (2, 102)
    assert (clear["n_first"], clear["n_second"], clear["u"], clear["effect"]) == (5, 5, 0, 0)
    assert clear["p"] == pytest.approx(2 / 252)
    assert clear["p_holm"] == pytest.approx(3 * 2 / 252)  # three pairs on this task, not six on both
    assert clear["smallest_p"] == pytest.approx(2 / 252)
    assert arm.loc[("a", "b"), "p_holm"] > 0.5


def test_an_algorithm_without_a_metric_is_left_out_of_it():
    assert compare(results(), ["loss"]).empty
    assert summarise(results(), ["loss"])["algorithm"].tolist() == ["c", "c"]


def test_a_number_missing_for_some_seeds_is_an_error():
    table = results()
    table.loc[2, "pqd"] = np.nan
    with pytest.raises(ValueError, match=r"pqd of a on arm.*NaN for seeds \[2\]"):
        compare(table, ["pqd"])


def test_a_run_that_is_there_twice_is_an_error():
    with pytest.raises(ValueError, match=r"\(arm, a, 0\) is there more than once"):
        compare(pd.concat([results(), results()[:1]]), ["pqd"])


def test_missing_seeds_show_in_the_sizes_and_the_floor():
    table = compare(results()[1:], ["pqd"])
    assert table.loc[0, "n_first"] == 4
    assert table.loc[0, "smallest_p"] == pytest.approx(2 / 126)


def test_summary_and_the_layout_of_the_paper():
    summary = summarise(results(), ["pqd"]).set_index(["task", "algorithm"])
    assert summary.loc[("arm", "c"), ["n", "low", "median", "high"]].tolist() == [5, 101, 102, 103]
    laid_out = by_task(compare(results(), ["pqd"]), "pqd", "p")
    assert list(laid_out) == ["first", "second", "arm", "maze"]
    assert laid_out[["first", "second"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert laid_out.loc[1, "maze"] == pytest.approx(2 / 252)
