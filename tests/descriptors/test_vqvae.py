"""The VQ-VAE: its loss and gradients by hand, and what learning may and may not do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.descriptors.base import Observed
from vqelites.descriptors.equal_cells import EqualCells
from vqelites.descriptors.layers import BatchNorm, Dropout, Linear, Sequential, per_sample
from vqelites.descriptors.stretch import unequal_stretch
from vqelites.descriptors.training import Training
from vqelites.descriptors.vqvae import VQVAE
from vqelites.tessellation import nearest, usage

KEY = jax.random.key(0)
SAMPLES = jax.random.normal(jax.random.key(1), (48, 4)) * jnp.array([[1.0, 2.0, 3.0, 0.5]])
MASK = jnp.ones(48, bool)
TRUTH = jnp.zeros((48, 0))


@eqx.filter_jit
def compiled(descriptor, *args):
    return descriptor.learn(*args)


def learn(descriptor, state, samples=SAMPLES, mask=MASK, key=KEY, epochs=5):
    return compiled(descriptor, state, key, samples, mask, jnp.array(0.0), jnp.array(epochs))


def small(rate=7e-4, **settings):
    return VQVAE((4,), 2, 8, training=Training(learning_rate=rate, batch=16), **settings)


def rich(rate=7e-4):
    """A model with everything that can be switched on."""
    return small(rate, equal=0.25, codebook="data", units="mixed")


def settle(descriptor, state, samples=SAMPLES, mask=MASK):
    state, described, info = eqx.filter_jit(descriptor.settle)(
        state, KEY, [Observed(samples, mask, jnp.full(len(mask), jnp.nan))]
    )
    return state, described[0], info


def with_batch_norm():
    """A model with every layer that behaves differently in training."""
    encoder = Sequential((Linear(4, 8, key=KEY), BatchNorm(8), Dropout(0.5), Linear(8, 2, key=KEY)))
    return small(networks=(encoder, per_sample(eqx.nn.MLP(2, 4, 8, 1, key=KEY))))


def by_hand(**settings):
    """Encoder and decoder are the first two numbers as they are; two codes."""
    eye = eqx.tree_at(lambda m: (m.weight, m.bias), Linear(2, 2, key=KEY), (jnp.eye(2), jnp.zeros(2)))
    plain = {"bounded": False, "standardise": False, "principal": False, "reduction": "sum", "stretch": 0.0}
    plain["codebook"] = "random"  # replaced below
    vqvae = VQVAE((2,), 2, 2, networks=(eye, eye), **(plain | settings))
    model = vqvae.init(KEY).model
    return vqvae, eqx.tree_at(lambda m: m.codebook, model, jnp.array([[0.0, 0.0], [4.0, 4.0]]))


@eqx.filter_jit
def losses(vqvae, model, samples):
    return vqvae.losses(model, samples, None)[0]


def test_loss_terms_by_hand():
    vqvae, model = by_hand(beta=0.5)
    terms = losses(vqvae, model, jnp.array([[1.0, 2.0], [4.0, 3.0]]))
    np.testing.assert_allclose(terms.reconstruction, [5.0, 1.0])
    np.testing.assert_allclose(terms.codebook, [5.0, 1.0])
    np.testing.assert_allclose(terms.commitment, [5.0, 1.0])
    np.testing.assert_allclose(terms.loss, [12.5, 2.5])
    vqvae, model = by_hand(beta=0.5, reduction="mean")
    np.testing.assert_allclose(losses(vqvae, model, jnp.array([[1.0, 2.0]])).loss, [6.25])


def test_stretch_is_weighed_into_the_loss_of_every_sample_per_latent_number():
    views = SAMPLES[:, :2]
    for weight in (0.0, 3.0):
        vqvae, model = by_hand(stretch=weight, bounded=True)
        terms = losses(vqvae, model, views)
        rest = terms.reconstruction + terms.codebook + 0.25 * terms.commitment
        np.testing.assert_allclose(terms.stretch, unequal_stretch(views, jnp.tanh(views)), rtol=1e-5)
        np.testing.assert_allclose(terms.loss, rest + weight / 2 * terms.stretch, rtol=1e-5)


def test_cross_entropy_by_hand():
    vqvae, model = by_hand(loss="cross-entropy")
    terms = losses(vqvae, model, jnp.array([[0.25, 1.0]]))
    np.testing.assert_allclose(terms.reconstruction, [2 * np.log(2)], rtol=1e-6)  # logits are 0


def test_gradients_are_straight_through():
    vqvae, model = by_hand(beta=0.5)
    x = jnp.array([[1.0, 2.0]])  # code (0, 0): output - x = (-1, -2), latent - code = (1, 2)
    gradient = eqx.filter_grad(lambda m: losses(vqvae, m, x).loss[0])(model)
    from_decoder = 2 * np.array([-1.0, -2.0])
    np.testing.assert_allclose(gradient.coder.decoder.bias, from_decoder)
    np.testing.assert_allclose(gradient.coder.encoder.bias, from_decoder + 0.5 * 2 * np.array([1.0, 2.0]))
    np.testing.assert_allclose(gradient.codebook, [[-2.0, -4.0], [0.0, 0.0]])
    for fixed in (*jax.tree.leaves(gradient.coder.seen), gradient.coder.offset, gradient.coder.axes):
        np.testing.assert_array_equal(fixed, 0)


def test_learning_reduces_the_loss_and_keeps_the_optimizer():
    vqvae = small(rate=5e-3)
    first, info = learn(vqvae, vqvae.init(KEY), epochs=2)
    second, later = learn(vqvae, first, epochs=20)
    assert later.loss < 0.8 * info.loss
    assert (info.samples, info.epochs, info.rolled_back) == (48, 2, False)
    assert second.optimizer.count == 22 * 3
    assert second.trainings == 2
    assert eqx.tree_equal(first.model.coder.seen, second.model.coder.seen)
    np.testing.assert_allclose(second.model.coder.seen.mean, SAMPLES.mean(0), atol=1e-6)
    common = np.sqrt(np.square(SAMPLES.std(0)).mean())  # what varies most matters most
    np.testing.assert_allclose(second.model.coder.seen.scale, np.full(SAMPLES.shape[1], common), rtol=1e-5)


def test_a_descriptor_does_not_depend_on_its_batch():
    vqvae = with_batch_norm()
    state, _ = learn(vqvae, vqvae.init(KEY))
    assert (state.model.coder.encoder.layers[1].mean != 0).all()
    together = vqvae.describe(state, SAMPLES, TRUTH)
    alone = jnp.concatenate([vqvae.describe(state, SAMPLES[i : i + 1], TRUTH[:1]) for i in range(3)])
    np.testing.assert_allclose(together[:3], alone, atol=1e-6)
    np.testing.assert_allclose(vqvae.describe(state, SAMPLES[::-1], TRUTH)[::-1], together, atol=1e-6)


def test_masked_samples_influence_nothing():
    mask = jnp.arange(48) % 3 > 0
    garbage = jnp.where(mask[:, None], SAMPLES, 1e5)
    for vqvae in (with_batch_norm(), rich()):
        start = vqvae.init(KEY)
        (clean, info), (dirty, other) = learn(vqvae, start, mask=mask), learn(vqvae, start, garbage, mask)
        assert eqx.tree_equal((clean, info), (dirty, other))
        assert info.samples == 32
    (settled, _, info), (dirty, _, other) = settle(vqvae, clean, mask=mask), settle(vqvae, clean, garbage, mask)
    assert eqx.tree_equal((settled, info), (dirty, other))
    assert info.behaviors == 32


def test_randomness_is_keyed():
    vqvae = with_batch_norm()
    start = vqvae.init(KEY)
    same, again, other = (learn(vqvae, start, key=jax.random.key(k))[0] for k in (0, 0, 1))
    assert eqx.tree_equal(same, again)
    assert not eqx.tree_equal(same, other)


def test_all_rolls_back_when_a_number_is_not_finite():
    vqvae = rich()
    start = vqvae.init(KEY)
    state, info = learn(vqvae, start, SAMPLES.at[5].set(jnp.inf))
    assert eqx.tree_equal(state, start)
    assert info.rolled_back
    trained, _ = learn(vqvae, start)
    state, info = learn(vqvae, trained, SAMPLES.at[5].set(jnp.inf))
    assert eqx.tree_equal(state, trained)
    assert info.rolled_back


def test_nothing_to_learn_from_changes_nothing():
    vqvae = rich()
    start = vqvae.init(KEY)
    state, info = learn(vqvae, start, mask=~MASK)
    assert eqx.tree_equal(state, start)
    assert (info.rolled_back, info.epochs, info.samples) == (False, 0, 0)
    settled, _, info = settle(vqvae, state, mask=~MASK)
    assert eqx.tree_equal(settled.model, state.model)
    assert (info.behaviors, info.codes_used, info.moved, info.restarted) == (0, 0, 0, False)


def test_codebook_starts_well_spread_in_the_box():
    codes = VQVAE((4,), 2, 64).init(KEY).model.codebook
    assert jnp.abs(codes).max() < 1
    points = jax.random.uniform(KEY, (2000, 2), minval=-1)
    share = {}
    for name in ("kmeans", "random"):
        codes = VQVAE((4,), 2, 64, codebook=name).init(KEY).model.codebook
        share[name] = usage(jnp.bincount(nearest(points, codes), length=64))[1]
    assert share["kmeans"] > 58
    assert share["kmeans"] > share["random"]


def unmoving():
    """A model whose codes stay where the data had them."""
    return small(0.0, equal=0, codebook="data", units="mixed")


def test_codebook_from_data_covers_the_latents():
    vqvae = unmoving()
    state, _ = learn(vqvae, vqvae.init(KEY), epochs=1)
    _, _, info = settle(vqvae, state)
    assert info.codes_used == 8
    assert info.perplexity > 5
    few, _ = learn(vqvae, vqvae.init(KEY), mask=jnp.arange(48) < 5, epochs=1)
    assert jnp.isfinite(few.model.codebook).all()
    later, _ = learn(vqvae, state, 9 * SAMPLES, epochs=1)
    np.testing.assert_array_equal(later.model.codebook, state.model.codebook)


@pytest.mark.slow
def test_settling_moves_codes_by_equal_cells_and_describes_what_is_stored():
    vqvae = small(rate=0.0, equal=0.25)
    state, _ = learn(vqvae, vqvae.init(KEY), epochs=1)
    few = jnp.full((8, 2), 50.0).at[:2].set(jnp.array([[-0.3, 0.0], [0.3, 0.0]]))
    state = eqx.tree_at(lambda s: s.model.codebook, state, few)
    settled, described, info = settle(vqvae, state)
    np.testing.assert_allclose(described, vqvae.describe(state, SAMPLES, TRUTH), atol=1e-6)
    codebook, moved = jax.jit(EqualCells(0.25))(few, described, jnp.ones(48, bool), jnp.full(48, jnp.nan), 1.0)
    np.testing.assert_allclose(settled.model.codebook, codebook, atol=1e-6)
    assert info.moved == moved > 0
    assert info.codes_used == len(np.unique(nearest(described, codebook))) > 2
    unmoved, _, info = settle(unmoving(), state)
    assert eqx.tree_equal(unmoved.model, state.model)
    assert info.moved == 0


def test_samples_that_are_alike_get_one_code_together():
    """Two codes for one view split its solutions by rounding errors: on a GPU an eighth of the elites, every time."""
    vqvae = small(rate=0.0, equal=0.25)
    samples = jnp.repeat(SAMPLES[:2], 24, axis=0)
    state, _ = learn(vqvae, vqvae.init(KEY), samples, MASK, epochs=1)
    state = eqx.tree_at(lambda s: s.model.codebook, state, jnp.full((8, 2), 50.0).at[0].set(0.0))
    for _ in range(4):
        state, latent, info = settle(vqvae, state, samples)
    assert len(np.unique(nearest(latent, state.model.codebook))) == info.codes_used == 2


def test_decode_undoes_standardisation():
    vqvae = small(rate=1e-2)
    state, _ = learn(vqvae, vqvae.init(KEY), epochs=100)
    error = vqvae.decode(state, vqvae.describe(state, SAMPLES, TRUTH)) - SAMPLES
    assert jnp.square(error / SAMPLES.std(0)[None]).mean() < 0.8


def blobs(count, size=16, radius=1.5):
    """Images of one small disc at uniform random places."""
    at = jax.random.uniform(jax.random.key(3), (count, 2), minval=0, maxval=size - 1)
    axis = jnp.arange(size)[None]
    rows, columns = jnp.square(axis - at[:, :1]), jnp.square(axis - at[:, 1:])
    return jnp.clip(radius + 0.5 - jnp.sqrt(rows[:, :, None] + columns[:, None]), 0, 1)[..., None]


@pytest.mark.long
def test_small_blobs_do_not_collapse():
    images = blobs(320)
    vqvae = VQVAE((16, 16, 1), 2, 100)
    state, _ = learn(vqvae, vqvae.init(KEY), images, jnp.ones(320, bool), epochs=30)
    _, latent, info = settle(vqvae, state, images, jnp.ones(320, bool))
    assert info.codes_used > 50
    assert not info.restarted
    assert (latent.std(0) > 0.3).all()


@pytest.mark.slow
def test_cross_entropy_starts_at_the_mean_pixel_and_is_decoded_to_pixels():
    images = blobs(48)
    vqvae = VQVAE((16, 16, 1), 2, 8, blur=0.0, loss="cross-entropy")
    state, _ = learn(vqvae, vqvae.init(KEY), images, epochs=2)
    pixel = jnp.clip(images.mean(axis=0), 1e-5, 1)
    np.testing.assert_allclose(state.model.coder.offset, jnp.log(pixel / (1 - pixel)), rtol=1e-3)
    decoded = vqvae.decode(state, vqvae.cells(state))
    assert decoded.shape == (8, 16, 16, 1)
    assert ((decoded >= 0) & (decoded <= 1)).all()


def test_only_logits_have_an_offset():
    for settings in ({}, {"standardise": False}):
        coding = small(**settings).coding
        assert not coding.adapt(coding.init(KEY), SAMPLES, MASK).offset.any()


@pytest.mark.slow
def test_same_under_vmap_over_seeds():
    vqvae = rich()
    keys = jax.random.split(KEY, 2)
    states = eqx.filter_vmap(vqvae.init)(keys)
    together, info = eqx.filter_vmap(lambda state, key: learn(vqvae, state, key=key))(states, keys)
    alone, alone_info = learn(vqvae, jax.tree.map(lambda x: x[1], states), key=keys[1])
    np.testing.assert_allclose(together.model.codebook[1], alone.model.codebook, atol=1e-4)
    np.testing.assert_allclose(info.loss[1], alone_info.loss, rtol=1e-4)


@pytest.mark.long
def test_same_under_scan():
    vqvae = small()
    start, keys = vqvae.init(KEY), jax.random.split(KEY, 2)
    scanned, _ = jax.lax.scan(lambda state, key: learn(vqvae, state, key=key), start, keys)
    state = start
    for key in keys:
        state, _ = learn(vqvae, state, key=key)
    np.testing.assert_allclose(scanned.model.codebook, state.model.codebook, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"codes": 0}, "at least 1 code"),
        ({"dim": 5}, "between 1 and the 4 numbers"),
        ({"codebook": "magic"}, "codebook must be"),
        ({"units": "inches"}, "units must be one of"),
        ({"loss": "huber"}, "loss must be one of"),
        ({"reduction": "max"}, "reduction must be one of"),
        ({"networks": "nonsense"}, "networks must be one of"),
        ({"networks": "arm"}, "expect behaviors of shape"),
        ({"networks": (Linear(4, 3, key=KEY), Linear(2, 4, key=KEY))}, "encoder must map"),
        ({"blur": 0.25}, "share of an image's width"),
        ({"equal": 1.5}, "share of the codes"),
        ({"stretch": -1.0}, "weight >= 0"),
    ],
)
def test_clear_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        VQVAE((4,), **({"dim": 2, "codes": 8} | settings))
