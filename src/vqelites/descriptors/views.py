"""How behaviors are seen before they are coded: centred, in a common unit; images in one light and blurred."""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.descriptors.grain import Grain, grain, no_grain
from vqelites.descriptors.lighting import Lighting, lighting, still_light
from vqelites.descriptors.training import Known
from vqelites.keys import plain_key
from vqelites.rows import mapped
from vqelites.types import in_floats

Units = Literal["auto", "same", "mixed"]
# Weights of rows of pixels, (few, rows), and of the numbers in a line of them, (numbers, fewer); None without a blur.
Blurring = tuple[Float[Array, "a i"], Float[Array, "x y"]] | None

_PIXELS = 16  # along an axis, or nearly so: enough for the automatic networks
_WIDTHS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)  # of the blur, as a share of the image's
_EXPLAINED = 0.6  # share of the variance that the latent numbers should explain linearly through the blur
_APART = 100.0  # spreads of a vector's features that differ by more than this factor are in different units
ROUNDING = 1e-6  # a spread smaller than this share of the values themselves is rounding


class Seen(Known):
    """What makes views of behaviors: taken from the first data, then fixed."""

    blur: Float[Array, ""]  # width of the blur, as a share of the image's
    mean: Float[Array, "*seen"]  # of every element
    scale: Float[Array, "c"]  # of every feature or channel
    mixed: Bool[Array, ""]  # whether features are in different units
    light: Lighting  # of images
    grain: Grain  # of images


