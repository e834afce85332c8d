"""A k-d tree of cells in arrays: descriptors look for their nearest cell in a few small tiles instead of among all.

Tiles hold equally many cells, and an axis was halved wherever cells spread most. Nodes are numbered like a heap: those
below node i are 2i and 2i + 1, the root is 1 and the last ones are the tiles.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

_TILE = 64  # cells, at most
_CHUNK = 512  # descriptors, at most, that go on searching in step with each other
_SHRUNK = 1 - 1e-6  # of distances to boxes, which may be rounded otherwise than those to the cells in them


def depth(k: int, d: int) -> int:
    """How often k cells in d dimensions are halved; 0 where a tree does not pay, because most of its tiles are near."""
    halvings = max(-(-k // _TILE) - 1, 0).bit_length()
    return halvings if 2**halvings >= max(64, 3**d) else 0


def grow(cells: Float[Array, "k d"], halvings: int) -> "Tree":
    """The tree of the cells; k is the index of a place without a cell."""
    k = cells.shape[0]
    cells = jnp.pad(cells, ((0, 1), (0, 0)), constant_values=jnp.inf)
    tiles = jnp.minimum(jnp.arange(k + -k % 2**halvings, dtype=jnp.int32), k)[None]
    for _ in range(halvings):
        tiles = _halved(cells, tiles)
    low, high = _box(cells.T[:, tiles])
    levels = [jnp.stack([low, -high], axis=-1).swapaxes(0, 1)]  # the smaller number is the outer one on both sides
    for _ in range(halvings):
        levels.insert(0, levels[0].reshape(-1, 2, *levels[0].shape[1:]).min(axis=1))
    box = jnp.concatenate([jnp.zeros_like(levels[0]), *levels]) * jnp.array([1.0, -1.0])[None, None]
    return Tree(tiles, cells[tiles].swapaxes(1, 2), box)


def _halved(cells: Float[Array, "k d"], tiles: Int[Array, "tiles size"]) -> Int[Array, "2*tiles size//2"]:
    """Each tile cut in two across the axis along which it is longest, cells at infinity last."""
    low, high = _box(cells.T[:, tiles])
    axis = jnp.argmax(high - low, axis=0)
    low, high = (jnp.take_along_axis(side, axis[None], axis=0).T for side in (low, high))
    along = cells[tiles, axis[:, None]]
    share = (along - low) / jnp.where(high > low, high - low, 1)
    order = _roughly_sorted(jnp.where(jnp.isfinite(along), share, jnp.inf))
    return jnp.take_along_axis(tiles, order, axis=1).reshape(2 * tiles.shape[0], -1)


def _box(tiles: Float[Array, "d tiles size"]) -> tuple[Float[Array, "d tiles"], Float[Array, "d tiles"]]:
    """The smallest and largest coordinates of a tile's cells, those at infinity left out."""
    there = jnp.isfinite(tiles)
    return jnp.where(there, tiles, jnp.inf).min(axis=2), jnp.where(there, tiles, -jnp.inf).max(axis=2)


def _roughly_sorted(share: Float[Array, "tiles size"]) -> Int[Array, "tiles size"]:
    """Indices in the order of many intervals between 0 and 1, infinite shares last.

    Interval and index are one integer: XLA sorts these five times as fast as numbers with their indices.
    """
    bits = max(share.shape[1] - 1, 1).bit_length()
    last = 2 ** (32 - bits) - 1
    interval = jnp.where(jnp.isfinite(share), share * (last - 1), last).astype(jnp.uint32)
    keys = (interval << bits) | jnp.arange(share.shape[1], dtype=jnp.uint32)[None]
    return (jnp.sort(keys, axis=1) & (2**bits - 1)).astype(jnp.int32)


