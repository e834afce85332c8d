"""Training as if behaviors were spread evenly: rare ones are drawn more often."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

_COMPARED = 256  # samples that each sample is compared with
_NEIGHBOUR = 5  # of those, the one whose distance tells how rare a sample is
_MOST = 4.0  # a sample is drawn at most so many times as often as the average one, and at least a part as often


def rarity(views: Float[Array, "n p"], mask: Bool[Array, "n"]) -> Float[Array, "n"]:
    """How much rarer each sample is than the average one, 0 where `mask` is False.

    The volume that holds a fixed number of others, as in two dimensions: the square of the distance to the fifth
    nearest of 256 others, between a quarter and four times that of the average sample.
    """
    count, size = jnp.maximum(mask.sum(), 1), min(_COMPARED, views.shape[0])
    others = views[jnp.argsort(~mask, stable=True)[(jnp.arange(size) * count) // size]]
    with jax.default_matmul_precision("float32"):
        product = views @ others.T
    squared = jnp.square(views).sum(1)[:, None] + jnp.square(others).sum(1)[None] - 2 * product
    near = jnp.maximum(-jax.lax.top_k(-squared, min(_NEIGHBOUR, size))[0][:, -1], 0)
    usual = jnp.square(jnp.where(mask, jnp.sqrt(near), 0).sum() / count)
    rare = jnp.where(usual > 0, near / jnp.where(usual > 0, usual, 1), 1.0)
    return jnp.where(mask, jnp.clip(rare, 1 / _MOST, _MOST), 0)


def drawn(key: Key[Array, ""], weight: Float[Array, "n"]) -> Int[Array, "n"]:
    """Indices in random order, each as often as its share of the weight, up to rounding."""
    n = weight.shape[0]
    offset_key, order_key = jax.random.split(key)
    total = jnp.cumsum(weight)
    places = (jnp.arange(n) + jax.random.uniform(offset_key)) / n * total[-1]
    index = jnp.minimum(jnp.searchsorted(total, places, side="right"), n - 1)
    return jax.random.permutation(order_key, index)
