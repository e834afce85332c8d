"""Equal cells against a slow reference, and the rules one by one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import references
from hypothesis import given
from hypothesis import strategies as st

from vqelites.descriptors.equal_cells import EqualCells
from vqelites.tessellation import distinct, nearest


def settle(codebook, latent, views=None, mask=None, share=0.025):
    """The new codebook and the number of moves; without views and mask, views are the latents, and all rows count."""
    codebook, latent = np.asarray(codebook, np.float32), np.asarray(latent, np.float32)
    views = latent if views is None else np.asarray(views, np.float32)
    mask = np.ones(len(latent), bool) if mask is None else mask
    return fitted(share, *map(jnp.asarray, (codebook, latent, views, mask)))


@functools.partial(jax.jit, static_argnums=0)
def fitted(share, codebook, latent, views, mask):
    code = jnp.where(mask, nearest(latent, codebook), len(codebook))
    codebook, code, moved = EqualCells(share)(codebook, latent, views, code, distinct(views, mask).sum())
    return codebook, moved


@given(
    st.integers(0, 10**6),
    st.sampled_from([8, 40]),
    st.sampled_from([0.1, 0.5]),
    st.floats(0, 1),
    st.floats(0.3, 1),
    st.sampled_from([4, 1000]),
)
def test_as_in_plain_python(seed, count, share, reach, kept, different):
    """Few or many samples, repeated or not, over all codes or some, some of them masked."""
    random = np.random.default_rng(seed)
    codebook = random.uniform(-1, 1, (12, 2)).astype(np.float32)
    latent = random.uniform(-1, -1 + 2 * reach, (count, 2)).astype(np.float32)
    views = random.normal(size=(count, 3)).astype(np.float32) + 3 * latent[:, :1]
    again = np.arange(count) % different
    latent, views = latent[again], views[again]
    mask = random.uniform(size=count) < kept
    found = settle(codebook, latent, views, mask, share)
    expected = references.equal_cells(codebook, latent, views, mask, share)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    assert found[1] == expected[1]


def grid(size):
    return np.stack(np.meshgrid(*[np.arange(size)] * 2), axis=-1).reshape(-1, 2).astype(float)


def test_nothing_moves_when_cells_are_equal():
    corners = np.array([(x, y) for x in (-0.25, 0.25) for y in (-0.25, 0.25)])
    latent = (grid(5)[:, None] + corners[None]).reshape(-1, 2)
    codebook, moved = settle(grid(5), latent, share=1.0)
    assert moved == 0
    np.testing.assert_array_equal(codebook, grid(5))


def test_a_needless_code_goes_to_the_farthest_sample_of_the_largest_cell():
    codes = [[0, 0], [0.1, 0], [10, 0]]
    latent = [[0, 0], [0.1, 0], [9, 0], [10, 0], [10, 3], [11, 0]]
    codebook, moved = settle(codes, latent)
    assert moved == 1
    # Of the two that would take over each other's samples only the second may go.
    np.testing.assert_allclose(codebook, [[0, 0], [10, 3], [10, 0]])


def test_of_two_that_are_each_others_heirs_only_one_goes():
    codes = [[0, 0], [0.1, 0], [10, 0], [-10, 0], [0, 10], [0, -10], [20, 20], [-20, 20]]
    wide = np.concatenate([np.array(c)[None] + 2 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]) for c in codes[2:]])
    codebook, moved = settle(codes, np.concatenate([codes[:2], wide]), share=1.0)
    assert moved == 1
    np.testing.assert_array_equal(codebook[0], codes[0])
    assert (codebook[1] != jnp.array(codes[1])).any()


def test_the_last_code_in_use_stays():
    latent = np.random.default_rng(0).normal(size=(40, 2))
    codes = np.r_[[[0, 0]], np.full((3, 2), 50.0)]
    codebook, _ = settle(codes, latent, share=1.0)
    np.testing.assert_array_equal(codebook[0], [0, 0])


def test_a_code_without_samples_costs_nothing():
    codes = np.r_[grid(3) * 4, [[50, 50]]]
    corners = np.array([(x, y) for x in (-1.0, 1) for y in (-1.0, 1)])
    latent = (grid(3)[:, None] * 4 + corners[None]).reshape(-1, 2)
    codebook, moved = settle(codes, latent)
    assert moved == 1
    np.testing.assert_array_equal(codebook[:9], codes[:9])


def test_with_fewer_behaviors_than_codes_a_quarter_may_move():
    """In each of four rounds, in which cells are halved."""
    codes = np.r_[[[0, 0]], 50 + grid(5)[:23]]
    latent = np.random.default_rng(0).normal(size=(20, 2))
    codes, moved = settle(codes, latent)
    assert 1 < moved <= 24
    for _ in range(3):
        codes = np.array(codes)
        code = np.square(latent[:, None] - codes[None]).sum(axis=2).argmin(axis=1)
        for c in np.unique(code):  # as training does
            codes[c] = (codes[c] + latent[code == c].mean(axis=0)) / 2
        codes, _ = settle(codes, latent)
    assert len(np.unique(code)) > 15


@pytest.mark.parametrize("count", [10, 40])
def test_codes_of_samples_are_those_of_the_new_codebook(count):
    random = np.random.default_rng(0)
    codes, latent = (jnp.asarray(random.uniform(-1, 1, (n, 2)), jnp.float32) for n in (24, count))
    mask = jnp.arange(count) % 4 > 0
    start = jnp.where(mask, nearest(latent, codes), 24)
    codebook, code, moved = EqualCells(0.1)(codes, latent, latent, start, mask.sum())
    assert moved > 0
    np.testing.assert_array_equal(code, jnp.where(mask, nearest(latent, codebook), 24))


@pytest.mark.parametrize(("share", "most"), [(0.025, 1), (0.1, 4)])
def test_at_most_a_share_moves(share, most):
    random = np.random.default_rng(0)
    codes = np.r_[1e-3 * random.uniform(size=(20, 2)), grid(5)[:20] * 10]
    latent = np.r_[codes[:20], (grid(5)[:20, None] * 10 + random.normal(size=(20, 10, 2))).reshape(-1, 2)]
    assert settle(codes, latent, share=share)[1] == most


def test_masked_rows_count_nothing():
    random = np.random.default_rng(0)
    codes, latent, mask = random.normal(size=(12, 2)), random.normal(size=(60, 2)), random.uniform(size=60) < 0.5
    clean = settle(codes, latent, mask=mask, share=0.5)
    dirty = settle(codes, np.where(mask[:, None], latent, 1e4), mask=mask, share=0.5)
    jax.tree.map(np.testing.assert_array_equal, clean, dirty)
    nobody = settle(codes, latent, mask=np.zeros(60, bool))
    assert nobody[1] == 0
    np.testing.assert_array_equal(nobody[0], codes.astype(np.float32))


def test_repeating_it_makes_cells_equal():
    """An even map of a strip that only a fifth of the codes serve."""
    random = np.random.default_rng(0)
    latent = random.uniform(0, 1, (1000, 2))
    codes = np.r_[0.2 * random.uniform(size=(20, 2)), random.uniform(size=(30, 2))]

    def largest(codes):
        return np.square(latent[:, None] - np.asarray(codes)[None]).sum(axis=2).min(axis=1).max()

    before = largest(codes)
    for _ in range(15):
        codes, _ = settle(codes, latent, share=0.1)
    assert largest(codes) < 0.7 * before


def test_same_under_vmap():
    random = np.random.default_rng(0)
    codes, latent = random.normal(size=(3, 12, 2)), random.normal(size=(3, 60, 2))
    both = jax.vmap(lambda c, x: fitted(0.5, c, x, x, jnp.ones(60, bool)))
    together = both(jnp.asarray(codes, jnp.float32), jnp.asarray(latent, jnp.float32))
    for i in range(3):
        alone = settle(codes[i], latent[i], share=0.5)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-6), together, alone)