class View(eqx.Module):
    """Views of behaviors of one shape, in which every element is centred and the mean variance is 1.

    Sharp pixels tell that two things are at different places but not how far apart; through a blur the distance
    between views grows with the distance between places. Images are seen through the least blur that lets `dim`
    principal components explain 60 % of the variance of the first data, unless `blur` says which.
    """

    shape: tuple[int, ...] = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    blur: float | None = eqx.field(static=True)
    coarse: bool = eqx.field(static=True)  # whether images are seen in about 16x16 pixels
    units: Units = eqx.field(static=True)

    @property
    def image(self) -> bool:
        """Whether behaviors are images or videos."""
        return len(self.shape) > 2

    @property
    def seen_shape(self) -> tuple[int, ...]:
        """The shape of a view."""
        if not self.image or self.blur == 0 or not self.coarse:
            return self.shape
        *frames, height, width, channels = self.shape
        return (*frames, _fewer(height), _fewer(width), channels)

    def nothing(self) -> Seen:
        """No data are known yet."""
        return Seen(
            blur=jnp.float32(self.blur or 0.0),
            mean=jnp.zeros(self.seen_shape),
            scale=jnp.ones(self.shape[-1]),
            mixed=jnp.array(False),
            light=still_light(self.shape),
            grain=no_grain(self.shape if self.image else (0,)),
        )

    def adapt(self, samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]) -> Seen:
        """Light, grain, blur, mean and scale for the samples where `mask` is True."""
        samples = in_floats(samples)
        light, noise = still_light(self.shape), no_grain((0,))
        if self.image:
            light = lighting(samples, mask)
            samples = light.removed(samples)
            noise = grain(samples, mask)
            samples = noise.removed(samples)
        blur = self._least_blur(samples, mask) if self.image and self.blur is None else jnp.float32(self.blur or 0.0)
        mean, variance, rounding = _moments(self._blurred(blur, samples), mask)
        return Seen(blur, mean, *self._scale(variance, rounding), light, noise)

    def of(self, seen: Seen, behavior: Float[Array, "n *shape"]) -> Float[Array, "n *seen"]:
        """What behaviors look like."""
        seen = jax.lax.stop_gradient(seen)
        if not self.image:
            return self._standardised(seen, in_floats(behavior))
        known = seen, self._blurring(seen.blur), seen.light.changes | seen.grain.there
        return mapped(self._view, 2 * math.prod(self.shape))(behavior, known)

    def _view(
        self, behavior: Float[Array, "n *shape"], known: tuple[Seen, Blurring, Bool[Array, ""]]
    ) -> Float[Array, "n *seen"]:
        """Views of images, a few at a time."""
        seen, blurring, uneven = known
        # Most images have neither light nor grain: they are then passed over only once.
        view = jax.lax.cond(
            uneven,
            lambda images: self._through(blurring, seen.grain.removed(seen.light.removed(images))),
            lambda images: self._through(blurring, images),
            in_floats(behavior),
        )
        return self._standardised(seen, view)

    def _standardised(self, seen: Seen, view: Float[Array, "n *seen"]) -> Float[Array, "n *seen"]:
        return (view - seen.mean[None]) / self._spread_out(seen.scale)

    def back(self, seen: Seen, view: Float[Array, "n *seen"]) -> Float[Array, "n *seen"]:
        """Views in the unit of the behaviors, still blurred."""
        return view * self._spread_out(seen.scale) + seen.mean[None]

    def _spread_out(self, scale: Float[Array, "c"]) -> Float[Array, "*ones c"]:
        return scale.reshape(*[1] * len(self.shape), -1)

    def _least_blur(self, samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]) -> Float[Array, ""]:
        """The first of some widths through which `dim` principal components explain enough, or else the last."""
        widths = jnp.asarray(_WIDTHS)
        few = View(self.shape, self.dim, self.blur, True, self.units)

        def explained(width: Float[Array, ""]) -> Float[Array, ""]:
            seen = few._blurred(width, samples)
            mean, variance, _ = _moments(seen, mask)
            rows = jnp.where(mask[:, None], (seen - mean[None]).reshape(samples.shape[0], -1), 0)
            _, variances = principal_components(rows, mask, self.dim)
            return variances.sum() / jnp.maximum(variance.sum(), 1e-12)

        enough = jax.lax.map(explained, widths) >= _EXPLAINED
        return jnp.where(enough.any(), widths[jnp.argmax(enough)], widths[-1])

    def _blurred(self, blur: Float[Array, ""], behavior: Float[Array, "n *shape"]) -> Float[Array, "n *seen"]:
        """Behaviors behind the blur, in `seen_shape` pixels, in their own unit."""
        return self._through(self._blurring(blur), behavior)

    def _blurring(self, blur: Float[Array, ""]) -> Blurring:
        """What a blur makes of all pixels."""
        if not self.image or self.blur == 0:
            return None
        sizes = zip(self.shape[-3:-1], self.seen_shape[-3:-1], strict=True)
        rows, columns = (_blurring(size, few, blur) for size, few in sizes)
        return rows, jnp.kron(columns.T, jnp.eye(self.shape[-1]))

    def _through(self, blurring: Blurring, behavior: Float[Array, "n *shape"]) -> Float[Array, "n *seen"]:
        """Behaviors behind the blur."""
        if blurring is None:
            return behavior
        rows, along = blurring
        # Along each line of pixels first: images need not be transposed for that.
        lines = behavior.reshape(-1, along.shape[0]) @ along
        view = jnp.einsum("ai,nix->nax", rows, lines.reshape(-1, rows.shape[1], lines.shape[1]))
        return view.reshape(-1, *self.seen_shape)

    def _scale(
        self, variance: Float[Array, "*seen"], rounding: Float[Array, "*seen"]
    ) -> tuple[Float[Array, "c"], Bool[Array, ""]]:
        """One scale for all features in one unit; in different units one for each.

        The channels of a series are different sensors, and count equally: what they show of a behavior is how they
        change together, and the one with the largest numbers would hide all others.
        """
        common = jnp.sqrt(variance.mean())
        common = jnp.full(self.shape[-1], jnp.where(common > 0, common, 1.0))
        spread = jnp.sqrt(variance.reshape(-1, self.shape[-1]).mean(axis=0))
        varies = spread > 0
        smallest, largest = jnp.where(varies, spread, jnp.inf).min(), spread.max()
        # A feature that never varied counts in the largest unit, should it vary later.
        each = jnp.where(varies, spread, largest) * jnp.sqrt(varies.mean())
        each_its_own = self.units == "mixed" or len(self.shape) == 2
        mixed = varies.any() & ((largest > _APART * smallest) | each_its_own)
        mixed = mixed & (self.units != "same" and not self.image)
        scale = jnp.where(mixed, each, common)
        # Beside features that vary by little, the rounding of a large constant would look like variation.
        rounding = 100 * rounding.reshape(-1, self.shape[-1]).max(axis=0)
        return jnp.where(varies, scale, jnp.maximum(scale, rounding)), mixed


