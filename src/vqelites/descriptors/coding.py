"""What every learned descriptor has in common: encode, decode, and say how good a reconstruction is."""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from vqelites.descriptors.layers import AbstractLayer, per_channel
from vqelites.descriptors.networks import networks

# Behaviors encoded at once: the first activations of 256 images of 64x64 take a quarter of a gigabyte.
_ROWS = 256
_PIXELS = 4  # per standard deviation of the blur: from so many, those in between can be interpolated
_SPREAD = 0.75  # of principal components before tanh: three quarters of the codes' box are in use from the start


class Coder(eqx.Module):
    """Encoder and decoder, and the numbers taken from the data that surround them (no gradient reaches those)."""

    encoder: AbstractLayer
    decoder: AbstractLayer
    mean: Float[Array, "c"]
    scale: Float[Array, "c"]
    offset: Float[Array, "c"]
    axes: Float[Array, "features d"]  # from the numbers of a behavior straight to its latent; 0 until they are known
    origin: Float[Array, "d"]


class Coding(eqx.Module):
    """How behaviors of a shape are coded in `dim` numbers.

    Images and videos are blurred first, by a Gaussian whose width is a share `blur` of theirs: sharp pixels tell that
    two things are at different places but not how far apart, and the map learned from them is torn. The automatic
    networks see no more pixels than a blurred image needs, 16x16 as a rule, and are many times as fast. Sharp images
    (blur=0, values in [0, 1]) get cross-entropy on sigmoid outputs, everything else squared error. `standardise`
    centres each channel and scales all alike before the encoder: a few bright pixels on black are otherwise so faint
    an input that all latents start, and stay, in one code. `offset` starts the decoder at the data's mean, so that it
    need not spend its first hundred steps on learning "mostly black". `principal` adds the principal components of the
    first data to what the encoder says: the map starts spread out and without folds. A fold or a twist that a random
    start happens to have is never undone, since training moves every point but little.
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
    principal: bool = eqx.field(static=True)
    blur: float = eqx.field(static=True)

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
        standardise: bool = True,
        offset: bool = True,
        principal: bool = True,
        blur: float | None = None,
    ):
        image = len(shape) > 2
        self.shape, self.dim = tuple(shape), dim
        self.pair = None if isinstance(networks, str) else networks
        self.networks = networks if isinstance(networks, str) else "own"
        self.dropout, self.bounded, self.reduction, self.offset = dropout, bounded, reduction, offset
        self.blur = (0.25 if image else 0.0) if blur is None else blur
        sharp = image and not self.blur
        self.output = output or ("sigmoid" if sharp or loss == "cross-entropy" else "identity")
        self.loss = loss or ("cross-entropy" if sharp and self.output == "sigmoid" else "squared")
        self.standardise, self.principal = standardise, principal

    def __check_init__(self) -> None:
        if not 1 <= len(self.shape) <= 4 or min(self.shape) < 1:
            raise ValueError(
                "A behavior must be a vector (d,), series (T, d), image (H, W, C) or video (T, H, W, C), "
                f"got {self.shape}."
            )
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}.")
        if self.loss == "cross-entropy" and self.output == "identity":
            raise ValueError("Cross-entropy needs outputs in [0, 1]: use output='sigmoid', or loss='squared'.")
        if self.blur < 0 or (self.blur and len(self.shape) < 3):
            raise ValueError(
                f"blur is a share of an image's width, 0 or more, and 0 for other behaviors; got {self.blur} for a "
                f"behavior of shape {self.shape}."
            )
        size = math.prod(self.seen_shape)
        if not 1 <= self.dim <= size:
            seen = "" if self.seen_shape == self.shape else f", seen as {self.seen_shape} behind a blur of {self.blur}"
            raise ValueError(
                f"The latent dim must be between 1 and the {size} numbers of a behavior {self.shape}{seen}; "
                f"got {self.dim}."
            )
        # Wrong names, shapes or networks are told now, not at the first training.
        latent, behavior = eqx.filter_eval_shape(self._try, jax.random.key(0))
        if latent.shape != (1, self.dim) or behavior.shape != (1, *self.seen_shape):
            raise ValueError(
                f"The encoder must map {self.seen_shape} to ({self.dim},) and the decoder back, "
                f"got {latent.shape[1:]} and {behavior.shape[1:]}."
            )

    def _try(self, key: Key[Array, ""]) -> tuple[Float[Array, "1 d"], Float[Array, "1 *shape"]]:
        coder = self.init(key)
        return coder.encoder(jnp.zeros((1, *self.seen_shape))), coder.decoder(jnp.zeros((1, self.dim)))

    @property
    def seen_shape(self) -> tuple[int, ...]:
        """The shape of behaviors as the networks see them."""
        if not self.blur or self.networks != "auto":
            return self.shape
        needed = math.ceil(_PIXELS / self.blur)
        *frames, height, width, channels = self.shape
        return (*frames, min(height, needed), min(width, needed), channels)

    def init(self, key: Key[Array, ""]) -> Coder:
        """Fresh networks (or the user's own), for data that are not known yet."""
        pair = self.pair or networks(self.networks, self.seen_shape, self.dim, key, self.dropout)
        channels = self.shape[-1]
        data = jnp.zeros(channels), jnp.ones(channels), jnp.zeros(channels)
        return Coder(*pair, *data, jnp.zeros((math.prod(self.seen_shape), self.dim)), jnp.zeros(self.dim))

    def adapt(self, coder: Coder, samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]) -> Coder:
        """Take mean, scale and output offset of each channel from the samples where `mask` is True."""
        mean, spread = moments(self._seen(samples), mask)
        if self.standardise:
            # One scale for all channels: what varies most in the data shall matter most. With a scale for each, the
            # elbow of an arm that hardly moves counts as much as its hand (planar arm: coverage 0.885, not 0.918).
            scale = jnp.full_like(spread, jnp.sqrt(jnp.square(spread).mean()))
            coder = eqx.tree_at(lambda c: (c.mean, c.scale), coder, (mean, scale))
        if self.offset and self.output == "sigmoid":
            pixel = jnp.clip(mean, 1e-5, 1 - 1e-5)
            coder = eqx.tree_at(lambda c: c.offset, coder, jnp.log(pixel / (1 - pixel)))
        elif self.offset and not self.standardise:
            coder = eqx.tree_at(lambda c: c.offset, coder, mean)
        return self._orient(coder, samples, mask) if self.principal else coder

    def _orient(self, coder: Coder, samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]) -> Coder:
        """Take the principal axes of the samples, the first time; networks trained beside them rely on them."""
        rows = _standardised(coder, self._seen(samples)).reshape(samples.shape[0], -1)
        first = mask.any() & (coder.axes == 0).all()
        axes, origin = principal_axes(rows, mask, self.dim, jnp.where(first, 20, 0))
        axes, origin = jnp.where(first, axes, coder.axes), jnp.where(first, origin, coder.origin)
        return eqx.tree_at(lambda c: (c.axes, c.origin), coder, (axes, origin))

    def encode(self, coder: Coder, behavior: Float[Array, "n *shape"]) -> Float[Array, "n d"]:
        """Latents in evaluation mode, at full precision: a row's latent does not depend on its batch."""

        def one(row: Float[Array, "*shape"]) -> Float[Array, "d"]:
            seen = _standardised(coder, self._seen(row[None]))
            return self._bound(coder.encoder(seen) + _projected(coder, seen))[0]

        with jax.default_matmul_precision("float32"):
            return jax.lax.map(one, behavior, batch_size=_ROWS)

    def decode(self, coder: Coder, latent: Float[Array, "n d"]) -> Float[Array, "n *shape"]:
        """The behaviors that latents stand for."""
        raw = coder.decoder(latent)
        raw = raw + per_channel(coder.offset, raw)
        if self.output == "sigmoid":
            behavior = jax.nn.sigmoid(raw)
        else:
            behavior = raw * per_channel(coder.scale, raw) + per_channel(coder.mean, raw)
        return jax.image.resize(behavior, (latent.shape[0], *self.shape), "linear")

    def encode_batch(
        self, coder: Coder, batch: Float[Array, "b *shape"], key: Key[Array, ""] | None
    ) -> tuple[Float[Array, "b d"], Coder]:
        """Latents in training mode (evaluation mode without a key), and the coder with new statistics."""
        seen = _standardised(coder, self._seen(batch))
        latent, encoder = _apply(coder.encoder, seen, key)
        return self._bound(latent + _projected(coder, seen)), eqx.tree_at(lambda c: c.encoder, coder, encoder)

    def reconstruct_batch(
        self, coder: Coder, latent: Float[Array, "b d"], batch: Float[Array, "b *shape"], key: Key[Array, ""] | None
    ) -> tuple[Float[Array, "b"], Coder]:
        """How badly each behavior is reconstructed from its latent, and the coder with new statistics."""
        raw, decoder = _apply(coder.decoder, latent, key)
        batch = self._seen(batch)
        raw = raw + per_channel(jax.lax.stop_gradient(coder.offset), raw)
        if self.loss == "cross-entropy":
            # A blur that keeps all light brightens the edges beyond 1, where the loss would have no minimum.
            errors = optax.sigmoid_binary_cross_entropy(raw, jnp.clip(batch, 0, 1))
        elif self.output == "sigmoid":
            errors = jnp.square(jax.nn.sigmoid(raw) - batch)
        else:
            errors = jnp.square(raw - _standardised(coder, batch))
        # Where fewer pixels are seen, each stands for several of the image.
        several = math.prod(self.shape) / math.prod(self.seen_shape)
        loss = self.reduce(errors) * (several if self.reduction == "sum" else 1)
        return loss, eqx.tree_at(lambda c: c.decoder, coder, decoder)

    def reduce(self, errors: Float[Array, "b *s"]) -> Float[Array, "b"]:
        """Sum or mean over the elements of each row."""
        errors = errors.reshape(errors.shape[0], -1)
        return errors.sum(1) if self.reduction == "sum" else errors.mean(1)

    def _seen(self, behavior: Float[Array, "n *shape"]) -> Float[Array, "n *seen"]:
        """Images as the model sees them: blurred, in `seen_shape` pixels."""
        if not self.blur:
            return behavior
        sizes = zip(self.shape[-3:-1], self.seen_shape[-3:-1], strict=True)
        rows, columns = (_blurring(size, seen, self.blur * size) for size, seen in sizes)
        return jnp.einsum("ai,...ijc,bj->...abc", rows, behavior, columns)

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


