"""Rare behaviors are drawn more often: how rare they are, against a slow reference, and how often they come."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import maps as reference

from vqelites.descriptors.evenness import drawn, rarity

fast = jax.jit(rarity)
draw = jax.jit(drawn)


@given(st.integers(0, 10**6), st.sampled_from([3, 40, 300]), st.floats(0, 1))
def test_rarity_as_in_plain_python(seed, count, share):
    random = np.random.default_rng(seed)
    views = random.normal(size=(count, 3)) * random.exponential(size=(count, 1))
    mask = random.uniform(size=count) < share
    found = fast(jnp.asarray(views, jnp.float32), jnp.asarray(mask))
    np.testing.assert_allclose(found, reference.rarity(views, mask), rtol=5e-3, atol=1e-6)


def test_few_samples_among_many_masked_rows_are_compared_with_each_other_once():
    """Each came as often as it fitted into 256: the fifth nearest was then oneself, or not, by chance."""
    even = np.stack(np.meshgrid(*[np.arange(8)] * 2), axis=-1).reshape(-1, 2)
    views = np.zeros((1000, 2), np.float32)
    views[::16][:60] = even[:60]
    weight = np.asarray(fast(views, jnp.arange(1000) % 16 == 0) * (jnp.arange(1000) < 960))
    inner = (even[:60] % 7 > 0).all(axis=1) & (even[:60, 1] < 6)
    assert np.ptp(weight[::16][:60][inner]) < 1e-3


def test_a_lone_sample_is_rarer_than_those_of_a_crowd_but_within_limits():
    views = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    views[0] = 100
    weight = np.asarray(fast(views, jnp.ones(100, bool)))
    assert weight[0] == weight.max() == 4
    assert weight.min() >= 0.25


def test_samples_that_are_all_alike_are_equally_rare():
    mask = jnp.arange(10) < 7
    np.testing.assert_array_equal(fast(jnp.ones((10, 3)), mask), mask.astype(float))
    assert not fast(jnp.ones((10, 3)), jnp.zeros(10, bool)).any()


def test_masked_rows_influence_no_rarity():
    views, mask = jax.random.normal(jax.random.key(0), (80, 3)), jnp.arange(80) % 3 > 0
    np.testing.assert_array_equal(fast(views, mask), fast(jnp.where(mask[:, None], views, 1e4), mask))


@given(st.integers(0, 10**6), st.floats(0, 0.9))
def test_each_is_drawn_as_often_as_its_weight_up_to_rounding(seed, masked):
    random = np.random.default_rng(seed)
    weight = np.where(random.uniform(size=200) < masked, 0, random.uniform(0.25, 4, 200)).astype(np.float32)
    weight[0] = 1
    times = np.bincount(draw(jax.random.key(seed), weight), minlength=200)
    assert (np.abs(times - 200 * weight / weight.sum()) < 1 + 1e-3).all()
    assert not times[weight == 0].any()


@pytest.mark.slow
def test_masked_rows_are_never_drawn_though_sums_are_rounded():
    """One in two thousand epochs had one: a sum rounded up before it, or a place rounded up to the end of all."""
    many = jax.jit(jax.vmap(drawn, in_axes=(0, None)))
    for seed in range(20):
        random = np.random.default_rng(seed)
        there = (random.uniform(size=1280) < 0.5) & (np.arange(1280) < 1279)
        weight = jnp.asarray(np.where(there, random.uniform(0.25, 4, 1280), 0), jnp.float32)
        assert there[np.asarray(many(jax.random.split(jax.random.key(seed), 500), weight))].all()


def test_the_order_is_random_and_keyed():
    weight = jnp.ones(50)
    same, again, other = (np.asarray(draw(jax.random.key(k), weight)) for k in (0, 0, 1))
    np.testing.assert_array_equal(same, again)
    assert (same != other).any()
    assert sorted(same) == list(range(50))
    assert (same != np.arange(50)).any()
