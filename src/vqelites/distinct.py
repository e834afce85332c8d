"""Which rows of an array differ from each other."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.keys import plain_key
from vqelites.rows import mapped
from vqelites.types import in_floats


def distinct(
    rows: Float[Array, "n p"], mask: Bool[Array, "n"], unit: Float[Array, "p"] | None = None
) -> Bool[Array, "n"]:
    """The first of each set of equal rows, where `mask` is True; features may each have a `unit` of their own.

    Equal rows have equal projections on two random directions, and different ones practically never do.
    """
    order, new = _runs(rows, mask, unit)
    return jnp.zeros_like(mask).at[order].set(new)


def places(rows: Float[Array, "n p"], mask: Bool[Array, "n"]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """How many different rows there are where `mask` is True, and how many of them are there only once."""
    order, new = _runs(rows, mask, None)
    again = jnp.append(mask[order][1:] & ~new[1:], False)  # rows that count come first
    return new.sum(), (new & ~again).sum()


def _runs(
    rows: Float[Array, "n p"], mask: Bool[Array, "n"], unit: Float[Array, "p"] | None
) -> tuple[Int[Array, "n"], Bool[Array, "n"]]:
    """An order in which equal rows follow each other, those that do not count last; and where a new one begins."""
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
    return order, new