class Tree(eqx.Module):
    """Tiles of cells, and a box around the cells below each node."""

    index: Int[Array, "tiles size"]
    cells: Float[Array, "tiles d size"]
    box: Float[Array, "nodes d 2"]

    def gap(self, node: Int[Array, "n"], rows: "Searching") -> Float[Array, "n"]:
        """Squared distances from a node's box, at most those to the cells below it."""
        box = self.box[node]
        outside = jnp.maximum(jnp.maximum(box[:, :, 0] - rows.place, rows.place - box[:, :, 1]), 0)
        return sum((x**2 for x in outside.T), start=jnp.zeros(())) * _SHRUNK

    def home(self, rows: "Searching") -> Int[Array, "n"]:
        """A tile that is probably the nearest, found by going down to the nearer box."""

        def down(_: Int[Array, ""], node: Int[Array, "n"]) -> Int[Array, "n"]:
            return 2 * node + (self.gap(2 * node + 1, rows) < self.gap(2 * node, rows))

        return jax.lax.fori_loop(0, len(self.index).bit_length() - 1, down, jnp.ones_like(rows.cell))

    def look(self, node: Int[Array, "n"], rows: "Searching") -> "Searching":
        """The nearest cells when each row has looked at the tile of its node, the lowest index where equally near."""
        index, cells = self.index[node - len(self.index)], self.cells[node - len(self.index)]
        distance = sum(((cells[:, j] - x[:, None]) ** 2 for j, x in enumerate(rows.place.T)), start=jnp.zeros(()))
        # The barrier has distances computed once, not for their minimum and its place each.
        distance = jax.lax.optimization_barrier(distance)
        least = distance.min(axis=1)
        cell = jnp.where(distance == least[:, None], index, jnp.iinfo(jnp.int32).max).min(axis=1)
        closer = (least < rows.distance) | ((least == rows.distance) & (cell < rows.cell) & (least < jnp.inf))
        return rows._replace(distance=jnp.where(closer, least, rows.distance), cell=jnp.where(closer, cell, rows.cell))

    def elsewhere(self, home: Int[Array, "n"], rows: "Searching") -> Bool[Array, "n"]:
        """Whether a tile other than a row's home may hold a nearer cell, or one equally near."""

        def up(_: Int[Array, ""], now: tuple[Int[Array, "n"], Bool[Array, "n"]]) -> tuple[Array, Array]:
            node, found = now
            return node >> 1, found | (self.gap(node ^ 1, rows) <= rows.distance)

        return jax.lax.fori_loop(0, len(self.index).bit_length() - 1, up, (home, jnp.zeros_like(home, bool)))[1]

    def onward(self, node: Int[Array, "n"], rows: "Searching") -> Int[Array, "n"]:
        """The next tile from a node on that may hold a nearer cell; the root when all have been visited."""
        first_tile = len(self.index)

        def step(now: tuple[Int[Array, "n"], Bool[Array, "n"]]) -> tuple[Int[Array, "n"], Bool[Array, "n"]]:
            node, moving = now
            near = self.gap(node, rows) <= rows.distance
            moving &= ~(near & (node >= first_tile))
            node = jnp.where(moving, jnp.where(near, 2 * node, _after(node)), node)
            return node, moving & (node > 1)

        return jax.lax.while_loop(lambda now: now[1].any(), step, (node, node > 1))[0]


class Searching(NamedTuple):
    """Descriptors that search: where they are, and the nearest cell so far."""

    place: Float[Array, "n d"]
    distance: Float[Array, "n"]
    cell: Int[Array, "n"]


def _after(node: Int[Array, "n"]) -> Int[Array, "n"]:
    """The node that follows all those below a node, in depth first; the root after the last."""
    up = node + 1
    return up >> jax.lax.population_count((up & -up) - 1)


def search(tree: Tree, descriptors: Float[Array, "n d"], k: int) -> Int[Array, "n"]:
    """The nearest of the tree's k cells to each descriptor.

    All look at one tile. For most that is enough; the others go through the tree, so many at a time.
    """
    n = descriptors.shape[0]
    # Converted, because rows of NumPy arrays cannot be picked inside a loop.
    rows = Searching(jnp.asarray(descriptors), jnp.full(n, jnp.inf), jnp.full(n, k, jnp.int32))
    home = tree.home(rows)
    rows = tree.look(home, rows)
    unsure = tree.elsewhere(home, rows)
    order = jnp.sort(jnp.where(unsure, jnp.arange(n, dtype=jnp.int32), n))
    size = min(n, _CHUNK)
    order = jnp.pad(order, (0, -n % size), constant_values=n)

    def chunk(i: Int[Array, ""], cell: Int[Array, "n"]) -> Int[Array, "n"]:
        some = jax.lax.dynamic_slice_in_dim(order, i * size, size)
        found = _through(tree, Searching(*(x[jnp.minimum(some, n - 1)] for x in rows)))
        return cell.at[some].set(found, mode="drop")

    cell = jax.lax.fori_loop(0, -(-unsure.sum() // size), chunk, rows.cell)
    return jnp.where(cell < k, cell, 0)  # as among fewer cells


def _through(tree: Tree, rows: Searching) -> Int[Array, "n"]:
    """The nearest cells when all tiles that may hold them have been looked at."""

    def visit(now: tuple[Int[Array, "n"], Searching]) -> tuple[Int[Array, "n"], Searching]:
        node, rows = now
        rows = tree.look(jnp.maximum(node, len(tree.index)), rows)  # those at the end look at any tile, in vain
        return tree.onward(jnp.where(node > 1, _after(node), 1), rows), rows

    start = tree.onward(jnp.full_like(rows.cell, 2), rows), rows
    return jax.lax.while_loop(lambda now: (now[0] > 1).any(), visit, start)[1].cell
