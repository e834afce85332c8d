"""Selection of parents: uniform over the elites, or the fittest of a few such draws (a tournament)."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def uniform_rows(dice: Float[Array, "n m"], valid: Bool[Array, "k"]) -> Int[Array, "n m"]:
    """The valid row for each uniform number in [0, 1). Undefined if no row is valid: callers must check."""
    rank = jnp.cumsum(valid)
    wanted = (dice * rank[-1]).astype(jnp.int32)
    # The row of the j-th valid entry is the first whose running count exceeds j; rounding up to the count is undone.
    return jnp.searchsorted(rank, jnp.minimum(wanted, rank[-1] - 1), side="right").clip(0, valid.shape[0] - 1)


def fittest(rows: Int[Array, "n m t"], fitness: Float[Array, "k"]) -> Int[Array, "n m"]:
    """The winner of each tournament of t rows; of equals the first drawn."""
    winner = jnp.argmax(fitness[rows], axis=-1, keepdims=True)
    return jnp.take_along_axis(rows, winner, axis=-1)[..., 0]
