"""Views have no unit and no origin, and the loss is the share of variance left unexplained, whatever is seen."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.descriptors.coding import Coding
from vqelites.descriptors.layers import per_sample

KEY = jax.random.key(0)


@functools.partial(jax.jit, static_argnums=(0, 1))
def adapted(shape, units, samples, mask):
    view = Coding(shape, 1, units=units).view
    return view.of(view.adapt(samples, mask), samples)


def views(samples, units="auto", mask=None):
    samples = jnp.asarray(samples, jnp.float32)
    mask = jnp.ones(len(samples), bool) if mask is None else jnp.asarray(mask)
    return np.asarray(adapted(samples.shape[1:], units, samples, mask))


def spreads(samples, units="auto"):
    """How much each feature or channel counts: the standard deviation of its views."""
    found = views(samples, units)
    return np.sqrt(found.var(axis=0).reshape(-1, found.shape[-1]).mean(axis=0))


def gaussian(*spread, shape=(), count=100, seed=0):
    return np.random.default_rng(seed).normal(size=(count, *shape, len(spread))) * np.array(spread)


def dots(count=60, size=(16, 16), frames=(), seed=0):
    """Images or videos of a soft white dot on black."""
    at = np.random.default_rng(seed).uniform(0.1, 0.9, (count, *frames, 2))
    rows, columns = ((np.arange(n) + 0.5) / n - at[..., i, None] for i, n in enumerate(size))
    return np.exp(-50 * (rows[..., :, None] ** 2 + columns[..., None, :] ** 2))[..., None].astype(np.float32)


@pytest.mark.parametrize("units", ["auto", "same", "mixed"])
@pytest.mark.parametrize("shape", [(), (3,)])
@given(
    seed=st.integers(0, 10**6),
    shift=st.tuples(*[st.floats(-100, 100)] * 3),
    factor=st.floats(-5, 5),
    proportions=st.sampled_from([(1, 1, 1), (1, 3, 0.2), (1, 0.01, 300)]),
)
def test_shifting_a_feature_or_multiplying_all_changes_nothing_but_rounding(
    units, shape, seed, shift, factor, proportions
):
    samples = gaussian(*proportions, shape=shape, count=20, seed=seed)
    changed = (samples + np.array(shift) * np.array(proportions)) * 10.0**factor
    np.testing.assert_allclose(views(changed, units), views(samples, units), atol=1e-3)


@pytest.mark.parametrize("images", [dots(), dots(20, (12, 16), (3,))], ids=["image", "video"])
@given(shift=st.floats(-20, 20), factor=st.floats(-3, 3))
def test_background_and_range_of_images_change_nothing_but_rounding(images, shift, factor):
    changed = (images + np.float32(shift)) * np.float32(10.0**factor)
    np.testing.assert_allclose(views(changed), views(images), atol=5e-3)


@pytest.mark.parametrize("images", [dots(), dots(20, (12, 16), (3,)), dots(40, (40, 32))])
def test_black_on_white_is_white_on_black_but_for_the_sign(images):
    np.testing.assert_allclose(views(1 - images), -views(images), atol=1e-3)


def test_features_in_one_unit_keep_their_proportions():
    """Joints that hardly move must not count as much as the others."""
    for units in ("auto", "same"):
        found = spreads(gaussian(1, 0.1, 0.02), units)
        np.testing.assert_allclose(found / found[0], [1, 0.1, 0.02], rtol=0.2)


@pytest.mark.parametrize(("units", "spread"), [("auto", (1e-3, 1, 1e6)), ("auto", (1, 200)), ("mixed", (1, 3, 0.5))])
@pytest.mark.parametrize("shape", [(), (4,)])
def test_features_in_different_units_count_equally(units, spread, shape):
    np.testing.assert_allclose(spreads(gaussian(*spread, shape=shape), units), 1, rtol=1e-3)


def test_channels_of_a_series_count_equally():
    """The angle of a lander varies five times as much as its place, and hid where it went."""
    np.testing.assert_allclose(spreads(gaussian(0.17, 0.9, 0.1, shape=(8,))), 1, rtol=1e-3)
    found = spreads(gaussian(0.17, 0.9, 0.1, shape=(8,)), "same")
    np.testing.assert_allclose(found / found[1], [0.17 / 0.9, 1, 0.1 / 0.9], rtol=0.2)


def test_the_user_may_say_that_units_are_the_same():
    found = spreads(gaussian(1, 1000), "same")
    assert found[1] > 500 * found[0]


@pytest.mark.parametrize("units", ["auto", "same", "mixed"])
@pytest.mark.parametrize("constant", [0.0, 273.15, 1e6, -1e-3])
def test_a_constant_feature_counts_nothing(units, constant):
    """A standard deviation in float32 of such a constant need not be 0."""
    samples = gaussian(1, 2)
    with_it = np.c_[samples, np.full(100, constant)].astype(np.float32)
    found = views(with_it, units)
    np.testing.assert_array_equal(found[:, 2], 0)
    np.testing.assert_allclose(found[:, :2], views(samples, units) * np.sqrt(3 / 2), rtol=1e-4)


@pytest.mark.parametrize("units", ["auto", "same", "mixed"])
def test_the_rounding_of_a_large_constant_is_not_seen_beside_small_features(units):
    """It looked 60 times as large as what varied."""
    random = np.random.default_rng(0)
    rounded = np.c_[1e6 + 0.0625 * random.integers(-1, 2, 100), 273.15 + 3e-5 * random.integers(-1, 2, 100)]
    assert (spreads(np.c_[gaussian(1e-3, 1e-3), rounded], units)[2:] < 0.01).all()


def test_data_that_are_all_alike_have_views_of_zero():
    for alike in (np.full((10, 3), 273.15), np.full((10, 8, 8, 1), 0.7)):
        assert not views(alike).any()
    assert np.isfinite(views(gaussian(1, 2), mask=np.zeros(100, bool))).all()


def test_masked_rows_do_not_count():
    samples, mask = gaussian(1, 2), np.arange(100) % 3 > 0
    dirty = np.where(mask[:, None], samples, 1e5)
    np.testing.assert_array_equal(views(dirty, mask=mask)[mask], views(samples, mask=mask)[mask])


DATA = {
    "vector": gaussian(1, 3, 0.2),
    "vector in different units": gaussian(1e-3, 1, 1e6),
    "vector with constants": np.c_[gaussian(1, 2), np.full(100, 273.15), np.zeros(100)],
    "series": gaussian(1, 3, shape=(5,)) + 100,
    "series in different units": gaussian(1e-3, 1e6, shape=(5,)),
    "image": dots(),
    "image, black on white": 1 - dots(),
    "image on grey": 0.5 + 0.1 * dots(),
    "image in 8 bit": np.round(255 * dots()),
    "image, not square, in colour": 0.3 + dots(size=(40, 24)) * np.array([0.5, 0.1, -0.3]),
    "video": dots(30, (16, 16), (4,)),
    "video, dark on bright": 200 - 50 * dots(30, (16, 16), (4,)),
}


@eqx.filter_jit
def knowing_only_the_mean(coding, samples):
    """Views of the samples, and the loss of a decoder that always answers with their mean."""
    coder = coding.adapt(coding.init(KEY), samples, jnp.ones(len(samples), bool))
    seen = coding.view.of(coder.seen, samples)
    mute = eqx.tree_at(lambda c: c.decoder, coder, per_sample(lambda _: jnp.zeros(coding.view.seen_shape)))
    return seen, coding.reconstruct_batch(mute, jnp.zeros((len(samples), 1)), seen, None)[0]


@pytest.mark.parametrize(("name", "blur"), [*((name, None) for name in DATA), ("image", 0.0), ("video", 0.0)])
def test_the_loss_of_knowing_only_the_mean_is_one(name, blur):
    samples = jnp.asarray(DATA[name], jnp.float32)
    seen, loss = knowing_only_the_mean(Coding(samples.shape[1:], 1, blur=blur), samples)
    assert jnp.square(seen).mean() == pytest.approx(1, rel=1e-3)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-3)
    assert loss.mean() == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"standardise": False}])
def test_what_is_unexplained_is_a_share_of_the_variance_whatever_the_unit_of_the_loss(options):
    """Whoever knows only the mean of what was drawn, rare samples more often, leaves all of it."""
    coding = Coding((3,), 1, **options)
    rows, weight = gaussian(1.0, 5.0, 0.1), np.r_[np.ones(50), np.full(40, 3.0), np.zeros(10)]
    errors = coding.reduce(jnp.asarray(np.square(rows - np.average(rows, axis=0, weights=weight))))
    found = eqx.filter_jit(coding.unexplained)
    data, loss = (jnp.asarray(rows, jnp.float32), jnp.asarray(weight, jnp.float32)), np.average(errors, weights=weight)
    first, later = jnp.array(True), jnp.array(False)
    np.testing.assert_allclose(found(first, jnp.float32(loss), *data), 1, rtol=1e-5)
    np.testing.assert_allclose(found(first, jnp.float32(0.2 * loss), *data), 0.2, rtol=1e-5)
    assert jnp.isnan(found(later, jnp.float32(loss), *data))
    assert jnp.isnan(found(first, jnp.float32(loss), jnp.ones((100, 3)), data[1]))  # nothing varies


def test_of_the_cross_entropy_no_share_of_the_variance_is_known():
    coding = Coding((3,), 1, loss="cross-entropy")
    assert jnp.isnan(coding.unexplained(jnp.array(True), jnp.float32(1), jnp.ones((2, 3)), jnp.ones(2)))
