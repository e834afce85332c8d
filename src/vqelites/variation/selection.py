"""Who becomes a parent: every elite with the same chance."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key


def uniform_rows(keys: Key[Array, "n"], valid: Bool[Array, "k"]) -> Int[Array, "n 2"]:
    """Two independent uniform draws of a valid row for each key. Meaningless if no row is valid: callers must check."""
    rank = jnp.cumsum(valid)
    wanted = jax.vmap(lambda key: jax.random.randint(key, (2,), 0, jnp.maximum(rank[-1], 1)))(keys)
    # The row of the j-th valid entry is the first whose running count exceeds j.
    return jnp.searchsorted(rank, wanted, side="right").clip(0, valid.shape[0] - 1)
