"""The start of a map: principal components of the first data, found by a fast iteration and kept for ever."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.descriptors import VQVAE, AutoEncoder
from vqelites.descriptors.coding import Coding
from vqelites.descriptors.layers import per_sample
from vqelites.descriptors.views import principal_components
from vqelites.tasks.mobile import picture

KEY = jax.random.key(0)
components = jax.jit(principal_components, static_argnums=2)


def centred(rows, mask):
    return jnp.asarray(rows - rows[mask].mean(axis=0) if mask.any() else rows, jnp.float32)


@given(st.integers(0, 10**6), st.sampled_from([(6, 20), (30, 9), (30, 3)]))  # each shape is compiled
def test_as_a_singular_value_decomposition_says(seed, shape):
    count, length = shape
    random = np.random.default_rng(seed)
    # Clearly different spreads: components of equal ones are not unique.
    rows = random.normal(size=(count, length)) * 3.0 ** -np.arange(length)[None] + random.normal(size=(1, length))
    mask = random.uniform(size=count) < 0.8
    mask[:4] = True
    rows = centred(rows, mask)
    axes, variance = components(rows, jnp.asarray(mask), 2)
    left, sizes, _ = np.linalg.svd(np.asarray(rows, float)[mask], full_matrices=False)
    np.testing.assert_allclose(variance, np.square(sizes[:2]) / mask.sum(), rtol=1e-2)
    found, expected = np.asarray(rows @ axes, float)[mask], (left * sizes)[:, :2]
    found *= np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected, atol=5e-3 * sizes[0])


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_components_that_the_data_do_not_have_are_zero(count):
    mask = np.arange(5) < count
    rows = centred(np.random.default_rng(0).normal(size=(5, 6)), mask)
    axes, variance = components(rows, jnp.asarray(mask), 4)
    assert np.isfinite(axes).all()
    assert (np.abs(axes).max(axis=0) > 0).sum() == (variance > 0).sum() == max(count - 1, 0)


def test_latents_start_at_a_spread_of_three_quarters_before_tanh():
    samples = jax.random.normal(KEY, (200, 6)) * jnp.arange(1.0, 7)[None] + 50
    coding = Coding((6,), 2, bounded=False)
    coder = eqx.filter_jit(lambda: coding.adapt(coding.init(KEY), samples, jnp.ones(200, bool)))()
    silent = eqx.tree_at(lambda c: c.encoder, coder, per_sample(lambda _: jnp.zeros(2)))
    latent = coding.encode(silent, samples)
    np.testing.assert_allclose(latent.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(latent.std(axis=0), 0.75, rtol=1e-3)


def places(count, seed=0):
    return np.random.default_rng(seed).uniform(0.02, 0.98, (count, 2))


@pytest.mark.long
def test_the_map_of_the_mobile_robot_starts_without_folds():
    """Before any training, who is where in the latent square says who is where in the world, up to the walls."""
    coding = Coding((64, 64, 1), 2, networks="mobile", blur=0.25)
    at = np.concatenate([places(400), [(x, y) for x in (0.02, 0.98) for y in np.linspace(0.02, 0.98, 20)]])
    images = jax.lax.map(picture, jnp.asarray(at, jnp.float32), batch_size=100)
    latent = np.asarray(coding.encode(coding.adapt(coding.init(KEY), images, jnp.ones(len(at), bool)), images))
    # The best turned and stretched copy of the world explains the latent positions nearly fully.
    world = np.c_[at, np.ones(len(at))]
    left = np.arctanh(latent) - world @ np.linalg.lstsq(world, np.arctanh(latent), rcond=None)[0]
    assert (left.var(axis=0) < 0.05 * np.arctanh(latent).var(axis=0)).all()


@pytest.mark.parametrize("descriptor", [VQVAE((6,), 2, 20), AutoEncoder((6,), 2)])
def test_axes_are_taken_once_since_the_networks_grew_beside_them(descriptor):
    def learn(state, samples):
        return eqx.filter_jit(descriptor.learn)(
            state, KEY, samples, jnp.ones(64, bool), jnp.array(0.0), jnp.array(1, jnp.int32)
        )[0]

    def axes(state):
        return (state.model.coder if isinstance(descriptor, VQVAE) else state.model).axes

    first, later = (jax.random.normal(key, (64, 6)) * jnp.arange(1.0, 7)[None] for key in jax.random.split(KEY))
    once = learn(descriptor.init(KEY), first)
    assert jnp.abs(axes(once)).max() > 0.1
    np.testing.assert_array_equal(axes(learn(once, later[:, ::-1])), axes(once))


def test_without_principal_components_only_the_network_speaks():
    coding = Coding((6,), 2, principal=False)
    samples = jax.random.normal(KEY, (64, 6))
    assert not coding.adapt(coding.init(KEY), samples, jnp.ones(64, bool)).axes.any()
