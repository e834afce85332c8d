"""Where cells come from (grid, k-means, CVT), which is nearest, how evenly they are used: for all parts and metrics."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from vqelites.tree import Tree, depth, grow, search

# On CPUs this many descriptors are compared at a time, so that they stay in the cache, with this many cells in a step.
_ROWS, _UNROLLED = 4096, 8
# From so many distances on it pays to arrange the cells in a tree first.
_MANY = 2**24
# Of some of the descriptors so many are compared with all cells at a time: there may be few.
_FEW = 512


def nearest(
    descriptors: Float[Array, "n d"],
    cells: Float[Array, "k d"],
    tree: Tree | None = None,
) -> Int[Array, "n"]:
    """The cell each descriptor falls into, at full float32 precision; the lowest index where cells are equally near.

    A cell at infinity is never the nearest. `tree` is `arranged(cells)`, if that is at hand.
    """
    n, k = descriptors.shape[0], cells.shape[0]
    if tree is None and n * k >= _MANY:
        tree = arranged(cells)
    return jax.lax.platform_dependent(descriptors, cells, tree, cpu=_on_cpu, default=_nearest)


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


def _nearest(descriptors: Float[Array, "n d"], cells: Float[Array, "k d"], tree: Tree | None = None) -> Int[Array, "n"]:
    """One fused argmin, which is fast on accelerators."""
    return jnp.argmin(_squared(list(descriptors.T), cells), axis=0).astype(jnp.int32)


def _on_cpu(
    descriptors: Float[Array, "n d"],
    cells: Float[Array, "k d"],
    tree: Tree | None,
) -> Int[Array, "n"]:
    """The same without argmin, which CPUs do not vectorise: block by block of descriptors."""
    n, d = descriptors.shape

    if n <= _ROWS:
        return _in_block(descriptors, cells, tree)
    size = -(-n // -(-n // _ROWS))  # equally many in each block
    blocks = jnp.pad(descriptors, ((0, -n % size), (0, 0))).reshape(-1, size, d)
    return jax.lax.map(lambda block: _in_block(block, cells, tree), blocks).reshape(-1)[:n]


def _in_block(descriptors: Float[Array, "n d"], cells: Float[Array, "k d"], tree: Tree | None) -> Int[Array, "n"]:
    """Through the tree, or else compared with all cells."""
    if tree:
        return search(tree, descriptors, cells.shape[0])
    return _one_by_one(descriptors, cells, -(-cells.shape[0] // _UNROLLED))


def _one_by_one(
    descriptors: Float[Array, "n d"],
    cells: Float[Array, "k d"],
    steps: int | Int[Array, ""],
) -> Int[Array, "n"]:
    """The nearest of the first cells.

    All descriptors are compared with one cell after the other, a few in each step: these become one vectorised loop,
    which finds the step of the nearest cell. Finding the cell itself there would take half as long again.
    """
    (n, d), k = descriptors.shape, cells.shape[0]
    groups = jnp.pad(cells, ((0, -k % _UNROLLED), (0, 0)), constant_values=jnp.inf).reshape(-1, _UNROLLED, d)
    columns = descriptors.T

    # Rows of one descriptor each, not vectors: XLA would copy every axis by a kernel of its own.
    def step(i: Int[Array, ""], nearest: tuple[Int[Array, "1 n"], Float[Array, "1 n"]]) -> tuple[Array, Array]:
        (at, best), axes = nearest, list(jax.lax.optimization_barrier(columns))
        least = best
        for cell in groups[i]:
            least = jnp.minimum(least, _squared(axes, cell[None]))
        least = jax.lax.optimization_barrier(least)
        return jnp.where(least < best, i, at), least

    start = jnp.zeros((1, n), jnp.int32), jnp.full((1, n), jnp.inf)
    (at,), _ = jax.lax.fori_loop(0, steps, step, start)
    near = groups[at]
    index = _UNROLLED * at[:, None] + jnp.arange(_UNROLLED, dtype=jnp.int32)[None]
    distance = sum(((near[:, :, j] - axis[:, None]) ** 2 for j, axis in enumerate(columns)), start=jnp.zeros(()))
    distance = jax.lax.optimization_barrier(distance)  # once, not for its minimum and the place of that each
    farther = distance > distance.min(axis=1, keepdims=True)
    return jnp.where(farther, jnp.iinfo(jnp.int32).max, index).min(axis=1)


def nearest_of(
    wanted: Bool[Array, "n"], descriptors: Float[Array, "n d"], cells: Float[Array, "k d"], tree: Tree | None = None
) -> Int[Array, "n"]:
    """The nearest cell of each descriptor that is wanted; k for the others, which CPUs do not look for."""
    n, k = descriptors.shape[0], cells.shape[0]
    if tree is None and n * k >= _MANY:
        tree = arranged(cells)
    return jax.lax.platform_dependent(wanted, descriptors, cells, tree, cpu=_some_on_cpu, default=_some)


def _some(
    wanted: Bool[Array, "n"], descriptors: Float[Array, "n d"], cells: Float[Array, "k d"], tree: Tree | None = None
) -> Int[Array, "n"]:
    return jnp.where(wanted, _nearest(descriptors, cells), cells.shape[0])


def _some_on_cpu(
    wanted: Bool[Array, "n"], descriptors: Float[Array, "n d"], cells: Float[Array, "k d"], tree: Tree | None
) -> Int[Array, "n"]:
    n, k = descriptors.shape[0], cells.shape[0]
    few = _ROWS if tree else _FEW
    if n <= few:
        return jnp.where(wanted, _in_block(descriptors, cells, tree), k)
    order = those(wanted, n + -n % few)

    def block(i: Int[Array, ""], cell: Int[Array, "n"]) -> Int[Array, "n"]:
        some = jax.lax.dynamic_slice_in_dim(order, i * few, few)
        return cell.at[some].set(_in_block(descriptors.at[some].get(mode="clip"), cells, tree), mode="drop")

    return jax.lax.fori_loop(0, -(-wanted.sum() // few), block, jnp.full(n, k, jnp.int32))


def nearest_again(
    wanted: Bool[Array, "n"],
    descriptors: Float[Array, "n d"],
    cells: Float[Array, "k d"],
    before: Int[Array, "n"],
    moved: Bool[Array, "k"],
) -> Int[Array, "n"]:
    """`nearest_of`, given what it was before some cells `moved`; k where that is not known.

    On CPUs only descriptors whose cell moved, or is not known, are compared with all cells, the others with those that
    moved. Where a tree pays, all are looked for in it.
    """
    if descriptors.shape[0] * cells.shape[0] >= _MANY and (tree := arranged(cells)):
        return nearest_of(wanted, descriptors, cells, tree)
    given = wanted, descriptors, cells, before, moved
    return jax.lax.platform_dependent(*given, cpu=_renewed, default=lambda *given: _some(*given[:3]))


def _renewed(
    wanted: Bool[Array, "n"],
    descriptors: Float[Array, "n d"],
    cells: Float[Array, "k d"],
    before: Int[Array, "n"],
    moved: Bool[Array, "k"],
) -> Int[Array, "n"]:
    k = cells.shape[0]
    movers = those(moved, k)
    among = cells.at[movers].get(mode="fill", fill_value=jnp.inf)
    at = movers[_one_by_one(descriptors, among, -(-moved.sum() // _UNROLLED))]
    # Both distances by one formula: else equal ones could be rounded differently.
    both = cells.at[jnp.stack([before, at])].get(mode="fill", fill_value=jnp.inf)
    own, distance = jnp.square(descriptors[None] - both).sum(axis=2)
    nearer = (distance < own) | ((distance == own) & (at < before))
    lost = wanted & moved.at[before].get(mode="fill", fill_value=True)
    known = jnp.where(wanted, jnp.where(nearer, at, before), k)
    return jnp.where(lost, _some_on_cpu(lost, descriptors, cells, None), known)


def those(mask: Bool[Array, "n"], size: int) -> Int[Array, "{size}"]:
    """The indices of the first so many rows where the mask is True, in order; then n.

    Sorted: compiled as one kernel, where `jnp.nonzero` takes 25.
    """
    n = mask.shape[0]
    index = jnp.sort(jnp.where(mask, jnp.arange(n, dtype=jnp.int32), n))
    return jnp.pad(index, (0, max(size - n, 0)), constant_values=n)[:size]


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
