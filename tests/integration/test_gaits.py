"""The benchmark of gaits: AutoQD's descriptor, and what is counted."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.tessellation import grid
from vqelites.types import Bins

fourier = pytest.importorskip("fourier", reason="needs the extra brax: pip install 'vqelites[brax]'")
gaits = pytest.importorskip("gaits", reason="needs the extra brax: pip install 'vqelites[brax]'")


def test_principal_components_are_found_and_rows_that_do_not_count_change_nothing():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(200, 2)) * [5, 2]
    directions = np.linalg.qr(rng.normal(size=(fourier.FEATURES, 2)))[0]
    samples = (hidden @ directions.T + 3 + 0.01 * rng.normal(size=(200, fourier.FEATURES))).astype(np.float32)
    descriptor = fourier.Principal(dim=2, codes=16)
    key, nothing = jax.random.key(0), jnp.zeros(())
    state, _ = descriptor.learn(None, key, jnp.asarray(samples), jnp.ones(200, bool), nothing, nothing)
    found = np.asarray(descriptor.describe(state, jnp.asarray(samples), jnp.zeros((200, 0))))
    assert np.abs(found).max() <= 1
    np.testing.assert_allclose(found.std(axis=0), 1 / 3, atol=0.03)  # three spreads are one
    related = np.abs(np.corrcoef(found.T, hidden.T)[:2, 2:])
    assert related[1, 0] > 0.97  # the largest comes last
    assert related[0, 1] > 0.97
    more = jnp.concatenate([jnp.asarray(samples), jnp.full((50, fourier.FEATURES), 100.0)])
    again, _ = descriptor.learn(None, key, more, jnp.arange(250) < 200, nothing, nothing)
    np.testing.assert_allclose(again.directions, state.directions, atol=1e-4)


def test_the_best_of_each_bin_counts_in_both_spaces():
    robot = SimpleNamespace(bins=Bins(grid((2, 2), (0, 0), (1, 1)), jnp.ones(4, bool)))
    found = {
        "fitness": np.array([1.0, 3, 2]),
        "feet": np.array([[0.1, 0.1], [0.2, 0.2], [0.9, 0.9]]),
        "velocity": np.array([[0.05], [5.9], [0.06]]),
    }
    assert gaits.measured(robot, found, worst=-1.0) == {
        "elites": 3,
        "best": 3,
        "feet coverage": 2 / 4,
        "feet QD": 4 + 3,
        "velocity coverage": pytest.approx(2 / 100),
        "velocity QD": 4 + 3,
    }
