"""Training as if behaviors were spread evenly: rare ones are drawn more often."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

_COMPARED = 256  # samples that each sample is compared with
_NEIGHBOUR = 5  # of those, the one whose distance tells how rare a sample is
_MOST = 4.0  # a sample is drawn at most so many times as often as the average one, and at least a part as often


def rarity(views: Float[Array, "n p"], mask: Bool[Array, "n"]) -> Float[Array, "n"]:
    """Weight of each sample: how sparse behaviors are around it, relative to the average; 0 where `mask` is False.

    The weight is the squared distance to the fifth nearest of 256 others (of fewer than five, to the farthest): in two
    dimensions the area that a fixed number of behaviors share. It lies between a quarter and four times the average.
    """
    count, size = mask.sum(), min(_COMPARED, views.shape[0])
    some, place = jnp.minimum(count, size), jnp.arange(size)
    index = jnp.argsort(~mask, stable=True)[place * count // jnp.maximum(some, 1)]
    others = views[index]
    with jax.default_matmul_precision("float32"):
        product = views @ others.T
    squared = jnp.square(views).sum(1)[:, None] + jnp.square(others).sum(1)[None] - 2 * product
    # Nobody is compared with himself, nor twice with another.
    skip = (place >= some)[None] | (index[None] == jnp.arange(views.shape[0])[:, None])
    squared, near = jnp.where(skip, jnp.inf, jnp.maximum(squared, 0)), jnp.zeros(views.shape[0])
    for _ in range(_NEIGHBOUR):  # one nearest after the other: top_k takes many times as long on CPUs
        next_nearest = squared.min(axis=1)
        near = jnp.where(jnp.isfinite(next_nearest), next_nearest, near)
        squared = jnp.where(squared <= next_nearest[:, None], jnp.inf, squared)
    usual = jnp.square(jnp.where(mask, jnp.sqrt(near), 0).sum() / jnp.maximum(count, 1))
    rare = jnp.where(usual > 0, near / jnp.where(usual > 0, usual, 1), 1.0)
    return jnp.where(mask, jnp.clip(rare, 1 / _MOST, _MOST), 0)


def drawn(key: Key[Array, ""], weight: Float[Array, "n"]) -> Int[Array, "n"]:
    """Indices in random order, each as often as its share of the weight, up to rounding; never one without weight."""
    n = weight.shape[0]
    offset_key, order_key = jax.random.split(key)
    # Those without weight come last: rounding of sums would let one of them slip in between others, or at the end.
    order = jnp.argsort(weight <= 0, stable=True)
    total = jnp.cumsum(weight[order])
    places = (jnp.arange(n) + jax.random.uniform(offset_key)) / n * total[-1]
    index = jnp.searchsorted(total, places, side="right")
    return jax.random.permutation(order_key, order[jnp.minimum(index, jnp.maximum((weight > 0).sum(), 1) - 1)])
