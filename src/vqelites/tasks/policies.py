"""Small neural networks that act as policies, read from flat parameter vectors.

The order of a flat vector: layer by layer from input to output, each layer's weights and then its biases. Weights are
stored row by row with inputs as rows and outputs as columns; a convolution's inputs run over kernel row, kernel
column, channel. `unflatten` once, outside the rollout: reshaping in every step makes a rollout several times slower.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Layers = list[tuple[Float[Array, "i o"], Float[Array, "o"]]]
Activation = Callable[[Float[Array, "*n"]], Float[Array, "*n"]]


class MLP(eqx.Module):
    """A fully connected network: `activation` after every hidden layer, `output` after the last."""

    sizes: tuple[int, ...] = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)
    output: Activation = eqx.field(static=True)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return _count(self._shapes)

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        return list(itertools.pairwise(self.sizes))

    def limits(self, weight: float, bias: float) -> Float[Array, "s"]:
        """Limits for random parameters: `weight` over the root of a layer's inputs for its weights, `bias`."""
        return _limits(self._shapes, weight, bias)

    def unflatten(self, vector: Float[Array, "s"]) -> Layers:
        """The layers whose parameters the vector lists."""
        return _unflatten(vector, self._shapes)

    def apply(self, layers: Layers, x: Float[Array, "i"]) -> Float[Array, "o"]:
        """The network's answer to one input."""
        for weight, bias in layers[:-1]:
            x = self.activation(x @ weight + bias)
        weight, bias = layers[-1]
        return self.output(x @ weight + bias)

    def apply_side_by_side(self, layers: Layers, x: Float[Array, "i n"]) -> Float[Array, "o n"]:
        """The answers of n networks, each to an input of its own; n is the last dimension of all weights and biases.

        On CPUs such sums become one vectorised loop, and many small matrix products do not: eight networks at a time,
        whose weights stay in the cache, take two thirds of the time of one product each.
        """
        for weight, bias in layers[:-1]:
            x = self.activation(_summed(weight, x) + bias)
        weight, bias = layers[-1]
        return self.output(_summed(weight, x) + bias)


class GridCNN(eqx.Module):
    """A view of the grid and the keys held -> a value for each of 5 actions.

    3x3 convolutions with stride 2 and padding 1 to 8 and 16 channels, then the features with the keys appended
    -> 16 -> 5; SiLU after all but the last layer.
    """

    height: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    keys: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return _count(self._shapes)

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        # Two stride-2 convolutions with padding 1 each halve a side, rounding up.
        features = -(-self.height // 4) * -(-self.width // 4) * 16
        return [(9 * 3, 8), (9 * 8, 16), (features + self.keys, 16), (16, 5)]

    def limits(self, weight: float, bias: float) -> Float[Array, "s"]:
        """Limits for random parameters: `weight` over the root of a layer's inputs for its weights, `bias`."""
        return _limits(self._shapes, weight, bias)

    def unflatten(self, vector: Float[Array, "s"]) -> Layers:
        """The layers whose parameters the vector lists."""
        return _unflatten(vector, self._shapes)

    def apply(self, layers: Layers, image: Float[Array, "h w 3"], keys: Float[Array, "k"]) -> Float[Array, "5"]:
        """The value of each action for one view; features run over row, column, channel."""
        (conv1, bias1), (conv2, bias2), (hidden, hidden_bias), (last, last_bias) = layers
        x = jax.nn.silu(_patches(image) @ conv1 + bias1[None, None])
        x = jax.nn.silu(_patches(x) @ conv2 + bias2[None, None])
        x = jax.nn.silu(jnp.concatenate([x.reshape(-1), keys]) @ hidden + hidden_bias)
        return x @ last + last_bias


def gaussian(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """exp(-x^2), an activation for smooth motions."""
    return jnp.exp(-jnp.square(x))


def identity(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The number itself: an output without bounds."""
    return x


def _summed(weight: Float[Array, "i o n"], x: Float[Array, "i n"]) -> Float[Array, "o n"]:
    """The sum over inputs, written out as four sums that do not wait for each other."""
    parts = [[one[None] * row for one, row in zip(x[k::4], weight[k::4], strict=True)] for k in range(min(4, len(x)))]
    return sum((sum(part[1:], start=part[0]) for part in parts), start=jnp.zeros(()))


def _patches(image: Float[Array, "h w c"]) -> Float[Array, "p q k"]:
    """The 3x3 neighbourhoods at every second pixel, zero outside the image; k runs over row, column, channel.

    With them a convolution is one matrix product, which under vmap over policies is 2 to 4 times as fast as `lax.conv`.
    """
    height, width, channels = image.shape
    image = jnp.pad(image, ((1, 1), (1, 1), (0, 0)))
    shifted = [
        jax.lax.slice(image, (i, j, 0), (i + height, j + width, channels), (2, 2, 1))
        for i, j in itertools.product(range(3), range(3))
    ]
    return jnp.concatenate(shifted, axis=-1)


def _count(shapes: Sequence[tuple[int, int]]) -> int:
    """Parameters of layers with these numbers of (inputs, outputs)."""
    return sum((inputs + 1) * outputs for inputs, outputs in shapes)


def _limits(shapes: Sequence[tuple[int, int]], weight: float, bias: float) -> Float[Array, "s"]:
    """Of all parameters, in their order."""
    layers = [[jnp.full(i * o, weight / math.sqrt(i)), jnp.full(o, bias)] for i, o in shapes]
    return jnp.concatenate([part for layer in layers for part in layer])


def _unflatten(vector: Float[Array, "s"], shapes: Sequence[tuple[int, int]]) -> Layers:
    """Cut a flat vector into weights and biases."""
    if vector.shape != (_count(shapes),):
        raise ValueError(
            f"This policy has {_count(shapes)} parameters, but the vector has shape {tuple(vector.shape)}. "
            "Pass one flat vector of that length, and use jax.vmap for many."
        )
    layers, start = [], 0
    for shape in shapes:
        middle = start + math.prod(shape)
        end = middle + shape[1]
        layers.append((vector[start:middle].reshape(shape), vector[middle:end]))
        start = end
    return layers
