"""Equal cells against a slow reference, and the rules one by one."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import maps as reference

from vqelites.descriptors import equal_cells
from vqelites.descriptors.equal_cells import EqualCells
from vqelites.tessellation import cvt, nearest

worth = jax.jit(equal_cells.worth, static_argnums=2)


@functools.partial(jax.jit, static_argnums=(2, 3))
def reached(latent, mask, cells, limit=math.inf):
    """The region of behaviors that all count alike."""
    return equal_cells.reached(latent, mask, jnp.ones(len(latent)), cells, limit)


def settle(codebook, latent, mask=None, fitness=None, share=0.25):
    """The new codebook and the number of moves; without a mask all rows count, without fitness alike."""
    mask = np.ones(len(latent), bool) if mask is None else mask
    fitness = np.full(len(latent), np.nan) if fitness is None else fitness
    rows = (jnp.asarray(rows, jnp.float32) for rows in (codebook, latent, fitness))
    return fitted(share, *rows, jnp.asarray(mask))


@functools.partial(jax.jit, static_argnums=0)
def fitted(share, codebook, latent, fitness, mask):
    return EqualCells(share)(codebook, latent, mask, fitness, 1.0)


def sizes(codebook, low=-1.0, high=1.0, seed=1):
    """How many of 40,000 even points of a square are in each cell."""
    points = jax.random.uniform(jax.random.key(seed), (40_000, 2), minval=low, maxval=high)
    return np.bincount(nearest(points, jnp.asarray(codebook)), minlength=len(codebook))


@given(st.integers(0, 10**6), st.sampled_from([(3, 0.5), (40, 0.1)]), st.floats(0.1, 1), st.floats(0.3, 1))
def test_as_in_plain_python(seed, sizes, reach, kept):
    """Few or many samples, over all codes or some, some of them masked; large and small shares."""
    count, share = sizes
    random = np.random.default_rng(seed)
    codebook = random.uniform(-1, 1, (12, 2)).astype(np.float32)
    latent = random.uniform(-1, -1 + 2 * reach, (count, 2)).astype(np.float32)
    mask = random.uniform(size=count) < kept
    region = reached(jnp.asarray(latent), jnp.asarray(mask), 12, 1.0)
    found, moved = settle(codebook, latent, mask, share=share)
    codes, moves = reference.equal_cells(codebook, np.asarray(region.points)[np.asarray(region.inside)], share)
    if mask.sum() <= 12:
        codes, more = reference.equal_cells(codes, latent[mask], share, least=1)
        moves += more
    np.testing.assert_allclose(found, codes, atol=1e-6)
    assert moved == moves


def test_cells_are_equal_however_crowded_the_middle_is():
    """Nine of ten behaviors lie in a ninth of the map, as those of random solutions do."""
    random = np.random.default_rng(0)
    latent = random.uniform(-1, 1, (2000, 2)) * np.where(np.arange(2000) < 1800, 1 / 3, 1)[:, None]
    codes = random.uniform(-1 / 3, 1 / 3, (100, 2))
    for _ in range(6):
        codes, _ = settle(codes, latent)
    size = sizes(codes)
    assert size.min() > 0
    assert size.std() / size.mean() < 0.5
    # Without the rule, k-means of the same behaviors: large cells outside.
    assert size.max() < 3 * size.mean()


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 6), st.floats(0.2, 1))
def test_worth_as_in_plain_python(seed, count, dim, kept):
    """Ties, fitness that is not known, rows that do not count."""
    random = np.random.default_rng(seed)
    fitness = random.choice([-3.0, 0.0, 0.5, 1e6, np.nan, *random.normal(size=4)], count).astype(np.float32)
    mask = random.uniform(size=count) < kept
    found = worth(jnp.asarray(fitness), jnp.asarray(mask), dim)
    np.testing.assert_allclose(np.where(mask, found, 1), reference.worth(fitness, mask, dim), rtol=1e-5)


def test_only_the_order_of_fitness_counts():
    fitness = jnp.asarray(np.random.default_rng(0).normal(size=50), jnp.float32)
    mask = jnp.ones(50, bool)
    np.testing.assert_array_equal(worth(fitness, mask, 5), worth(jnp.exp(3 * fitness), mask, 5))
    np.testing.assert_array_equal(worth(jnp.full(50, -7.0), mask, 5), np.ones(50))


@pytest.mark.parametrize("dim", [2, 3])
def test_cells_are_narrower_where_solutions_are_fit(dim):
    """The half of the map that is fitter gets more codes, whichever it is."""
    random = np.random.default_rng(0)
    latent, start = random.uniform(-1, 1, (4000, dim)), random.uniform(-1, 1, (300, dim))
    shares = []
    for fitness in (latent[:, 0], -latent[:, 0]):
        codes = start
        for _ in range(8):
            codes, _ = settle(codes, latent, fitness=fitness)
        shares.append((np.asarray(codes)[:, 0] > 0).mean())
    assert shares[0] > shares[1] + 0.08


def test_codes_where_nothing_can_be_move_to_where_something_is():
    random = np.random.default_rng(0)
    latent = random.uniform(-1, 0, (1000, 2))
    codes = np.asarray(cvt(jax.random.key(0), 100, (-1.0, -1.0), (1.0, 1.0), samples=5000))
    for _ in range(4):
        codes, _ = settle(codes, latent)
    near = (np.asarray(codes) < 0.35).all(axis=1)  # some wait around what was reached
    assert near.mean() > 0.95
    assert (sizes(codes, high=0.0) > 0).sum() > 60


def test_codes_wait_around_what_was_reached():
    random = np.random.default_rng(0)
    codes, latent = random.uniform(-1, 1, (300, 2)), random.uniform(-0.5, 0.5, (2000, 2))
    for _ in range(4):
        codes, _ = settle(codes, latent)
    outside = (np.abs(codes) > 0.5).any(axis=1)
    assert 0.03 < outside.mean() < 0.1  # about a twentieth


def test_moves_come_to_an_end():
    random = np.random.default_rng(0)
    codes, latent, moves = random.uniform(-1, 1, (200, 2)), random.uniform(-1, 1, (600, 2)), []
    for _ in range(8):
        codes, moved = settle(codes, latent)
        moves.append(int(moved))
    assert moves[0] > 10
    assert moves[-1] <= 2


def test_few_distinct_behaviors_have_a_code_each():
    """A hundred behaviors at nine places that one code holds; there are more codes than places."""
    places = 0.2 * np.stack(np.meshgrid(*[np.arange(3)] * 2), axis=-1).reshape(-1, 2)
    latent = places[np.arange(100) % 9]
    codes = np.r_[[[0.2, 0.2]], np.random.default_rng(0).uniform(0.9, 1, (29, 2))]
    for _ in range(4):
        codes, _ = settle(codes, latent)
    assert len(np.unique(nearest(jnp.asarray(places, jnp.float32), codes))) == 9


@pytest.mark.parametrize("dim", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_every_tile_of_a_grid_world_has_a_code(dim):
    """There are hardly more codes than tiles; equal shares of what lies around all tiles would leave some without."""
    random = np.random.default_rng(0)
    tiles = np.stack(np.meshgrid(*[np.linspace(-0.8, 0.8, 12)] * 2), axis=-1).reshape(-1, 2)
    tiles = tiles @ np.linalg.qr(random.normal(size=(dim, 2)))[0].T
    codes = np.asarray(cvt(jax.random.key(0), 180, (-1.0,) * dim, (1.0,) * dim, samples=5000))
    for _ in range(8):
        codes, _ = settle(codes, tiles[random.integers(0, 144, 2000)])
    assert len(np.unique(nearest(jnp.asarray(tiles, jnp.float32), codes))) == 144


def test_more_views_than_codes_leave_no_code_without_a_view():
    """196 tiles seen from four sides, all met some times; equal shares of a region leave many codes between tiles."""
    random = np.random.default_rng(0)
    tiles = np.stack(np.meshgrid(*[np.linspace(-0.8, 0.8, 14)] * 2), axis=-1).reshape(-1, 1, 2)
    views = (tiles + random.uniform(-0.015, 0.015, (196, 4, 2))).reshape(-1, 2)
    codes = np.asarray(cvt(jax.random.key(0), 300, (-1.0,) * 2, (1.0,) * 2, samples=5000))
    for _ in range(8):
        codes, _ = settle(codes, views[random.integers(0, 784, 2400)])
    held = np.bincount(nearest(jnp.asarray(views, jnp.float32), codes), minlength=300)
    assert (held > 0).mean() > 0.97
    assert held.max() <= 8


def test_behaviors_that_vary_are_no_tiles_because_many_others_are_equal():
    """Most random solutions do nothing, in the same way; what the others do has neighbours everywhere between."""
    random = np.random.default_rng(0)
    latent = np.where(np.arange(1280)[:, None] < 900, 0.0, random.uniform(-0.8, 0.8, (1280, 2)))
    region = reached(jnp.asarray(latent, jnp.float32), jnp.ones(1280, bool), 300, 1.0)
    assert not region.discrete
    assert reached(jnp.asarray(latent[:900], jnp.float32), jnp.ones(900, bool), 300, 1.0).discrete


def test_one_place_alone_does_not_draw_all_codes_onto_itself():
    """Behaviors yet to be found around it would then share few codes."""
    codes = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    for _ in range(4):
        codes, _ = settle(codes, np.zeros((50, 2)) + 0.1)
    assert np.asarray(codes).std(axis=0).min() > 0.01


@pytest.mark.parametrize(("share", "most"), [(0.025, 2), (0.1, 8)])
def test_at_most_a_share_moves_in_each_of_two_rounds(share, most):
    random = np.random.default_rng(0)
    codes = np.r_[1e-3 * random.uniform(size=(20, 2)), random.uniform(-1, 1, (20, 2))]
    assert settle(codes, random.uniform(-1, 1, (200, 2)), share=share)[1] == most


def test_masked_rows_count_nothing():
    random = np.random.default_rng(0)
    codes, latent, mask = random.uniform(-1, 1, (12, 2)), random.uniform(-1, 0, (60, 2)), random.uniform(size=60) < 0.5
    clean = settle(codes, latent, mask, share=0.5)
    dirty = settle(codes, np.where(mask[:, None], latent, 0.9), mask, share=0.5)
    jax.tree.map(np.testing.assert_array_equal, clean, dirty)
    nobody = settle(codes, latent, np.zeros(60, bool))
    assert nobody[1] == 0
    np.testing.assert_array_equal(nobody[0], codes.astype(np.float32))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_reached_region_is_drawn_evenly_however_crowded_it_is(dim):
    """Nine of ten behaviors on one side of the box; half of the points on either side."""
    random = np.random.default_rng(0)
    latent = random.uniform(-1, 1, (4000, dim)).astype(np.float32)
    latent[:, 0] = np.where(np.arange(4000) < 3600, -1, 1) * np.abs(latent[:, 0])
    region = reached(jnp.asarray(latent), jnp.ones(4000, bool), 200, 1.0)
    points = np.asarray(region.points)[np.asarray(region.inside)]
    assert 0.35 < (points[:, 0] > 0).mean() < 0.65
    assert (np.abs(points) <= 1).all()


@pytest.mark.parametrize("outlier", [False, True])
def test_of_few_behaviors_all_count_alike_for_the_radius(outlier):
    """Whatever the room for more, and whichever comes first."""
    latent = np.random.default_rng(0).uniform(-1, 1, (100, 2)).astype(np.float32)
    latent[0] = (3, 3) if outlier else latent[0]
    wide = np.zeros((1000, 2), np.float32)
    wide[:100] = latent
    far = []
    for rows, order in ((latent, 1), (latent, -1), (wide, 1)):
        region = reached(jnp.asarray(rows)[::order], jnp.arange(len(rows))[::order] < 100, 400)
        gaps = np.asarray(region.points)[:, None] - latent
        far.append(np.sqrt(np.square(gaps).sum(axis=2).min(axis=1)).max())
    assert max(far) < 1.1 * min(far)


@pytest.mark.slow
def test_of_very_many_latents_some_are_enough():
    latent = jax.random.uniform(jax.random.key(0), (20_000, 2), minval=-1)
    region = reached(latent.at[:18_000].multiply(0.5), jnp.ones(20_000, bool), 200, 1.0)
    assert 0.15 < (jnp.abs(region.points[region.inside]) < 0.5).all(axis=1).mean() < 0.35


def test_of_very_many_behaviors_the_last_ones_belong_to_the_region_too():
    """Above 131,080 of them an index overflowed: some were taken twice, and the last ones not at all."""
    count = 180_000
    latent = jnp.where(jnp.arange(count) < 140_000, -0.5, 0.5)[:, None] + jnp.zeros((count, 2))
    last = reached(latent, jnp.ones(count, bool), 50, 1.0).latent[:, 0] > 0
    np.testing.assert_allclose(last.mean(), 4 / 18, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_units_of_the_map_do_not_matter(scale):
    random = np.random.default_rng(0)
    latent, mask = jnp.asarray(random.normal(size=(300, 3)), jnp.float32), jnp.ones(300, bool)
    region, scaled = reached(latent, mask, 50), reached(scale * latent, mask, 50)
    np.testing.assert_allclose(scaled.points / scale, region.points, rtol=1e-3, atol=1e-3)


def test_same_under_vmap():
    random = np.random.default_rng(0)
    codes, latent = random.uniform(-1, 1, (3, 12, 2)), random.uniform(-1, 1, (3, 60, 2))
    both = jax.vmap(lambda c, x: fitted(0.5, c, x, jnp.zeros(60), jnp.ones(60, bool)))
    together = both(jnp.asarray(codes, jnp.float32), jnp.asarray(latent, jnp.float32))
    for i in range(3):
        alone = settle(codes[i], latent[i], share=0.5)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-6), together, alone)
