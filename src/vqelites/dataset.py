"""What a descriptor is trained on: recent behavior, the archive's content, a bounded replay, or a mix of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Real

from vqelites.distinct import distinct
from vqelites.types import Elites, Sizes, in_floats


class DatasetState(eqx.Module):
    """The last `m` finite behaviors, in a ring."""

    ring: Real[Array, "m *shape"]
    written: Int[Array, ""]  # rows ever written
    since_update: Int[Array, ""]  # rows written since the last training


class Dataset(eqx.Module):
    """How many rows each source gives to one training. Sources with 0 rows are not used.

    The paper's policy is the window alone: everything seen since the last training.
    """

    window: int = eqx.field(static=True, default=0)  # the newest rows, seen since the last training
    archive: int = eqx.field(static=True, default=0)  # elites, drawn without replacement
    replay: int = eqx.field(static=True, default=0)  # drawn without replacement from the last `memory` rows
    memory: int = eqx.field(static=True, default=0)
    distinct: bool = eqx.field(static=True, default=True)  # equal behaviors count once
    overlap: float | None = eqx.field(static=True, default=None)  # images that overlap by more are left out (the paper)

    def __check_init__(self) -> None:
        if min(self.window, self.archive, self.replay, self.memory) < 0:
            raise ValueError(f"Row counts cannot be negative, but got {self}.")
        if self.replay > self.memory:
            raise ValueError(f"Cannot replay {self.replay} rows out of a memory of {self.memory}; raise `memory`.")
        if self.overlap is not None and not 0 < self.overlap <= 1:
            raise ValueError(f"The overlap above which samples are near-duplicates lies in (0, 1], not {self.overlap}.")

    def init(self, sizes: Sizes) -> DatasetState:
        """An empty ring for behavior as it is held."""
        zero, capacity = jnp.array(0, jnp.int32), max(self.window, self.memory)
        return DatasetState(jnp.zeros((capacity, *sizes.behavior), sizes.behavior_dtype), zero, zero)

    def add(self, state: DatasetState, behavior: Float[Array, "n *shape"], valid: Bool[Array, "n"]) -> DatasetState:
        """Keep the valid rows. A batch larger than the ring is an error, since its order would be lost."""
        capacity = state.ring.shape[0]
        if capacity == 0:
            return state
        if behavior.shape[0] > capacity:
            raise ValueError(
                f"A batch of {behavior.shape[0]} rows does not fit a dataset of {capacity}; raise `window`."
            )
        rows = (state.written + jnp.cumsum(valid) - 1) % capacity
        ring = state.ring.at[jnp.where(valid, rows, capacity)].set(behavior, mode="drop")
        count = valid.sum(dtype=jnp.int32)
        return DatasetState(ring, state.written + count, state.since_update + count)

    def rows(self, elites: int) -> int:
        """How many rows `samples` returns for an archive of so many places, counted or not."""
        return self.window + min(self.archive, elites) + min(self.replay, max(self.window, self.memory))

    def samples(
        self, state: DatasetState, key: Key[Array, ""], elites: Elites
    ) -> tuple[Float[Array, "n *shape"], Bool[Array, "n"]]:
        """The rows for one training, and which of them count."""
        archive_key, replay_key = jax.random.split(key)
        parts: list[tuple[Float[Array, r * shape], Bool[Array, r]]] = []
        capacity = state.ring.shape[0]
        if self.window:
            age = jnp.arange(self.window)
            newest = state.ring[(state.written - 1 - age) % capacity]
            parts.append((newest, age < jnp.minimum(state.since_update, self.window)))
        if self.archive:
            parts.append(_draw(archive_key, elites.behavior, elites.valid, self.archive))
        if self.replay:
            age = (state.written - 1 - jnp.arange(capacity)) % capacity
            written = age < jnp.minimum(state.written, self.memory)
            parts.append(_draw(replay_key, state.ring, written, self.replay))
        rows, mask = (jnp.concatenate(column) for column in zip(*parts, strict=True))
        return rows, self.thinned(rows, mask)

    def thinned(self, rows: Float[Array, "n *shape"], mask: Bool[Array, "n"]) -> Bool[Array, "n"]:
        """Which rows to train on: a behavior that many solutions show is learned no better by seeing it many times."""
        if self.distinct:
            flat = rows.reshape(rows.shape[0], -1)
            one = flat[jnp.argmax(mask)]
            known = jnp.where(mask[:, None], flat, one[None])
            # As they are held: 8-bit rows become floats in pieces, or not at all.
            least, greatest, one = (in_floats(x) for x in (known.min(axis=0), known.max(axis=0), one))
            most = jnp.maximum(greatest - one, one - least)
            # In this unit every feature counts, also a small one beside a large one.
            mask = mask & distinct(flat, mask, jnp.where(most > 0, most, 1))
        return mask if self.overlap is None else mask & unlike_earlier(in_floats(rows), mask, self.overlap)

    def trained(self, state: DatasetState, window: Int[Array, ""]) -> DatasetState:
        """Empty the window of the rows that were trained on."""
        return eqx.tree_at(lambda s: s.since_update, state, state.since_update - window)


def _draw(
    key: Key[Array, ""], rows: Float[Array, "k *shape"], valid: Bool[Array, "k"], count: int
) -> tuple[Float[Array, "c *shape"], Bool[Array, "c"]]:
    """At most `count` random valid rows, without replacement; all of them if there are no more."""
    if count >= rows.shape[0]:
        return rows, valid
    order = jnp.argsort(jnp.where(valid, jax.random.uniform(key, valid.shape), 2.0))[:count]
    return rows[order], valid[order]


def unlike_earlier(rows: Float[Array, "n *shape"], mask: Bool[Array, "n"], overlap: float) -> Bool[Array, "n"]:
    """Greedy thinning: a row goes if it overlaps an earlier kept row by more than `overlap`.

    Overlap is the Jaccard index extended to grey values, <a,b> / (|a|^2 + |b|^2 - <a,b>): for pixels that are
    0 or 1 it is intersection over union.
    """
    flat = rows.reshape(rows.shape[0], -1)
    product = jnp.matmul(flat, flat.T, precision=jax.lax.Precision.HIGHEST)
    norm = jnp.diagonal(product)
    alike = product > overlap * (norm[:, None] + norm[None, :] - product)
    # Two all-black images are the same image, though their overlap is 0/0.
    alike |= (norm[:, None] == 0) & (norm[None, :] == 0)
    earlier = jnp.tri(rows.shape[0], k=-1, dtype=bool)
    blocks = alike & earlier & mask[None, :]

    # Every pass settles at least the next row in order, in practice many: it ends when nothing changes.
    def sweep(carry: tuple[Bool[Array, "n"], Bool[Array, ""]]) -> tuple[Bool[Array, "n"], Bool[Array, ""]]:
        kept, _ = carry
        after = mask & ~(blocks & kept[None, :]).any(axis=1)
        return after, (after != kept).any()

    kept, _ = jax.lax.while_loop(lambda carry: carry[1], sweep, (mask, jnp.array(True)))
    return kept
