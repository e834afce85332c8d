"""Convolutions and pooling in any number of dimensions, as matrix products and maxima of shifted slices."""

import functools
import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


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
        return _product(x, weight.reshape(-1, outputs))
    lines = _product(x, jnp.moveaxis(weight, 0, -2).reshape(x.shape[-1], -1))
    rows = x.shape[1] - kernel[0] + 1
    parts = [lines[:, i : i + rows, ..., i * outputs : (i + 1) * outputs] for i in range(kernel[0])]
    return functools.reduce(jnp.add, parts)


def _product(x: Float[Array, "n *space c"], matrix: Float[Array, "c m"]) -> Float[Array, "n *space m"]:
    """The matrix product of rows."""
    return (x.reshape(-1, x.shape[-1]) @ matrix).reshape(*x.shape[:-1], -1)


def _fewer_after(kernel: list[int], inputs: int, outputs: int) -> bool:
    """Whether products of patches without their first axis, and those patches, are fewer numbers than whole patches."""
    within = math.prod(kernel[1:]) * inputs
    return within + kernel[0] * outputs < kernel[0] * within


def _shifted(x: Float[Array, "n *space c"], axis: int, size: int, stride: int) -> list[Float[Array, "n *out c"]]:
    """For each place of a window along an axis, what lies there in all windows."""
    span = (x.shape[axis] - size) // stride * stride + 1
    return [jax.lax.slice_in_dim(x, i, i + span, stride, axis) for i in range(size)]


def highest(
    x: Float[Array, "n *space c"], size: int, stride: int
) -> tuple[Float[Array, "n *out c"], Int[Array, "n *out c"]]:
    """Maxima of windows along every axis but rows and channels, and their places in the windows, the first if equal.

    Places are numbered row by row, as in an array of the window's shape.
    """
    axes = range(x.ndim - 2, 0, -1)
    place = jnp.zeros(x.shape, np.min_scalar_type(size ** len(axes)))
    for axis in axes:
        places, values = _shifted(place, axis, size, stride), _shifted(x, axis, size, stride)
        place, x = places[0], values[0]
        step = size ** (place.ndim - 2 - axis)
        for i in range(1, size):
            place = jnp.where(values[i] > x, places[i] + jnp.asarray(i * step, place.dtype), place)
            x = jnp.maximum(x, values[i])
    return x, place


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def pooled(x: Float[Array, "n *space c"], size: int, stride: int) -> Float[Array, "n *out c"]:
    """Maxima of windows; the gradient goes to the first place of each where it is highest."""
    return highest(x, size, stride)[0]


def _forwards(x: Float[Array, "n *space c"], size: int, stride: int) -> tuple[Array, tuple[Array, tuple[int, ...]]]:
    maximum, place = highest(x, size, stride)
    return maximum, (place, x.shape[1:-1])


def _backwards(
    size: int, stride: int, known: tuple[Array, tuple[int, ...]], change: Float[Array, "n *out c"]
) -> tuple[Float[Array, "n *space c"]]:
    place, space = known
    return (spread(change, place, space, size, stride),)


pooled.defvjp(_forwards, _backwards)


def spread(
    values: Float[Array, "n *out c"], place: Int[Array, "n *out c"], space: Sequence[int], size: int, stride: int
) -> Float[Array, "n *space c"]:
    """What windows have at their places, summed where windows overlap: the transpose of pooling.

    Space is seen as blocks as wide as a stride. Each block is covered by a few windows, and what a window has there is
    found by comparing its place with the numbers that the block's elements have in that window.
    """
    axes, wide = len(space), -(-size // stride)
    margin = [(0, 0), *[(wide - 1, wide - 1)] * axes, (0, 0)]
    values, place = jnp.pad(values, margin), jnp.pad(place, margin)
    blocks = [length - wide + 1 for length in values.shape[1:-1]]

    def window(x: Array, offset: Sequence[int]) -> Array:
        """Of the windows that begin so many blocks before each block, with axes for the elements of a block."""
        starts = [wide - 1 - i for i in offset]
        ends = [start + count for start, count in zip(starts, blocks, strict=True)]
        x = jax.lax.slice(x, (0, *starts, 0), (x.shape[0], *ends, x.shape[-1]))
        return jnp.expand_dims(x, range(2, 2 * axes + 1, 2))

    def number(offset: Sequence[int]) -> Int[Array, "1 *block 1"]:
        """The places of a block's elements in those windows; `size ** axes`, which is no place, beyond a window."""
        at = np.indices([stride] * axes) + stride * np.reshape(offset, (-1, *[1] * axes))
        places = np.ravel_multi_index(tuple(at), [size] * axes, mode="clip")
        places = np.where((at < size).all(axis=0), places, size**axes)
        return jnp.asarray(places.reshape([1, *[n for _ in range(axes) for n in (1, stride)], 1]), place.dtype)

    offsets = itertools.product(range(wide), repeat=axes)
    parts = [jnp.where(window(place, offset) == number(offset), window(values, offset), 0) for offset in offsets]
    x = functools.reduce(jnp.add, parts)
    x = x.reshape(x.shape[0], *[stride * count for count in blocks], x.shape[-1])
    x = x[(slice(None), *map(slice, space))]
    return jnp.pad(x, [(0, 0), *[(0, n - m) for n, m in zip(space, x.shape[1:-1], strict=True)], (0, 0)])
