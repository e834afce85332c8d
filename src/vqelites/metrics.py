"""How good an archive is, judged by what its elites truly did. Pure functions of arrays.

Every elite is projected onto fixed bins by its true outcome, so that archives with different (learned) cells compare.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.tessellation import nearest
from vqelites.types import Bins, Elites


class Projection(eqx.Module):
    """An archive seen through the bins: which are occupied, and the best fitness in each."""

    occupied: Bool[Array, "b"]
    fitness: Float[Array, "b"]  # 0 where not occupied
    bins: Int[Array, ""]  # reachable ones
    size: Int[Array, ""]  # elites in the archive


def project(bins: Bins, elites: Elites) -> Projection:
    """Put every elite into the bin of its true outcome, the fittest of each bin standing for it."""
    count = bins.centres.shape[0]
    bin_of = jnp.where(elites.valid, nearest(elites.truth, bins.centres), count)
    best = jnp.full(count, -jnp.inf).at[bin_of].max(elites.fitness, mode="drop")
    occupied = (best > -jnp.inf) & bins.reachable
    return Projection(occupied, jnp.where(occupied, best, 0), bins.reachable.sum(), elites.size)


def coverage(projection: Projection) -> Float[Array, ""]:
    """Share of the reachable bins that hold an elite."""
    return projection.occupied.sum() / projection.bins


def pqd(projection: Projection) -> Float[Array, ""]:
    """Projected QD score: sum of the best fitness of every occupied bin."""
    return projection.fitness.sum()


def edr(projection: Projection) -> Float[Array, ""]:
    """Effective diversity ratio: occupied bins per elite; 0 for an empty archive."""
    return projection.occupied.sum() / jnp.maximum(projection.size, 1)


def cds(projection: Projection) -> Float[Array, ""]:
    """Coverage diversity score: coverage times effective diversity ratio."""
    return coverage(projection) * edr(projection)


def measure(bins: Bins, elites: Elites) -> dict[str, Array]:
    """All of the above, with the archive's size and its best fitness (NaN if empty)."""
    projection = project(bins, elites)
    best = jnp.where(elites.valid, elites.fitness, -jnp.inf).max()
    return {
        "size": elites.size,
        "coverage": coverage(projection),
        "pqd": pqd(projection),
        "edr": edr(projection),
        "cds": cds(projection),
        "max_fitness": jnp.where(elites.size > 0, best, jnp.nan),
    }
