"""What every learned descriptor has in common: encode, decode, and say how good a reconstruction is."""

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Key

from vqelites.descriptors.layers import AbstractLayer
from vqelites.descriptors.networks import networks
from vqelites.descriptors.views import ROUNDING, Seen, Units, View, principal_components

# Behaviors encoded at once: the first activations of 256 images of 64x64 take a quarter of a gigabyte.
_ROWS = 256
_SPREAD = 0.75  # of principal components before tanh: three quarters of the codes' box are in use from the start


class Coder(eqx.Module):
    """Encoder and decoder, and the numbers taken from the first data that surround them (no gradient reaches those)."""

    encoder: AbstractLayer
    decoder: AbstractLayer
    seen: Seen
    offset: Float[Array, "*seen"]  # added to the decoder's outputs
    axes: Float[Array, "features d"]  # from a view straight to its latent; 0 until they are known


class Coding(eqx.Module):
    """How behaviors of a shape are coded in `dim` numbers.

    The networks see views (`views.py`): every element centred and scaled by the first data (`standardise`), images
    through a `blur`. The automatic networks see blurred images in 16x16 pixels at most, and are many times as fast.
    The loss is the squared error, which averaged over standardised views is the share of variance left unexplained:
    it weighs the same whatever the size and kind of a behavior. `principal` adds the principal components of the first
    data to what the encoder says: the map starts spread out and without folds. A fold or a twist that a random start
    happens to have is never undone, since training moves every point only a little.
    """

    dim: int = eqx.field(static=True)
    view: View
    pair: tuple[AbstractLayer, AbstractLayer] | None
    networks: str = eqx.field(static=True)
    dropout: float = eqx.field(static=True)
    bounded: bool = eqx.field(static=True)
    loss: str = eqx.field(static=True)
    reduction: str = eqx.field(static=True)
    standardise: bool = eqx.field(static=True)
    principal: bool = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, ...],
        dim: int,
        *,
        networks: str | tuple[AbstractLayer, AbstractLayer] = "auto",
        dropout: float = 0.0,
        bounded: bool = True,
        loss: Literal["squared", "cross-entropy"] = "squared",
        reduction: Literal["mean", "sum"] = "mean",
        standardise: bool = True,
        principal: bool = True,
        blur: float | None = None,
        units: Units = "auto",
    ):
        self.dim = dim
        self.pair = None if isinstance(networks, str) else networks
        self.networks = networks if isinstance(networks, str) else "own"
        self.view = View(tuple(shape), dim, blur, self.networks == "auto", units)
        self.dropout, self.bounded, self.loss, self.reduction = dropout, bounded, loss, reduction
        self.standardise, self.principal = standardise, principal

    def __check_init__(self) -> None:
        shape, seen = self.view.shape, self.view.seen_shape
        if not 1 <= len(shape) <= 4 or min(shape) < 1:
            raise ValueError(
                f"A behavior must be a vector (d,), series (T, d), image (H, W, C) or video (T, H, W, C), got {shape}."
            )
        for name, allowed in _CHOICES.items():
            value = self.view.units if name == "units" else getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {value!r}.")
        if self.view.blur is not None and (self.view.blur < 0 or (self.view.blur and not self.view.image)):
            raise ValueError(
                f"blur is a share of an image's width, 0 or more, and 0 for other behaviors; got {self.view.blur} for "
                f"a behavior of shape {shape}."
            )
        size = math.prod(seen)
        if not 1 <= self.dim <= size:
            how = "" if seen == shape else f", seen as {seen} behind a blur"
            raise ValueError(
                f"The latent dim must be between 1 and the {size} numbers of a behavior {shape}{how}; got {self.dim}."
            )
        # Wrong names, shapes or networks are told now, not at the first training.
        latent, behavior = eqx.filter_eval_shape(self._try, jax.random.key(0))
        if latent.shape != (1, self.dim) or behavior.shape != (1, *seen):
            raise ValueError(
                f"The encoder must map {seen} to ({self.dim},) and the decoder back, "
                f"got {latent.shape[1:]} and {behavior.shape[1:]}."
            )

    def _try(self, key: Key[Array, ""]) -> tuple[Float[Array, "1 d"], Float[Array, "1 *shape"]]:
        coder = self.init(key)
        return coder.encoder(jnp.zeros((1, *self.view.seen_shape))), coder.decoder(jnp.zeros((1, self.dim)))

    @property
    def sigmoid(self) -> bool:
        """Whether the decoder's outputs are the logits of values in [0, 1]: cross-entropy, and the paper's images."""
        return self.loss == "cross-entropy" or (self.view.image and not self.standardise)

    def init(self, key: Key[Array, ""]) -> Coder:
        """Fresh networks (or the user's own), for data that are not known yet."""
        seen = self.view.seen_shape
        pair = self.pair or networks(self.networks, seen, self.dim, key, self.dropout)
        return Coder(*pair, self.view.nothing(), jnp.zeros(seen), jnp.zeros((math.prod(seen), self.dim)))

    def adapt(self, coder: Coder, samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]) -> Coder:
        """Compute centring, scale, blur and principal components from the samples where `mask` is True."""
        if self.standardise:
            coder = eqx.tree_at(lambda c: c.seen, coder, self.view.adapt(samples, mask))
        if self.sigmoid and self.standardise:
            pixel = jnp.clip(coder.seen.mean, 1e-5, 1 - 1e-5)
            coder = eqx.tree_at(lambda c: c.offset, coder, jnp.log(pixel / (1 - pixel)))
        if self.principal:
            rows = self.view.of(coder.seen, samples).reshape(samples.shape[0], -1)
            axes, variance = principal_components(rows, mask, self.dim)
            axes = axes * _SPREAD / jnp.sqrt(jnp.where(variance > 0, variance, 1))[None]
            coder = eqx.tree_at(lambda c: c.axes, coder, axes)
        return coder

    def encode(self, coder: Coder, behavior: Float[Array, "n *shape"]) -> Float[Array, "n d"]:
        """Latents in evaluation mode, at full precision: a row's latent does not depend on its batch."""
        return self.look(coder, [behavior])[0][0]

    def look(
        self, coder: Coder, groups: Sequence[Float[Array, "n *shape"]]
    ) -> tuple[list[Float[Array, "n d"]], Float[Array, "m p"]]:
        """Latents of behaviors, group by group, and the views of all, flat."""

        def latent(view: Float[Array, "*seen"]) -> Float[Array, "d"]:
            return self._bound(coder.encoder(view[None]) + _projected(coder, view[None]))[0]

        with jax.default_matmul_precision("float32"):
            views = jnp.concatenate([self.view.of(coder.seen, behavior) for behavior in groups])
            latents = jax.lax.map(latent, views, batch_size=_ROWS)
        ends = itertools.accumulate(len(behavior) for behavior in groups)
        parts = [latents[end - len(behavior) : end] for end, behavior in zip(ends, groups, strict=True)]
        return parts, views.reshape(len(views), -1)

    def decode(self, coder: Coder, latent: Float[Array, "n d"]) -> Float[Array, "n *shape"]:
        """The behaviors that latents stand for."""
        raw = coder.decoder(latent) + coder.offset[None]
        seen = jax.nn.sigmoid(raw) if self.sigmoid else self.view.back(coder.seen, raw)
        return jax.image.resize(seen, (latent.shape[0], *self.view.shape), "linear")

    def encode_batch(
        self, coder: Coder, view: Float[Array, "b *seen"], key: Key[Array, ""] | None
    ) -> tuple[Float[Array, "b d"], Coder]:
        """Latents of views in training mode (evaluation mode without a key), and the coder with new statistics."""
        latent, encoder = _apply(coder.encoder, view, key)
        return self._bound(latent + _projected(coder, view)), eqx.tree_at(lambda c: c.encoder, coder, encoder)

    def reconstruct_batch(
        self, coder: Coder, latent: Float[Array, "b d"], view: Float[Array, "b *seen"], key: Key[Array, ""] | None
    ) -> tuple[Float[Array, "b"], Coder]:
        """How badly each view is reconstructed from its latent, and the coder with new statistics."""
        raw, decoder = _apply(coder.decoder, latent, key)
        raw = raw + jax.lax.stop_gradient(coder.offset)[None]
        if self.sigmoid:
            # A blur that keeps all light brightens the edges beyond 1, where the loss would have no minimum.
            target = jnp.clip(jax.lax.stop_gradient(self.view.back(coder.seen, view)), 0, 1)
            cross = self.loss == "cross-entropy"
            cross_entropy = optax.sigmoid_binary_cross_entropy(raw, target)
            errors = cross_entropy if cross else jnp.square(jax.nn.sigmoid(raw) - target)
        else:
            errors = jnp.square(raw - view)
        return self.reduce(errors), eqx.tree_at(lambda c: c.decoder, coder, decoder)

    def reduce(self, errors: Float[Array, "b *s"]) -> Float[Array, "b"]:
        """Mean or sum over the elements of each row."""
        errors = errors.reshape(errors.shape[0], -1)
        return errors.sum(1) if self.reduction == "sum" else errors.mean(1)

    def unexplained(
        self,
        first: Bool[Array, ""],
        reconstruction: Float[Array, ""],
        view: Float[Array, "n *seen"],
        weight: Float[Array, "n"],
    ) -> Float[Array, ""]:
        """The mean reconstruction of the first training as a share of the views' variance, each counted by its weight.

        NaN where nothing varies, or the loss is not a squared error. Later trainings are short, and may take several to
        follow what is new: a large share then says little.
        """
        if self.loss != "squared":
            return jnp.full((), jnp.nan)
        rows = view.reshape(view.shape[0], -1)
        share = weight / jnp.maximum(weight.sum(), 1e-12)
        mean = (share[:, None] * rows).sum(axis=0)
        variance, size = ((share * self.reduce(jnp.square(x))).sum() for x in (rows - mean[None], rows))
        known = first & (variance > ROUNDING**2 * size)
        return jnp.where(known, reconstruction / jnp.where(known, variance, 1), jnp.nan)

    def _bound(self, latent: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return jnp.tanh(latent) if self.bounded else latent


_CHOICES = {
    "loss": ("squared", "cross-entropy"),
    "reduction": ("mean", "sum"),
    "units": ("auto", "same", "mixed"),
}


def _projected(coder: Coder, view: Float[Array, "n *seen"]) -> Float[Array, "n d"]:
    return view.reshape(view.shape[0], -1) @ jax.lax.stop_gradient(coder.axes)


def _apply(
    network: AbstractLayer, x: Float[Array, "b *a"], key: Key[Array, ""] | None
) -> tuple[Float[Array, "b *c"], AbstractLayer]:
    return (network(x), network) if key is None else network.train(x, key)
