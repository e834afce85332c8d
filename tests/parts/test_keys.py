"""Keys draw the numbers that JAX's own would, and are another for every purpose, moment and seed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.keys import Stream, evaluation_keys, plain_key, stream_key, stream_keys

DRAWS = {
    "split": lambda key: jax.random.key_data(jax.random.split(key, (3, 2))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 2**31 + 5)),
    "each of some": lambda key: jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i)))(jnp.arange(5)),
    "bits": lambda key: jax.random.bits(key, (4,), jnp.uint8),
    "normal": lambda key: jax.random.normal(key, (7, 3)),
    "permutation": lambda key: jax.random.permutation(key, 10),
    "randint": lambda key: jax.random.randint(key, (5,), -3, 1000),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("seed", [0, 2**32 - 7])
def test_a_plain_key_draws_what_jax_draws(draw, seed):
    seed = np.uint32(seed)
    np.testing.assert_array_equal(draw(plain_key(seed)), draw(jax.random.key(seed)))


def test_in_double_precision_too():
    with jax.enable_x64(True):
        seed = 2**40 + 3
        for draw in (jax.random.uniform, jax.random.key_data):
            np.testing.assert_array_equal(draw(plain_key(seed)), draw(jax.random.key(seed)))


def test_a_stream_is_a_key_folded_twice():
    folded = jax.random.fold_in(jax.random.fold_in(jax.random.key(7), int(Stream.LEARNING)), 3)
    found = stream_key(7, Stream.LEARNING, 3)
    np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(folded))
    together = stream_keys(7, Stream.LEARNING, jnp.arange(4))
    np.testing.assert_array_equal(jax.random.key_data(together[3]), jax.random.key_data(found))


def test_tasks_may_draw_from_every_distribution():
    """JAX draws from Poisson's with keys of its own kind alone."""
    keys = evaluation_keys(7, jnp.arange(3))
    assert jax.vmap(lambda key: jax.random.poisson(key, 5.0))(keys).shape == (3,)
    expected = jax.random.key_data(stream_keys(7, Stream.EVALUATION, jnp.arange(3)))
    np.testing.assert_array_equal(jax.random.key_data(keys), expected)
