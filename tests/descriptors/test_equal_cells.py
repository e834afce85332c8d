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


def settle(codebook, latent, views=None, mask=None, idle=None, share=0.025):
    """Codebook, idle trainings and moves; views are the latents, all rows count and all codes were used."""
    codebook, latent = np.asarray(codebook, np.float32), np.asarray(latent, np.float32)
    views = latent if views is None else np.asarray(views, np.float32)
    mask = np.ones(len(latent), bool) if mask is None else mask
    idle = np.zeros(len(codebook), np.int32) if idle is None else np.asarray(idle, np.int32)
    return fitted(share, *map(jnp.asarray, (codebook, idle, latent, views, mask)))


@functools.partial(jax.jit, static_argnums=0)
def fitted(share, codebook, idle, latent, views, mask):
    code = jnp.where(mask, nearest(latent, codebook), len(codebook))
    return EqualCells(share)(codebook, idle, latent, views, code, distinct(views, mask).sum())


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
    mask, idle = random.uniform(size=count) < kept, random.integers(0, 5, 12)
    found = settle(codebook, latent, views, mask, idle, share)
    expected = references.equal_cells(codebook, idle.tolist(), latent, views, mask, share)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    assert found[1].tolist() == expected[1]
    assert found[2] == expected[2]


def grid(size):
    return np.stack(np.meshgrid(*[np.arange(size)] * 2), axis=-1).reshape(-1, 2).astype(float)


def test_nothing_moves_when_cells_are_equal():
    corners = np.array([(x, y) for x in (-0.25, 0.25) for y in (-0.25, 0.25)])
    latent = (grid(5)[:, None] + corners[None]).reshape(-1, 2)
    codebook, idle, moved = settle(grid(5), latent, share=1.0)
    assert (moved, idle.sum()) == (0, 0)
    np.testing.assert_array_equal(codebook, grid(5))


def test_a_needless_code_goes_to_the_farthest_sample_of_the_largest_cell():
    codes = [[0, 0], [0.1, 0], [10, 0]]
    latent = [[0, 0], [0.1, 0], [9, 0], [10, 0], [10, 3], [11, 0]]
    codebook, _, moved = settle(codes, latent)
    assert moved == 1
    # Of the two that would take over each other's samples only the second may go.
    np.testing.assert_allclose(codebook, [[0, 0], [10, 3], [10, 0]])


def test_of_two_that_are_each_others_heirs_only_one_goes():
    codes = [[0, 0], [0.1, 0], [10, 0], [-10, 0], [0, 10], [0, -10], [20, 20], [-20, 20]]
    wide = np.concatenate([np.array(c)[None] + 2 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]) for c in codes[2:]])
    codebook, _, moved = settle(codes, np.concatenate([codes[:2], wide]), share=1.0)
    assert moved == 1
    np.testing.assert_array_equal(codebook[0], codes[0])
    assert (codebook[1] != jnp.array(codes[1])).any()


def test_the_last_code_in_use_stays():
    latent = np.random.default_rng(0).normal(size=(40, 2))
    codes = np.r_[[[0, 0]], np.full((3, 2), 50.0)]
    codebook, _, _ = settle(codes, latent, idle=[0, 9, 9, 9], share=1.0)
    np.testing.assert_array_equal(codebook[0], [0, 0])


def test_idle_codes_cost_nothing_beside_a_single_one_in_use_wherever_its_views_lie():
    """They cost the squared distance of its views from 0, so that a collapsed map stayed as it was."""
    latent = np.random.default_rng(0).normal(size=(40, 2))
    codes = np.r_[[[0, 0]], np.full((3, 2), 50.0)]
    assert settle(codes, latent, views=latent + 1000)[2] == 1


@pytest.mark.parametrize(("idle", "moves"), [(0, 0), (20, 1)])
def test_an_idle_code_is_kept_at_first_and_moved_later(idle, moves):
    """It may be needed for what is yet to be found."""
    codes = np.r_[grid(3) * 4, [[50, 50]]]
    corners = np.array([(x, y) for x in (-1.0, 1) for y in (-1.0, 1)])
    latent = (grid(3)[:, None] * 4 + corners[None]).reshape(-1, 2)
    _, now, moved = settle(codes, latent, idle=[0] * 9 + [idle])
    assert moved == moves
    assert now[9] == (0 if moves else idle + 1)


def test_with_fewer_behaviors_than_codes_idle_ones_cost_nothing_and_a_quarter_may_move():
    codes = np.r_[[[0, 0]], 50 + grid(5)[:23]]
    latent = np.random.default_rng(0).normal(size=(20, 2))
    views = latent.copy()
    for _ in range(12):
        codes, _, moved = settle(codes, latent, views)
        assert moved <= 6
    distance = np.square(latent[:, None] - np.asarray(codes)[None]).sum(axis=2)
    assert len(np.unique(distance.argmin(axis=1))) > 15


@pytest.mark.parametrize(("share", "most"), [(0.025, 1), (0.1, 4)])
def test_at_most_a_share_moves(share, most):
    random = np.random.default_rng(0)
    codes = np.r_[1e-3 * random.uniform(size=(20, 2)), grid(5)[:20] * 10]
    latent = np.r_[codes[:20], (grid(5)[:20, None] * 10 + random.normal(size=(20, 10, 2))).reshape(-1, 2)]
    assert settle(codes, latent, share=share)[2] == most


def test_masked_rows_count_nothing():
    random = np.random.default_rng(0)
    codes, latent, mask = random.normal(size=(12, 2)), random.normal(size=(60, 2)), random.uniform(size=60) < 0.5
    clean = settle(codes, latent, mask=mask, share=0.5)
    dirty = settle(codes, np.where(mask[:, None], latent, 1e4), mask=mask, share=0.5)
    jax.tree.map(np.testing.assert_array_equal, clean, dirty)
    nobody = settle(codes, latent, mask=np.zeros(60, bool))
    assert nobody[2] == 0
    np.testing.assert_array_equal(nobody[0], codes.astype(np.float32))


def test_repeating_it_makes_cells_equal():
    """An even map of a strip that only a fifth of the codes serve."""
    random = np.random.default_rng(0)
    latent = random.uniform(0, 1, (1000, 2))
    codes, idle = np.r_[0.2 * random.uniform(size=(20, 2)), random.uniform(size=(30, 2))], np.zeros(50, int)

    def largest(codes):
        return np.square(latent[:, None] - np.asarray(codes)[None]).sum(axis=2).min(axis=1).max()

    before = largest(codes)
    for _ in range(15):
        codes, idle, _ = settle(codes, latent, idle=idle, share=0.1)
    assert largest(codes) < 0.7 * before


def test_same_under_vmap():
    random = np.random.default_rng(0)
    codes, latent = random.normal(size=(3, 12, 2)), random.normal(size=(3, 60, 2))
    both = jax.vmap(lambda c, x: fitted(0.5, c, jnp.zeros(12, jnp.int32), x, x, jnp.ones(60, bool)))
    together = both(jnp.asarray(codes, jnp.float32), jnp.asarray(latent, jnp.float32))
    for i in range(3):
        alone = settle(codes[i], latent[i], share=0.5)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-6), together, alone)
