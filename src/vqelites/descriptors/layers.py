"""Layers that work on whole batches, because BatchNorm needs the statistics of a batch.

`layer(x)` evaluates row by row; `layer.train(x, key)` may look at the whole batch and returns the layer with its
running statistics renewed. Behaviors are channels-last: (n, *space, channels).
"""

import abc
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from vqelites.descriptors.convolution import convolve, pooled
from vqelites.rows import row_by_row


class AbstractLayer(eqx.Module):
    """A batch-wise function with an evaluation and a training mode."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "n *a"]) -> Float[Array, "n *b"]:
        """Evaluation mode: each row of the result depends on its own row alone."""

    @abc.abstractmethod
    def train(self, x: Float[Array, "n *a"], key: Key[Array, ""]) -> tuple[Float[Array, "n *b"], "AbstractLayer"]:
        """Training mode: the result, and this layer with new running statistics (parameters unchanged)."""


class AbstractPlain(AbstractLayer):
    """A layer that is the same in both modes."""

    def train(self, x: Float[Array, "n *a"], key: Key[Array, ""]) -> tuple[Float[Array, "n *b"], AbstractLayer]:
        return self(x), self


def _parameters(
    key: Key[Array, ""], shape: Sequence[int], outputs: int, fan_in: int
) -> tuple[Float[Array, "*shape"], Float[Array, "outputs"]]:
    """Weights of a shape and biases, uniform by fan-in (PyTorch's default); one draw, as each costs compile time."""
    bound = 1 / math.sqrt(fan_in)
    size = math.prod(shape)
    numbers = jax.random.uniform(key, (size + outputs,), minval=-bound, maxval=bound)
    return numbers[:size].reshape(tuple(shape)), numbers[size:]


def per_channel(values: Float[Array, "c"], x: Float[Array, "*n c"]) -> Float[Array, "*ones c"]:
    """One number per channel, with as many axes as `x`."""
    return values.reshape(*[1] * (x.ndim - 1), -1)


class Linear(AbstractPlain):
    """An affine map of the last axis."""

    weight: Float[Array, "c m"]
    bias: Float[Array, "m"]

    def __init__(self, inputs: int, outputs: int, *, key: Key[Array, ""]):
        self.weight, self.bias = _parameters(key, (inputs, outputs), outputs, inputs)

    def __call__(self, x: Float[Array, "n c"]) -> Float[Array, "n m"]:
        y = x @ self.weight
        return y + per_channel(self.bias, y)


class Conv(AbstractPlain):
    """A convolution over one axis (time) or two (images)."""

    weight: Float[Array, "*kernel c m"]
    bias: Float[Array, "m"]
    stride: int = eqx.field(static=True)
    padding: int = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: Sequence[int],
        *,
        stride: int = 1,
        padding: int = 0,
        key: Key[Array, ""],
    ):
        self.weight, self.bias = _parameters(
            key, (*kernel, inputs, outputs), outputs, fan_in=inputs * math.prod(kernel)
        )
        self.stride, self.padding = stride, padding

    def __call__(self, x: Float[Array, "n *space c"]) -> Float[Array, "n *out m"]:
        y = row_by_row(self.product, self.numbers(x))(x, self.weight)
        return y + per_channel(self.bias, y)

    def product(self, x: Float[Array, "n *space c"], weight: Float[Array, "*kernel c m"]) -> Float[Array, "n *out m"]:
        """The convolution with these weights, without the bias."""
        return convolve(x, weight, self.stride, self.padding)

    def numbers(self, x: Float[Array, "n *space c"]) -> int:
        """How many a row takes: its patches and its outputs."""
        pairs = zip(x.shape[1:-1], self.weight.shape[:-2], strict=True)
        places = math.prod((n + 2 * self.padding - k) // self.stride + 1 for n, k in pairs)
        return places * (self.weight.size // self.bias.size + self.bias.size)


class ConvTranspose(AbstractPlain):
    """The transpose of a convolution; size (in - 1) * stride - 2 * padding + kernel + output_padding, as in PyTorch."""

    weight: Float[Array, "*kernel m c"]
    bias: Float[Array, "m"]
    stride: int = eqx.field(static=True)
    padding: int = eqx.field(static=True)
    output_padding: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: Sequence[int],
        *,
        stride: int = 1,
        padding: int = 0,
        output_padding: Sequence[int] | None = None,
        key: Key[Array, ""],
    ):
        fan_in = outputs * math.prod(kernel)  # PyTorch counts the outputs here
        self.weight, self.bias = _parameters(key, (*kernel, outputs, inputs), outputs, fan_in)
        self.stride, self.padding = stride, padding
        self.output_padding = tuple(output_padding or [0] * len(kernel))

    def __call__(self, x: Float[Array, "n *space c"]) -> Float[Array, "n *out m"]:
        patches = math.prod(x.shape[1:-1]) * (self.weight.size // x.shape[-1])
        y = row_by_row(self._product, math.prod(x.shape[1:]) + patches)(x, self.weight)
        return y + per_channel(self.bias, y)

    def _product(self, x: Float[Array, "n *space c"], weight: Float[Array, "*kernel m c"]) -> Float[Array, "n *out m"]:
        sizes = [
            (n - 1) * self.stride - 2 * self.padding + k + extra
            for n, k, extra in zip(x.shape[1:-1], weight.shape, self.output_padding, strict=False)
        ]
        output = jax.ShapeDtypeStruct((x.shape[0], *sizes, weight.shape[-2]), x.dtype)
        transpose = jax.linear_transpose(lambda y: convolve(y, weight, self.stride, self.padding), output)
        return transpose(x)[0]


class BatchNorm(AbstractLayer):
    """Normalises each channel: by its batch in training, by running statistics in evaluation."""

    weight: Float[Array, "c"]
    bias: Float[Array, "c"]
    mean: Float[Array, "c"]
    variance: Float[Array, "c"]

    def __init__(self, channels: int):
        self.weight, self.bias = jnp.ones(channels), jnp.zeros(channels)
        self.mean, self.variance = jnp.zeros(channels), jnp.ones(channels)

    def normalised(
        self, x: Float[Array, "n *space c"], mean: Float[Array, "c"], variance: Float[Array, "c"]
    ) -> Float[Array, "n *space c"]:
        factor = self.weight * jax.lax.rsqrt(variance + 1e-5)
        return x * per_channel(factor, x) + per_channel(self.bias - mean * factor, x)

    def __call__(self, x: Float[Array, "n *space c"]) -> Float[Array, "n *space c"]:
        return self.normalised(x, self.mean, self.variance)

    def train(
        self, x: Float[Array, "n *space c"], key: Key[Array, ""]
    ) -> tuple[Float[Array, "n *space c"], "BatchNorm"]:
        axes = tuple(range(x.ndim - 1))
        count = math.prod(x.shape[:-1])
        mean, variance = x.mean(axes), x.var(axes)
        return self.normalised(x, mean, variance), self.renewed(mean, variance, count)

    def renewed(self, mean: Float[Array, "c"], variance: Float[Array, "c"], count: int) -> "BatchNorm":
        """This layer after a batch in which every channel has `count` numbers."""
        unbiased = variance * count / max(count - 1, 1)
        # Stopped, so that an optimizer sees statistics as numbers with zero gradient and leaves them alone.
        running = jax.lax.stop_gradient((0.9 * self.mean + 0.1 * mean, 0.9 * self.variance + 0.1 * unbiased))
        return eqx.tree_at(lambda s: (s.mean, s.variance), self, running)


class MaxPool(AbstractPlain):
    """Maximum over windows along every axis but rows and channels."""

    kernel: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n *space c"]) -> Float[Array, "n *out c"]:
        return pooled(x, self.kernel, self.stride)


class Dropout(AbstractLayer):
    """In training, drops each number with probability `rate` and scales up the others."""

    rate: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n *s"]) -> Float[Array, "n *s"]:
        return x

    def train(self, x: Float[Array, "n *s"], key: Key[Array, ""]) -> tuple[Float[Array, "n *s"], "Dropout"]:
        if self.rate == 0:
            return x, self
        kept = jax.random.bernoulli(key, 1 - self.rate, x.shape)
        return jnp.where(kept, x / (1 - self.rate), 0), self


class Activation(AbstractPlain):
    """An elementwise function."""

    function: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n *s"]) -> Float[Array, "n *s"]:
        return self.function(x)


class Reshape(AbstractPlain):
    """Gives each row a new shape; by default a flat one."""

    shape: tuple[int, ...] = eqx.field(static=True, default=(-1,))

    def __call__(self, x: Float[Array, "n *a"]) -> Float[Array, "n *b"]:
        return x.reshape(x.shape[0], *self.shape)


class Sequential(AbstractLayer):
    """Layers one after the other."""

    layers: tuple[AbstractLayer, ...]

    def __call__(self, x: Float[Array, "n *a"]) -> Float[Array, "n *b"]:
        for layer in self.layers:
            x = layer(x)
        return x

    def train(self, x: Float[Array, "n *a"], key: Key[Array, ""]) -> tuple[Float[Array, "n *b"], "Sequential"]:
        trained = []
        for layer, layer_key in zip(self.layers, jax.random.split(key, len(self.layers)), strict=True):
            x, layer = layer.train(x, layer_key)
            trained.append(layer)
        return x, Sequential(tuple(trained))


class Folded(AbstractLayer):
    """Applies a network to every frame: time is folded into the batch."""

    network: AbstractLayer

    def __call__(self, x: Float[Array, "n t *a"]) -> Float[Array, "n t *b"]:
        y = self.network(x.reshape(-1, *x.shape[2:]))
        return y.reshape(*x.shape[:2], *y.shape[1:])

    def train(self, x: Float[Array, "n t *a"], key: Key[Array, ""]) -> tuple[Float[Array, "n t *b"], "Folded"]:
        y, network = self.network.train(x.reshape(-1, *x.shape[2:]), key)
        return y.reshape(*x.shape[:2], *y.shape[1:]), Folded(network)


class PerSample(AbstractPlain):
    """A user's own stateless module, applied row by row."""

    arrays: Any
    structure: Any = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n *a"]) -> Float[Array, "n *b"]:
        return jax.vmap(eqx.combine(self.arrays, self.structure))(x)


def per_sample(module: Callable[[Float[Array, "*a"]], Float[Array, "*b"]]) -> PerSample:
    """Make an encoder or decoder of a module that maps one behavior to one latent vector, or back."""
    return PerSample(*eqx.partition(module, eqx.is_array))
