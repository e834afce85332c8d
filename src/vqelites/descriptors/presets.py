"""The paper's networks, with the corrections that make the sizes of its tables work out."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Float, Key

from vqelites.descriptors.conv_norm_pool import ConvNormPool
from vqelites.descriptors.layers import (
    AbstractLayer,
    Activation,
    BatchNorm,
    Conv,
    ConvTranspose,
    Dropout,
    Linear,
    MaxPool,
    Reshape,
    Sequential,
)

Pair = tuple[Sequential, Sequential]


def gelu(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """The exact GELU, PyTorch's default."""
    return jax.nn.gelu(x, approximate=False)


def dense(
    sizes: list[int], function: Callable[[Array], Array], key: Key[Array, ""], last: bool = False
) -> list[AbstractLayer]:
    """Linear layers of the given sizes with an activation after each, after the final one only if `last`."""
    layers: list[AbstractLayer] = []
    keys = jax.random.split(key, len(sizes) - 1)
    for inputs, outputs, layer_key in zip(sizes[:-1], sizes[1:], keys, strict=True):
        layers += [Linear(inputs, outputs, key=layer_key), Activation(function)]
    return layers if last else layers[:-1]


def mobile(latent: int, dropout: float, key: Key[Array, ""]) -> Pair:
    """Images of 64x64x1 (paper, table "Mobile experiment Encoder-Decoder")."""
    k = jax.random.split(key, 7)
    encoder = [
        *(ConvNormPool(Conv(1, 64, (4, 4), key=k[0]), BatchNorm(64), gelu, MaxPool(4, 2)), Dropout(dropout)),
        *(ConvNormPool(Conv(64, 32, (4, 4), key=k[1]), BatchNorm(32), gelu, MaxPool(4, 2)), Reshape()),
        *dense([4608, 256, 128, 64, latent], gelu, k[2]),
    ]
    decoder = [
        *dense([latent, 64, 128, 256, 4608], gelu, k[3], last=True),
        *(Reshape((12, 12, 32)), ConvTranspose(32, 64, (4, 4), key=k[4])),
        *(BatchNorm(64), Activation(gelu), Dropout(dropout), ConvTranspose(64, 32, (3, 3), stride=2, key=k[5])),
        *(BatchNorm(32), Activation(gelu), Dropout(dropout)),
        # Output padding is not in the table: 63 would not be the 64 it lists.
        ConvTranspose(32, 1, (3, 3), stride=2, output_padding=(1, 1), key=k[6]),
    ]
    return Sequential(tuple(encoder)), Sequential(tuple(decoder))


def arm(latent: int, dropout: float, key: Key[Array, ""]) -> Pair:
    """Vectors of 6 joint angles (paper, table "Robotic Arm experiment Encoder-Decoder")."""
    if dropout:
        raise ValueError(f"The arm's networks have no dropout layers, got dropout={dropout}; leave it at 0.")
    encoder_key, decoder_key = jax.random.split(key)
    encoder = dense([6, 64, 64, latent], jax.nn.relu, encoder_key)
    decoder = dense([latent, 64, 64, 6], jax.nn.relu, decoder_key)
    return Sequential(tuple(encoder)), Sequential(tuple(decoder))


def minigrid(latent: int, dropout: float, key: Key[Array, ""]) -> Pair:
    """Images of 18x18x3 (paper, table "MiniGrid experiment Encoder-Decoder").

    Three input channels, and kernel 3 with stride 1 throughout the decoder: the only reading that fits its sizes.
    """
    k = jax.random.split(key, 8)
    silu = Activation(jax.nn.silu)
    encoder = [
        *(Conv(3, 16, (3, 3), key=k[0]), silu, Dropout(dropout)),
        *(Conv(16, 32, (3, 3), key=k[1]), silu, Dropout(dropout)),
        *(Conv(32, 64, (3, 3), key=k[2]), silu, Reshape()),
        *dense([9216, 256, 128, latent], jax.nn.silu, k[3]),
    ]
    decoder = [
        *dense([latent, 128, 256, 9216], jax.nn.silu, k[4], last=True),
        *(Reshape((12, 12, 64)), ConvTranspose(64, 64, (3, 3), key=k[5]), silu, Dropout(dropout)),
        *(ConvTranspose(64, 32, (3, 3), key=k[6]), Activation(gelu), Dropout(dropout)),
        ConvTranspose(32, 3, (3, 3), key=k[7]),
    ]
    return Sequential(tuple(encoder)), Sequential(tuple(decoder))


# Name -> (the behavior's shape, the networks for it).
PRESETS: dict[str, tuple[tuple[int, ...], Callable[[int, float, Array], Pair]]] = {
    "mobile": ((64, 64, 1), mobile),
    "arm": ((6,), arm),
    "minigrid": ((18, 18, 3), minigrid),
}
