"""Noise of pixels is found and removed; pictures without it, and those that are nothing else, stay as they are."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import maps as reference

from vqelites.descriptors.grain import grain
from vqelites.descriptors.views import View


@jax.jit
def cleaned(images, mask):
    found = grain(images, mask)
    return found.noise, found.removed(images)


def clean(images, mask=None):
    """The noise, and the images without it."""
    mask = np.ones(len(images), bool) if mask is None else mask
    noise, found = cleaned(jnp.asarray(images, jnp.float32), jnp.asarray(mask))
    return float(noise), np.asarray(found)


def dots(count=40, size=32, radius=1.6, seed=0):
    """A white dot on black, somewhere."""
    at = np.random.default_rng(seed).uniform(4, size - 4, (count, 2))
    axis = np.arange(size) + 0.5
    distance = np.hypot(axis[None, :, None] - at[:, :1, None], axis[None, None, :] - at[:, 1:, None])
    return np.clip(radius + 0.5 - distance, 0, 1)[..., None].astype(np.float32)


def noise(images, size, seed=1):
    return size * np.random.default_rng(seed).normal(size=images.shape).astype(np.float32)


@given(st.integers(0, 10**6), st.sampled_from([(7, 6, 1), (2, 4, 5, 2), (1, 9, 1)]), st.floats(0, 0.4))
def test_as_in_plain_python(seed, shape, size):
    """Images, videos and a single line; more of them than are looked at, some of them masked."""
    random = np.random.default_rng(seed)
    images = (random.uniform(size=(70, *shape)) < 0.2) + size * random.normal(size=(70, *shape))
    images = images.astype(np.float32)
    mask = random.uniform(size=70) < random.uniform(0.5, 1)
    found = clean(images, mask)
    expected = reference.grain(images, mask)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-3)


def test_pictures_without_noise_stay_exactly_as_they_are():
    for images in (dots(), 1 - dots(), 5 + 100 * dots()):
        size, found = clean(images)
        assert size == 0
        np.testing.assert_array_equal(found, images)


@pytest.mark.parametrize(("ground", "factor"), [(0, 1), (1, -1), (20, 0.01), (-3, 1000)])
def test_noise_is_found_and_removed_whatever_background_and_range(ground, factor):
    seen = dots()
    size, found = clean(ground + factor * (seen + noise(seen, 0.1)))
    assert size == pytest.approx(0.1 * abs(factor), rel=0.05)
    left = (found - ground) / factor - seen
    assert np.square(left).mean() < 0.4 * 0.01


def test_where_there_is_nothing_but_fine_patterns_they_stay():
    faint = 0.1 * dots(radius=6.0)
    for images in (noise(dots(), 1.0), faint + noise(faint, 0.3), np.sign(noise(dots(), 1.0))):
        size, found = clean(images)
        assert size == 0
        np.testing.assert_array_equal(found, images.astype(np.float32))


def test_masked_images_count_nothing():
    images = dots() + noise(dots(), 0.1)
    mask = np.arange(len(images)) % 3 > 0
    garbage = np.where(mask[:, None, None, None], images, 100)
    size, found = clean(images, mask)
    other, same = clean(garbage, mask)
    assert size == other > 0
    np.testing.assert_array_equal(found[mask], same[mask])
    assert clean(images, np.zeros(len(images), bool))[0] == 0


def test_a_noisy_picture_is_seen_like_a_clear_one():
    view, seen = View((32, 32, 1), 2, None, True, "auto"), jnp.asarray(dots(200))
    mask, noisy = jnp.ones(200, bool), seen + noise(seen, 0.06)
    adapted = [eqx.filter_jit(view.adapt)(images, mask) for images in (seen, noisy)]
    clear, found = (
        eqx.filter_jit(view.of)(lens, images).reshape(200, -1)
        for lens, images in zip(adapted, (seen, noisy), strict=True)
    )
    assert adapted[0].blur == adapted[1].blur
    assert np.corrcoef(clear.ravel(), found.ravel())[0, 1] > 0.95
