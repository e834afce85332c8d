"""Nearest centres against NumPy, and k-means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.clustering import kmeans, nearest


@pytest.mark.parametrize(("n", "k", "d"), [(1, 1, 1), (50, 7, 2), (300, 1500, 5)])
def test_nearest_is_exact(n, k, d):
    points = jax.random.uniform(jax.random.key(0), (n, d))
    centres = jax.random.uniform(jax.random.key(1), (k, d))
    distance = ((np.asarray(points, np.float64)[:, None] - np.asarray(centres, np.float64)) ** 2).sum(-1)
    np.testing.assert_array_equal(nearest(points, centres), distance.argmin(1))


def test_nearest_takes_the_lowest_index_in_a_tie():
    centres = jnp.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(nearest(jnp.array([[0.0, 3.0], [2.0, 0.0], [-1.0, 0.0]]), centres), [0, 0, 1])


def test_nearest_puts_nan_out_of_range():
    assert nearest(jnp.array([[jnp.nan, 0.0]]), jnp.zeros((3, 2)))[0] == 3


def test_kmeans_finds_separate_clusters():
    truth = jnp.array([[0.0, 0.0], [5.0, 5.0], [-5.0, 5.0]])
    samples = jnp.repeat(truth, 40, axis=0) + 0.1 * jax.random.normal(jax.random.key(0), (120, 2))
    centres = kmeans(jax.random.key(4), samples, 3)
    np.testing.assert_allclose(centres[nearest(truth, centres)], truth, atol=0.1)


def test_kmeans_spreads_uniform_samples_evenly():
    samples = jax.random.uniform(jax.random.key(0), (2000, 2), minval=-1)
    counts = jnp.bincount(nearest(samples, kmeans(jax.random.key(1), samples, 40)), length=40)
    assert counts.min() > 10
    assert counts.max() < 120


def test_an_empty_cluster_keeps_its_centre():
    centres = kmeans(jax.random.key(0), jnp.ones((5, 2)), 3)
    np.testing.assert_array_equal(centres, np.ones((3, 2)))


def test_kmeans_is_the_same_vmapped():
    samples = jax.random.uniform(jax.random.key(0), (100, 2))
    keys = jax.random.split(jax.random.key(1), 2)
    together = jax.vmap(lambda key: kmeans(key, samples, 5))(keys)
    np.testing.assert_allclose(together[1], kmeans(keys[1], samples, 5), atol=1e-6)


def test_kmeans_wants_at_least_one_sample_per_cluster():
    with pytest.raises(ValueError, match="between 1 and 3"):
        kmeans(jax.random.key(0), jnp.ones((3, 2)), 4)
