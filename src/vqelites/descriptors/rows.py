"""Functions of rows, one row at a time on CPUs: what is made of a row then stays in a core's cache.

Accelerators take all rows at once.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

# (rows, weights) -> outputs of each row
RowByRow = Callable[[Any, PyTree], Any]
# (rows, weights) -> outputs of each row, and sums over rows that are like the weights
Summing = Callable[[Any, PyTree], tuple[Any, PyTree]]


def mapped(function: RowByRow) -> RowByRow:
    """The function, of rows or a tree of rows."""

    def one_by_one(rows: Any, weights: PyTree) -> Any:
        outputs = jax.lax.map(lambda row: function(jax.tree.map(lambda x: x[None], row), weights), rows)
        return jax.tree.map(lambda y: y.squeeze(1), outputs)

    def whole(rows: Any, weights: PyTree) -> Any:
        return function(rows, weights)

    return lambda rows, weights: jax.lax.platform_dependent(rows, weights, cpu=one_by_one, default=whole)


def summed(function: Summing) -> Summing:
    """The function, of rows or a tree of rows."""

    def one_by_one(rows: Any, weights: PyTree) -> tuple[Any, PyTree]:
        def add(total: PyTree, row: Any) -> tuple[PyTree, Any]:
            outputs, more = function(jax.tree.map(lambda x: x[None], row), weights)
            return jax.tree.map(jnp.add, total, more), jax.tree.map(lambda y: y.squeeze(0), outputs)

        total, outputs = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), rows)
        return outputs, total

    def whole(rows: Any, weights: PyTree) -> tuple[Any, PyTree]:
        return function(rows, weights)

    return lambda rows, weights: jax.lax.platform_dependent(rows, weights, cpu=one_by_one, default=whole)


def row_by_row(function: RowByRow) -> Callable[[Float[Array, "n *a"], PyTree], Float[Array, "n *b"]]:
    """A function of an array of rows with a gradient.

    Backwards, what the function makes of a row (patches, say) is made anew: that is faster than reading it.
    """

    def forwards(x: Float[Array, "n *a"], weights: PyTree) -> tuple[Float[Array, "n *b"], Any]:
        return mapped(function)(x, weights), (x, weights)

    def backwards(known: Any, change: Float[Array, "n *b"]) -> tuple[Float[Array, "n *a"], PyTree]:
        x, weights = known
        return summed(lambda rows, weights: jax.vjp(function, rows[0], weights)[1](rows[1]))((x, change), weights)

    result = jax.custom_vjp(mapped(function))
    result.defvjp(forwards, backwards)
    return result
