"""Convolutions and pooling of whole batches, as matrix products and maxima of shifted slices.

Everything here is row by row. CPUs take one row at a time, whose patches then stay in a core's cache; accelerators
take all at once.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

# (rows, weights) -> outputs for each row
RowByRow = Callable[[Float[Array, "n *a"], PyTree], PyTree]


def row_by_row(function: RowByRow) -> RowByRow:
    """The function computed one row at a time on CPUs, forwards and backwards.

    Backwards, what the function makes of a row is made anew: for patches that is faster than reading them.
    """

    @jax.custom_vjp
    def rows(x: Float[Array, "n *a"], weights: PyTree) -> PyTree:
        return jax.lax.platform_dependent(x, weights, cpu=one_by_one, default=whole)

    def whole(x: Float[Array, "n *a"], weights: PyTree) -> PyTree:
        return function(x, weights)

    def one_by_one(x: Float[Array, "n *a"], weights: PyTree) -> PyTree:
        outputs = jax.lax.map(lambda row: function(row[None], weights), x)
        return jax.tree.map(lambda y: y.squeeze(1), outputs)

    def forwards(x: Float[Array, "n *a"], weights: PyTree) -> tuple[PyTree, Any]:
        return rows(x, weights), (x, weights)

    def backwards(known: Any, change: PyTree) -> tuple[Float[Array, "n *a"], PyTree]:
        return jax.lax.platform_dependent(*known, change, cpu=pulled_one_by_one, default=pulled)

    def pulled(x: Float[Array, "n *a"], weights: PyTree, change: PyTree) -> tuple[Float[Array, "n *a"], PyTree]:
        return jax.vjp(function, x, weights)[1](change)

    def pulled_one_by_one(
        x: Float[Array, "n *a"], weights: PyTree, change: PyTree
    ) -> tuple[Float[Array, "n *a"], PyTree]:
        def add(total: PyTree, row: tuple[Array, PyTree]) -> tuple[PyTree, Array]:
            x, change = jax.tree.map(lambda y: y[None], row)
            x, more = pulled(x, weights, change)
            return jax.tree.map(jnp.add, total, more), x[0]

        total, x = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), (x, change))
        return x, total

    rows.defvjp(forwards, backwards)
    return rows


def convolve(
    x: Float[Array, "n *space c"], weight: Float[Array, "*kernel c m"], stride: int, padding: int
) -> Float[Array, "n *out m"]:
    """Convolution in any number of dimensions, as one matrix product of patches.

    Patches grow axis by axis: each step copies a few long rows, where all shifts at once would copy many short ones.
    The first axis may instead be summed after the product, where fewer numbers are then written.
    """
    *kernel, inputs, outputs = weight.shape
    x = jnp.pad(x, [(0, 0), *[(padding, padding)] * len(kernel), (0, 0)])
    later = len(kernel) > 1 and stride == 1 and _fewer_after(kernel, inputs, outputs)
    for axis, size in reversed(list(enumerate(kernel, start=1))[later:]):
        x = jnp.concatenate(_shifted(x, axis, size, stride), axis=-1)
    if not later:
        return x @ weight.reshape(-1, outputs)
    lines = x @ jnp.moveaxis(weight, 0, -2).reshape(x.shape[-1], -1)
    rows = x.shape[1] - kernel[0] + 1
    parts = [lines[:, i : i + rows, ..., i * outputs : (i + 1) * outputs] for i in range(kernel[0])]
    return functools.reduce(jnp.add, parts)


def _fewer_after(kernel: list[int], inputs: int, outputs: int) -> bool:
    """Whether products of patches without their first axis, and those patches, are fewer numbers than whole patches."""
    within = math.prod(kernel[1:]) * inputs
    return within + kernel[0] * outputs < kernel[0] * within


def _shifted(x: Float[Array, "n *space c"], axis: int, size: int, stride: int) -> list[Float[Array, "n *out c"]]:
    """For each place of a window along an axis, what lies there in all windows."""
    span = (x.shape[axis] - size) // stride * stride + 1
    return [jax.lax.slice_in_dim(x, i, i + span, stride, axis) for i in range(size)]


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def highest(x: Float[Array, "n *space c"], axis: int, size: int, stride: int) -> Float[Array, "n *out c"]:
    """Maxima of windows along one axis; the gradient goes to the first place of each."""
    return _found(x, axis, size, stride)[0]


def _found(
    x: Float[Array, "n *space c"], axis: int, size: int, stride: int
) -> tuple[Float[Array, "n *out c"], Int[Array, "n *out c"]]:
    """Maxima and their places in their windows."""
    first, *others = _shifted(x, axis, size, stride)
    place = jnp.zeros(first.shape, jnp.int8)
    for i, other in enumerate(others, start=1):
        place = jnp.where(other > first, jnp.int8(i), place)
        first = jnp.maximum(first, other)
    return first, place


def _forwards(x: Float[Array, "n *space c"], axis: int, size: int, stride: int) -> tuple[Array, tuple[Array, int]]:
    maximum, place = _found(x, axis, size, stride)
    return maximum, (place, x.shape[axis])


def _backwards(
    axis: int, size: int, stride: int, known: tuple[Int[Array, "n *out c"], int], change: Float[Array, "n *out c"]
) -> tuple[Float[Array, "n *space c"]]:
    place, length = known
    most = -(-size // stride)

    def phase(start: int) -> Float[Array, "n *out c"]:
        """What comes to every `stride`-th place from `start` on."""
        total: Any = 0.0
        for i, place_in_window in enumerate(range(start, size, stride)):
            here = jnp.where(place == place_in_window, change, 0)
            total = total + _padded(here, axis, i, most - 1 - i)
        return total

    # Strides side by side: far faster on CPUs than adding what lies `stride` apart.
    x = jnp.stack([phase(start) for start in range(stride)], axis=axis + 1)
    x = x.reshape(*x.shape[:axis], -1, *x.shape[axis + 2 :])
    x = jax.lax.slice_in_dim(x, 0, min(length, x.shape[axis]), axis=axis)
    return (_padded(x, axis, 0, length - x.shape[axis]),)


def _padded(x: Float[Array, "n *space c"], axis: int, before: int, after: int) -> Float[Array, "n *space c"]:
    return jnp.pad(x, [(before, after) if i == axis else (0, 0) for i in range(x.ndim)])


highest.defvjp(_forwards, _backwards)
