"""Functions of rows, a few rows at a time on CPUs: what is made of them then stays in a core's cache.

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


_CACHE = 2**18  # numbers: a megabyte, about what a core's cache holds


def mapped(function: RowByRow, numbers: int) -> RowByRow:
    """The function, of rows or a tree of rows. It handles so many numbers for each."""

    def by_parts(rows: Any, weights: PyTree) -> Any:
        count = _together(rows, numbers)
        if count == _length(rows):
            return function(rows, weights)
        return _joined(jax.lax.map(lambda part: function(part, weights), _parted(rows, count)))

    return _on_every_platform(by_parts, function)


def summed(function: Summing, numbers: int) -> Summing:
    """The function, of rows or a tree of rows. It handles so many numbers for each."""

    def by_parts(rows: Any, weights: PyTree) -> tuple[Any, PyTree]:
        def add(total: PyTree, part: Any) -> tuple[PyTree, Any]:
            outputs, more = function(part, weights)
            return jax.tree.map(jnp.add, total, more), outputs

        count = _together(rows, numbers)
        if count == _length(rows):
            return function(rows, weights)
        total, outputs = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), _parted(rows, count))
        return _joined(outputs), total

    return _on_every_platform(by_parts, function)


def row_by_row(function: RowByRow, numbers: int) -> Callable[[Float[Array, "n *a"], PyTree], Float[Array, "n *b"]]:
    """A function of an array of rows, with a gradient. It handles so many numbers for each.

    Backwards, what the function makes of a row (patches, say) is made anew: that is faster than reading it.
    """

    def forwards(x: Float[Array, "n *a"], weights: PyTree) -> tuple[Float[Array, "n *b"], Any]:
        return mapped(function, numbers)(x, weights), (x, weights)

    def backwards(known: Any, change: Float[Array, "n *b"]) -> tuple[Float[Array, "n *a"], PyTree]:
        x, weights = known

        def pulled(rows: Any, weights: PyTree) -> tuple[Float[Array, "n *a"], PyTree]:
            return jax.vjp(function, rows[0], weights)[1](rows[1])

        return summed(pulled, numbers)((x, change), weights)

    result = jax.custom_vjp(mapped(function, numbers))
    result.defvjp(forwards, backwards)
    return result


def _on_every_platform(cpu: Callable[..., Any], default: Callable[..., Any]) -> Callable[[Any, PyTree], Any]:
    # Functions of their own, since methods of modules that hold arrays cannot be hashed.
    return lambda rows, weights: jax.lax.platform_dependent(rows, weights, cpu=cpu, default=lambda *x: default(*x))


def _length(rows: Any) -> int:
    return len(jax.tree.leaves(rows)[0])


def _together(rows: Any, numbers: int) -> int:
    """How many rows to take at a time: as many as the cache holds, and a divisor of all."""
    length = _length(rows)
    return max(n for n in range(1, max(1, min(length, _CACHE // numbers)) + 1) if length % n == 0)


def _parted(rows: Any, count: int) -> Any:
    return jax.tree.map(lambda x: x.reshape(-1, count, *x.shape[1:]), rows)


def _joined(parts: Any) -> Any:
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), parts)
