"""The training loop on a model of one number, whose course can be computed by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.descriptors.training import Known, Terms, Training

KEY = jax.random.key(0)
ALL = jnp.ones(10, bool)


class Point(eqx.Module):
    """Learns the mean of the samples; `seen` is a statistic: the largest sample met in training."""

    at: jax.Array
    seen: jax.Array


def losses(model, batch, key):
    error = jnp.square(model.at - batch[:, 0])
    seen = jnp.maximum(model.seen, batch.max()) if key is not None else model.seen
    zero = jnp.zeros_like(error)
    return Terms(error, error, zero, zero, zero), Point(model.at, jax.lax.stop_gradient(seen))


@eqx.filter_jit
def compiled(training, model, state, *args):
    return training.fit(model, state, losses, *args)


def fit(training, samples, mask=ALL, epochs=5, progress=0.0, start=0.0, key=KEY, weight=None):
    model = Point(jnp.array(start), jnp.array(-1e9))
    state = training.optimizer_state(model)
    return compiled(training, model, state, samples, mask, key, jnp.array(progress), jnp.array(epochs), weight)


def test_rate_follows_a_cosine_over_the_run():
    training = Training(learning_rate=2.0, final=0.1)
    rates = [float(training.rate(jnp.array(p))) for p in (0.0, 0.5, 1.0, 3.0)]
    np.testing.assert_allclose(rates, [2.0, 1.1, 0.2, 0.2], rtol=1e-6)
    np.testing.assert_allclose(Training(final=1.0).rate(jnp.array(0.7)), 7e-4)


def test_first_adam_steps_have_the_size_of_the_learning_rate():
    model, _, terms, epochs, finite = fit(Training(learning_rate=0.1, batch=10), 5 * jnp.ones((10, 1)), epochs=2)
    np.testing.assert_allclose(model.at, 0.2, rtol=1e-3)
    np.testing.assert_allclose(terms.loss, 4.9**2, rtol=1e-3)
    assert epochs == 2
    assert finite


def test_progress_slows_learning():
    model, *_ = fit(Training(learning_rate=0.1, batch=10), 5 * jnp.ones((10, 1)), epochs=2, progress=1.0)
    np.testing.assert_allclose(model.at, 0.2 * 0.02, rtol=1e-3)


def test_the_number_of_steps_counts_valid_samples_and_each_is_seen():
    samples, mask = jnp.arange(10.0)[:, None], jnp.arange(10) < 7
    model, state, *_ = fit(Training(batch=3), samples, mask, epochs=2)
    assert state.count == 2 * 3
    assert model.seen == 6


def test_masked_samples_change_nothing():
    samples, mask = jax.random.normal(KEY, (10, 1)), jnp.arange(10) % 3 > 0
    garbage = jnp.where(mask[:, None], samples, 1e6)
    for training in (Training(batch=4), Training(batch=4, validation=0.25)):
        clean, dirty = fit(training, samples, mask), fit(training, garbage, mask)
        assert eqx.tree_equal(clean, dirty)


def test_samples_are_drawn_by_their_weight_and_masked_ones_never():
    samples, mask = jnp.zeros((10, 1)).at[0].set(1).at[9].set(1e6), jnp.arange(10) < 9
    weight = jnp.ones(10).at[0].set(4)
    *_, terms, _, _ = fit(Training(learning_rate=0.0, batch=1), samples, mask, epochs=1)
    assert terms.loss == pytest.approx(1 / 9)
    shares = [
        fit(Training(learning_rate=0.0, batch=1), samples, mask, 1, key=jax.random.key(k), weight=weight)[2].loss
        for k in range(60)
    ]
    assert np.mean(shares) == pytest.approx(4 / 12, abs=0.03)


def test_no_samples_no_change():
    model, state, terms, epochs, finite = fit(Training(), jnp.ones((10, 1)), ~ALL)
    assert model.at == 0
    assert state.count == 0
    assert epochs == 0
    assert finite
    assert jnp.isnan(terms.loss)


def test_a_non_finite_loss_is_told_and_ends_the_training():
    *_, epochs, finite = fit(Training(), jnp.ones((10, 1)).at[3].set(jnp.inf))
    assert not finite
    assert epochs == 1


def test_optimizer_is_kept_or_fresh():
    for reset, count in ((False, 4 + 2), (True, 2)):
        training = Training(batch=10, reset_optimizer=reset)
        model, state, *_ = fit(training, jnp.ones((10, 1)), epochs=4)
        again = compiled(training, model, state, jnp.ones((10, 1)), ALL, KEY, jnp.array(0.0), jnp.array(2))
        assert again[1].count == count


def test_early_stopping_keeps_the_best():
    # All samples are 1: steps of size 1 reach the best point at once and then swing past it.
    training = Training(learning_rate=1.0, final=1.0, batch=10, validation=0.25, patience=3)
    model, _, _, epochs, _ = fit(training, jnp.ones((10, 1)), epochs=100)
    np.testing.assert_allclose(model.at, 1.0, atol=1e-5)
    assert epochs == 1 + 3


def test_held_out_samples_are_not_trained_on():
    training = Training(batch=2, validation=0.5)
    seen = [fit(training, jnp.arange(10.0)[:, None], key=jax.random.key(k), epochs=1)[0].seen for k in range(6)]
    assert min(seen) < 9


def test_too_few_samples_to_hold_one_out():
    training = Training(learning_rate=0.1, batch=2, validation=0.25)
    model, _, _, epochs, finite = fit(training, jnp.ones((10, 1)), jnp.arange(10) < 2, epochs=3)
    assert epochs == 3
    assert finite
    assert model.at > 0.2


class Offset(Known):
    """Taken from data."""

    by: jax.Array


def test_what_is_taken_from_data_is_left_alone():
    def shifted(model, batch, key):
        point, offset = model
        terms, point = losses(point, batch - offset.by, key)
        return terms, (point, offset)

    model = Point(jnp.array(0.0), jnp.array(-1e9)), Offset(jnp.array(2.0))
    training = Training(learning_rate=0.1, batch=10)
    arguments = jnp.ones((10, 1)), ALL, KEY, jnp.array(0.0), jnp.array(5)
    (point, offset), state, *_ = eqx.filter_jit(training.fit)(
        model, training.optimizer_state(model), shifted, *arguments
    )
    assert point.at < -0.4
    assert (offset.by, state.mu[1].by, state.nu[1].by) == (2, 0, 0)


def test_order_is_keyed():
    samples = jax.random.normal(KEY, (10, 1))
    same, again, other = (fit(Training(batch=3), samples, key=jax.random.key(k))[0].at for k in (0, 0, 1))
    assert same == again
    assert same != other


def test_same_under_vmap():
    training, samples = Training(batch=4), jax.random.normal(KEY, (10, 1))
    masks = jnp.stack([ALL, jnp.arange(10) < 3, ~ALL])
    epochs = jnp.array([1, 4, 2])
    model = Point(jnp.array(0.0), jnp.array(-1e9))

    def run(mask, count):
        return training.fit(model, training.optimizer_state(model), losses, samples, mask, KEY, jnp.array(0.0), count)

    together = jax.jit(jax.vmap(run))(masks, epochs)
    for i in range(3):
        alone = jax.jit(run)(masks[i], epochs[i])
        np.testing.assert_allclose(together[0].at[i], alone[0].at, atol=1e-7)
        assert together[3][i] == alone[3]


@pytest.mark.parametrize("settings", [{"batch": 0}, {"validation": 1.0}])
def test_clear_errors(settings):
    with pytest.raises(ValueError, match="got"):
        Training(**settings)
