"""Nearest centres and k-means: what grids, tessellations and codebooks have in common."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

# Distances held at once: small enough for a CPU cache and for GPU memory, large enough to fill a GPU.
_BLOCK = 2**18


@jax.jit
def nearest(points: Float[Array, "n d"], centres: Float[Array, "k d"]) -> Int[Array, "n"]:
    """Index of the nearest centre of each point, the lowest one in a tie; k (out of range) if the point has NaN."""
    k, d = centres.shape
    index = jnp.arange(k, dtype=jnp.int32)

    def one(point: Float[Array, "d"]) -> Int[Array, ""]:
        # Direct differences, one dimension at a time: exact in float32, and no (n, k, d) array.
        squared = sum((jnp.square(point[i] - centres[:, i]) for i in range(d)), jnp.zeros(k, points.dtype))
        # The barrier keeps the compiler from computing distances twice with different roundings;
        # two minima because argmin is slow on CPU.
        squared = jax.lax.optimization_barrier(squared)
        return jnp.where(squared == squared.min(), index, k).min()

    rows = max(1, _BLOCK // k)
    return jax.vmap(one)(points) if points.shape[0] <= rows else jax.lax.map(one, points, batch_size=rows)


@functools.partial(jax.jit, static_argnames="k")
def kmeans(
    key: Key[Array, ""], samples: Float[Array, "n d"], k: int, iterations: int | Int[Array, ""] = 20
) -> Float[Array, "k d"]:
    """Centres of k clusters of the samples (Lloyd's algorithm); an empty cluster keeps its centre."""
    n = samples.shape[0]
    if not 0 < k <= n:
        raise ValueError(f"k-means needs between 1 and {n} clusters (the number of samples), got {k}.")

    def step(_: int, centres: Float[Array, "k d"]) -> Float[Array, "k d"]:
        cluster = nearest(samples, centres)
        sums = jnp.zeros_like(centres).at[cluster].add(samples, mode="drop")
        counts = jnp.zeros(k, samples.dtype).at[cluster].add(1, mode="drop")[:, None]
        return jnp.where(counts > 0, sums / jnp.maximum(counts, 1), centres)

    start = samples[jnp.argsort(jax.random.uniform(key, (n,)))[:k]]
    return jax.lax.fori_loop(0, iterations, step, start)