def principal_axes(
    rows: Float[Array, "n p"], mask: Bool[Array, "n"], dim: int, iterations: int | Int[Array, ""] = 20
) -> tuple[Float[Array, "p {dim}"], Float[Array, "{dim}"]]:
    """Axes and origin such that `rows @ axes - origin` are the leading principal components, each of spread _SPREAD.

    By subspace iteration: each round passes twice over the rows, whatever their number and length. A component without
    any variance is 0.
    """
    count = jnp.maximum(mask.sum(), 1)
    mean = jnp.where(mask[:, None], rows, 0).sum(axis=0, keepdims=True) / count
    centred = jnp.where(mask[:, None], rows - mean, 0)
    # A few more directions than needed make the iteration converge faster.
    width = min(dim + 8, rows.shape[1])
    start = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (rows.shape[1], width)))[0]

    def refine(_: Int[Array, ""], basis: Float[Array, "p w"]) -> Float[Array, "p w"]:
        return jnp.linalg.qr(centred.T @ (centred @ basis))[0]

    with jax.default_matmul_precision("float32"):
        basis = jax.lax.fori_loop(0, iterations, refine, start)
        scores = centred @ basis
        variance, turn = jnp.linalg.eigh(scores.T @ scores / count)
        variance, turn = variance[::-1][:dim], turn[:, ::-1][:, :dim]
        varies = variance > 1e-6 * variance[0]  # less is rounding, and scaled up it would drown the rest
        axes = basis @ turn * jnp.where(varies, _SPREAD / jnp.sqrt(jnp.where(varies, variance, 1)), 0)[None]
        return axes, (mean @ axes)[0]


