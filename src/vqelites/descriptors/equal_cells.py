"""Equal cells: codes spread evenly over the part of the map that behaviors reach."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.distinct import places
from vqelites.keys import plain_key
from vqelites.tessellation import nearest_again, those

# A codebook (k, d), and how many of its codes have moved.
Codes = tuple[Float[Array, "k d"], Int[Array, ""]]

_RATIO = 1.75  # cells whose radii differ by more than this are not equal
_FINER = 1.8  # the fittest lie in cells so many times narrower, among their equals, than the least fit
_AROUND = 0.05  # share of the codes, roughly, that wait around what was reached
_ROUNDS = 2  # of moves after a training, each of at most `share` of the codes
_POINTS = 16  # per code, by which cells are measured
_BALLS = 2**14  # latents at most whose surroundings make up the region
_COMPARED = 256  # of them, from which the radius is found
_STEPS = 10  # of that search
_UNROLLED = 32  # latents that all others are compared with in one vectorised loop
_SAME = 1e-5  # latents closer than this share of the map's width are one place


class EqualCells(eqx.Module):
    """Moves codes from the smallest cells into the largest ones, until their radii differ by less than 1.75 times.

    The size of a cell is how much of the reached region lies in it, not how many behaviors do: those at the edges,
    which search has just reached, are few, and would lose their codes to the crowded middle. The reached region is a
    ball around every behavior, somewhat larger than a cell, counted evenly however crowded it is (`reached`), but more
    where solutions are fit (`worth`); codes beyond it have cells of size 0 and are the first to move. Where behaviors
    are places with nothing between them (the tiles of a grid world, say), codes without any place then move to where
    two or more share one.
    """

    share: float = eqx.field(static=True, default=0.25)

    def __call__(
        self,
        codebook: Float[Array, "k d"],
        latent: Float[Array, "n d"],
        mask: Bool[Array, "n"],
        fitness: Float[Array, "n"],
        limit: float = math.inf,
    ) -> Codes:
        """The new codebook and how many codes moved, given the latents of behaviors where `mask` is True.

        Fitness is NaN where it is not known. No latent is beyond +-`limit`.
        """
        region = reached(latent, mask, worth(fitness, mask, latent.shape[1]), codebook.shape[0], limit)
        return self._moved(codebook, region)

    def _moved(self, codebook: Float[Array, "k d"], region: "Region") -> Codes:
        """Rounds of moves into the largest cells, by the points of the region; then, if it is discrete, by its places.

        All rounds are one loop, compiled once.
        """
        (k, d), most = codebook.shape, math.ceil(self.share * codebook.shape[0])
        points = jnp.concatenate([region.points, region.latent])
        by_points, by_places = len(region.points), len(region.latent)
        weights = jnp.stack([
            jnp.pad(region.inside.astype(jnp.float32), (0, by_places)), jnp.pad(region.share, (by_points, 0))
        ])  # fmt: skip

        def again(i: Int[Array, ""], before: _Moving) -> _Moving:
            late = (i >= _ROUNDS).astype(jnp.int32)
            weight, least = weights[late], 1.5 * late
            cell = nearest_again(weight > 0, points, before.codebook, before.cell, before.changed)
            size = jnp.zeros(k).at[cell].add(weight, mode="drop")
            small, mover = jax.lax.top_k(-size, most)
            large, split = jax.lax.top_k(size, most)
            unequal = large > jnp.maximum(-small * _RATIO**d, least)
            place = points[_farthest(cell, points, before.codebook)[split]]
            mover = jnp.where(unequal, mover, k)
            changed = jnp.zeros(k, bool).at[mover].set(True, mode="drop")
            codebook = before.codebook.at[mover].set(place, mode="drop")
            return _Moving(codebook, before.moved + unequal.sum(), cell, changed)

        unknown = jnp.full(len(points), k, jnp.int32), jnp.zeros(k, bool)
        rounds = jnp.where(region.discrete, 2 * _ROUNDS, _ROUNDS)
        moved = jax.lax.fori_loop(0, rounds, again, _Moving(codebook, jnp.array(0, jnp.int32), *unknown))
        return moved.codebook, moved.moved


class _Moving(NamedTuple):
    """A codebook between two rounds of moves."""

    codebook: Float[Array, "k d"]
    moved: Int[Array, ""]  # codes so far
    cell: Int[Array, "m"]  # of each point before the last round; k where it was not looked for
    changed: Bool[Array, "k"]  # which codes the last round moved


class Region(eqx.Module):
    """The part of a map that behaviors reach."""

    points: Float[Array, "m d"]  # spread evenly over it
    inside: Bool[Array, "m"]  # which of them count
    latent: Float[Array, "b d"]  # what it lies around
    share: Float[Array, "b"]  # 1 for a latent at a place of its own, half if two are there, ...
    discrete: Bool[Array, ""]  # whether there is nothing between such places


def worth(fitness: Float[Array, "n"], mask: Bool[Array, "n"], dim: int) -> Float[Array, "n"]:
    """How much the surroundings of each behavior count: more than the average where it is fitter than most.

    In many dimensions most of what can be reached is far from all that is fit; even cells would hardly tell fit
    solutions apart. Equally fit ones lie on surfaces of one dimension less, along which cells become narrower.
    Only the order of fitness matters; one that is not known (NaN) counts as the median.
    """
    known = mask & ~jnp.isnan(fitness)
    ordered = jnp.sort(jnp.where(known, fitness, jnp.inf))
    below, upto = (jnp.searchsorted(ordered, fitness, side=side) for side in ("left", "right"))
    rank = jnp.where(known, (below + upto) / 2 / jnp.maximum(known.sum(), 1), 0.5)
    return _FINER ** ((dim - 1) * (rank - 0.5))


def reached(
    latent: Float[Array, "n d"],
    mask: Bool[Array, "n"],
    worth: Float[Array, "n"],
    cells: int,
    limit: float = math.inf,
) -> Region:
    """The region around the latents where `mask` is True, by some points per cell.

    Each point lies anywhere in the ball around some latent; crowded latents are drawn less often, so that points are
    spread evenly, but for what their surroundings are `worth`. The radius of all balls is such that about a twentieth
    of equal cells, were the latents a ball too, would lie around them. Balls are then wider in few dimensions than in
    many, where most of a region is near its surface. The radius is found step by step, since balls overlap more the
    larger they are. If latents are at no more places than there are cells, or at most of their places more than once,
    there is nothing between these places. Then, and where latents are too few for such balls to meet, balls just
    touch: what search finds next is about as far from the latents as they are from each other.
    """
    (n, d), total = latent.shape, mask.sum()
    m = _POINTS * cells
    room = (1 + _AROUND * cells ** (1 / d) / d) ** d  # size of a ball, in cells
    balls, few = min(n, _BALLS), min(n, _COMPARED)
    width = 2 * jnp.abs(jnp.where(mask[:, None], latent, 0)).max()
    unit = _SAME * width
    several, once = places(jnp.round(latent / jnp.where(unit > 0, unit, 1)), mask)
    discrete = (several <= cells) | (2 * once < several)
    some = _evenly(mask, balls)
    there = jnp.arange(balls) < total
    latent, worth = latent[some], worth[some]
    some = latent[jnp.arange(few) * jnp.clip(total, 1, balls) // few]  # each as often as the others, or nearly
    apart = jnp.where(there[:, None], _squared(latent, some), jnp.inf)
    largest = width * cells ** (-1 / d)
    gap = jnp.where(apart > unit**2, apart, jnp.inf).min(axis=0)
    touching = 0.5 * jnp.median(jnp.where(jnp.isfinite(gap), jnp.sqrt(gap), largest))

    def separate(radius: Float[Array, ""]) -> Float[Array, ""]:
        """The volume of all balls together, in volumes of one: less than their number, since they overlap."""
        return there.sum() * (1 / (apart <= radius**2).sum(axis=0)).mean()

    def better(_: Int[Array, ""], radius: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.maximum(radius * (room * separate(radius) / cells) ** (1 / d), touching)

    wide = jax.lax.fori_loop(0, _STEPS, better, largest)
    radii = jnp.stack([jnp.where(discrete, touching, wide), unit])  # the second tells how many share a place

    def count(i: Int[Array, ""], crowds: Float[Array, "2 b"]) -> Float[Array, "2 b"]:
        return crowds.at[i].set(_crowd(latent, there, radii[i]))

    crowd = jax.lax.fori_loop(0, 1 + discrete.astype(jnp.int32), count, jnp.ones((2, balls)))
    weight = jnp.cumsum(jnp.where(there, worth / crowd[0], 0))
    draws = (jnp.arange(m) + 0.5) / m * weight[-1]
    ball = jnp.minimum(jnp.searchsorted(weight, draws, side="right"), balls - 1)
    # The same chance every time: where nothing changes, no code moves again.
    direction_key, length_key = jax.random.split(plain_key(0))
    direction = jax.random.normal(direction_key, (m, d))
    length = radii[0] * jax.random.uniform(length_key, (m, 1)) ** (1 / d)
    # Once for each point, not for each of its coordinates.
    scale = jax.lax.optimization_barrier(length / jnp.linalg.norm(direction, axis=1, keepdims=True))
    points = latent[ball] + scale * direction
    inside = (total > 0) & (jnp.abs(points) <= limit).all(axis=1)
    return Region(points, inside, latent, jnp.where(there & discrete, 1 / crowd[1], 0), discrete)


def _evenly(mask: Bool[Array, "n"], most: int) -> Int[Array, "most"]:
    """So many indices where `mask` is True, evenly from first to last; if there are fewer, all and then some."""
    total = mask.sum()
    used = jnp.clip(total, 1, most)
    step, rest = total // used, total % used  # apart, since their product with all would be too large for 32 bits
    place = jnp.arange(most) * step + jnp.arange(most) * rest // used
    index = those(mask, len(mask))
    return jnp.where(jnp.arange(most) < used, index.at[place].get(mode="clip"), 0)


def _squared(rows: Float[Array, "a d"], others: Float[Array, "b d"]) -> Float[Array, "a b"]:
    """Squared distances by direct differences: matrix products lose digits."""
    return sum(((rows[:, j, None] - others[None, :, j]) ** 2 for j in range(rows.shape[1])), start=jnp.zeros(()))


def _crowd(latent: Float[Array, "n d"], there: Bool[Array, "n"], radius: Float[Array, ""]) -> Float[Array, "n"]:
    """How many of the latents that are `there`, the first ones, lie within the radius of each."""
    n, d = latent.shape
    others = jnp.where(there[:, None], latent, jnp.inf)
    groups = jnp.pad(others, ((0, -n % _UNROLLED), (0, 0)), constant_values=jnp.inf).reshape(-1, _UNROLLED, d)

    def step(i: Int[Array, ""], count: Float[Array, "n 1"]) -> Float[Array, "n 1"]:
        for other in groups[i]:
            count = count + (_squared(latent, other[None]) <= radius**2)
        return count

    return jax.lax.fori_loop(0, -(-there.sum() // _UNROLLED), step, jnp.zeros((n, 1)))[:, 0]


def _farthest(cell: Int[Array, "m"], points: Float[Array, "m d"], codebook: Float[Array, "k d"]) -> Int[Array, "k"]:
    """For each code the point of its cell that is farthest from it; cell k is nobody's."""
    k = codebook.shape[0]
    apart = jnp.square(points - codebook.at[cell].get(mode="clip")).sum(axis=1)
    most = jnp.zeros(k).at[cell].max(apart, mode="drop")
    leads = jnp.where(apart >= most.at[cell].get(mode="clip"), cell, k)
    return jnp.zeros(k, jnp.int32).at[leads].max(jnp.arange(len(points), dtype=jnp.int32), mode="drop")
