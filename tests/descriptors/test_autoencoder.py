"""The autoencoder of AURORA, and hand-coded descriptors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.descriptors.autoencoder import AutoEncoder
from vqelites.descriptors.handcoded import HandCoded
from vqelites.descriptors.training import Training

KEY = jax.random.key(0)
SAMPLES = 3 + 2 * jax.random.normal(jax.random.key(1), (40, 5))
MASK = jnp.arange(40) % 4 > 0
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


def test_statistics_of_the_data_are_renewed_at_each_training():
    model = AutoEncoder((5,), 2)
    state, _ = learn(model, model.init(KEY))
    state, _ = learn(model, state, SAMPLES + 10)
    np.testing.assert_allclose(state.model.mean, (SAMPLES + 10)[MASK].mean(0), rtol=1e-5)


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
