"""Cells and the search for the nearest one, against float64 NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites import tessellation
from vqelites.tessellation import cvt, grid, kmeans, nearest

searches = [nearest, tessellation._nearest]  # what this machine uses, and what accelerators use


def squared(points, cells):
    return ((np.asarray(points, float)[:, None] - np.asarray(cells, float)) ** 2).sum(-1)


@pytest.mark.parametrize("search", searches)
@pytest.mark.parametrize(("n", "k", "d"), [(1, 1, 1), (7, 3, 2), (128, 1500, 5), (2500, 300, 2), (64, 700, 10)])
def test_nearest_is_nearest(search, n, k, d):
    points = jax.random.uniform(jax.random.key(0), (n, d), minval=-1.0)
    cells = jax.random.uniform(jax.random.key(1), (k, d), minval=-1.0)
    found = np.asarray(search(points, cells))
    distance = squared(points, cells)
    assert found.dtype == np.int32
    # Cells whose distances differ by less than float32 can tell count as equally near.
    np.testing.assert_allclose(distance[np.arange(n), found], distance.min(1), rtol=1e-6)


lattice = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=6, max_size=6)


@pytest.mark.parametrize("search", [jax.jit(search) for search in searches])
@given(points=lattice, cells=lattice)
def test_ties_go_to_the_lowest_index(search, points, cells):
    points, cells = np.array(points, np.float32) / 8, np.array(cells, np.float32) / 8
    np.testing.assert_array_equal(search(points, cells), squared(points, cells).argmin(1))


def test_ties_across_tiles_go_to_the_lowest_index():
    cells = jnp.zeros((1000, 2)).at[:300].set(1.0)
    np.testing.assert_array_equal(nearest(jnp.zeros((5, 2)), cells), np.full(5, 300))


def test_nearest_can_be_vmapped():
    points = jax.random.uniform(jax.random.key(0), (3, 10, 2))
    cells = jax.random.uniform(jax.random.key(1), (3, 20, 2))
    for found, p, c in zip(jax.vmap(nearest)(points, cells), points, cells, strict=True):
        np.testing.assert_array_equal(found, nearest(p, c))


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
