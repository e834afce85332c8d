"""Convolution, BatchNorm, activation and pooling as one layer, which stores what comes out of it and little more."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from vqelites.descriptors.convolution import highest, spread
from vqelites.descriptors.layers import AbstractLayer, BatchNorm, Conv, MaxPool
from vqelites.rows import mapped, summed


class ConvNormPool(AbstractLayer):
    """Conv, BatchNorm, an activation and MaxPool. The activation only rises, or falls and then rises, as GELU does.

    Within a window such an activation is highest where its input is highest or lowest, and BatchNorm is affine. So the
    convolution's outputs are pooled first, and only the extremes of windows are normalised and activated.
    """

    conv: Conv
    norm: BatchNorm
    function: Callable[[Array], Array] = eqx.field(static=True)
    pool: MaxPool

    def __call__(self, x: Float[Array, "n *space c"]) -> Float[Array, "n *out m"]:
        def extremes(x: Float[Array, "n *space c"], weight: Float[Array, "*kernel c m"]) -> tuple[Array, Array]:
            y = self.conv.product(x, weight)
            return self.pool(y), -self.pool(-y)

        mean = self.norm.mean - self.conv.bias
        high, low = mapped(extremes, self.conv.numbers(x))(x, self.conv.weight)
        return jnp.maximum(*(self._activated(y, mean, self.norm.variance) for y in (high, low)))

    def train(
        self, x: Float[Array, "n *space c"], key: Key[Array, ""]
    ) -> tuple[Float[Array, "n *out m"], "ConvNormPool"]:
        look = mapped(self._looked, self.conv.numbers(x))(*jax.lax.stop_gradient((x, self.conv.weight)))
        chosen = jax.lax.stop_gradient(self._chosen(look))
        y, *moments = self._with_gradient(x, self.conv.weight, chosen)
        mean, variance = _joined(*moments)
        count = math.prod(jax.eval_shape(self.conv, x).shape[:-1])
        # BatchNorm takes the bias away again.
        norm = self.norm.renewed(mean + self.conv.bias, variance, count)
        return self._activated(y, mean, variance), ConvNormPool(self.conv, norm, self.function, self.pool)

    def _activated(
        self, y: Float[Array, "n *out m"], mean: Float[Array, "m"], variance: Float[Array, "m"]
    ) -> Float[Array, "n *out m"]:
        return self.function(self.norm.normalised(y, mean, variance))

    def _looked(self, x: Float[Array, "n *space c"], weight: Float[Array, "*kernel c m"]) -> "_Extremes":
        y = self.conv.product(x, weight)
        axes = tuple(range(1, y.ndim - 1))
        high, low = (highest(side, self.pool.kernel, self.pool.stride) for side in (y, -y))
        return _Extremes(*high, -low[0], low[1], y.mean(axes), y.var(axes))

    def _chosen(self, look: "_Extremes") -> "_Chosen":
        """Of both extremes of each window the one whose activation is higher."""
        high, low = (self._activated(y, *_joined(look.mean, look.variance)) for y in (look.high, look.low))
        above = high >= low
        place = jnp.where(above, look.high_place, look.low_place)
        return _Chosen(jnp.where(above, look.high, look.low), place, look.mean, look.variance)

    def _with_gradient(
        self, x: Float[Array, "n *space c"], weight: Float[Array, "*kernel c m"], chosen: "_Chosen"
    ) -> tuple[Float[Array, "n *out m"], Float[Array, "n m"], Float[Array, "n m"]]:
        """What was chosen and the moments, as functions of the layer's input and weights."""

        def forwards(x: Array, weight: Array, chosen: _Chosen) -> tuple[tuple[Array, Array, Array], tuple[Any, ...]]:
            return (chosen.y, chosen.mean, chosen.variance), (x, weight, chosen)

        def backwards(known: tuple[Any, ...], change: tuple[Array, ...]) -> tuple[Array, Array, None]:
            x, weight, chosen = known
            return *summed(self._pulled, self.conv.numbers(x))((x, chosen.place, chosen.mean, change), weight), None

        same = jax.custom_vjp(lambda *arguments: forwards(*arguments)[0])
        same.defvjp(forwards, backwards)
        y, mean, variance = same(x, weight, chosen)
        return y, mean, variance

    def _pulled(self, rows: tuple[Any, ...], weight: Float[Array, "*kernel c m"]) -> tuple[Array, Array]:
        """The gradient of rows and weights. The convolution is computed anew: no copy of its outputs is stored."""
        x, place, mean, (chosen, means, variances) = rows
        y, back = jax.vjp(self.conv.product, x, weight)
        space = y.shape[1:-1]
        mean, means, variances = (z.reshape(-1, *[1] * len(space), z.shape[-1]) for z in (mean, means, variances))
        change = spread(chosen, place, space, self.pool.kernel, self.pool.stride)
        return back(change + (means + 2 * variances * (y - mean)) / math.prod(space))


class _Extremes(eqx.Module):
    """A convolution's outputs, as BatchNorm and MaxPool need them."""

    high: Float[Array, "n *out m"]  # of each window
    high_place: Int[Array, "n *out m"]
    low: Float[Array, "n *out m"]
    low_place: Int[Array, "n *out m"]
    mean: Float[Array, "n m"]  # of each row
    variance: Float[Array, "n m"]


class _Chosen(eqx.Module):
    """One of the extremes of each window, its place, and the moments of rows."""

    y: Float[Array, "n *out m"]
    place: Int[Array, "n *out m"]
    mean: Float[Array, "n m"]
    variance: Float[Array, "n m"]


def _joined(mean: Float[Array, "n m"], variance: Float[Array, "n m"]) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
    """Mean and variance of all rows, of those of each."""
    overall = mean.mean(axis=0)
    return overall, variance.mean(axis=0) + jnp.square(mean - overall[None]).mean(axis=0)
