"""Layers against slow plain references, and networks for every shape of behavior."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.descriptors.conv_norm_pool import ConvNormPool
from vqelites.descriptors.layers import (
    Activation,
    BatchNorm,
    Conv,
    ConvTranspose,
    Dropout,
    Linear,
    MaxPool,
    Sequential,
    per_sample,
)
from vqelites.descriptors.networks import default_networks, networks
from vqelites.descriptors.presets import gelu

KEY = jax.random.key(0)


def reference_conv(x, weight, bias, stride, padding):
    """Two-dimensional convolution by its definition."""
    weight, bias = np.asarray(weight), np.asarray(bias)
    x = np.pad(x, [(0, 0), (padding, padding), (padding, padding), (0, 0)])
    height, width = [(n - k) // stride + 1 for n, k in zip(x.shape[1:3], weight.shape, strict=False)]
    y = np.zeros((x.shape[0], height, width, weight.shape[-1]))
    for i, j in np.ndindex(height, width):
        window = x[:, i * stride : i * stride + weight.shape[0], j * stride : j * stride + weight.shape[1]]
        y[:, i, j] = np.tensordot(window, weight, axes=3)
    return y + bias


def reference_transpose(x, weight, bias, stride, padding, extra):
    """Two-dimensional transposed convolution by its definition: each input stamps the kernel on the output."""
    weight, bias = np.asarray(weight), np.asarray(bias)
    kernel = weight.shape[0]
    full = [(n - 1) * stride + kernel + e for n, e in zip(x.shape[1:3], extra, strict=True)]
    y = np.zeros((x.shape[0], *full, weight.shape[2]))
    for i, j in np.ndindex(*x.shape[1:3]):
        stamp = np.einsum("nc,abmc->nabm", x[:, i, j], weight)
        y[:, i * stride : i * stride + kernel, j * stride : j * stride + kernel] += stamp
    return y[:, padding : full[0] - padding, padding : full[1] - padding] + bias


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1), (2, 0), (3, 2)])
def test_conv(stride, padding):
    layer = Conv(3, 4, (3, 3), stride=stride, padding=padding, key=KEY)
    x = np.random.default_rng(0).normal(size=(2, 6, 7, 3)).astype(np.float32)
    np.testing.assert_allclose(layer(x), reference_conv(x, layer.weight, layer.bias, stride, padding), atol=1e-5)


@pytest.mark.parametrize(
    ("stride", "padding", "extra"), [(1, 0, (0, 0)), (2, 0, (1, 1)), (2, 1, (0, 1)), (4, 1, (2, 3))]
)
def test_conv_transpose(stride, padding, extra):
    layer = ConvTranspose(3, 4, (3, 3), stride=stride, padding=padding, output_padding=extra, key=KEY)
    x = np.random.default_rng(0).normal(size=(2, 4, 5, 3)).astype(np.float32)
    expected = reference_transpose(x, layer.weight, layer.bias, stride, padding, extra)
    assert expected.shape[1] == (4 - 1) * stride - 2 * padding + 3 + extra[0]
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_conv_over_time():
    layer = Conv(2, 3, (3,), key=KEY)
    x = np.random.default_rng(0).normal(size=(2, 5, 2)).astype(np.float32)
    expected = reference_conv(x[:, :, None], layer.weight[:, None], layer.bias, 1, 0)[:, :, 0]
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_max_pool():
    x = np.random.default_rng(0).normal(size=(2, 7, 8, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (4, 4), axis=(1, 2))[:, ::2, ::2]
    np.testing.assert_array_equal(MaxPool(4, 2)(x), windows.max((-1, -2)))


@pytest.mark.parametrize(("size", "stride", "space"), [(4, 2, (9, 10)), (3, 2, (8, 9)), (2, 3, (9, 7)), (3, 1, (6,))])
def test_the_gradient_of_pooling_goes_to_the_first_highest_place_of_each_window(size, stride, space):
    # Few different numbers, so that many are equally high.
    x = np.random.default_rng(0).integers(0, 3, size=(2, *space, 3)).astype(np.float32)
    y, pull = jax.vjp(MaxPool(size, stride), x)
    change = np.random.default_rng(1).normal(size=y.shape).astype(np.float32)
    expected = np.zeros_like(x)
    for window in np.ndindex(*y.shape[1:-1]):
        corner = tuple(slice(stride * i, stride * i + size) for i in window)
        for row, channel in np.ndindex(2, 3):
            seen = x[(row, *corner, channel)]
            first = np.unravel_index(seen.argmax(), seen.shape)
            place = tuple(stride * i + j for i, j in zip(window, first, strict=True))
            expected[(row, *place, channel)] += change[(row, *window, channel)]
    np.testing.assert_allclose(pull(change)[0], expected, atol=1e-6)


def apart(layer: ConvNormPool) -> Sequential:
    """The same, one layer for each of its parts."""
    return Sequential((layer.conv, layer.norm, Activation(layer.function), layer.pool))


@pytest.mark.parametrize(
    ("space", "inputs", "outputs", "kernel", "stride", "function"),
    [((13, 12), 1, 6, 4, 1, gelu), ((9, 10), 5, 2, 3, 1, jax.nn.silu), ((70, 60), 3, 64, 4, 2, jax.nn.relu)],
)
def test_conv_norm_pool_is_its_parts_one_after_the_other(space, inputs, outputs, kernel, stride, function):
    conv = Conv(inputs, outputs, (kernel, kernel), stride=stride, key=KEY)
    norm = eqx.tree_at(lambda n: n.weight, BatchNorm(outputs), jnp.where(jnp.arange(outputs) % 2, -1.5, 0.5))
    layer = ConvNormPool(conv, norm, function, MaxPool(4, 2))
    x = jax.random.normal(KEY, (4, *space, inputs))

    def loss(layer, x):
        y, trained = layer.train(x, KEY)
        return (y * jnp.cos(jnp.arange(y.size).reshape(y.shape))).sum(), (y, trained(x))

    together, parts = (
        eqx.filter_jit(jax.value_and_grad(loss, argnums=(0, 1), has_aux=True))(x_layer, x)
        for x_layer in (layer, apart(layer))
    )
    # Layers without the structure around them: the same arrays in the same order.
    for one, other in zip(jax.tree.leaves(together), jax.tree.leaves(parts), strict=True):
        scale = 1 + jnp.abs(other).max()
        np.testing.assert_allclose(one / scale, other / scale, atol=2e-5)


def test_batch_norm_uses_its_batch_in_training_and_running_statistics_after():
    x = np.random.default_rng(0).normal(2, 3, size=(8, 5, 2)).astype(np.float32)
    rows = x.reshape(-1, 2)
    y, layer = BatchNorm(2).train(x, KEY)
    np.testing.assert_allclose(y, (x - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5), atol=1e-5)
    np.testing.assert_allclose(layer.mean, 0.1 * rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(layer.variance, 0.9 + 0.1 * rows.var(0, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(
        layer(x), (x - np.asarray(layer.mean)) / np.sqrt(np.asarray(layer.variance) + 1e-5), atol=1e-5
    )


def test_statistics_have_no_gradient():
    x = jax.random.normal(KEY, (8, 2))

    def loss(layer):
        y, trained = layer.train(x, KEY)
        return (y**3).sum() + trained.mean.sum() + trained.variance.sum()

    gradient = jax.grad(loss)(BatchNorm(2))
    np.testing.assert_array_equal(gradient.mean, 0)
    np.testing.assert_array_equal(gradient.variance, 0)
    assert (gradient.weight != 0).all()


def test_dropout_is_keyed_keeps_the_mean_and_is_off_in_evaluation():
    x, layer = jnp.ones((100, 100)), Dropout(0.25)
    y, same, other = (layer.train(x, jax.random.key(k))[0] for k in (0, 0, 1))
    np.testing.assert_array_equal(y, same)
    assert (y != other).any()
    assert abs(y.mean() - 1) < 0.03
    np.testing.assert_array_equal(layer(x), x)


def test_initial_weights_are_uniform_within_the_fan_in_bound():
    layer = Linear(100, 50, key=KEY)
    assert 0.095 < jnp.abs(layer.weight).max() <= 0.1
    assert 0.08 < jnp.abs(layer.bias).max() <= 0.1


SHAPES = [(1,), (6,), (100,), (3, 4), (50, 2), (1, 3), (5, 7, 1), (16, 16, 3), (1, 1, 2), (3, 5, 7, 1), (4, 9, 8, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_encoded_and_restored(shape):
    def both(x):
        encoder, decoder = default_networks(shape, 1, KEY)
        latent, encoder = encoder.train(x, KEY)
        return encoder(x), latent, decoder(latent), decoder.train(latent, KEY)[0]

    shapes = [y.shape for y in eqx.filter_eval_shape(both, jnp.zeros((2, *shape)))]
    assert shapes == [(2, 1), (2, 1), (2, *shape), (2, *shape)]


PRESETS = [
    ("mobile", (64, 64, 1), 2, 1_255_458, 1_277_761),
    ("arm", (6,), 5, 4_933, 4_934),
    ("minigrid", (18, 18, 3), 5, 2_416_677, 2_458_563),
]
SIZES = {
    "mobile": [
        *[(29, 29, 64)] * 2, (12, 12, 32), (4608,),
        (256,), (256,), (128,), (128,), (64,), (64,), (2,),
        (64,), (64,), (128,), (128,), (256,), (256,), (4608,), (4608,), (12, 12, 32),
        *[(15, 15, 64)] * 4, *[(31, 31, 32)] * 4, (64, 64, 1),
    ],
    "arm": [*[(64,)] * 4, (5,), *[(64,)] * 4, (6,)],
    "minigrid": [
        *[(16, 16, 16)] * 3, *[(14, 14, 32)] * 3, *[(12, 12, 64)] * 2, (9216,), (256,), (256,), (128,), (128,), (5,),
        (128,), (128,), (256,), (256,), (9216,), (9216,), (12, 12, 64),
        *[(14, 14, 64)] * 3, *[(16, 16, 32)] * 3, (18, 18, 3),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "latent", "encoder_size", "decoder_size"), PRESETS)
def test_the_papers_networks(name, shape, latent, encoder_size, decoder_size):
    def sizes(x):
        outputs = []
        for layer in [layer for network in networks(name, shape, latent, KEY) for layer in network.layers]:
            x = layer(x)
            outputs.append(x)
        return outputs

    pair = eqx.filter_eval_shape(lambda: networks(name, shape, latent, KEY))
    assert [sum(a.size for a in jax.tree.leaves(network)) for network in pair] == [encoder_size, decoder_size]
    assert [y.shape[1:] for y in eqx.filter_eval_shape(sizes, jnp.zeros((1, *shape)))] == SIZES[name]


def test_clear_errors():
    with pytest.raises(ValueError, match=r"one of .*'mobile'.*got 'nonsense'"):
        networks("nonsense", (6,), 2, KEY)
    with pytest.raises(ValueError, match=r"expect behaviors of shape \(64, 64, 1\), got \(32, 32, 1\)"):
        networks("mobile", (32, 32, 1), 2, KEY)
    with pytest.raises(ValueError, match="no dropout"):
        networks("auto", (6,), 2, KEY, dropout=0.1)


def test_a_users_own_module_runs_row_by_row():
    module = eqx.nn.MLP(4, 2, 8, 1, key=KEY)
    network = per_sample(module)
    x = jax.random.normal(KEY, (3, 4))
    np.testing.assert_allclose(network(x)[1], module(x[1]), atol=1e-6)
    assert all(eqx.is_array(leaf) for leaf in jax.tree.leaves(network))
