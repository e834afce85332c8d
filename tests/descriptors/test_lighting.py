"""Light that changes is found and removed; images in one light, and those that are nothing else, stay as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import maps as reference

from vqelites.descriptors.lighting import lighting


@jax.jit
def evened(images, mask):
    found = lighting(images, mask)
    return (found.swing > 0).any(), found.removed(images)


def even(images, mask=None):
    """Whether the light changes, and the images under one light."""
    mask = np.ones(len(images), bool) if mask is None else mask
    changes, found = evened(jnp.asarray(images, jnp.float32), jnp.asarray(mask))
    return bool(changes), np.asarray(found)


def balls(count=60, size=24, ground=None, seed=0):
    """A bright ball somewhere on a picture."""
    random = np.random.default_rng(seed)
    ground = random.uniform(0.2, 0.6, (size, size, 3)) if ground is None else ground
    at, axis = random.uniform(4, size - 4, (count, 2)), np.arange(size) + 0.5
    distance = np.hypot(axis[None, :, None] - at[:, :1, None], axis[None, None, :] - at[:, 1:, None])
    ball = np.clip(2.5 - distance, 0, 1)[..., None]
    return (ground * (1 - ball) + 0.9 * ball).astype(np.float32)


def flicker(images, size=0.07, seed=1):
    """One factor for every image, or for every frame of a video."""
    frames = images.shape[:-3]
    return (1 - np.random.default_rng(seed).uniform(0, size, frames).astype(np.float32))[..., None, None, None]


@given(st.integers(0, 10**6), st.sampled_from([(7, 6, 1), (2, 4, 5, 2)]), st.floats(0, 0.5), st.floats(0, 0.2))
def test_as_in_plain_python(seed, shape, light, noise):
    """Images and videos whose light and pixels vary by much or little, with specks, some of them masked."""
    random = np.random.default_rng(seed)
    images = random.uniform(0.3, 1, shape)[None] * (1 + light * random.uniform(size=(50, *shape[:-3], 1, 1, 1)))
    specks = 3.0 * (random.uniform(size=(50, *shape)) < 0.05)
    images = (images + noise**2 * random.normal(size=(50, *shape)) + specks).astype(np.float32)
    mask = random.uniform(size=50) < random.uniform(0.5, 1)
    np.testing.assert_allclose(even(images, mask)[1], images - reference.lighting(images, mask), atol=1e-4)


@pytest.mark.parametrize(("scale", "ground"), [(1, 0), (255, 0), (1e-3, 0), (1, -5), (1, 100)])
def test_a_lamp_that_flickers_is_not_seen(scale, ground):
    """Whatever the range of pixels, and where black is."""
    images = balls()
    changes, found = even(scale * (images * flicker(images) + ground))
    assert changes
    still = found / scale - ground - images
    assert np.ptp(np.median(still, axis=(1, 2, 3))) < 1e-3


def test_a_camera_that_adds_an_offset_to_every_image_is_not_seen():
    images = balls()
    changes, found = even(images + 0.3 * flicker(images, 0.2))
    assert changes
    assert np.ptp(np.median(found - images, axis=(1, 2, 3))) < 1e-3


def test_every_frame_of_a_video_has_its_own_light():
    images = balls(120).reshape(40, 3, 24, 24, 3)
    changes, found = even(images * flicker(images))
    assert changes
    assert np.ptp(np.median(found - images, axis=(2, 3, 4)), axis=0).max() < 1e-3


@pytest.mark.parametrize("ground", [0.0, 0.5, 1.0, None])
def test_images_under_one_light_stay_exactly_as_they_are(ground):
    images = balls(ground=ground)
    changes, found = even(images)
    assert not changes
    np.testing.assert_array_equal(found, images)


def test_where_brightness_is_all_there_is_to_see_it_stays():
    images = np.full((40, 16, 16, 1), 0.5, np.float32)
    images = images * flicker(images, 0.8)
    changes, found = even(images)
    assert not changes
    np.testing.assert_array_equal(found, images)


def test_a_window_that_moves_over_a_dark_map_is_no_light():
    random = np.random.default_rng(0)
    images, corner = np.zeros((60, 18, 18, 3), np.float32), random.integers(0, 11, (60, 2))
    for image, (row, column) in zip(images, corner, strict=True):
        image[row : row + 7, column : column + 7] = 0.8
    assert not even(images)[0]


def test_black_images_have_no_light():
    changes, found = even(np.zeros((5, 8, 8, 1)))
    assert not changes
    np.testing.assert_array_equal(found, 0)


def test_masked_images_count_nothing():
    images = balls()
    dark = np.where(np.arange(60)[:, None, None, None] < 30, images, 0.01 * images * flicker(images, 0.9))
    assert not even(dark, np.arange(60) < 30)[0]