def _blurring(size: int, seen: int, width: float) -> Float[Array, "{seen} {size}"]:
    """The matrix that blurs one axis of `size` pixels by a Gaussian and samples it at `seen` places, evenly spread.

    The mean brightness stays what it is, and all light of a pixel stays within the image. If it were lost beyond the
    edge, a thing at the edge would look fainter instead of farther out, and the map would be folded there.
    """
    centres = (jnp.arange(seen) + 0.5) * (size / seen) - 0.5
    weight = jnp.exp(-jnp.square((centres[:, None] - jnp.arange(size)[None, :]) / width) / 2)
    return weight / weight.sum(axis=0, keepdims=True) * (seen / size)


def _standardised(coder: Coder, behavior: Float[Array, "*n c"]) -> Float[Array, "*n c"]:
    mean, scale = jax.lax.stop_gradient((coder.mean, coder.scale))
    return (behavior - per_channel(mean, behavior)) / per_channel(scale, behavior)


def _projected(coder: Coder, behavior: Float[Array, "n *shape"]) -> Float[Array, "n d"]:
    axes, origin = jax.lax.stop_gradient((coder.axes, coder.origin))
    return behavior.reshape(behavior.shape[0], -1) @ axes - origin[None]


def _apply(
    network: AbstractLayer, x: Float[Array, "b *a"], key: Key[Array, ""] | None
) -> tuple[Float[Array, "b *c"], AbstractLayer]:
    return (network(x), network) if key is None else network.train(x, key)
