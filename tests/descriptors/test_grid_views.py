"""Views of the grid world: tiles must get codes of their own, also those found after the model was trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.descriptors.base import Observed
from vqelites.experiments.build import build
from vqelites.experiments.presets import settings
from vqelites.tasks import registry
from vqelites.tasks.minigrid import GridState
from vqelites.tessellation import nearest

KEY = jax.random.key(0)


def views(task, rows, columns):
    """What is seen from every free tile of a rectangle of the map, empty-handed."""
    tiles = [(r, c) for r in rows for c in columns if not task.wall[r, c]]
    none = jnp.zeros((len(tiles), 4), bool)
    return jax.vmap(task.view)(GridState(jnp.asarray(tiles), none, none))


@pytest.mark.long
def test_tiles_found_later_get_codes_of_their_own():
    task = registry.make("minigrid")
    vqvae = build(task, settings("minigrid", "vq-elites", "quick")).descriptor
    first, later = views(task, range(1, 6), range(1, 5)), views(task, range(1, 12), range(1, 11))
    learn, settle = eqx.filter_jit(vqvae.learn), eqx.filter_jit(vqvae.settle)

    def train(state, images, epochs):
        padded = jnp.concatenate([images, jnp.zeros((128 - len(images), 18, 18, 3))])
        mask, progress = jnp.arange(128) < len(images), jnp.array(0.0)
        state, _ = learn(state, KEY, padded, mask, progress, jnp.array(epochs))
        return settle(state, KEY, [Observed(padded, mask, jnp.full(128, jnp.nan))])[0]

    def codes(state, images):
        latent = vqvae.describe(state, images, jnp.zeros((len(images), 2)))
        return len(np.unique(nearest(latent, vqvae.cells(state))))

    state = train(vqvae.init(KEY), first, 25)
    assert codes(state, first) == len(first) == 20
    for _ in range(8):
        state = train(state, later, 5)
    assert codes(state, later) > 0.9 * len(later)
