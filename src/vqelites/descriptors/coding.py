"""What every learned descriptor has in common: encode, decode, and say how good a reconstruction is."""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Key

from vqelites.descriptors.layers import AbstractLayer, per_channel
from vqelites.descriptors.networks import networks

# Behaviors encoded at once: the first activations of 256 images of 64x64 take a quarter of a gigabyte.
_ROWS = 256


class Coder(eqx.Module):
    """Encoder and decoder, and the numbers taken from the data that surround them (no gradient reaches those)."""

    encoder: AbstractLayer
    decoder: AbstractLayer
    mean: Float[Array, "c"]
    scale: Float[Array, "c"]
    offset: Float[Array, "c"]


class Coding(eqx.Module):
    """How behaviors of a shape are coded in `dim` numbers.

    Images and videos (values in [0, 1]) get cross-entropy on sigmoid outputs; vectors and time series get squared
    error, after centring each channel and scaling all alike. `offset` starts the decoder at the data's mean, so that
    it need not spend its first hundred steps on learning "mostly black" (spread and codes collapse without it).
    """

    shape: tuple[int, ...] = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    pair: tuple[AbstractLayer, AbstractLayer] | None
    networks: str = eqx.field(static=True)
    dropout: float = eqx.field(static=True)
    bounded: bool = eqx.field(static=True)
    loss: str = eqx.field(static=True)
    reduction: str = eqx.field(static=True)
    output: str = eqx.field(static=True)
    standardise: bool = eqx.field(static=True)
    offset: bool = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, ...],
        dim: int,
        *,
        networks: str | tuple[AbstractLayer, AbstractLayer] = "auto",
        dropout: float = 0.0,
        bounded: bool = True,
        loss: Literal["squared", "cross-entropy"] | None = None,
        reduction: Literal["sum", "mean"] = "sum",
        output: Literal["identity", "sigmoid"] | None = None,
        standardise: bool | None = None,
        offset: bool = True,
    ):
        image = len(shape) > 2
        self.shape, self.dim = tuple(shape), dim
        self.pair = None if isinstance(networks, str) else networks
        self.networks = networks if isinstance(networks, str) else "own"
        self.dropout, self.bounded, self.reduction, self.offset = dropout, bounded, reduction, offset
        self.output = output or ("sigmoid" if image or loss == "cross-entropy" else "identity")
        self.loss = loss or ("cross-entropy" if image and self.output == "sigmoid" else "squared")
        self.standardise = self.output == "identity" and not image if standardise is None else standardise

    def __check_init__(self) -> None:
        size = math.prod(self.shape)
        if not 1 <= self.dim <= size:
            raise ValueError(
                f"The latent dim must be between 1 and the {size} numbers of a behavior {self.shape}, got {self.dim}."
            )
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}.")
        if self.loss == "cross-entropy" and self.output == "identity":
            raise ValueError("Cross-entropy needs outputs in [0, 1]: use output='sigmoid', or loss='squared'.")
        if self.standardise and self.output == "sigmoid":
            raise ValueError("Standardised behaviors leave [0, 1]: use output='identity', or standardise=False.")
        # Wrong names, shapes or networks are told now, not at the first training.
        latent, behavior = eqx.filter_eval_shape(self._try, jax.random.key(0))
        if latent.shape != (1, self.dim) or behavior.shape != (1, *self.shape):
            raise ValueError(
                f"The encoder must map {self.shape} to ({self.dim},) and the decoder back, "
                f"got {latent.shape[1:]} and {behavior.shape[1:]}."
            )

    def _try(self, key: Key[Array, ""]) -> tuple[Float[Array, "1 d"], Float[Array, "1 *shape"]]:
        coder = self.init(key)
        return coder.encoder(jnp.zeros((1, *self.shape))), coder.decoder(jnp.zeros((1, self.dim)))

    def init(self, key: Key[Array, ""]) -> Coder:
        """Fresh networks (or the user's own), for data that are not known yet."""
        pair = self.pair or networks(self.networks, self.shape, self.dim, key, self.dropout)
        channels = self.shape[-1]
        return Coder(*pair, jnp.zeros(channels), jnp.ones(channels), jnp.zeros(channels))

    def adapt(self, coder: Coder, samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]) -> Coder:
        """Take mean, scale and output offset of each channel from the samples where `mask` is True."""
        mean, spread = moments(samples, mask)
        if self.standardise:
            # One scale for all channels: what varies most in the data shall matter most. With a scale for each, the
            # elbow of an arm that hardly moves counts as much as its hand (planar arm: coverage 0.885, not 0.918).
            scale = jnp.full_like(spread, jnp.sqrt(jnp.square(spread).mean()))
            return eqx.tree_at(lambda c: (c.mean, c.scale), coder, (mean, scale))
        if not self.offset:
            return coder
        pixel = jnp.clip(mean, 1e-5, 1 - 1e-5)
        offset = jnp.log(pixel / (1 - pixel)) if self.output == "sigmoid" else mean
        return eqx.tree_at(lambda c: c.offset, coder, offset)

    def encode(self, coder: Coder, behavior: Float[Array, "n *shape"]) -> Float[Array, "n d"]:
        """Latents in evaluation mode, at full precision: a row's latent does not depend on its batch."""

        def one(row: Float[Array, "*shape"]) -> Float[Array, "d"]:
            return self._bound(coder.encoder(_standardised(coder, row)[None])[0])

        with jax.default_matmul_precision("float32"):
            return jax.lax.map(one, behavior, batch_size=_ROWS)

    def decode(self, coder: Coder, latent: Float[Array, "n d"]) -> Float[Array, "n *shape"]:
        """The behaviors that latents stand for."""
        raw = coder.decoder(latent)
        raw = raw + per_channel(coder.offset, raw)
        if self.output == "sigmoid":
            return jax.nn.sigmoid(raw)
        return raw * per_channel(coder.scale, raw) + per_channel(coder.mean, raw)

    def encode_batch(
        self, coder: Coder, batch: Float[Array, "b *shape"], key: Key[Array, ""] | None
    ) -> tuple[Float[Array, "b d"], Coder]:
        """Latents in training mode (evaluation mode without a key), and the coder with new statistics."""
        latent, encoder = _apply(coder.encoder, _standardised(coder, batch), key)
        return self._bound(latent), eqx.tree_at(lambda c: c.encoder, coder, encoder)

    def reconstruct_batch(
        self, coder: Coder, latent: Float[Array, "b d"], batch: Float[Array, "b *shape"], key: Key[Array, ""] | None
    ) -> tuple[Float[Array, "b"], Coder]:
        """How badly each behavior is reconstructed from its latent, and the coder with new statistics."""
        raw, decoder = _apply(coder.decoder, latent, key)
        raw = raw + per_channel(jax.lax.stop_gradient(coder.offset), raw)
        if self.loss == "cross-entropy":
            errors = optax.sigmoid_binary_cross_entropy(raw, batch)
        else:
            output = jax.nn.sigmoid(raw) if self.output == "sigmoid" else raw
            errors = jnp.square(output - _standardised(coder, batch))
        return self.reduce(errors), eqx.tree_at(lambda c: c.decoder, coder, decoder)

    def reduce(self, errors: Float[Array, "b *s"]) -> Float[Array, "b"]:
        """Sum or mean over the elements of each row."""
        errors = errors.reshape(errors.shape[0], -1)
        return errors.sum(1) if self.reduction == "sum" else errors.mean(1)

    def _bound(self, latent: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return jnp.tanh(latent) if self.bounded else latent


_CHOICES = {
    "loss": ("squared", "cross-entropy"),
    "reduction": ("sum", "mean"),
    "output": ("identity", "sigmoid"),
}


def moments(samples: Float[Array, "n *s c"], mask: Bool[Array, "n"]) -> tuple[Float[Array, "c"], Float[Array, "c"]]:
    """Mean and standard deviation of each channel where `mask` is True; the scale of a constant channel is 1."""
    axes = tuple(range(samples.ndim - 1))
    rows = mask.reshape(-1, *[1] * (samples.ndim - 1))
    count = jnp.maximum(mask.sum(), 1) * math.prod(samples.shape[1:-1])
    mean = jnp.where(rows, samples, 0).sum(axes) / count
    spread = jnp.sqrt(jnp.where(rows, jnp.square(samples - per_channel(mean, samples)), 0).sum(axes) / count)
    return mean, jnp.where(spread > 1e-6, spread, 1.0)


def _standardised(coder: Coder, behavior: Float[Array, "*n c"]) -> Float[Array, "*n c"]:
    mean, scale = jax.lax.stop_gradient((coder.mean, coder.scale))
    return (behavior - per_channel(mean, behavior)) / per_channel(scale, behavior)


def _apply(
    network: AbstractLayer, x: Float[Array, "b *a"], key: Key[Array, ""] | None
) -> tuple[Float[Array, "b *c"], AbstractLayer]:
    return (network(x), network) if key is None else network.train(x, key)
