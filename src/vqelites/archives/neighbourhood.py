"""What contests between entries of an archive read: where the entries are, how fit, and how novel a point is there."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.archives.addition import AbstractAddition, Contest
from vqelites.types import Elites


class Entries(eqx.Module):
    """Elites without their payload, cheap to carry through a loop, and the batch row each one came from (-1: none)."""

    position: Float[Array, "d n"]  # one row per dimension: distances are then plain vector operations
    fitness: Float[Array, "n"]
    valid: Bool[Array, "n"]
    source: Int[Array, "n"]

    @classmethod
    def of(cls, elites: Elites) -> "Entries":
        """The entries an archive holds before a batch is offered."""
        # Converted, because rows of NumPy arrays cannot be picked inside a loop.
        position, fitness, valid = map(jnp.asarray, (elites.descriptor.T, elites.fitness, elites.valid))
        return cls(position, fitness, valid, jnp.full(elites.capacity, -1, jnp.int32))

    def write(self, slot: Int[Array, ""], batch: "Entries", row: Int[Array, ""]) -> "Entries":
        """Let a batch row take a slot; an out-of-range slot drops it."""
        return Entries(
            self.position.at[:, slot].set(batch.position[:, row], mode="drop"),
            self.fitness.at[slot].set(batch.fitness[row], mode="drop"),
            self.valid.at[slot].set(True, mode="drop"),
            self.source.at[slot].set(row, mode="drop"),
        )

    def places(self, rows: int) -> Int[Array, "rows"]:
        """The slot each batch row ended in, out of range for those that did not stay."""
        slots = self.source.shape[0]
        source = jnp.where(self.source < 0, rows, self.source)
        return jnp.full(rows, slots, jnp.int32).at[source].set(jnp.arange(slots, dtype=jnp.int32), mode="drop")

    def distances(self, point: Float[Array, "d"]) -> Float[Array, "n"]:
        """Distance of a point to every entry, infinite where absent; exactly 0 to an identical one."""
        squared = sum((axis - x) ** 2 for axis, x in zip(self.position, point, strict=True))
        return jnp.where(self.valid, jnp.sqrt(squared), jnp.inf)


def first(mask: Bool[Array, "n"]) -> Int[Array, ""]:
    """The lowest index where the mask holds, n if nowhere (much faster than argmax on CPUs)."""
    index = jnp.arange(mask.shape[0], dtype=jnp.int32)
    return jnp.where(mask, index, mask.shape[0]).min()


def without(distance: Float[Array, "n"], slot: Int[Array, ""]) -> Float[Array, "n"]:
    """The distances with one entry left out."""
    return jnp.where(jnp.arange(distance.shape[0]) == slot, jnp.inf, distance)


def novelty(distance: Float[Array, "n"], neighbours: int) -> Float[Array, ""]:
    """Mean distance to the nearest entries, fewer where there are fewer; 1 where there is nothing to compare with."""
    near = -jax.lax.top_k(-distance, min(neighbours, distance.shape[0]))[0]
    present = jnp.isfinite(near)
    mean = jnp.where(present, near, 0.0).sum() / jnp.maximum(present.sum(), 1)
    return jnp.where(present.any(), mean, 1.0)


def challenge(
    entries: Entries,
    slot: Int[Array, ""],
    fitness: Float[Array, ""],
    distance: Float[Array, "n"],
    crowded: Bool[Array, ""],
    rule: AbstractAddition,
    neighbours: int,
) -> Bool[Array, ""]:
    """Whether a newcomer takes the slot of an incumbent; the novelty of both is measured against all other entries."""
    new = old = jnp.zeros_like(fitness)
    if rule.needs_novelty:
        new = novelty(without(distance, slot), neighbours)
        old = novelty(without(entries.distances(entries.position[:, slot]), slot), neighbours)
    return rule.replaces(Contest(fitness, entries.fitness[slot], new, old, crowded))
