"""Encoders and decoders for behaviors of any shape."""

import math

import jax
from jaxtyping import Array, Key

from vqelites.descriptors.layers import (
    AbstractLayer,
    Activation,
    Conv,
    ConvTranspose,
    Folded,
    Reshape,
    Sequential,
)
from vqelites.descriptors.presets import PRESETS, Pair, dense

_FRAME_FEATURES = 64


def networks(name: str, shape: tuple[int, ...], latent: int, key: Key[Array, ""], dropout: float = 0.0) -> Pair:
    """Encoder and decoder by name: "auto" chooses them from the behavior's shape, the others are the paper's."""
    if name == "auto":
        if dropout:
            raise ValueError(f"The automatic networks have no dropout layers, got dropout={dropout}; leave it at 0.")
        return default_networks(shape, latent, key)
    if name not in PRESETS:
        raise ValueError(f"networks must be one of {['auto', *PRESETS]}, got {name!r}.")
    expected, build = PRESETS[name]
    if shape != expected:
        raise ValueError(
            f"The {name!r} networks expect behaviors of shape {expected}, got {shape}; networks='auto' takes any shape."
        )
    return build(latent, dropout, key)


def default_networks(shape: tuple[int, ...], latent: int, key: Key[Array, ""]) -> Pair:
    """Encoder and decoder for vectors, time series (T, d), images (H, W, C) or videos (T, H, W, C)."""
    if len(shape) == 1:
        return _vector(shape[0], latent, key)
    return _grid(shape, latent, key) if len(shape) < 4 else _video(shape, latent, key)


def _vector(size: int, latent: int, key: Key[Array, ""]) -> Pair:
    """Fully connected networks."""
    hidden = 64 if size <= 64 else 256
    encoder_key, decoder_key = jax.random.split(key)
    encoder = dense([size, hidden, hidden, latent], jax.nn.relu, encoder_key)
    decoder = dense([latent, hidden, hidden, size], jax.nn.relu, decoder_key)
    return Sequential(tuple(encoder)), Sequential(tuple(decoder))


def _grid(shape: tuple[int, ...], latent: int, key: Key[Array, ""]) -> Pair:
    """Convolutions that halve every axis until it is short, then a fully connected latent; mirrored back."""
    space, channels = shape[:-1], shape[-1]
    conv_key, encoder_key, decoder_key = jax.random.split(key, 3)
    silu = Activation(jax.nn.silu)
    down: list[AbstractLayer] = []
    up: list[AbstractLayer] = []
    width = 16
    while not down or max(space) > 8:
        halved = tuple(-(-n // 2) for n in space)
        down_key, up_key, conv_key = jax.random.split(conv_key, 3)
        kernel = [3] * len(space)
        # A transposed convolution gives 2n - 1; an even axis needs one more.
        extra = [n - (2 * h - 1) for n, h in zip(space, halved, strict=True)]
        down += [Conv(channels, width, kernel, stride=2, padding=1, key=down_key), silu]
        back = ConvTranspose(width, channels, kernel, stride=2, padding=1, output_padding=extra, key=up_key)
        up = [silu, back, *up]
        space, channels, width = halved, width, min(2 * width, 64)
    features = math.prod(space) * channels
    encoder = [*down, Reshape(), *dense([features, 128, latent], jax.nn.silu, encoder_key)]
    decoder = [*dense([latent, 128, features], jax.nn.silu, decoder_key), Reshape((*space, channels)), *up]
    return Sequential(tuple(encoder)), Sequential(tuple(decoder))


def _video(shape: tuple[int, ...], latent: int, key: Key[Array, ""]) -> Pair:
    """Image networks on every frame, then series networks over time."""
    frame_key, time_key = jax.random.split(key)
    frame_encoder, frame_decoder = _grid(shape[1:], _FRAME_FEATURES, frame_key)
    time_encoder, time_decoder = _grid((shape[0], _FRAME_FEATURES), latent, time_key)
    silu = Activation(jax.nn.silu)
    encoder = Sequential((Folded(frame_encoder), silu, time_encoder))
    return encoder, Sequential((time_decoder, silu, Folded(frame_decoder)))
