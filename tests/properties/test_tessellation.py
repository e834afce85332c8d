"""Cells and the search for the nearest one, against float64 NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites import distinct as distinct_rows
from vqelites import tessellation
from vqelites.tessellation import arranged, cvt, grid, kmeans

nearest, distinct = jax.jit(tessellation.nearest), jax.jit(distinct_rows.distinct)


@jax.jit
def on_accelerators(points, cells):
    return tessellation._nearest(jnp.asarray(points), jnp.asarray(cells))


searches = [nearest, on_accelerators]


def squared(points, cells):
    return ((np.asarray(points, float)[:, None] - np.asarray(cells, float)) ** 2).sum(-1)


@pytest.mark.parametrize("search", searches)
@pytest.mark.parametrize(
    ("n", "k", "d"), [(1, 1, 1), (7, 3, 2), (128, 1500, 5), (2500, 300, 2), (64, 700, 10), (2000, 2200, 3)]
)
def test_nearest_is_nearest(search, n, k, d):
    random = np.random.default_rng(0)
    points, cells = (random.uniform(-1, 1, (count, d)).astype(np.float32) for count in (n, k))
    found = np.asarray(search(points, cells))
    distance = squared(points, cells)
    assert found.dtype == np.int32
    # Cells whose distances differ by less than float32 can tell count as equally near.
    np.testing.assert_allclose(distance[np.arange(n), found], distance.min(1), rtol=1e-6)


lattice = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=6, max_size=6)


@pytest.mark.parametrize("search", searches)
@given(points=lattice, cells=lattice)
def test_ties_go_to_the_lowest_index(search, points, cells):
    points, cells = np.array(points, np.float32) / 8, np.array(cells, np.float32) / 8
    np.testing.assert_array_equal(search(points, cells), squared(points, cells).argmin(1))


@pytest.mark.parametrize(("n", "k", "d"), [(40, 12, 2), (1300, 300, 3), (3000, 6000, 2)])
def test_after_some_cells_have_moved(n, k, d):
    """As if all were searched anew, ties included: few or many move, some are not known, some are not wanted."""
    dice = np.random.default_rng(n)
    again = jax.jit(tessellation.nearest_again)
    points = np.round(dice.uniform(-1, 1, (n, d)) * 64).astype(np.float32) / 64
    cells = np.round(dice.uniform(-1, 1, (k, d)) * 16).astype(np.float32) / 16
    for share in (0.0, 0.1, 1.0):
        before, moved = np.array(nearest(points, cells)), dice.random(k) < share
        before[dice.random(n) < 0.2] = k
        cells[moved] = points[dice.integers(n, size=moved.sum())]
        wanted = dice.random(n) < 0.8
        expected = np.where(wanted, on_accelerators(points, cells), k)
        np.testing.assert_array_equal(again(wanted, points, cells, before, moved), expected)
        np.testing.assert_array_equal(jax.jit(tessellation.nearest_of)(wanted, points, cells), expected)


@pytest.mark.parametrize("d", [2, 5])
def test_ties_with_moved_cells_are_ties_however_distances_round(d):
    """Cells move exactly onto others."""
    dice = np.random.default_rng(d)
    points, cells = (dice.normal(size=(n, d)).astype(np.float32) for n in (4000, 200))
    before, moved = np.array(nearest(points, cells)), np.arange(200) < 60
    cells[:60] = cells[100:160]
    found = jax.jit(tessellation.nearest_again)(np.ones(4000, bool), points, cells, before, moved)
    np.testing.assert_array_equal(found, on_accelerators(points, cells))


def test_ties_across_tiles_go_to_the_lowest_index():
    cells = jnp.zeros((1000, 2)).at[:300].set(1.0)
    np.testing.assert_array_equal(nearest(jnp.zeros((5, 2)), cells), np.full(5, 300))


@pytest.mark.parametrize(("seed", "d"), [(0, 2), (1, 1), (2, 2), (2, 3)])
def test_a_search_through_a_tree_finds_the_same_cells_as_one_through_all(seed, d):
    """Also among equal cells, cells at infinity and descriptors all in one place."""
    dice = np.random.default_rng(seed)
    cells = dice.choice([0.0, 0.25, 0.5, 1.0], (2100, d)).astype(np.float32)
    cells[: 700 * seed] = dice.normal(size=(700 * seed, d)) ** 3
    cells[dice.random(2100) < 0.3] = np.inf
    points = np.concatenate([dice.normal(size=(1000, d)), np.full((50, d), 0.25), np.where(np.isinf(cells), 0, cells)])
    points, tree = points.astype(np.float32), jax.jit(arranged)(cells)
    assert tree is not None
    np.testing.assert_array_equal(jax.jit(nearest)(points, cells, tree), on_accelerators(points, cells))


@pytest.mark.parametrize(("n", "k", "d"), [(300, 20_000, 5), (1280, 20_000, 2), (3, 4000, 3)])
def test_a_tree_of_many_cells(n, k, d):
    dice = np.random.default_rng(0)
    points, cells = (dice.uniform(-1, 1, (rows, d)).astype(np.float32) for rows in (n, k))
    tree = jax.jit(arranged)(cells)
    assert sorted(tree.index.reshape(-1).tolist()) == sorted([*range(k), *[k] * (tree.index.size - k)])
    np.testing.assert_array_equal(jax.jit(nearest)(points, cells, tree), on_accelerators(points, cells))


@pytest.mark.parametrize(("k", "d"), [(2000, 2), (1500, 5), (20_000, 10)])
def test_no_tree_where_it_does_not_pay(k, d):
    assert arranged(jnp.zeros((k, d))) is None


def test_many_descriptors_have_their_cells_arranged_for_them():
    dice = np.random.default_rng(0)
    points, cells = (jnp.asarray(dice.uniform(size=(rows, 2)), jnp.float32) for rows in (9000, 2100))
    assert len(points) * len(cells) >= tessellation._MANY
    np.testing.assert_array_equal(jax.jit(nearest)(points, cells)[:300], nearest(points[:300], cells))


@pytest.mark.slow
def test_where_no_cell_is_left_the_search_ends():
    nowhere = jnp.full((2100, 1), jnp.inf)
    points, cells = jnp.zeros((2100, 1)).at[5].set(jnp.nan), nowhere.at[7].set(0.0)
    np.testing.assert_array_equal(nearest(points, nowhere, arranged(nowhere)), 0)
    found = np.delete(nearest(points, cells, arranged(cells)), 5)  # NaN belongs nowhere, and does not disturb others
    np.testing.assert_array_equal(found, 7)


def test_nearest_can_be_vmapped():
    random = np.random.default_rng(0)
    points, cells = (random.uniform(size=(3, count, 2)).astype(np.float32) for count in (10, 20))
    for found, p, c in zip(jax.vmap(nearest)(points, cells), points, cells, strict=True):
        np.testing.assert_array_equal(found, nearest(p, c))


@pytest.mark.parametrize("search", searches)
@given(points=lattice, cells=lattice, counts=st.lists(st.booleans(), min_size=6, max_size=6))
def test_cells_at_infinity_are_never_the_nearest(search, points, cells, counts):
    points, cells = np.array(points, np.float32) / 8, np.array(cells, np.float32) / 8
    found = search(points, np.where(np.array(counts)[:, None], cells, np.float32(np.inf)))
    distance = np.where(counts, squared(points, cells), np.inf)
    np.testing.assert_array_equal(found, distance.argmin(axis=1))


@pytest.mark.parametrize("search", searches)
def test_more_descriptors_than_are_compared_at_once(search):
    random = np.random.default_rng(0)
    points, cells = (random.uniform(size=(count, 2)).astype(np.float32) for count in (5000, 2000))
    found, some = np.asarray(search(points, cells)), np.arange(0, 5000, 37)
    distance = squared(points[some], cells)
    np.testing.assert_allclose(distance[np.arange(len(some)), found[some]], distance.min(axis=1), rtol=1e-5)


def firsts(rows, mask):
    """The first of each set of equal rows that count."""
    kept = np.flatnonzero(mask)
    _, index = np.unique(rows[kept], axis=0, return_index=True)
    return np.isin(np.arange(len(rows)), kept[index])


@pytest.mark.parametrize("offset", [0, -7, 1000])
@given(rows=st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=12, max_size=12), mask=st.integers(0, 2**12 - 1))
def test_distinct_rows_as_numpy_says(offset, rows, mask):
    rows, mask = np.array(rows, np.float32) / 4 + offset, mask >> np.arange(12) & 1 == 1
    np.testing.assert_array_equal(distinct(rows, mask), firsts(rows, mask))


def test_small_differences_between_large_numbers_are_distinct():
    rows = (1e6 + np.random.default_rng(0).integers(0, 9, (200, 2))).astype(np.float32)
    np.testing.assert_array_equal(distinct(jnp.asarray(rows), jnp.ones(200, bool)), firsts(rows, np.ones(200, bool)))


def test_many_distinct_rows_are_told_apart():
    rows = np.random.default_rng(0).normal(size=(3000, 20)).astype(np.float32)
    rows[2000:] = rows[:1000]
    assert distinct(jnp.asarray(rows), jnp.ones(3000, bool)).sum() == 2000


def test_grid_centres():
    cells = grid((2, 3), (0.0, -3.0), (4.0, 3.0))
    np.testing.assert_allclose(cells, [[1, -2], [1, 0], [1, 2], [3, -2], [3, 0], [3, 2]])
    np.testing.assert_array_equal(nearest(cells, cells), np.arange(6))


def test_kmeans_finds_clusters():
    centres = np.array([[0, 0], [10, 0], [0, 10]], np.float32)
    noise = jax.random.uniform(jax.random.key(0), (100, 3, 2))
    samples = (noise + centres[None]).reshape(-1, 2)
    found = min(
        (kmeans(jax.random.key(i), samples, 3) for i in range(5)), key=lambda c: squared(samples, c).min(1).sum()
    )
    order = np.argsort(squared(centres, found).argmin(1))
    expected = (np.asarray(noise).mean(0) + centres)[order]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_kmeans_never_makes_the_quantisation_error_worse():
    samples = jax.random.normal(jax.random.key(0), (500, 3))
    errors = [squared(samples, kmeans(jax.random.key(1), samples, 20, i)).min(1).mean() for i in range(4)]
    assert errors == sorted(errors, reverse=True)


def test_empty_clusters_keep_their_centre():
    cells = kmeans(jax.random.key(0), jnp.ones((10, 2)), 4)
    np.testing.assert_array_equal(cells, np.ones((4, 2)))


def test_kmeans_can_be_vmapped():
    keys, samples = jax.random.split(jax.random.key(0), 3), jax.random.normal(jax.random.key(1), (50, 2))
    together = jax.vmap(lambda key: kmeans(key, samples, 5))(keys)
    np.testing.assert_allclose(together, jnp.stack([kmeans(key, samples, 5) for key in keys]), rtol=1e-6)


def test_large_kmeans_needs_little_memory():
    samples = jax.ShapeDtypeStruct((50_000, 5), jnp.float32)
    memory = kmeans.lower(jax.random.key(0), samples, k=2000).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 100e6


def test_cvt_cells_lie_in_the_box_and_are_even():
    cells = cvt(jax.random.key(0), 16, (-1.0, 2.0), (1.0, 4.0), samples=2000)
    assert cells.shape == (16, 2)
    assert (cells > jnp.array([[-1.0, 2.0]])).all()
    assert (cells < jnp.array([[1.0, 4.0]])).all()
    gap = squared(cells, cells) + 9 * np.eye(16)
    assert gap.min() > 0.05


@pytest.mark.parametrize(
    "call",
    [
        lambda: grid((0, 3), (0, 0), (1, 1)),
        lambda: grid((2,), (0, 0), (1, 1)),
        lambda: grid((2, 2), (0, 1), (1, 1)),
        lambda: grid((2, 2), (0, 0), (1, float("nan"))),
        lambda: grid((2, 2), (0, 0), (1, float("inf"))),
        lambda: grid((2, 2), (0, 0), (1,)),
        lambda: cvt(jax.random.key(0), 0, (0,), (1,)),
        lambda: cvt(jax.random.key(0), 20, (0,), (1,), samples=10),
        lambda: kmeans(jax.random.key(0), jnp.ones((3, 2)), 4),
        lambda: kmeans(jax.random.key(0), jnp.ones(3), 2),
    ],
)
def test_misuse_is_explained(call):
    with pytest.raises(ValueError, match=r"expected.*got"):
        call()
