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
    """Convolution in any number of dimensions.

    With a stride, the channels of a block as wide as the stride become those of one place, where the stride is 1.
    """
    kernel, outputs = weight.shape[:-2], weight.shape[-1]
    wide = [-(-size // stride) for size in kernel]
    lengths = [(n + 2 * padding - size) // stride + 1 for n, size in zip(x.shape[1:-1], kernel, strict=True)]
    x = _cut(x, -padding, [stride * (n + size - 1) for n, size in zip(lengths, wide, strict=True)])
    return _product(_blocks(x, stride), _by_block(weight, stride).reshape(*wide, -1, outputs))


def convolve_transposed(
    x: Float[Array, "n *space c"], weight: Float[Array, "*kernel m c"], stride: int, padding: int, sizes: Sequence[int]
) -> Float[Array, "n *sizes m"]:
    """The transpose of a convolution: all places of a block as wide as the stride are the channels of one product."""
    *kernel, outputs, inputs = weight.shape
    axes, wide = len(kernel), [-(-size // stride) for size in kernel]
    weight = jnp.flip(_by_block(weight, stride), range(axes)).reshape(*wide, -1, inputs)
    x = jnp.pad(x, [(0, 0), *[(size - 1, size - 1) for size in wide], (0, 0)])
    y = _product(x, jnp.swapaxes(weight, -1, -2))
    blocks = y.shape[1:-1]
    y = y.reshape(-1, *blocks, *[stride] * axes, outputs)
    order = [axis for i in range(1, axes + 1) for axis in (i, i + axes)]
    y = y.transpose(0, *order, 2 * axes + 1).reshape(-1, *[stride * n for n in blocks], outputs)
    return _cut(y, padding, sizes)


def _product(x: Float[Array, "n *space c"], weight: Float[Array, "*kernel c m"]) -> Float[Array, "n *out m"]:
    """Convolution without stride or padding, as one matrix product of patches.

    Patches grow axis by axis: each step copies a few long rows, where all shifts at once would copy many short ones.
    The first axis may instead be summed after the product, where fewer numbers are then written.
    """
    *kernel, inputs, outputs = weight.shape
    later = len(kernel) > 1 and _fewer_after(kernel, inputs, outputs)
    for axis, size in reversed(list(enumerate(kernel, start=1))[later:]):
        x = jnp.concatenate(_shifted(x, axis, size, 1), axis=-1)
    if not later:
        return x @ weight.reshape(-1, outputs)
    lines = x @ jnp.moveaxis(weight, 0, -2).reshape(x.shape[-1], -1)
    rows = x.shape[1] - kernel[0] + 1
    parts = [lines[:, i : i + rows, ..., i * outputs : (i + 1) * outputs] for i in range(kernel[0])]
    return functools.reduce(jnp.add, parts)


def _blocks(x: Float[Array, "n *space c"], width: int) -> Float[Array, "n *blocks d"]:
    """All numbers of a block of space as channels of one place."""
    axes = x.ndim - 2
    if width == 1:
        return x
    blocks = [n // width for n in x.shape[1:-1]]
    x = x.reshape(-1, *[n for count in blocks for n in (count, width)], x.shape[-1])
    x = x.transpose(0, *range(1, 2 * axes + 1, 2), *range(2, 2 * axes + 1, 2), 2 * axes + 1)
    return x.reshape(x.shape[0], *blocks, -1)


def _by_block(weight: Float[Array, "*kernel c m"], width: int) -> Float[Array, "*blocks d"]:
    """Weights, block by block, with zeros beyond the kernel."""
    *kernel, _, _ = weight.shape
    flat = _cut(weight.reshape(1, *kernel, -1), 0, [-(-size // width) * width for size in kernel])
    return _blocks(flat, width)[0]


def _cut(x: Float[Array, "n *space c"], start: int, sizes: Sequence[int]) -> Float[Array, "n *sizes c"]:
    """So much of space, from a start on; zeros beyond it."""
    ends = [(-start, start + size - n, 0) for n, size in zip(x.shape[1:-1], sizes, strict=True)]
    return jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *ends, (0, 0, 0)])


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

    def number(offset: Sequence[int]) -> Int[Array, "*block 1"]:
        """The places of a block's elements in those windows; `size ** axes`, which is no place, beyond a window."""
        at = np.indices([stride] * axes) + stride * np.reshape(offset, (-1, *[1] * axes))
        places = np.ravel_multi_index(tuple(at), [size] * axes, mode="clip")
        places = np.where((at < size).all(axis=0), places, size**axes)
        return jnp.asarray(places.reshape([n for _ in range(axes) for n in (1, stride)] + [1]), place.dtype)

    offsets = itertools.product(range(wide), repeat=axes)
    parts = [jnp.where(window(place, offset) == number(offset), window(values, offset), 0) for offset in offsets]
    x = functools.reduce(jnp.add, parts)
    x = x.reshape(x.shape[0], *[stride * count for count in blocks], x.shape[-1])
    return _cut(x, 0, space)
