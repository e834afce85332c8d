"""Policies from flat vectors, against plain re-implementations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_tasks

from vqelites.tasks.policies import MLP, GridCNN, gaussian, identity

MOBILE = MLP((4, 16, 2), jax.nn.relu, jnp.tanh)
ARM = MLP((6, 32, 32, 6), gaussian, identity)


def test_parameter_counts():
    assert MOBILE.size == 114
    assert ARM.size == 1478
    assert [GridCNN(18, 18, keys).size for keys in (0, 1, 4)] == [7893, 7893 + 16, 7893 + 64]


@pytest.mark.parametrize(
    ("policy", "hidden", "output"),
    [(MOBILE, lambda s: max(s, 0.0), np.tanh), (ARM, lambda s: np.exp(-(s**2)), lambda s: s)],
)
def test_mlp_equals_plain_loops(policy, hidden, output):
    rng = np.random.default_rng(0)
    vector, x = rng.uniform(-1, 1, policy.size), rng.uniform(-1, 1, policy.sizes[0])
    layers = slow_tasks.cut(vector, list(zip(policy.sizes[:-1], policy.sizes[1:], strict=True)))
    got = jax.jit(policy.apply)(policy.unflatten(jnp.asarray(vector, jnp.float32)), jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(got, slow_tasks.mlp(layers, x.tolist(), hidden, output), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("height", "width", "keys"), [(18, 18, 4), (7, 10, 1), (5, 6, 0)])
def test_cnn_equals_plain_loops(height, width, keys):
    policy = GridCNN(height, width, keys)
    rng = np.random.default_rng(0)
    vector = rng.uniform(-0.3, 0.3, policy.size)
    image, held = rng.uniform(0, 1, (height, width, 3)), rng.uniform(0, 1, keys)
    features = int(np.ceil(height / 4) * np.ceil(width / 4)) * 16
    layers = slow_tasks.cut(vector, [(27, 8), (72, 16), (features + keys, 16), (16, 5)])
    params = policy.unflatten(jnp.asarray(vector, jnp.float32))
    got = jax.jit(policy.apply)(params, jnp.asarray(image, jnp.float32), jnp.asarray(held, jnp.float32))
    np.testing.assert_allclose(got, slow_tasks.grid_cnn(layers, image, held), rtol=1e-4, atol=1e-4)


def test_random_limits_follow_the_inputs_of_each_layer():
    policy = GridCNN(18, 18, 4)
    for weight, bias in policy.unflatten(policy.limits(3.0, 0.5)):
        np.testing.assert_allclose(weight, 3 / np.sqrt(weight.shape[0]), rtol=1e-6)
        np.testing.assert_array_equal(bias, 0.5)


def test_wrong_number_of_parameters_is_explained():
    with pytest.raises(ValueError, match=r"has 114 parameters, but the vector has shape \(113,\)"):
        MOBILE.unflatten(jnp.zeros(113))
    with pytest.raises(ValueError, match=r"use jax.vmap for many"):
        MOBILE.unflatten(jnp.zeros((2, 114)))
