"""Where cells come from (grid, k-means, CVT), which is nearest, how evenly they are used: for all parts and metrics."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from vqelites.keys import plain_key
from vqelites.rows import mapped
from vqelites.tree import Tree, depth, grow, search
from vqelites.types import in_floats

# On CPUs this many descriptors are compared at a time, so that they stay in the cache, with this many cells in a step.
_ROWS, _UNROLLED = 4096, 16
# From so many distances on it pays to arrange the cells in a tree first.
_MANY = 2**24


def nearest(
    descriptors: Float[Array, "n d"],
    cells: Float[Array, "k d"],
    other_than: Int[Array, "n"] | None = None,
    tree: Tree | None = None,
) -> Int[Array, "n"]:
    """The cell each descriptor falls into, at full float32 precision; the lowest index where cells are equally near.

    `other_than` excludes one cell per descriptor; a cell at infinity is never the nearest. `tree` is `arranged(cells)`,
    if that is at hand.
    """
    n, k = descriptors.shape[0], cells.shape[0]
    if tree is None and n * k >= _MANY:
        tree = arranged(cells)
    return jax.lax.platform_dependent(descriptors, cells, other_than, tree, cpu=_on_cpu, default=_nearest)


def arranged(cells: Float[Array, "k d"]) -> Tree | None:
    """The cells as a tree, for whoever looks for the nearest of the same cells often.

    None where comparing with all cells is as fast: few cells, or many dimensions. Accelerators always do that; their
    tree is empty.
    """
    halvings = depth(*cells.shape)
    if not halvings:
        return None

    def empty(cells: Float[Array, "k d"]) -> Tree:
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(grown, cells))

    grown = functools.partial(grow, halvings=halvings)
    return jax.lax.platform_dependent(jnp.asarray(cells), cpu=grown, default=empty)


def _squared(axes: Sequence[Float[Array, "n"]], cells: Float[Array, "k d"]) -> Float[Array, "k n"]:
    """Squared distances by direct differences: matrix products lose digits, on GPUs most of them."""
    return sum(((cells[:, j, None] - axis[None]) ** 2 for j, axis in enumerate(axes)), start=jnp.zeros(()))


def _nearest(
    descriptors: Float[Array, "n d"],
    cells: Float[Array, "k d"],
    other_than: Int[Array, "n"] | None,
    tree: Tree | None,
) -> Int[Array, "n"]:
    """One fused argmin, which is fast on accelerators."""
    distance = _squared(list(descriptors.T), cells)
    if other_than is not None:
        index = jnp.arange(cells.shape[0], dtype=jnp.int32)[:, None]
        distance = jnp.where(index == other_than[None], jnp.inf, distance)
    return jnp.argmin(distance, axis=0).astype(jnp.int32)


def _on_cpu(
    descriptors: Float[Array, "n d"],
    cells: Float[Array, "k d"],
    other_than: Int[Array, "n"] | None,
    tree: Tree | None,
) -> Int[Array, "n"]:
    """The same without argmin, which CPUs do not vectorise: block by block of descriptors."""
    (n, d), k = descriptors.shape, cells.shape[0]

    def block(rows: tuple[Float[Array, "b d"], Int[Array, "b"] | None]) -> Int[Array, "b"]:
        return search(tree, *rows, k) if tree else _one_by_one(rows[0], cells, rows[1])

    if n <= _ROWS:
        return block((descriptors, other_than))
    size = -(-n // -(-n // _ROWS))  # equally many in each block
    blocks = jnp.pad(descriptors, ((0, -n % size), (0, 0))).reshape(-1, size, d)
    others = None if other_than is None else jnp.pad(other_than, (0, -n % size)).reshape(-1, size)
    return jax.lax.map(block, (blocks, others)).reshape(-1)[:n]


def _one_by_one(
    descriptors: Float[Array, "n d"], cells: Float[Array, "k d"], other_than: Int[Array, "n"] | None
) -> Int[Array, "n"]:
    """Compare all descriptors with one cell after the other, a few in each step: these become one vectorised loop."""
    (n, d), k = descriptors.shape, cells.shape[0]
    groups = jnp.pad(cells, ((0, -k % _UNROLLED), (0, 0)), constant_values=jnp.inf).reshape(-1, _UNROLLED, d)
    index = jnp.arange(groups.shape[0] * _UNROLLED, dtype=jnp.int32).reshape(-1, _UNROLLED)
    columns = descriptors.T

    def step(
        nearest: tuple[Float[Array, "n"], Int[Array, "n"]],
        group: tuple[Float[Array, "u d"], Int[Array, "u"]],
    ) -> tuple[tuple[Float[Array, "n"], Int[Array, "n"]], None]:
        best, at = nearest
        axes = list(jax.lax.optimization_barrier(columns))  # else each axis is copied by a kernel of its own
        for cell, own in zip(*group, strict=True):
            distance = _squared(axes, cell[None])[0]
            closer = distance < best
            if other_than is not None:
                closer &= own != other_than
            best, at = jnp.where(closer, distance, best), jnp.where(closer, own, at)
        return (best, at), None

    start = jnp.full(n, jnp.inf), jnp.zeros(n, jnp.int32)
    return jax.lax.scan(step, start, (groups, index))[0][1]


def distinct(
    rows: Float[Array, "n p"], mask: Bool[Array, "n"], unit: Float[Array, "p"] | None = None
) -> Bool[Array, "n"]:
    """The first of each set of equal rows, where `mask` is True; features may each have a `unit` of their own.

    Equal rows have equal projections on two random directions, and different ones practically never do.
    """
    directions = jax.random.normal(plain_key(0), (rows.shape[1], 2))
    directions = directions if unit is None else directions / unit[:, None]

    def seen(rows: Float[Array, "m p"], known: tuple[Float[Array, "p"], Float[Array, "p 2"]]) -> Float[Array, "m 2"]:
        apart = in_floats(rows) - known[0][None]  # differences between large numbers may be small
        return jnp.matmul(apart, known[1], precision=jax.lax.Precision.HIGHEST)

    place = mapped(seen, 2 * rows.shape[1])(rows, (in_floats(rows[jnp.argmax(mask)]), directions))
    place = jnp.where(mask[:, None], place, jnp.inf)
    order = jnp.argsort(place[:, 0], stable=True)
    place, there = place[order], mask[order]
    near = 1e-6 * jnp.abs(jnp.where(there[:, None], place, 0)).max()
    new = there & jnp.concatenate([jnp.ones(1, bool), ~(jnp.abs(jnp.diff(place, axis=0)) <= near).all(axis=1)])
    return jnp.zeros_like(mask).at[order].set(new)


def grid(shape: Sequence[int], low: Sequence[float], high: Sequence[float]) -> Float[Array, "k d"]:
    """The cell centres of a regular grid over a box, the last dimension running fastest."""
    bounds = _box(low, high)
    if len(shape) != len(bounds[0]) or min(shape, default=0) < 1:
        raise ValueError(
            f"grid: expected {len(bounds[0])} positive numbers of cells, one per dimension of the bounds; "
            f"got {tuple(shape)}."
        )
    axes = [a + (np.arange(n) + 0.5) * (b - a) / n for n, a, b in zip(shape, *bounds, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return jnp.asarray(points.reshape(-1, len(axes)), jnp.float32)


def usage(counts: Int[Array, "k"]) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """How many cells are used, and their perplexity: how many equally used cells would be as diverse."""
    share = counts / jnp.maximum(counts.sum(), 1)
    entropy = -jnp.where(counts > 0, share * jnp.log(jnp.where(counts > 0, share, 1)), 0).sum()
    return (counts > 0).sum(), jnp.exp(entropy)


@functools.partial(jax.jit, static_argnames="k")
def kmeans(
    key: Key[Array, ""], samples: Float[Array, "n d"], k: int, iterations: int | Int[Array, ""] = 20
) -> Float[Array, "k d"]:
    """Centres of k clusters of the samples (Lloyd's algorithm); an empty cluster keeps its centre."""
    if samples.ndim != 2 or not 1 <= k <= samples.shape[0]:
        raise ValueError(
            "kmeans: expected samples of shape (n, d) and between 1 and n cells; "
            f"got samples of shape {samples.shape} and {k} cells. Ask for fewer cells or give more samples."
        )

    def step(_: int, centres: Float[Array, "k d"]) -> Float[Array, "k d"]:
        cluster = nearest(samples, centres)
        sums = jnp.zeros_like(centres).at[cluster].add(samples, mode="drop")
        counts = jnp.zeros(k, samples.dtype).at[cluster].add(1, mode="drop")[:, None]
        return jnp.where(counts > 0, sums / jnp.maximum(counts, 1), centres)

    start = samples[jnp.argsort(jax.random.uniform(key, samples.shape[:1]))[:k]]
    return jax.lax.fori_loop(0, iterations, step, start)


def cvt(
    key: Key[Array, ""], k: int, low: Sequence[float], high: Sequence[float], samples: int = 50_000
) -> Float[Array, "k d"]:
    """The cells of a centroidal Voronoi tessellation of a box: k-means of uniform samples."""
    lowest, highest = (jnp.asarray(bound, jnp.float32)[None] for bound in _box(low, high))
    draw, start = jax.random.split(key)
    points = jax.random.uniform(draw, (samples, lowest.shape[1]), minval=lowest, maxval=highest)
    return kmeans(start, points, k)


def _box(low: Sequence[float], high: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The bounds as arrays, checked."""
    a, b = np.asarray(low, float), np.asarray(high, float)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise ValueError(f"bounds: expected one low and one high per dimension; got shapes {a.shape} and {b.shape}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a < b).all()):
        raise ValueError(f"bounds: expected finite numbers, low < high; got low {a.tolist()}, high {b.tolist()}.")
    return a, b
