"""Equal stretch: its value against a slow reference, its lack of units, and what must not harm it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import maps as reference

from vqelites.descriptors.stretch import unequal_stretch

stretch = jax.jit(unequal_stretch)


def batch(seed, count=16, repeated=0):
    """Views and latents of one batch; the last rows repeat the first."""
    random = np.random.default_rng(seed)
    views, latent = random.normal(size=(count, 6)), random.uniform(-1, 1, (count, 2))
    again = np.r_[: count - repeated, :repeated]
    return views[again].astype(np.float32), latent[again].astype(np.float32)


@given(st.integers(0, 10**6), st.integers(0, 8))
def test_as_in_plain_python(seed, repeated):
    views, latent = batch(seed, repeated=repeated)
    expected = reference.unequal_stretch(views.astype(float), latent.astype(float))
    assert stretch(views, latent) == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.floats(-4, 4), st.floats(-0.5, 1))
def test_multiplying_views_or_latents_changes_nothing(seed, views_by, latent_by):
    """Latent distances have a floor of 1e-4, so that latents cannot shrink without limit."""
    views, latent = batch(seed)
    before = float(stretch(views, latent))
    assert stretch(views * np.float32(10**views_by), latent) == pytest.approx(before, rel=1e-3)
    assert stretch(views, latent * np.float32(10**latent_by)) == pytest.approx(before, rel=0.02)


def test_an_equally_stretched_map_costs_nothing_and_a_squeezed_one_does():
    flat = np.stack(np.meshgrid(*[np.linspace(-1, 1, 8)] * 2), axis=-1).reshape(-1, 2).astype(np.float32)
    turn = np.array([[0.0, 3.0], [-3.0, 0.0]], np.float32)
    assert stretch(flat, 0.1 * flat @ turn) < 1e-5
    assert stretch(flat, np.tanh(2 * flat)) > 0.1


def test_identical_views_are_no_pairs():
    """Where two equal views would lie says nothing about the map; pulling them apart or together changes nothing."""
    views, latent = batch(0, count=8)
    views[4:] = views[:4]
    expected = reference.unequal_stretch(views, latent)
    assert np.isfinite(expected)
    assert stretch(views, latent) == pytest.approx(expected, rel=1e-3)
    assert stretch(np.ones((8, 6), np.float32), latent) == 0
    assert stretch(views[:1], latent[:1]) == 0


@pytest.mark.parametrize("same", ["views", "latents", "both", "all"])
def test_the_gradient_is_finite_with_duplicates(same):
    views, latent = batch(1)
    if same in ("views", "both"):
        views[8:] = views[:8]
    if same in ("latents", "both"):
        latent[8:] = latent[:8]
    if same == "all":
        views[:], latent[:] = views[0], latent[0]
    by_views, by_latent = jax.grad(unequal_stretch, argnums=(0, 1))(jnp.asarray(views), jnp.asarray(latent))
    assert jnp.isfinite(by_latent).all()
    assert not by_views.any()  # views are what they are
    assert (jnp.abs(by_latent).max() > 0) == (same != "all")


@pytest.mark.long
def test_following_the_gradient_evens_the_map():
    views, _ = batch(2, count=32)
    latent = jnp.tanh(3 * views[:, :2])
    before = stretch(views[:, :2], latent)
    for _ in range(100):
        latent = latent - 0.01 * jax.jit(jax.grad(unequal_stretch, argnums=1))(views[:, :2], latent)
    assert stretch(views[:, :2], latent) < 0.5 * before