def _fewer(size: int) -> int:
    """About 16 pixels of an axis that has more, each standing for the same whole number of its pixels."""
    return -(-size // max(1, int(size / _PIXELS + 0.49)))


def _moments(
    rows: Float[Array, "n *s"], mask: Bool[Array, "n"]
) -> tuple[Float[Array, "*s"], Float[Array, "*s"], Float[Array, "*s"]]:
    """Mean, variance and rounding error of every element where `mask` is True.

    Variance that is only rounding is 0; elsewhere the rounding error is 0.
    """
    count, there = jnp.maximum(mask.sum(), 1), mask.reshape(-1, *[1] * (rows.ndim - 1))
    # Relative to one row, so that what never varies is exactly 0 however large it is.
    base = rows[jnp.argmax(mask)]
    apart = jnp.where(there, rows - base[None], 0)
    mean = apart.sum(axis=0) / count
    variance = jnp.where(there, jnp.square(apart - mean[None]), 0).sum(axis=0) / count
    rounding = ROUNDING * jnp.where(there, jnp.abs(rows), 0).max(axis=0)
    varies = variance > jnp.square(rounding)
    return base + mean, jnp.where(varies, variance, 0), jnp.where(varies | (variance == 0), 0, rounding)


def _blurring(size: int, few: int, blur: Float[Array, ""]) -> Float[Array, "{few} {size}"]:
    """The matrix that blurs one axis of `size` pixels by a Gaussian and samples it at `few` places, evenly spread.

    The mean brightness stays what it is, and all light of a pixel stays within the image. If it were lost beyond the
    edge, a thing at the edge would look fainter instead of farther out, and the map would be folded there.
    """
    width = jnp.maximum(blur * size, 0.5 * size / few if few < size else 0.1)  # at least the width of what is sampled
    centres = (jnp.arange(few) + 0.5) * (size / few) - 0.5
    weight = jnp.exp(-jnp.square((centres[:, None] - jnp.arange(size)[None, :]) / width) / 2)
    return weight / weight.sum(axis=0, keepdims=True) * (few / size)


def principal_components(
    rows: Float[Array, "n p"], mask: Bool[Array, "n"], dim: int
) -> tuple[Float[Array, "p {dim}"], Float[Array, "{dim}"]]:
    """Directions of the leading principal components of centred rows where `mask` is True, and their variances.

    By subspace iteration: each round passes twice over the rows, whatever their number and length. The direction of a
    component without any variance is 0.
    """
    count = jnp.maximum(mask.sum(), 1)
    rows = jnp.where(mask[:, None], rows, 0)
    # A few more directions than needed make the iteration converge faster.
    width = min(dim + 8, rows.shape[1])
    start = jnp.linalg.qr(jax.random.normal(plain_key(0), (rows.shape[1], width)))[0]

    def refine(_: Int[Array, ""], basis: Float[Array, "p w"]) -> Float[Array, "p w"]:
        return jnp.linalg.qr(rows.T @ (rows @ basis))[0]

    with jax.default_matmul_precision("float32"):
        basis = jax.lax.fori_loop(0, 20, refine, start)
        scores = rows @ basis
        variance, turn = jnp.linalg.eigh(scores.T @ scores / count)
        variance, turn = variance[::-1][:dim], turn[:, ::-1][:, :dim]
        varies = variance > 1e-6 * variance[0]  # less is rounding
        return basis @ jnp.where(varies[None], turn, 0), jnp.where(varies, variance, 0)
