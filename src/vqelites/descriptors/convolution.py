"""Convolutions and pooling in any number of dimensions, as matrix products and maxima of shifted slices."""

import functools
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


def highest(
    x: Float[Array, "n *space c"], size: int, stride: int
) -> tuple[Float[Array, "n *out c"], Int[Array, "n *out c"]]:
    """Maxima of windows along every axis but rows and channels, and their places in the windows, the first if equal.

    Places are numbered row by row, as in an array of the window's shape.
    """
    axes = range(x.ndim - 2, 0, -1)
    place = jnp.zeros(x.shape, np.min_scalar_type(size ** len(axes) - 1))
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
    """What windows have at their places, summed where windows overlap: the transpose of pooling."""

    def beyond(axis: int, number: int) -> Float[Array, "n *partly c"]:
        """Spread along this axis and all later ones, for the windows' places that begin with a number."""
        if axis > len(space):
            return jnp.where(place == number, values, 0)
        phases = [along(axis, number, start) for start in range(min(stride, size))]
        phases += [jnp.zeros_like(phases[0])] * (stride - len(phases))
        # Strides side by side: far faster on CPUs than adding what lies `stride` apart.
        x = jnp.stack(phases, axis=axis + 1)
        x = x.reshape(*x.shape[:axis], -1, *x.shape[axis + 2 :])
        length = space[axis - 1]
        x = jax.lax.slice_in_dim(x, 0, min(length, x.shape[axis]), axis=axis)
        return _padded(x, axis, 0, length - x.shape[axis])

    def along(axis: int, number: int, start: int) -> Float[Array, "n *partly c"]:
        """What comes to every `stride`-th place of an axis from `start` on."""
        most = -(-size // stride)
        parts = [beyond(axis + 1, size * number + i) for i in range(start, size, stride)]
        return sum((_padded(part, axis, i, most - 1 - i) for i, part in enumerate(parts)), start=jnp.zeros(()))

    return beyond(1, 0)


def _padded(x: Float[Array, "n *space c"], axis: int, before: int, after: int) -> Float[Array, "n *space c"]:
    return jnp.pad(x, [(before, after) if i == axis else (0, 0) for i in range(x.ndim)])
