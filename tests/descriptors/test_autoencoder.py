"""The autoencoder of AURORA, and hand-coded descriptors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.descriptors.autoencoder import AutoEncoder
from vqelites.descriptors.base import Observed
from vqelites.descriptors.handcoded import HandCoded
from vqelites.descriptors.stretch import unequal_stretch
from vqelites.descriptors.training import Training

KEY = jax.random.key(0)
SAMPLES = 3 + 2 * jax.random.normal(jax.random.key(1), (40, 5))
MASK = jnp.arange(40) % 4 > 0
NOT_KNOWN = jnp.full(len(MASK), jnp.nan)
TRUTH = jnp.zeros((40, 0))


@eqx.filter_jit
def compiled(descriptor, *args):
    return descriptor.learn(*args)


def learn(descriptor, state, samples=SAMPLES, mask=MASK, epochs=10):
    return compiled(descriptor, state, KEY, samples, mask, jnp.array(0.0), jnp.array(epochs))


@pytest.mark.parametrize("bounded", [True, False])
def test_learning(bounded):
    model = AutoEncoder((5,), 2, bounded=bounded)
    state, first = learn(model, model.init(KEY), epochs=2)
    state, info = learn(model, state, epochs=100)
    assert info.loss < first.loss
    assert info.codebook == 0
    assert state.optimizer.count == info.epochs  # 23 samples to train on make one minibatch, and Adam starts afresh
    assert model.cells(state) is None
    descriptor = model.describe(state, SAMPLES, TRUTH)
    assert (jnp.abs(descriptor).max() <= 1) == bounded
    assert model.decode(state, descriptor).shape == SAMPLES.shape


def test_unbounded_descriptors_are_standardised_by_the_training_set():
    model = AutoEncoder((5,), 2, bounded=False)
    state, _ = learn(model, model.init(KEY))
    descriptor = model.describe(state, SAMPLES, TRUTH)[MASK]
    np.testing.assert_allclose(descriptor.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(descriptor.std(0), 1, atol=1e-4)
    np.testing.assert_allclose(model.describe(state, SAMPLES[1:2], TRUTH)[0], descriptor[0], atol=1e-5)


def test_statistics_stay_those_of_the_first_training_as_the_axes_in_their_coordinates_do():
    """Mean and scale were renewed at each training, while the principal axes stayed in the old coordinates."""
    model = AutoEncoder((5,), 2)
    once, _ = learn(model, model.init(KEY))
    np.testing.assert_allclose(once.model.seen.mean, SAMPLES[MASK].mean(0), rtol=1e-5)
    later, _ = learn(model, once, 3 * SAMPLES + 10)
    assert later.trainings == 2
    for name in ("seen", "axes", "offset"):
        assert eqx.tree_equal(getattr(later.model, name), getattr(once.model, name))
    assert not eqx.tree_equal(later.model.encoder, once.model.encoder)


@pytest.mark.slow
def test_equal_stretch_is_an_option():
    for weight in (0.0, 2.0):
        model = AutoEncoder((5,), 2, stretch=weight)
        state, info = learn(model, model.init(KEY), epochs=30)
        assert (info.stretch > 0) == (weight > 0)
        assert info.loss == pytest.approx(float(info.reconstruction + weight / 2 * info.stretch), rel=1e-5)
    views = model.coding.view.of(state.model.seen, SAMPLES[MASK])
    plain = AutoEncoder((5,), 2)
    unstretched, _ = learn(plain, plain.init(KEY), epochs=30)
    unequal = [
        unequal_stretch(views, m.coding.encode(s.model, SAMPLES[MASK]))
        for m, s in ((model, state), (plain, unstretched))
    ]
    assert unequal[0] < unequal[1]


@pytest.mark.parametrize("bounded", [True, False])
def test_stored_behaviors_are_described_group_by_group(bounded):
    model = AutoEncoder((5,), 2, bounded=bounded)
    state, _ = learn(model, model.init(KEY))
    rows = SAMPLES, MASK, NOT_KNOWN
    groups = [Observed(*(x[:10] for x in rows)), Observed(*(x[10:] for x in rows))]
    same, described, info = model.settle(state, KEY, groups)
    assert eqx.tree_equal(same, state)
    assert [len(rows) for rows in described] == [10, 30]
    np.testing.assert_allclose(jnp.concatenate(described), model.describe(state, SAMPLES, TRUTH), atol=1e-6)
    assert info.behaviors == MASK.sum()
    assert jnp.isnan(info.codes_used)
    assert jnp.isnan(info.saturated) == (not bounded)
    assert (info.moved, info.restarted) == (0, False)


def test_masked_samples_influence_nothing():
    model = AutoEncoder((5,), 2, bounded=False)
    start = model.init(KEY)
    garbage = jnp.where(MASK[:, None], SAMPLES, -1e5)
    assert eqx.tree_equal(learn(model, start)[0], learn(model, start, garbage)[0])


def test_rolls_back():
    model = AutoEncoder((5,), 2)
    start = model.init(KEY)
    state, info = learn(model, start, SAMPLES.at[1].set(jnp.inf))
    assert info.rolled_back
    assert eqx.tree_equal(state, start)


def test_optimizer_can_be_kept():
    model = AutoEncoder((5,), 2, training=Training(batch=10))
    state, _ = learn(model, model.init(KEY), epochs=2)
    state, _ = learn(model, state, epochs=2)
    assert state.optimizer.count == 4 * 3


def test_hand_coded():
    truth = jnp.arange(6.0).reshape(3, 2)
    behavior = jnp.ones((3, 4))
    descriptor = HandCoded(2)
    state = descriptor.init(KEY)
    np.testing.assert_array_equal(descriptor.describe(state, behavior, truth), truth)
    assert descriptor.cells(state) is None
    same, info = descriptor.learn(state, KEY, behavior, jnp.ones(3, bool), jnp.array(0.0), jnp.array(5))
    assert same == state
    assert jnp.isnan(info.loss)
    own = HandCoded(1, lambda x: x[:, :1])
    np.testing.assert_array_equal(own.describe(state, behavior, truth), behavior[:, :1])
    with pytest.raises(ValueError, match=r"shape \(n, 3\).*\(3, 2\)"):
        HandCoded(3).describe(state, behavior, truth)
